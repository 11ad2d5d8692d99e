#!/usr/bin/env bash
# Strangers at the barrier's port: they neither delay nor crash it, and a pod
# gets through on its first attempt.
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/pods.sh"
strangers="python3 $top/tests/lib/strangers.py"
echo 'the secret of this test' >"$T/token"
chmod 600 "$T/token"
helpers=()

# stay NAME ARGS...: a helper in the background, once it says "ready"
stay()
{
    local name=$1
    shift
    fresh "$T/$name"
    $strangers "$@" >"$T/$name" 2>"$T/$name.err" &
    helpers+=($!)
    until_true 60 grep -q ready "$T/$name" || sed 's/^/# /' "$T/$name.err"
}
send_away()
{
    kill "${helpers[@]}" 2>/dev/null
    wait "${helpers[@]}" 2>/dev/null
    helpers=()
}
sockets_of() { ls -l "/proc/$(agent_of "$1")/fd" | grep -c socket: ; }
few_sockets() { [ "$(sockets_of 0)" -le "$1" ]; }
first_attempt() { ! said "$1" 'retrying'; }

for how in open token; do
    args=()
    [ $how = open ] || args=(--token-file "$T/token")
    next_job
    pod 0 3 "${args[@]}" -- sh -c 'echo $RANK'
    wait_for said 0 'node rank 0 arrived'
    # Of one address, 5,000; and of 200 addresses.
    stay idle1 idle "$barrier_port" 5000
    is "$how: 5,000 idle connections are there" "$(cat "$T/idle1")" ready
    ok "$how: pod 0 keeps a share of them" few_sockets 300
    pod 1 3 "${args[@]}" -- sh -c 'echo $RANK'
    wait_for said 0 'node rank 1 arrived'
    ok "$how: a pod of the same address gets through at once" first_attempt 1
    stay idle2 idle "$barrier_port" 3000 200
    ok "$how: nor more of many addresses" few_sockets 1100
    $strangers noise "$barrier_port" 130
    pod 2 3 "${args[@]}" -- sh -c 'echo $RANK'
    ended 0 1 2
    is "$how: the job runs" "$codes" '0 0 0'
    ok "$how: the last pod got through at once" first_attempt 2
    is "$how: all ranks ran" "$(cat "$T"/pod?.out | cut -d' ' -f2 | sort |
        tr '\n' ' ')" '0 1 2 '
    hasnt "$how: no pod was taken for lost" "$T/pod0.err" 'closed its conn|silent'
    has "$how: what was dropped is told" "$T/pod0.err" \
        'warning: too many connections that are no pods'
    ok "$how: and that only now and then" \
        test "$(wc -l <"$T/pod0.err")" -lt 40
    send_away
done

# A good HELLO, a byte at a time: one deadline for all of it.
next_job
pod 0 2 --token-file "$T/token" -- true
wait_for said 0 'node rank 0 arrived'
$strangers drip "$barrier_port" >"$T/drip" &
drip_pid=$!

# Descriptors run out: who is no pod has to go, the newest gets in.
next=$barrier_port
barrier_port=$(free_port)
timeout -k 5 120 prlimit --nofile=120:120 "$agent" --nnodes 3 --node-rank 0 \
    --master-addr 127.0.0.1 --barrier-port "$barrier_port" \
    --token-file "$T/token" -v -- true \
    >"$T/few.out" 2>"$T/few.err" </dev/null &
few_pid=$!
until_true 30 grep -q 'node rank 0 arrived' "$T/few.err"
has "too few descriptors are told" "$T/few.err" \
    'warning: the limit of open files, 120 .* 3 pods'
pid=$(child_of $few_pid)
stay idle3 idle "$barrier_port" 20 20
n=$(ls "/proc/$pid/fd" | wc -l)
prlimit --pid "$pid" --nofile=$n:120
stay idle4 idle "$barrier_port" 300 20
few() { timeout -k 5 60 "$agent" --nnodes 3 --node-rank "$1" --master-addr \
    127.0.0.1 --barrier-port "$barrier_port" --token-file "$T/token" -- true \
    2>"$T/few$1.err" </dev/null; }
few 1 &
few1_pid=$!
until_true 30 grep -q 'node rank 1 arrived' "$T/few.err"
has "with no descriptor left a pod gets in" "$T/few.err" 'node rank 1 arrived'
has "for another had to go" "$T/few.err" 'closed .*: no descriptors left'
hasnt "at its first attempt" "$T/few1.err" retrying
prlimit --pid "$pid" --nofile=120:120
few 2
is "and so does another" "$?" 0
wait $few1_pid $few_pid
is "the job runs" "$?" 0
send_away

# Workers get the limit that agent was given, not the one it needs.
barrier_port=$(free_port)
timeout 60 prlimit --nofile=300: "$agent" --nnodes 2 --node-rank 0 \
    --master-addr 127.0.0.1 --barrier-port "$barrier_port" -- \
    sh -c 'ulimit -Sn; echo "agent $(awk "/open files/{print \$4}" \
    /proc/$PPID/limits)"' >"$T/limit.out" 2>"$T/limit.err" </dev/null &
limit_pid=$!
timeout 60 "$agent" --nnodes 2 --node-rank 1 --master-addr 127.0.0.1 \
    --barrier-port "$barrier_port" -- true 2>"$T/limit1.err"
wait $limit_pid
has "a worker gets the limit that agent was given" "$T/limit.out" '\] 300$'
is "agent itself has the hard one" "$(sed -n 's/.* agent //p' "$T/limit.out")" \
    "$(ulimit -Hn)"

wait $drip_pid
is "a slow drip ends in time" "$(cat "$T/drip")" closed
barrier_port=$next
pod 1 2 --token-file "$T/token" -- true
ended 0 1
is "and disturbs nobody" "$codes" '0 0'
