#!/usr/bin/env bash
# Several pods: the barrier, rounds, one restart for all, one code for all.
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/pods.sh"

# Pods start in any order; ranks, world size and the port are the job's.
pod 2 3 --nproc 1 -- sh -c 'echo $RANK/$WORLD_SIZE $GROUP_RANK $MASTER_PORT'
pod 1 3 --nproc 3 -- sh -c 'echo $RANK/$WORLD_SIZE $GROUP_RANK $MASTER_PORT'
wait_for said 1 'node rank 0 at 127.0.0.1:[0-9]+: .*refused'
pod 0 3 --nproc 2 -- sh -c 'echo $RANK/$WORLD_SIZE $GROUP_RANK $MASTER_PORT'
ended 0 1 2
is "three pods end with 0" "$codes" '0 0 0'
is "ranks are contiguous over pods of different size" \
    "$(cat "$T"/pod?.out | cut -d' ' -f2,3 | sort | tr '\n' ' ')" \
    '0/6 0 1/6 0 2/6 1 3/6 1 4/6 1 5/6 2 '
is "one MASTER_PORT for all" \
    "$(cat "$T"/pod?.out | cut -d' ' -f4 | sort -u | wc -l)" 1

# Two agents on one machine need not say where pod 0 is.
next_job
for r in 0 1; do
    timeout -k 5 60 "$agent" --nnodes 2 --node-rank $r --barrier-port \
        "$barrier_port" -- true >"$T/pod$r.out" 2>"$T/pod$r.err" &
    pod_pid[$r]=$!
done
ended 0 1
is "--master-addr is this machine by default" "$codes" '0 0'
has "which is told where pod 0 is looked for" "$T/pod1.err" \
    'warning: no --master-addr: .* at 127.0.0.1'
hasnt "and not by pod 0 itself" "$T/pod0.err" 'no --master-addr'

# A name that does not resolve yet.
if unshare -m true 2>/dev/null; then
    next_job
    cp /etc/hosts "$T/hosts"
    timeout 60 unshare -m sh -c "mount --bind '$T/hosts' /etc/hosts
        exec '$agent' --nnodes 2 --node-rank 1 --master-addr zero.example \
        --barrier-port $barrier_port -- true" 2>"$T/pod1.err" &
    pod_pid[1]=$!
    wait_for said 1 'zero.example:[0-9]+: the name does not resolve'
    pod 0 2 -- true
    echo "127.0.0.1 zero.example" >>"$T/hosts"
    ended 0 1
    is "a name that appears late is waited for" "$codes" '0 0'
else
    skip "a name that appears late" "unshare -m is not permitted here"
fi

# One worker fails anywhere: all workers of all pods start anew, once.
next_job
for r in 0 1; do
    pod $r 2 --nproc 2 -- sh -c 'echo start $TORCHELASTIC_RESTART_COUNT
        [ $TORCHELASTIC_RESTART_COUNT = 0 ] || exit 0
        touch '"$T"'/is-up.$RANK
        [ $RANK = 3 ] || exec sleep 60
        until [ -e '"$T"'/is-up.0 ] && [ -e '"$T"'/is-up.1 ] &&
            [ -e '"$T"'/is-up.2 ]; do sleep .02; done
        exit 7'
done
ended 0 1
is "a failure on pod 1 is mended by one restart" "$codes" '0 0'
is "each worker started twice" "$(cat "$T"/pod?.out | grep -c start)" 8
has "pod 0 names the rank on the other pod" "$T/pod0.err" 'rank 3 .*node rank 1'
has "the summary counts it" "$T/pod0.err" '1 restart used'
next_job
for r in 0 1 2; do
    pod $r 3 --max-restarts 1 -- sh -c '[ $RANK = 1 ] && exit 9; exec sleep 60'
done
ended 0 1 2
is "the same final code everywhere" "$codes" '9 9 9'
for r in 0 1 2; do
    has "pod $r names the cause" "$T/pod$r.err" 'exit code 9: .*rank 1 .*node rank 1'
done
next_job
pod 0 2 -- "$T/missing"
pod 1 2 -- "$T/missing"
ended 0 1
is "a missing command is everyone's 127" "$codes" '127 127'

# A pod that finishes early waits; pod 0 leaves last.
next_job
pod 0 2 -- sh -c 'echo 0'
pod 1 2 -- sh -c 'while [ ! -e '"$T"'/go ]; do sleep .05; done'
wait_for wrote 0 0
ok "pod 0 waits for the other" kill -0 "${pod_pid[0]}"
touch "$T/go"
ended 0 1
is "and both end with 0" "$codes" '0 0'

# Who is missing, and the time-out.
next_job
pod 0 4 --barrier-timeout 2s -- true
wait_for said 0 '.'
pod 1 4 --barrier-timeout 20s -- true
ended 0 1
is "not all arrived in time" "$codes" '200 200'
has "pod 0 names the missing" "$T/pod0.err" 'node ranks 2-3 not seen yet'
has "so does pod 1" "$T/pod1.err" 'node ranks 2-3 not seen yet'
limit='in time \(--barrier-timeout 2 s\)'
has "and which option was too short" "$T/pod0.err" "error: .*$limit: "
has "pod 1, too" "$T/pod1.err" "error: .*$limit: "
has "which heard who came, too" "$T/pod1.err" \
    'waiting: node ranks 0-1 arrived; 2 of 4 pods are there; for at most [12] s'
next_job
pod 1 2 --barrier-timeout 1s -- true
ended 1
is "pod 0 was never reached" "$codes" 200
has "it is named, with the reason" "$T/pod1.err" \
    'in time \(--barrier-timeout 1 s\): node rank 0 at 127.0.0.1:[0-9]+ .*refused'
next_job
pod 0 3 --barrier-timeout 30s -- true
pod 1 3 --barrier-timeout 30s -- true
wait_for said 0 'waiting: node rank 2 not seen yet'
wait_for said 1 'waiting: node rank 2 not seen yet'
ok "every 10 s each pod says who is missing" said 1 'waiting: node rank 2'
left='not seen yet; for at most [0-9]+ s more \(--barrier-timeout\)'
has "and for how long yet, and which option says so" "$T/pod1.err" "$left"
pod 2 3 -- true
ended 0 1 2
is "and the late one completes the job" "$codes" '0 0 0'

# Disagreement.
next_job
pod 0 2 -- echo ran
pod 1 3 -- echo ran
ended 0 1
is "different --nnodes: 78 on both" "$codes" '78 78'
has "both values on pod 0" "$T/pod0.err" 'nnodes 3.* says 2'
has "both values on pod 1" "$T/pod1.err" 'nnodes 3.* says 2'
is "no worker ran" "$(cat "$T"/pod?.out)" ''
next_job
pod 0 2 --job-id a --barrier-timeout 5s -- true
pod 1 2 --job-id b -- true
ended 1
is "another job's id: refused alone" "$codes" 77
has "with both ids" "$T/pod1.err" "'b'.*'a'"
pod 1 2 --job-id a -- true
ended 0 1
is "and the job goes on" "$codes" '0 0'
next_job
pod 0 2 -- sh -c 'while [ ! -e '"$T"'/go2 ]; do sleep .05; done'
pod 1 2 -- sh -c 'echo up; while [ ! -e '"$T"'/go2 ]; do sleep .05; done'
wait_for wrote 1 up
cp "$T/pod1.err" "$T/first.err"
timeout 60 "$agent" --nnodes 2 --node-rank 1 --master-addr 127.0.0.1 \
    --barrier-port "$barrier_port" -- true 2>"$T/late.err"
is "a rank held by a live pod: 78 for the newcomer" "$?" 78
has "it is told who holds it" "$T/late.err" 'node rank 1 is held by a live pod'
touch "$T/go2"
ended 0 1
is "the job is not disturbed" "$codes" '0 0'

# The budget is pod 0's, and every pod says so, whatever its own option.
told()
{
    python3 -c 'import json, sys; j = json.load(open(sys.argv[1]))
print(j["restarts_used"], j["restarts_allowed"])' "$T/p$1.json"
}
budget='echo $TORCHELASTIC_MAX_RESTARTS; exit 3'
next_job
pod 0 2 --max-restarts 0 --report "$T/p0.json" -- sh -c "$budget"
pod 1 2 --report "$T/p1.json" -- sh -c "$budget"
ended 0 1
is "no restart is allowed" "$codes" '3 3'
has "so pod 0 says" "$T/pod0.err" '; 0 of 0 restarts used'
has "and pod 1" "$T/pod1.err" '; 0 of 0 restarts used'
is "in their reports, too" "$(told 0), $(told 1)" '0 0, 0 0'
is "and to their workers" "$(cat "$T"/pod?.out | tr '\n' ' ')" \
    '[rank0] 0 [rank1] 0 '
next_job
pod 0 2 --max-restarts 1/1h --report "$T/p0.json" -- sh -c "$budget"
pod 1 2 --report "$T/p1.json" -- sh -c "$budget"
ended 0 1
budget='1 restart used, at most 1 within 60 min'
has "at a round's start, pod 0" "$T/pod0.err" "round 1 starts; $budget"
has "and pod 1" "$T/pod1.err" "round 1 starts; $budget"
has "at the end, pod 0" "$T/pod0.err" "in round 1; $budget"
has "and pod 1 say the same" "$T/pod1.err" "in round 1; $budget"
is "and their reports" "$(told 0), $(told 1)" '1 1, 1 1'
