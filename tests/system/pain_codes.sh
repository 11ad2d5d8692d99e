#!/usr/bin/env bash
# Exit codes and restarts: what users of other launchers had trouble with.
. "$(dirname "$0")/../lib/tap.sh"
fast=(--restart-backoff 10ms:50ms)

run() { timeout -k 5 60 "$agent" "$@" >"$T/out" 2>"$T/err" </dev/null; rc=$?; }
starts() { grep -c start "$T/out"; }

for code in 1 3 42 255; do
    run --nproc 3 --max-restarts 0 -- sh -c \
        "[ \$RANK != 1 ] || exit $code; exec sleep 60"
    is "P23: one rank exits with $code, and so does agent" "$rc" $code
done
sh -c 'exec "$@"' wrapper "$agent" --max-restarts 0 -- sh -c 'exit 42' \
    2>"$T/err"
is "P24: behind a wrapper that execs" "$?" 42
sh -c '"$@"' wrapper "$agent" --max-restarts 0 -- sh -c 'exit 42' 2>"$T/err"
is "P24: behind a wrapper that waits" "$?" 42
for sig in 1 2 6 7 8 9 11 15; do
    run --max-restarts 0 -- sh -c "kill -$sig \$\$"
    is "P25: death by signal $sig is told" "$rc" $((128 + sig))
    has "P25: and named" "$T/err" "killed by SIG$(kill -l $sig) "
done

# An asked stop that some schedulers must not see as a failure.
stopped()
{
    : >"$T/out"
    "$agent" "$@" -- sh -c 'echo up; exec sleep 60' >"$T/out" 2>"$T/err" &
    until_true 20 grep -q up "$T/out"
    kill -TERM $!
    wait $!
    rc=$?
}
stopped
is "P25: TERM from outside is 143" "$rc" 143
stopped --exit-map stopped=0
is "P25: or what --exit-map says" "$rc" 0
has "P25: which the verdict tells" "$T/err" '--exit-map makes stopped 0'

run --no-restart-on 2,77 "${fast[@]}" -- sh -c 'echo start; exit 77'
is "P29: a permanent code starts once" "$rc $(starts)" '77 1'
has "P29: and the reason is told" "$T/err" 'no restart: --no-restart-on has 77'

run --same-failure-limit 2 --max-restarts 9 "${fast[@]}" -- sh -c \
    'echo start; echo "ImportError: no such thing" >&2; exit 1'
is "P30: the same failure at each start stops early" "$rc $(starts)" '1 2'
has "P30: and the reason is told" "$T/err" \
    'no restart: rank 0 failed 2 times in a row with 1 within 10 s'
run --same-failure-limit 2 --max-restarts 2 "${fast[@]}" -- sh -c \
    'echo start; exit $((1 + TORCHELASTIC_RESTART_COUNT))'
is "P30: other failures do not" "$rc $(starts)" '3 3'

run --nproc 2 "${fast[@]}" -- "$T/missing"
is "P31: a missing command is 127" "$rc" 127
hasnt "P31: at once, without a restart" "$T/err" 'restart [1-9]|round 1'
has "P31: and why" "$T/err" 'no restart: 127 is permanent'

# Codes by class: what a scheduler's own rule must see.
mapped() # NAME MAP WANTED ARGS...
{
    local name=$1 map=$2 want=$3

    shift 3
    run --exit-map "$map" "${fast[@]}" "$@"
    is "P32: $name" "$rc" "$want"
}
mapped "a worker's code is made retryable" worker=130 130 \
    --max-restarts 0 -- sh -c 'exit 1'
mapped "python's sys.exit(-1) is made permanent" worker=1 1 \
    --max-restarts 0 -- sh -c 'exit 255'
mapped "another class is left alone" stopped=0,data=3 9 \
    --max-restarts 0 -- sh -c 'exit 9'
mapped "a missing command" exec=202 202 -- "$T/missing"
mapped "success" ok=5 5 -- true
mapped "missing data" nodata=200 200 --dataset "$T/none.json" -- true
mapped "a wrong option" usage=2 2 --nproc 0 -- true
mapped "a fault found later" usage=2 2 --nproc gpu -- true
AGENT_EXIT_MAP=worker=7 run --max-restarts 0 -- sh -c 'exit 1'
is "P32: from the environment" "$rc" 7
run --restart-policy exit-code --max-restarts 1 "${fast[@]}" -- \
    sh -c 'echo start; exit 1'
is "P32: exit-code: 1 is permanent" "$rc $(starts)" '1 1'
run --restart-policy exit-code --max-restarts 1 "${fast[@]}" -- \
    sh -c 'echo start; exit 130'
is "P32: exit-code: 130 is retried" "$rc $(starts)" '130 2'

# A pod that was told to stop starts nothing any more.
: >"$T/out"
"$agent" --nproc 2 --grace 20s "${fast[@]}" -- sh -c '
    echo start; trap "echo told" TERM
    while :; do sleep .1; done' >"$T/out" 2>"$T/err" &
agent_pid=$!
until_true 20 eval '[ "$(starts)" = 2 ]'
kill -TERM $agent_pid
until_true 20 grep -q told "$T/out"
pkill -KILL -P $agent_pid sh
wait $agent_pid
is "P11: a worker killed during the stop is not replaced" "$? $(starts)" \
    '143 2'
hasnt "P11: no round is opened" "$T/err" 'round 1 starts'

# Steps and decisions, as one tries them on a laptop.
run -v --nproc 4 --max-restarts 2 "${fast[@]}" -- sh -c '
    [ $RANK != 2 ] || exit 3; exec sleep 60'
is "flaky: the code" "$rc" 3
has "flaky: which restart it is" "$T/err" 'rank 2 .*\(restart 2 of 2\)'
has "flaky: the budget at the end" "$T/err" '2 of 2 restarts used'
has "flaky: -v shows the pod's steps" "$T/err" \
    'debug: pod: RUNNING -> STOPPING, round 1'
has "flaky: -v shows the barrier's" "$T/err" 'debug: barrier: RUN -> ENDING'
