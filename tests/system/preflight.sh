#!/usr/bin/env bash
# agent preflight, and --preflight in run: real mounts, limits and networks.
. "$(dirname "$0")/../lib/tap.sh"

pre() { timeout -k 5 60 "$agent" preflight "$@" >"$T/out" 2>"$T/err"; rc=$?; }
run() { timeout -k 5 60 "$agent" "$@" >"$T/out" 2>"$T/err" </dev/null; rc=$?; }
# get EXPRESSION: of the JSON in $T/out
get()
{
    python3 -c 'import json, sys
p = json.load(open(sys.argv[1]))
f = [dict(x, check=c["check"]) for c in p["checks"] for x in c["findings"]]
print(eval(sys.argv[2]))' "$T/out" "$1"
}

pre --preflight env --json
is "nothing is wrong: 0" "$rc $(get 'p["result"], p["code"], p["preflight"]')" \
    "0 ('pass', 0, 1)"
pre
has "all checks are there" "$T/out" '^(pass|warn|fatal|retryable) +storage '
has "and the sum" "$T/out" '^preflight: [a-z]+ \([0-9]+\): '
pre --json
is "each once, and no all-reduce unless it is asked for" \
    "$(get '[c["check"] for c in p["checks"]]')" \
    "['shm', 'memlock', 'limits', 'iface', 'dns', 'storage', 'env', 'gpu', 'rdma', 'nccl']"
pre --help
ok "its help says so" test "$(tr -s ' \n' ' ' <"$T/out" | grep -c \
    'agent preflight by default: all but allreduce')" = 1
NCCL_SOCKET_IFNAME=eth99 pre --preflight iface --json
is "a missing interface is fatal: 30" "$rc $(get 'p["result"]')" "30 fatal"
ok "it is named, and those that are there" \
    test "$(get '"eth99" in f[0]["what"] and "lo" in f[0]["fix"]')" = True
ulimit -Sn 600
pre --preflight limits --json
is "few open files are a warning: 10" "$rc $(get 'f[0]["level"]')" "10 warn"
ulimit -Sn "$(ulimit -Hn)"
pre --preflight dns --nnodes 2 --node-rank 1 --master-addr no.invalid
is "a name that does not resolve may come: 20" "$rc" 20
has "with the manifest's lines" "$T/out" '\| +publishNotReadyAddresses: true'
pre --preflight storage --source "$T/none" --dataset "$T/none.json"
is "a source that is not there: 30" "$rc" 30
pre --preflight nonsense
is "a word that is no check: 64" "$rc" 64
has "and which there are" "$T/err" "'nonsense' is no check; there are shm, "
pre --preflight off
is "nothing to check: 64" "$rc" 64
pre --json --preflight shm word
is "it takes no words" "$rc" 64
AGENT_PREFLIGHT=env AGENT_NNODES=2 pre --json
is "it reads the variables of run" "$(get '[c["check"] for c in p["checks"]]')" \
    "['env']"
"$agent" preflight --preflight env >/dev/full 2>"$T/err"
is "an answer that cannot be written: 202" "$?" 202

# run: by default it warns, and goes on.
NCCL_SOCKET_IFNAME=eth99 run -- echo here
is "by default the job goes on" "$rc $(cat "$T/out")" "0 [rank0] here"
has "after a warning" "$T/err" 'warning: preflight: iface: .*eth99.*going on'
NCCL_SOCKET_IFNAME=eth99 run --preflight off -- echo here
hasnt "off is off" "$T/err" 'preflight'
NCCL_SOCKET_IFNAME=eth99 run --preflight env,shm --report "$T/report" -- \
    touch "$T/started"
is "a list makes it fatal: 69" "$rc" 69
ok "before any worker" test ! -e "$T/started"
has "the verdict says what and how to mend it" "$T/err" \
    'failed with exit code 69 \(preflight\): preflight: env: .*eth99.*; fix:'
has "the report, too" "$T/report" '"class": "preflight"'
NCCL_SOCKET_IFNAME=eth99 AGENT_PREFLIGHT=env run --exit-map preflight=3 -- true
is "by the variable, and with --exit-map" "$rc" 3
ulimit -Sn 600
run --preflight limits,storage -- echo here
is "a warning lets it go on" "$rc $(cat "$T/out")" "0 [rank0] here"
has "and is said" "$T/err" 'warning: preflight: limits: '
ulimit -Sn "$(ulimit -Hn)"

# Two pods: a fatal finding of one is the job's end, at once, on both.
port=$(free_port)
pod() # RANK OPTIONS: in the background
{
    local r=$1
    shift
    timeout -k 5 60 "$agent" --nnodes 2 --node-rank "$r" --master-addr \
        127.0.0.1 --barrier-port "$port" --mesh off "$@" -- \
        touch "$T/started$r" >"$T/out$r" 2>"$T/err$r" </dev/null &
}
pod 0
first=$!
NCCL_SOCKET_IFNAME=eth99 pod 1 --preflight iface
wait $first
is "pods: the other pod ends with 69" "$?" 69
wait $!
is "and so does the one" "$?" 69
has "and it says whose fault it was" "$T/err0" 'node rank 1 .*eth99'
ok "no worker was started" test ! -e "$T/started0" -a ! -e "$T/started1"

# Told to stop while a check hangs: no worker, 143, and nothing is left.
mkdir "$T/bin"
printf '#!/bin/sh\necho $$ >"%s/probe.pid"; exec sleep 60\n' "$T" \
    >"$T/bin/agent-probe"
chmod +x "$T/bin/agent-probe"
cp "$agent" "$T/bin/agent"
"$T/bin/agent" --preflight gpu -- touch "$T/started" >"$T/out" 2>"$T/err" \
    </dev/null &
a=$!
ok "a check runs" until_true 20 test -s "$T/probe.pid"
kill $a
wait $a
is "TERM ends it" "$?" 143
ok "with the check" until_true 20 gone "$(cat "$T/probe.pid")"
ok "and without a worker" test ! -e "$T/started"

# Two GPUs, each shared by two workers.
cat >"$T/bin/agent-probe" <<'P'
#!/bin/sh
echo '{"gpu": {"found": true, "gpus": [{"index": 0}, {"index": 1}]}}'
P
CUDA_VISIBLE_DEVICES=0,1 timeout -k 5 60 "$T/bin/agent" preflight \
    --preflight gpu --nproc gpu --procs-per-gpu 2 >"$T/out" 2>"$T/err"
is "workers that share GPUs are not too many" "$?" 0
CUDA_VISIBLE_DEVICES=0,1,2 timeout -k 5 60 "$T/bin/agent" preflight \
    --preflight gpu --nproc gpu --procs-per-gpu 2 >"$T/out" 2>"$T/err"
is "more of them than the driver's GPUs take are" "$?" 30

# An all-reduce over all pods, with workers that stand for agent-allreduce.
cat >"$T/bin/agent-allreduce" <<'P'
#!/bin/sh
echo "$*" >"$SAW.$RANK"
[ "$RANK" != 0 ] || echo '{"avg_busbw": 2.5, "ok": true}'
exit "${CODE:-0}"
P
chmod +x "$T/bin/agent-allreduce"
all() # ARGS: with agent-allreduce beside agent
{
    rm -f "$T"/saw.*
    SAW=$T/saw timeout -k 5 60 "$T/bin/agent" preflight --json "$@" \
        >"$T/out" 2>"$T/err"
    rc=$?
}
AGENT_DATASET=$T/none.json AGENT_MAX_RESTARTS=7 AGENT_LOG_DIR=$T/no/where \
    all --preflight allreduce=2 --nproc 3
is "an all-reduce of all ranks, with a floor" "$rc $(get 'f[0]["what"]')" \
    "0 an all-reduce over 3 ranks was right, with 2.500 GB/s of bus bandwidth through host memory"
is "each rank was one" "$(cat "$T"/saw.* | sort | uniq -c | tr -s ' ')" \
    " 3 --json -b 1M -e 64M -f 8"
all --preflight allreduce=2.6
is "below the floor: 20" "$rc $(get 'f[0]["what"]')" \
    "20 an all-reduce over 1 rank reaches 2.500 GB/s of bus bandwidth, and 2.600 are asked for"
CODE=1 all --preflight allreduce
is "a wrong result: 20" "$rc" 20
has "is said" "$T/out" 'failed: a result is wrong \(1\)'
CODE=78 all --preflight allreduce
is "pods that disagree: 30" "$rc" 30
has "with what mends that" "$T/out" '"fix": "give all pods the same --nnodes'
port=$(free_port)
for r in 0 1; do
    SAW=$T/saw timeout -k 5 60 "$T/bin/agent" --nnodes 2 --node-rank $r \
        --master-addr 127.0.0.1 --barrier-port "$port" --mesh off \
        --preflight allreduce -- echo trains >"$T/out$r" 2>"$T/err$r" \
        </dev/null &
    pods[r]=$!
done
wait "${pods[0]}"
is "two pods in run: the all-reduce, then the job" "$? $(cat "$T/out0")" \
    "0 [rank0] trains"
wait "${pods[1]}"
is "on both" "$? $(cat "$T/out1")" "0 [rank1] trains"
SAW=$T/saw timeout -k 5 60 "$T/bin/agent" --barrier-port 65535 \
    --preflight allreduce -- echo trains >"$T/out" 2>"$T/err" </dev/null
is "also where no port follows the barrier's" "$? $(cat "$T/out")" \
    "0 [rank0] trains"
# One that is lost once the job has begun, and comes back: the others make no
# all-reduce any more. Pod 0, too, which learns that of the others.
begun() # RANK OPTIONS
{
    local r=$1
    shift
    SAW=$T/saw "$T/bin/agent" --nnodes 2 --node-rank "$r" --master-addr \
        127.0.0.1 --barrier-port "$port" --barrier-timeout 30s --mesh off \
        --restart-backoff 10ms:50ms "$@" -- sh -c '
            [ "$TORCHELASTIC_RESTART_COUNT" = 0 ] || exit 0
            touch "$0.$RANK"; exec sleep 100' "$T/up" \
        >"$T/out$r" 2>"$T/err$r" </dev/null &
    pods[r]=$!
}
for lost in 1 0; do
    port=$(free_port)
    rm -f "$T"/up.*
    begun 0 --preflight env,allreduce
    begun 1 --preflight allreduce
    ok "a job has begun" until_true 30 test -e "$T/up.0" -a -e "$T/up.1"
    kill -KILL "${pods[lost]}"
    wait "${pods[lost]}" 2>"$T/null"
    begun $lost --preflight "$([ $lost = 1 ] && echo env,)allreduce"
    wait "${pods[0]}"
    codes=$?
    wait "${pods[1]}"
    is "pod $lost was lost and comes back: no all-reduce" "$codes $?" "0 0"
    has "that is said" "$T/err$lost" 'preflight: the job has begun: '
done
# A pod that is lost meanwhile.
printf '#!/bin/sh\necho here >"%s/at.$RANK"; exec sleep 100\n' "$T" \
    >"$T/bin/agent-allreduce"
port=$(free_port)
for r in 0 1; do
    "$T/bin/agent" preflight --preflight allreduce --nnodes 2 --node-rank $r \
        --barrier-port "$port" --rejoin-timeout 100ms >"$T/out$r" \
        2>"$T/err$r" </dev/null &
    pods[r]=$!
done
ok "all are at it" until_true 20 test -s "$T/at.0" -a -s "$T/at.1"
kill -KILL "${pods[1]}"
ok "--rejoin-timeout is how long it is waited for" \
    until_true 30 gone "${pods[0]}"
kill "${pods[0]}" 2>"$T/null"
wait "${pods[0]}"
is "it is retryable" "$?" 20
has "and told so" "$T/out0" 'a pod was lost and did not come back'
rm "$T/bin/agent-allreduce"
PATH=/usr/bin:/bin all --preflight allreduce
is "without agent-allreduce it cannot be: 30" "$rc" 30
has "and says what is missing" "$T/out" 'agent-allreduce is not installed'

if ! unshare -m true 2>/dev/null; then
    skip "mounts of its own" "unshare -m is not permitted"
    exit 0
fi

# inside SIZE ARGS: with a /dev/shm of that size
inside()
{
    local size=$1
    shift
    unshare -m sh -c 'mount -t tmpfs -o size=$0 t /dev/shm; exec "$@"' \
        "$size" timeout -k 5 60 "$agent" "$@" >"$T/out" 2>"$T/err" </dev/null
    rc=$?
}
inside 16m preflight --preflight shm --nproc 2 --json
is "P60: a /dev/shm of 16 MiB is fatal" "$rc $(get 'f[0]["check"]')" "30 shm"
ok "with its size, and the lines for Kubernetes" test "$(get \
    '"16 MiB" in f[0]["what"] and "medium: Memory" in f[0]["yaml"]')" = True
inside 64m preflight --preflight shm --nproc 2
is "docker's 64 MiB for two workers is a warning" "$rc" 10
inside 64m preflight --preflight shm --nproc 8
is "and for eight it is fatal: it scales" "$rc" 30
inside 1g preflight --preflight shm --nproc 2
is "1 GiB does for two" "$rc" 0
inside 16m --nproc 2 -- true
is "in run it warns by default" "$rc" 0
has "of /dev/shm" "$T/err" 'warning: preflight: shm: /dev/shm has 16 MiB'
inside 16m --nproc 2 --preflight shm -- touch "$T/started"
is "and ends it where it was asked for" "$rc" 69
has "with the lines for Kubernetes" "$T/err" '\| +medium: Memory'

# Read-only and full volumes, and one that another pod writes to just now, whose
# processes have the same ids.
mkdir "$T/vol"
if unshare -pf true 2>/dev/null; then
    touch "$T/vol/.agent-preflight-"{1..9}
    TMPDIR=$T/vol unshare -pf --kill-child timeout -k 5 60 "$agent" preflight \
        --preflight storage >"$T/out" 2>"$T/err" </dev/null
    is "pods that share a folder are in no other's way" "$?" 0
    rm "$T/vol/.agent-preflight-"?
else
    skip "pods that share a folder" "unshare -pf is not permitted"
fi
volume() # MOUNT OPTIONS, ARGS
{
    local opts=$1
    shift
    unshare -m sh -c 'mount -t tmpfs -o size=$0 t "$1"; dir=$1; shift
        [ -z "$FILL" ] || head -c 64K /dev/zero >"$dir/f" 2>/dev/null
        mount -o remount,"$0" "$dir"; exec "$@"' "$opts" "$T/vol" \
        timeout -k 5 60 "$agent" "$@" >"$T/out" 2>"$T/err" </dev/null
    rc=$?
}
FILL='' volume 2m,ro preflight --preflight storage --log-dir "$T/vol/logs" --json
is "a read-only volume is fatal" "$rc $(get '[x["level"] for x in f]')" \
    "30 ['fatal', 'pass']"
ok "it says what to change" test \
    "$(get '"readOnly" in f[0]["fix"] and "emptyDir" in f[0]["yaml"]')" = True
mkdir "$T/it's: #1"
unshare -m sh -c 'mount -t tmpfs -o ro t "$0"; exec "$@"' "$T/it's: #1" \
    timeout -k 5 60 "$agent" preflight --preflight storage --json \
    --log-dir "$T/it's: #1" >"$T/out" 2>"$T/err" </dev/null
ok "whatever its name is, as YAML has it" test \
    "$(get "\"/it''s: #1'\\n\" in f[0][\"yaml\"]")" = True
FILL=1 volume 64k,rw preflight --preflight storage --log-dir "$T/vol"
is "a full one may be emptied: 20" "$rc" 20
has "by its name" "$T/out" "retryable +storage .*--log-dir: .*No space left"

# Two interfaces, and NCCL would take the wrong one.
two_ways() # ARGS
{
    unshare -n sh -c 'ip link set lo up
        for i in "aaa0 10.9.0.1" "net1 10.8.0.1"; do set -- $i "$@"
            ip link add $1 type veth peer name $1p; ip link set $1p up
            ip addr add $2/24 dev $1; ip link set $1 up; shift 2; done
        exec "$@"' - timeout 60 "$agent" preflight --preflight iface --nnodes 2 \
        --node-rank 1 --master-addr 10.8.0.2 "$@" >"$T/out" 2>"$T/err"
    rc=$?
}
if unshare -n ip link show lo >/dev/null 2>&1; then
    two_ways --json
    is "P62: NCCL's interface is not the one that leads to pod 0" "$rc" 10
    ok "both are named, and how to set it" test "$(get '"leave by net1" in \
        f[0]["what"] and "take aaa0" in f[0]["what"] and \
        "NCCL_SOCKET_IFNAME==net1" in f[0]["fix"]')" = True
    two_ways --nccl-ifname barrier
    is "unless agent is to tell it that one" "$rc" 0
    NCCL_SOCKET_IFNAME=aaa two_ways --nccl-ifname barrier
    is "and may, for what is set stays" "$rc" 10
    unshare -n timeout 60 "$agent" preflight --preflight iface --nnodes 2 \
        --node-rank 1 --master-addr 10.8.0.2 >"$T/out" 2>"$T/err"
    is "no interface but loopback: 20" "$?" 20
else
    skip "networks of its own" "unshare -n is not permitted"
fi
