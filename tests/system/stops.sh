#!/usr/bin/env bash
# A stop from outside: one grace for all of it, a second signal ends it, nothing
# is started any more, and the verdict is there before the pod is killed.
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/pods.sh"
mark() { echo "mark-$$-$1"; }
none_lives() { ! pgrep -f "$1" >/dev/null; }
# In the background, until $1 is in what it says; its pid is $bg.
start()
{
    local until=$1
    shift
    fresh "$T/out" "$T/err"
    "$agent" "$@" >"$T/out" 2>"$T/err" </dev/null &
    bg=$!
    until_true 30 grep -qE "$until" "$T/out" "$T/err" || cat "$T/err"
}
stop() { kill -TERM $bg; wait $bg; rc=$?; }

# --- one grace ---

# A worker and what it left ignore TERM, and so does a worker of the other pod.
m=$(mark stubborn)
body="trap '' TERM
    [ \$LOCAL_RANK = 1 ] && exec sleep 300
    setsid sh -c 'trap \"\" TERM HUP; echo left; while :; do sleep .1; done' $m &
    echo up; while :; do sleep .1; done; : $m"
for r in 0 1; do
    pod $r 2 -v --nproc 2 --grace 1s --rejoin-timeout 1s -- sh -c "$body"
done
for r in 0 1; do
    wait_for wrote $r left
    wait_for wrote $r up
done
kill -TERM "$(agent_of 1)"
ended 0 1
is "a stubborn pod ends with 143, the other one loses it" "$codes" '201 143'
for r in 0 1; do
    is "pod $r counts one grace" "$(grep -c 'KILL in 1 s' "$T/pod$r.err"
        ) $(grep -c 'the grace of 1 s .*is over' "$T/pod$r.err")" '1 1'
done
ok "nothing of both is left" until_true 10 none_lives "$m"

# --- the end of a job whose workers are slow ---

next_job
for r in 0 1; do
    pod $r 2 --nproc 2 --max-restarts 0 --grace 100s -- sh -c '
        trap "until [ -e '"$T"'/save ]; do sleep .05; done
            echo saved; exit 0" TERM
        echo up; [ $RANK = 3 ] || while :; do sleep .05; done
        until [ -e '"$T"'/fail3 ]; do sleep .05; done; exit 7'
done
for r in 0 1; do wait_for wrote $r up; done
: >"$T/fail3"
for r in 0 1; do
    ok "pod $r: slow workers: the cause does not wait for them" until_true 30 \
        said $r 'rank 3 .* exited with 7 .*; this ends the job: stopping all'
    hasnt "pod $r: the verdict does" "$T/pod$r.err" 'error: failed'
    kill -TERM "$(agent_of $r)" # As an operator that removes what is left.
    ok "pod $r: a first TERM leaves them their time" until_true 30 \
        said $r 'got SIGTERM: stopping, within .* a second signal ends'
done
: >"$T/save"
ended 0 1
is "both end with the code" "$codes $(cat "$T"/pod?.out | grep -c saved)" \
    '7 7 3'

# --- a second signal ---

for two in "TERM INT" "INT TERM" "HUP INT" "TERM TERM"; do
    m=$(mark second)
    start ready --grace 100s -- sh -c "trap '' TERM INT
        setsid sh -c 'trap \"\" TERM; echo ready; while :; do sleep .1; done' $m &
        while :; do sleep .1; done; : $m"
    kill -"${two% *}" $bg
    until_true 20 grep -q "got SIG${two% *}" "$T/err"
    kill -"${two#* }" $bg
    ok "${two% *}, then ${two#* }: the grace of 100 s ends" \
        until_true 50 gone $bg
    wait $bg
    is "with the first one's code" "$?" \
        $((128 + $(kill -l "${two% *}")))
    has "the first one says how long, and of a second" "$T/err" \
        "got SIG${two% *}: stopping, within 100 s; a second signal ends"
    is "... in one line" "$(grep -c "SIG${two% *}.*stop" "$T/err")" 2 # The end.
    has "which is told, too" "$T/err" \
        "got SIG${two#* }, too: that ends the grace"
    has "and who did not end by itself" "$T/err" \
        'warning: the grace is over: KILL to rank 0 and what is left'
    ok "and nothing is left" until_true 10 none_lives "$m"
done

# --- INT, for which a worker's child saves its state ---

cat >"$T/save.py" <<'EOF'
import os, signal, subprocess, sys
if len(sys.argv) > 1:  # The launcher: it dies at once, its child does not.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    child = [sys.executable, sys.argv[0]]
    subprocess.Popen(child, preexec_fn=lambda: signal.signal(
        signal.SIGINT, signal.default_int_handler)).wait()
try:
    print('up', flush=True)
    signal.pause()
except KeyboardInterrupt:
    try:  # Until agent has sent TERM to what is left, and reaped it.
        while True:
            os.kill(int(os.environ['IGNORES']), 0)
    except ProcessLookupError:
        print('saved', flush=True)
EOF
start up --grace 100s -- sh -c "sleep 300 & # Which ignores INT, by that.
    IGNORES=\$! exec python3 $T/save.py launch"
kill -INT $bg
ok "INT: the job ends" until_true 50 gone $bg
wait $bg
is "with 130" $? 130
has "what caught INT may end its work, what ignores it gets TERM" "$T/out" saved

# --- no new start ---

start 'next round in' --restart-backoff 100s:100s --max-restarts 5 -- \
    sh -c 'echo born; exit 1'
stop
is "TERM in the back-off: 143, no new start" "$rc $(grep -c born "$T/out")" \
    '143 1'
start 'again in|starts again' --restart-scope worker --nproc 2 \
    --restart-backoff 100s:100s --max-restarts 5 -- \
    sh -c 'echo born; [ $RANK = 0 ] || exit 1; exec sleep 300'
stop
is "TERM in the back-off of one worker: 143, no new start" \
    "$rc $(grep -c born "$T/out")" '143 2'
start preparing --pre-start 'echo preparing; exec sleep 300' -- \
    sh -c 'echo born'
stop
is "TERM in --pre-start: 143, no start" "$rc $(grep -c born "$T/out")" '143 0'
start preparing --pre-start 'trap "exit 0" TERM; echo preparing
    while :; do sleep .05; done' -- sh -c 'echo born'
stop
is "TERM in --pre-start that ends with 0: no start" \
    "$rc $(grep -c born "$T/out")" '143 0'
start 'next round in|again in' --restart-backoff 100s:100s --max-restarts 5 \
    --pre-start 'exit 3' -- sh -c 'echo born'
stop
is "TERM in the back-off of --pre-start: 143, no start" \
    "$rc $(grep -c born "$T/out")" '143 0'
for r in 0 1; do
    next_job
    pod $r 2 -v --barrier-timeout 100s -- sh -c 'echo born'
    wait_for said $r 'STAGING -> WAITING'
    kill -TERM "$(agent_of $r)"
    ended $r
    is "TERM of pod $r at the barrier: 143, no start" \
        "$codes $(grep -c born "$T/pod$r.out")" '143 0'
done
next_job
fast=(--restart-backoff 100s:100s)
for r in 0 1; do
    pod $r 2 --rejoin-timeout 1s -- sh -c '[ -e '"$T"'/fail ] && exit 1
        echo born; until [ -e '"$T"'/fail ]; do sleep .05; done; exit 1'
done
for r in 0 1; do wait_for wrote $r born; done
: >"$T/fail"
wait_for said 1 'next round in|stopping'
kill -TERM "$(agent_of 1)"
ended 1
is "TERM of a pod between two rounds: 143" "$codes" 143
kill -TERM "$(agent_of 0)"
ended 0
is "and nobody starts again" "$(cat "$T"/pod?.out | grep -c born)" 2

mkdir "$T/data"
echo x >"$T/data/file"
"$agent" manifest --name set "$T/data" -o "$T/set.json" 2>"$T/err"
done=$("$agent" stage --dataset "$T/set.json" --source "$T/data" \
    --stage "$T/stage" 2>"$T/err")
rm -rf "$done"
exec 7<"$T/stage/.${done##*/}.lock"
flock -x 7
start 'status asks at' -v --socket "$T/s" --dataset "$T/set.json" --source "$T/data" \
    --stage "$T/stage" -- sh -c 'echo born'
stop
exec 7<&-
is "TERM while staging: 143, no start" "$rc $(grep -c born "$T/out")" '143 0'

# --- the verdict comes in time ---

mkfifo "$T/fifo"
exec 8<>"$T/fifo"
"$agent" --grace 500ms --termination-log "$T/last" --report "$T/report" -- \
    sh -c "trap '' TERM; echo x >'$T/up'; yes" >"$T/fifo" 2>&1 </dev/null &
bg=$!
until_true 20 test -s "$T/up"
stop
exec 8<&-
is "nobody reads, and the worker is stubborn: 143" "$rc" 143
has "the termination log has the verdict" "$T/last" 'SIGTERM from outside'
has "and so has the report" "$T/report" '"exit_code": ?143'

if [ "$(id -u)" -ne 0 ] || [ ! -w /dev/fuse ] ||
    ! unshare -m --propagation private true 2>/dev/null; then
    skip "P18: what cannot be killed" "not root, or no FUSE"
    exit
fi
mkdir "$T/stuck"
export T agent
unshare -m --propagation private bash -c '
    python3 "$0" "$T/stuck" >"$T/fs" & fs=$!
    until grep -q ready "$T/fs"; do sleep .05; done
    "$agent" -v --grace 200ms --termination-log "$T/last" -- sh -c "
        setsid stat $T/stuck/x & echo \$! >$T/pid; sleep 300" \
        >"$T/out" 2>"$T/err" </dev/null & bg=$!
    until [ -s "$T/pid" ] && grep -q request_wait /proc/$(cat "$T/pid")/wchan
        do sleep .05; done
    kill -TERM $bg
    wait $bg
    echo $? >"$T/code"
    kill $fs' "$top/tests/lib/stuck_fs.py"
is "P18: a process that cannot be killed does not hold the stop" \
    "$(cat "$T/code")" 143
has "P18: it is named, and where it waits" "$T/err" \
    "pid $(cat "$T/pid") outlives SIGKILL, it waits in request_wait"
has "P18: the verdict is written" "$T/last" 'SIGTERM from outside'
