#!/usr/bin/env bash
# libddp where a rank dies or hangs, and where memory cannot be shared.
. "$(dirname "$0")/../lib/tap.sh"
check=$O/tests/ddp_check
export MASTER_ADDR=127.0.0.1 MASTER_PORT
. "$top/tests/lib/ddp.sh"

for how in auto:1000000 tcp:1000000 tcp:100; do # Large ones, small ones.
    export DDP_TRANSPORT=${how%:*}
    start 4 "$check" loop "${how#*:}"
    ok "$how: 4 ranks are in a loop of all_reduce" \
        until_true 30 said "in the loop" 0 1 2 3
    ok "$how: and share memory, or do not" \
        maps $([ $DDP_TRANSPORT = auto ] && echo 1 || echo 0) 0 1 2 3
    kill -9 "${pids[2]}"
    ok "$how: kill -9 of rank 2: the others fail, long before the \
deadline" ended 3 10 0 1 3
    ok "$how: each names rank 2" \
        said "code -6 peer 2 .*rank 2 died or failed" 0 1 3

    export DDP_TIMEOUT=1500ms
    start 5 "$check" loop "${how#*:}"
    ok "$how: 5 ranks are in a loop of all_reduce" \
        until_true 30 said "in the loop" 0 1 2 3 4
    kill -STOP "${pids[3]}"
    ok "$how: SIGSTOP of rank 3: the others fail at the deadline" \
        ended 3 15 0 1 2 4
    ok "$how: each names rank 3" said \
        "code -5 peer 3 .*after 1.5 s: rank 3 (is silent|has not made)" 0 1 2 4
    kill -CONT "${pids[3]}"
    ok "$how: rank 3 wakes up and learns it" ended 3 15 3
    unset DDP_TIMEOUT
done

# No descriptor is left to connect, or to accept all of the rank before: who
# has the limit is to blame, and says so before the others guess.
export DDP_TIMEOUT=4s
for limit in 7 8 9 10; do
    start 3 bash -c '[ "$RANK" != 1 ] || ulimit -n "$1"
        exec "$2" loop 1' _ $limit "$check"
    ok "ulimit -n $limit on rank 1 alone: all fail" ended 3 30 0 1 2
    ok "... and each names it and the limit" \
        said 'peer 1 .*Too many open files \(see ulimit -n\)' 0 1 2
done
# Rank 0 cannot even listen, and no one else can know why.
n=2 MASTER_PORT=$(free_port)
rank 0 bash -c 'ulimit -n 5; exec "$1" sums' _ "$check"
ok "ulimit -n 5 on rank 0: it fails" ended 3 30 0
ok "... at once, with the limit" \
    said 'cannot listen on .*Too many open files \(see ulimit -n\)' 0
unset DDP_TIMEOUT

pids_of()
{
    local r
    for r; do echo "${pids[r]}"; done
}
# A rank dies, and a launcher has stopped another one before anybody looks:
# who is left names the first of the two, also where its neighbour is the
# second one. One who has sent all its elements over TCP does not need the next
# rank any more in this call: to be needed, they have not made it.
for how in auto:1000000 tcp:1000000 tcp:100; do
    export DDP_TRANSPORT=${how%:*}
    for n in 4 5; do
        dying=(3 $((n == 4 ? 2 : 4))) away=()
        [ "$how" != tcp:1000000 ] || away=("${dying[@]}")
        start $n "$check" loop "${how#*:}" "${away[@]}"
        ok "$how: $n ranks are in a loop, of which one will die" \
            until_true 30 said "in the loop" $(seq 0 $((n - 1)))
        kill -STOP "${pids[@]}"
        for r in "${dying[@]}"; do
            kill -9 "${pids[r]}"
            until_true 10 gone "${pids[r]}"
        done
        left=(2 1 0)
        [ $n = 5 ] || left=(1 0)
        # In small calls one waits for the next one, and hears of it then.
        [ "$how" != tcp:100 ] || kill -CONT $(pids_of "${left[@]}")
        for r in "${left[@]}"; do
            kill -CONT "${pids[r]}" 2>/dev/null
            ok "$how: rank $r of $n wakes up and fails" ended 3 15 $r
            ok "$how: and names rank 3" \
                said "code -6 peer 3 .*rank 3 died or failed" $r
        done
    done
done

# In mid-call all wake up: one may wait for another one that is left. Four know
# each other; of five one may not know of rank 3.
export DDP_TRANSPORT=tcp
for n in 4 5; do
    start $n "$check" loop 1000000
    ok "mid-call: $n ranks are in a loop, of which two will die" \
        until_true 30 said "in the loop" $(seq 0 $((n - 1)))
    kill -STOP "${pids[@]}"
    left=(0 1) second=2 names=3
    [ $n = 4 ] || left=(0 1 2) second=4 names='[34]'
    for r in 3 $second; do
        kill -9 "${pids[r]}"
        until_true 10 gone "${pids[r]}"
    done
    kill -CONT $(pids_of "${left[@]}")
    ok "mid-call: who is left of $n fails" ended 3 15 "${left[@]}"
    ok "mid-call: and names rank $names" \
        said "code -6 peer $names .*rank $names died or failed" "${left[@]}"
done

# Rank 0 has given away all that others need of it, and exits; rank 2 has not
# made the call. That is why the others fail, but they tell of both.
DDP_TIMEOUT=1500ms start 4 "$check" exit
ok "rank 0 exits after its call" ended 0 15 0
ok "the others fail at the deadline" ended 3 15 1 3
ok "they name rank 2, and tell of rank 0" said \
    "code -5 peer 2 .*: rank 2 has not made this call; rank 0 is gone$" 1 3
kill -9 "${pids[2]}"
unset DDP_TRANSPORT

# The same before all have come: rank 2 is not there yet.
n=4 MASTER_PORT=$(free_port) pids=()
rm -f "$T"/out.*
for r in 0 1 3; do rank $r "$check" sums; done
# welcome: rank 0 has answered ranks 1 and 3.
welcome()
{
    [ "$(ss -Htni state established "sport = :$MASTER_PORT" |
        grep -c bytes_sent)" = 2 ]
}
ok "two ranks have come to rank 0" until_true 20 welcome
kill -STOP "${pids[0]}"
for r in 3 1; do
    kill -9 "${pids[r]}"
    until_true 10 gone "${pids[r]}"
done
kill -CONT "${pids[0]}"
ok "rank 0 fails" ended 3 15 0
ok "and names the first one that died" said "peer 3 .*rank 3 left while" 0

# A limit of file size, on one rank: the memory cannot be made.
limited()
{
    ulimit -f 64
    exec "$@"
}
start 3 "$check" loop 1000
ok "3 ranks share memory" until_true 30 maps 1 0 1 2
kill -9 "${pids[@]}"
wait 2>/dev/null
n=3 MASTER_PORT=$(free_port)
rank 1 "$check" sums
rank 2 "$check" sums
rank 0 limited "$check" sums
ok "where rank 0 cannot make the memory, TCP does" ended 0 120 0 1 2
ok "with right results" said "[0-9]{4} results are right" 0 1 2
n=3 MASTER_PORT=$(free_port)
rank 1 "$check" loop 1000
rank 0 "$check" loop 1000
DDP_TRANSPORT=tcp rank 2 "$check" loop 1000
ok "where one rank wants TCP" until_true 30 said "in the loop" 0 1 2
ok "all use it" maps 0 0 1 2
kill -9 "${pids[@]}"
wait 2>/dev/null

# Several sockets for the elements, as rank 0 says: each way three, and one for
# control; and one for small calls.
n=2 MASTER_PORT=$(free_port)
export DDP_TRANSPORT=tcp
DDP_SOCKETS=1 rank 1 "$check" loop 1000000
DDP_SOCKETS=3 rank 0 "$check" loop 1000000
ok "two ranks with 3 sockets for elements" \
    until_true 30 said "in the loop" 0 1
for r in 0 1; do
    is "rank $r has 3 each way" \
        "$(ls -l "/proc/${pids[r]}/fd" | grep -c 'socket:')" 9
done
kill -9 "${pids[1]}"
ok "kill -9 of rank 1: the other one fails" ended 3 10 0
ok "and names it" said "code -6 peer 1 .*rank 1 died or failed" 0
unset DDP_TRANSPORT

# --- under agent: whom does the verdict name?
# worker RANK: its process, by its environment.
worker()
{
    local p
    for p in $(pgrep -f "$check loop 100000"); do
        tr '\0' '\n' <"/proc/$p/environ" 2>/dev/null | awk -v r="$1" -v job=$job '
            $0 == "RANK=" r || $0 == "TORCHELASTIC_RUN_ID=" job { n++ }
            END { exit n != 2 }' && echo "$p" && return 0
    done
    return 1
}
# agent_loop NAME: four ranks under agent, until all are in the loop.
agent_loop()
{
    job=$1-$$
    "$O/agent" --nproc 4 --max-restarts 0 --grace 2s --job-id "$job" \
        --master-port "$(free_port)" -- \
        sh -c "exec '$check' loop 100000 >&2" >"$T/agent" 2>&1 </dev/null &
    agent=$!
    until_true 30 eval '[ "$(grep -c "in the loop" "$T/agent")" = 4 ]'
}
ok "4 ranks under agent" agent_loop kill
kill -9 "$(worker 2)"
ok "kill -9 of rank 2: agent ends" until_true 20 gone $agent
wait $agent
is "with its code" $? 137
ok "and names rank 2" grep -qE "^agent.*: rank 2 .*SIGKILL" "$T/agent"

export DDP_TIMEOUT=1500ms
ok "4 ranks under agent, again" agent_loop stop
stopped=$(worker 1)
kill -STOP "$stopped"
ok "SIGSTOP of rank 1: agent ends" until_true 30 gone $agent
wait $agent
is "with the code of a rank that noticed" $? 3
ok "the verdict's last lines name rank 1" \
    grep -qE "after 1.5 s: rank 1 (is silent|has not made)" "$T/agent"
ok "and a hint says so" grep -qE "rank that this line names" "$T/agent"
ok "the stopped rank is gone, too" until_true 10 gone "$stopped"
