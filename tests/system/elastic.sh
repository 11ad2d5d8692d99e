#!/usr/bin/env bash
# Ranks by arrival, MIN:MAX pods, restarts within a period.
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/pods.sh"
body='echo "up $TORCHELASTIC_RESTART_COUNT $RANK/$WORLD_SIZE $GROUP_RANK/$GROUP_WORLD_SIZE"
      while [ ! -e '"$T"'/go$TORCHELASTIC_RESTART_COUNT ]; do sleep .05; done'

# auto N NNODES ARGS...: pod N of this test, without a node rank
auto()
{
    local r=$1 n=$2
    shift 2
    fresh "$T/pod$r.out" "$T/pod$r.err"
    timeout -k 5 120 "$agent" --nnodes "$n" --node-rank auto \
        --master-addr 127.0.0.1 --barrier-port "$barrier_port" "${fast[@]}" \
        "$@" >"$T/pod$r.out" 2>"$T/pod$r.err" </dev/null &
    pod_pid[$r]=$!
}

for i in 0 1 2; do auto $i 3 --nproc 2 -- sh -c 'echo $RANK/$WORLD_SIZE'; done
ended 0 1 2
is "three pods without a rank" "$codes" '0 0 0'
is "each rank is there once" "$(cat "$T"/pod?.out | cut -d' ' -f2 | sort |
    tr '\n' ' ')" '0/6 1/6 2/6 3/6 4/6 5/6 '
is "one of them coordinates" "$(cat "$T"/pod?.err | grep -c \
    'node rank [12] arrived')" 2

# A re-created pod without a rank gets the lost one's.
next_job
for i in 0 1; do auto $i 2 -- sh -c "$body"; done
for i in 0 1; do wait_for wrote $i 'up 0'; done
lost=1
said 1 'node rank 0 arrived' && lost=0
kill -9 "$(agent_of $lost)"
wait_for said $((1 - lost)) 'node rank 1 .*(closed|went away)'
auto $lost 2 -- sh -c "$body"
for i in 0 1; do wait_for wrote $i 'up 1'; done
touch "$T/go1"
ended 0 1
is "a re-created pod takes the lost rank" "$codes" '0 0'
has "it is told which" "$T/pod$lost.err" 'this pod is node rank 1'
rm -f "$T"/go*

# One without a rank that is refused is not just missing.
next_job
auto 0 2 --barrier-timeout 5s -- true
wait_for said 0 'node rank 0 arrived'
auto 1 2 --job-id other -- true
ended 1 0
is "a pod of another job, without a rank: refused" "$codes" '77 200'
has "the verdict says that one was" "$T/pod0.err" \
    'error: .*node rank 1 not seen yet; a pod refused \(wrong job id; 127\.'

# MIN:MAX: start with MIN after the last call, grow, shrink.
next_job
opts=(--last-call 500ms --rejoin-timeout 60s)
for r in 0 2; do pod $r 2:3 "${opts[@]}" -- sh -c "$body"; done
for r in 0 2; do wait_for wrote $r 'up 0'; done
ok "two of three start after the last call" wrote 2 'up 0 1/2 1/2'
pod 1 2:3 "${opts[@]}" -- sh -c "$body"
for r in 0 1 2; do wait_for wrote $r 'up 1'; done
ok "a third pod makes the next round larger" wrote 1 'up 1 1/3 1/3'
ok "node ranks keep their order" wrote 2 'up 1 2/3 2/3'
kill -9 "$(agent_of 1)"
for r in 0 2; do wait_for wrote $r 'up 2'; done
ok "without it the job goes on, smaller" wrote 2 'up 2 1/2 1/2'
touch "$T/go2"
ended 0 2
is "and ends with 0" "$codes" '0 0'
hasnt "nothing of this used up the budget" "$T/pod0.err" '1 restart used'
rm -f "$T"/go*
next_job
pod 0 2:3 --barrier-timeout 1s -- true
ended 0
is "less than MIN is not enough" "$codes" 200

timeout 60 "$agent" --max-restarts 2/1h "${fast[@]}" -- sh -c 'echo s; exit 4' \
    >"$T/out" 2>"$T/err"
is "--max-restarts 2/1h: two restarts" "$? $(grep -c s "$T/out")" '4 3'
timeout 60 "$agent" --max-restarts 1/300ms "${fast[@]}" -- sh -c '
    echo s; sleep .4; [ $TORCHELASTIC_RESTART_COUNT = 3 ] || exit 4' \
    >"$T/out" 2>"$T/err"
is "older ones do not count" "$? $(grep -c s "$T/out")" '0 4'
