#!/usr/bin/env bash
# --pre-start, --restart-scope worker: what is run again, and what is not.
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/pods.sh"
quick=(--restart-backoff 10ms:50ms)

run() { timeout -k 5 60 "$agent" "$@" >"$T/out" 2>"$T/err" </dev/null; rc=$?; }
lines() { grep -c -- "$1" "$T/out"; }

# Before each round, in each pod, and nothing of it stays.
run --nproc 2 --max-restarts 1 "${quick[@]}" --pre-start "
    echo pre \$TORCHELASTIC_RESTART_COUNT; echo warn >&2
    sh -c 'echo \$\$ >>$T/left; exec sleep 99' &
    setsid sh -c 'trap \"\" TERM; echo \$\$ >>$T/left; sleep 99' & sleep .1" \
    --grace 300ms -- sh -c 'for p in $(cat '"$T"'/left); do
        kill -0 $p 2>/dev/null && echo alive; done
    echo work; f='"$T"'/worked$TORCHELASTIC_RESTART_COUNT
    [ $RANK != 0 ] || { : >$f; exec sleep 60; }
    until [ -e $f ]; do sleep .02; done; exit 3'
is "pre-start: before each round" "$rc $(lines 'pre-start\] pre 0') \
$(lines 'pre-start\] pre 1') $(lines work)" '3 1 1 4'
has "pre-start: its stderr goes to stderr" "$T/err" '^\[pre-start\] warn$'
is "pre-start: nothing of it lives when workers start" "$(lines alive)" 0
run --nproc 2 --log-prefix none --pre-start 'env' -- true
is "pre-start: it has no rank" "$(grep -cE \
    '^(RANK|LOCAL_RANK|WORLD_SIZE|MASTER_PORT|AGENT_PROCESS_INDEX)=' \
    "$T/out")" 0
has "pre-start: but knows its pod" "$T/out" '^LOCAL_WORLD_SIZE=2$'

run --max-restarts 2 "${quick[@]}" --pre-start 'echo pre; exit 5' -- echo work
is "pre-start: its failure uses the budget, and is the job's" \
    "$rc $(lines pre) $(lines work)" '5 3 0'
has "pre-start: the verdict says so" "$T/err" \
    'exit code 5: node rank 0 .*--pre-start exited with 5 .*2 of 2 restarts'
run "${quick[@]}" --pre-start "test -e $T/once || { : >$T/once; exit 4; }" \
    -- echo work
is "pre-start: it is tried again" "$rc $(lines work)" '0 1'
run "${quick[@]}" --pre-start 'no-such-command' -- echo work
is "pre-start: 127 is permanent" "$rc $(lines work)" '127 0'
: >"$T/out"
"$agent" --grace 300ms --pre-start 'trap "" TERM; echo up; sleep 99' -- \
    echo work >"$T/out" 2>"$T/err" &
until_true 20 grep -q up "$T/out"
kill -TERM $!
wait $!
is "pre-start: a stop ends it by the grace" "$? $(lines work)" '143 0'
run --barrier-timeout 1s --grace 300ms --pre-start 'exec sleep 99' -- echo work
is "pre-start: --barrier-timeout bounds it" "$rc" 200
has "pre-start: and says what it waits for" "$T/err" 'node rank 0 at --pre-start'

# Several pods: no worker before all have ended; the failure is everybody's.
pod 0 2 "${quick[@]}" --pre-start "until [ -e $T/go ]; do sleep .02; done" -- \
    sh -c "echo work0"
pod 1 2 "${quick[@]}" --pre-start "echo pre1" -- sh -c "echo work1"
wait_for wrote 1 pre1
hasnt "pods: nobody starts before all are prepared" "$T/pod1.out" work1
: >"$T/go"
ended 0 1
is "pods: then all do" "$codes $(grep -c work1 "$T/pod1.out")" '0 0 1'
pod 0 2 "${quick[@]}" --max-restarts 1 -- echo work0
pod 1 2 "${quick[@]}" --max-restarts 1 --pre-start "exit 6" -- echo work1
ended 0 1
is "pods: a pre-start's failure is every pod's code" "$codes" '6 6'
has "pods: pod 0 tells of it" "$T/pod0.err" 'node rank 1 .*restart 1 of 1'
hasnt "pods: and starts nothing" "$T/pod0.out" work0

# One worker alone.
run --nproc 3 --restart-scope worker --max-restarts 2 "${quick[@]}" -- sh -c "
    echo start \$RANK \$TORCHELASTIC_RESTART_COUNT \$\$
    [ \$RANK = 1 ] || { until [ -e $T/fin ]; do sleep .02; done; exit 0; }
    setsid sh -c 'echo \$\$ >>$T/mine; exec sleep 99' </dev/null >/dev/null 2>&1 &
    until [ -s $T/mine ]; do sleep .02; done
    [ \$TORCHELASTIC_RESTART_COUNT = 2 ] || exit 4
    : >$T/fin"
is "scope worker: three starts of rank 1" "$rc $(lines 'start 1')" '0 3'
is "scope worker: the others start once" "$(lines 'start 0') $(lines \
    'start 2')" '1 1'
is "scope worker: the attempt counts up" "$(grep 'start 1' "$T/out" |
    cut -d' ' -f4 | tr '\n' ' ')" '0 1 2 '
is "scope worker: what it left does not stay" \
    "$(for p in $(cat "$T/mine"); do gone "$p" || echo "$p"; done)" ''
has "scope worker: the decision is told" "$T/err" \
    'rank 1 .*exited with 4 .*tried again in .*\(restart 2 of 2\)'
run --nproc 2 --restart-scope worker --max-restarts 1 "${quick[@]}" -- sh -c \
    '[ $RANK = 1 ] || exec sleep 60; exit 4'
is "scope worker: the budget ends the job" "$rc" 4
has "scope worker: with all others" "$T/err" 'rank 1 .*1 of 1 restarts used'
run --nproc 2 --restart-scope worker --no-restart-on 4 "${quick[@]}" -- sh -c \
    '[ $RANK = 1 ] || exec sleep 60; echo start; exit 4'
is "scope worker: a permanent code, too" "$rc $(lines start)" '4 1'
run --nproc 2 --restart-scope worker --same-failure-limit 3 "${quick[@]}" \
    --max-restarts 9 -- sh -c \
    '[ $RANK = 1 ] || exec sleep 60; echo start; exit 4'
is "scope worker: and the same failure again and again" "$rc $(lines start)" \
    '4 3'
run --nproc 2 --restart-scope worker --restart-policy always \
    --max-restarts 3 "${quick[@]}" -- sh -c 'echo start'
is "scope worker: always" "$rc $(lines start)" '0 5'

rm -f "$T/fin"
pod 0 2 --nproc 2 --restart-scope worker "${quick[@]}" -- sh -c "
    echo start; until [ -e $T/fin ]; do sleep .02; done"
pod 1 2 --nproc 2 --restart-scope worker "${quick[@]}" -- sh -c "
    echo start \$LOCAL_RANK \$TORCHELASTIC_RESTART_COUNT
    [ \$LOCAL_RANK\$TORCHELASTIC_RESTART_COUNT != 00 ] || exit 9
    [ \$LOCAL_RANK = 1 ] || : >$T/fin
    until [ -e $T/fin ]; do sleep .02; done"
ended 0 1
is "scope worker: other pods are untouched" \
    "$codes $(grep -c start "$T/pod0.out") $(grep -c start "$T/pod1.out")" \
    '0 0 2 3'
has "scope worker: pod 0 tells of it" "$T/pod0.err" 'rank 2 .*restart 1 of 3'

# What the documents say of each policy, run: `end` is one start, `restart` two.
# rows: the table's, a policy and its cells.
rows()
{
    sed -n '/^| policy |/,/^$/s/^| `\([a-z-]*\)`[^|]*| \(.*\) |$/\1 | \2/p' \
        "$top/docs/platforms.md" | tr -d ' '
}
is "the table has all policies" "$(rows | cut -d'|' -f1 | sort | tr '\n' ' ')" \
    "$("$agent" --help=man | sed -n '/^When to restart: /,/^Default/p' |
        grep -o '"[a-z-]*"' | tr -d '"' | sort | tr '\n' ' ')"
while IFS='|' read -r policy zero low exec high _; do
    for cell in "0 $zero" "1 $low" "125 $low" "126 $exec" "127 $exec" \
        "128 $high" "255 $high"; do
        run --restart-policy "$policy" --max-restarts 1 "${quick[@]}" -- \
            sh -c "echo start; exit ${cell% *}"
        n=1
        [[ ${cell#* } = end* ]] || n=2
        is "$policy: $cell" "$rc $(lines start)" "${cell% *} $n"
    done
done < <(rows)
