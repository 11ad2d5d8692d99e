#!/usr/bin/env bash
# PID 1 and what it owes: orphans, signals, grace, nothing left behind.
. "$(dirname "$0")/../lib/tap.sh"
fast=(--restart-backoff 10ms:50ms)

if ! unshare -pf --mount-proc true 2>/dev/null; then
    skip "PID namespaces" "unshare -pf is not permitted here"
    exit
fi
as_init() { timeout -k 5 60 unshare -pf --mount-proc "$agent" "$@" \
    >"$T/out" 2>"$T/err" </dev/null; rc=$?; }
run() { timeout -k 5 60 "$agent" "$@" >"$T/out" 2>"$T/err" </dev/null; rc=$?; }
# A run in the background; its pid in $bg. Wait for `ready` in its output.
start() { rm -f "$T/out"; "$@" >"$T/out" 2>"$T/err" </dev/null & bg=$!
    until_true 20 grep -q ready "$T/out" || cat "$T/err"; }
# Where nothing lives with this word in its command line.
none_lives() { ! pgrep -f "$1" >/dev/null; }
mark() { echo "mark-$$-$1"; }

as_init --nproc 2 -- sh -c 'echo $$ of $PPID'
is "workers of PID 1 end with 0" "$rc" 0
is "their parent is PID 1" "$(grep -c 'of 1$' "$T/out")" 2
as_init --max-restarts 0 -- sh -c 'exit 42'
is "PID 1 passes the code on" "$rc" 42

# A tool that is all of a container hears of its end.
mkdir "$T/bin"
printf '#!/bin/sh\necho >"%s/asked"; exec sleep 100\n' "$T" >"$T/bin/agent-probe"
chmod +x "$T/bin/agent-probe"
for s in TERM INT; do
    fresh "$T/asked"
    PATH=$T/bin:$PATH timeout -k 5 60 unshare -pf --kill-child --mount-proc sh -c \
        'cp "$1" "$2"; exec "$2/agent" preflight --preflight gpu' - \
        "$agent" "$T/bin" >"$T/out" 2>"$T/err" </dev/null &
    bg=$!
    ok "a check runs" until_true 20 test -s "$T/asked"
    kill -$s "$(pgrep -P "$(child_of $bg)")"
    wait $bg
    is "$s ends preflight where it is PID 1" $? \
        $((128 + $(kill -l $s)))
done

# 1,000 orphans leave no zombie.
as_init -- sh -c '
    i=0; while [ $i -lt 1000 ]; do (true &) ; i=$((i + 1)); done
    n=1; t=0
    while [ $n -gt 0 ] && [ $t -lt 100 ]; do
        n=$(grep -l "^State:.Z" /proc/[0-9]*/status 2>/dev/null | wc -l)
        t=$((t + 1)); sleep .05
    done
    echo "zombies $n"'
is "1,000 orphans leave no zombie" "$(cat "$T/out")" '[rank0] zombies 0'

# kill -9 of agent: no worker, no grandchild, also where they hide.
m=$(mark kill9)
start "$agent" --nproc 2 -- sh -c "
    setsid sh -c 'trap \"\" TERM; echo ready; while :; do sleep 1; done' $m &
    sh -c 'while :; do sleep 1; done' $m"
ok "a guard watches" until_true 5 pgrep -P $bg agent-guard
kill -9 $bg
ok "kill -9 of agent leaves nothing of its workers" \
    until_true 5 none_lives "$m"
m=$(mark hidden)
start "$agent" --nproc 2 -- sh -c "
    (env -i A=b setsid sh -c 'trap \"\" TERM HUP; while :; do sleep 1; done' $m \
        <&- >/dev/null 2>&1 &)
    echo ready; while :; do sleep 1; done"
ok "a guard watches those that hide, too" until_true 5 pgrep -P $bg agent-guard
kill -9 $bg
ok "kill -9 of agent: also what cleared its environment and left its session" \
    until_true 5 none_lives "$m"

# In the midst of the start of many workers, too: the first of them is there.
m=$(mark early)
"$agent" --nproc 200 -- sh -c "setsid sh -c 'echo >$T/early
    while :; do sleep 9; done' $m & sleep 60" >"$T/out" 2>&1 </dev/null &
bg=$!
until [ -e "$T/early" ] || [ $SECONDS -gt 100 ]; do :; done
kill -9 $bg
ok "kill -9 of agent while it starts workers leaves nothing" \
    until_true 10 none_lives "$m"

# A guard that is killed has a successor.
m=$(mark guard)
start "$agent" -- sh -c "
    setsid sh -c 'while :; do sleep 1; done' $m & echo ready; sleep 60"
ok "a guard" until_true 5 pgrep -P $bg agent-guard
guard=$(pgrep -P $bg agent-guard)
kill -9 "$guard"
ok "who killed it is told" until_true 5 grep -q 'guard.* was killed' "$T/err"
ok "another one watches" until_true 5 pgrep -P $bg agent-guard
kill -9 $bg
ok "and kills what is left" until_true 5 none_lives "$m"

# TERM: 143, workers get TERM and their grace.
start "$agent" --grace 20s -- sh -c 'trap "echo saved; exit 0" TERM
    echo ready; while :; do sleep .05; done'
kill -TERM $bg
wait $bg
is "TERM from outside is 143" "$?" 143
has "the worker could save" "$T/out" 'saved'
has "the verdict says why" "$T/err" 'SIGTERM'
start "$agent" --nproc 2 --grace 20s -- sh -c 'trap "echo saved; exit 0" INT
    echo ready; kill -STOP $$; while :; do sleep .05; done'
ok "both are stopped" until_true 10 sh -c \
    "[ \$(grep -c 'was stopped by' '$T/err') = 2 ]"
kill -INT $bg
wait $bg
is "INT from outside is 130" "$?" 130
is "workers get INT, also one that is stopped" "$(grep -c saved "$T/out")" 2
start "$agent" --grace 1s -- sh -c 'trap "" TERM; echo ready
    while :; do sleep .05; done'
kill -TERM $bg
wait $bg
is "KILL after the grace, still 143" "$?" 143
start "$agent" --grace 60s -- sh -c 'trap "" TERM INT; echo ready
    while :; do sleep .05; done'
kill -INT $bg
until_true 5 grep -q 'SIGINT' "$T/err"
kill -INT $bg
wait $bg
is "a second INT ends the grace: 130" "$?" 130

# No start while stopping.
start "$agent" --nproc 2 --grace 30s "${fast[@]}" -- sh -c '
    trap "[ $RANK = 0 ] && exit 1" TERM; echo ready; echo born
    while :; do sleep .05; done'
until_true 10 sh -c "[ \$(grep -c born '$T/out') = 2 ]"
kill -TERM $bg
until_true 5 grep -q SIGTERM "$T/err"
kill -TERM $bg
wait $bg
is "no new start while stopping" "$? $(grep -c born "$T/out")" '143 2'

start nohup "$agent" -- sh -c 'echo ready
    while [ ! -e '"$T"'/hup ]; do sleep .05; done'
kill -HUP $bg
touch "$T/hup"
wait $bg
is "under nohup HUP is no stop" "$?" 0

# Signals that are passed on.
start "$agent" -- sh -c 'trap "echo got usr1; exit 0" USR1; echo ready
    while :; do sleep .05; done'
kill -USR1 $bg
wait $bg
is "USR1 is passed on, no stop" "$?" 0
has "and arrives" "$T/out" 'got usr1'

# What workers leave behind.
m=$(mark left)
run -- sh -c "setsid sh -c 'while :; do sleep 1; done' $m & exit 0"
is "a left-behind sleeper does not hold the end" "$rc" 0
ok "and is gone" none_lives "$m"
m=$(mark stubborn)
run --grace 1s -- sh -c "
    setsid sh -c 'trap \"\" TERM HUP; while :; do sleep 1; done' $m & exit 0"
is "one that ignores TERM is killed" "$rc" 0
ok "and is gone, too" none_lives "$m"
m=$(mark bare)
run --grace 1s -- sh -c "
    env -i setsid sh -c 'trap \"\" TERM; while :; do sleep 1; done' $m & exit 0"
ok "one with an empty environment is gone" none_lives "$m"
m=$(mark named)
run --grace 1s -- sh -c "
    (env -i A=b setsid sh -c 'trap \"\" TERM; while :; do sleep 1; done' $m &)
    exit 0"
ok "one with an environment of its own, twice forked, is gone" none_lives "$m"
m=$(mark pipe)
mkfifo "$T/pipe"
run --nproc 2 --grace 1s --max-restarts 0 -- sh -c "
    [ \$RANK = 0 ] || exec sleep 60
    setsid sh -c 'trap \"\" TERM; exec 3<>\"$T/pipe\"; yes >&3' $m &
    sleep .2; kill -9 \$\$"
is "a data worker that blocks in a write" "$rc" 137
ok "is gone" none_lives "$m"
run --nproc 4 -- sh -c '[ $RANK = 2 ] && exit 3; exec sleep 100' \
    --max-restarts 0
m=$(mark restart)
run --nproc 2 --max-restarts 1 --grace 1s "${fast[@]}" -- sh -c "
    n=\$TORCHELASTIC_RESTART_COUNT
    [ \$n = 0 ] || ! pgrep -f '^sh -c while.*$m-0' >/dev/null ||
        echo 'OLD ONE LIVES'
    setsid sh -c 'while :; do sleep 1; done' $m-\$n & sleep .2; exit 5"
has "a second round runs" "$T/err" 'round 1 starts'
hasnt "nothing of the old round lives in the new one" "$T/out" 'OLD ONE'

# An exec session's left-overs are reaped, never killed.
m=$(mark exec)
start unshare -pf --kill-child --mount-proc "$agent" --grace 1s --nproc 1 \
    "${fast[@]}" --max-restarts 1 -- \
    sh -c 'echo ready; while [ ! -e '"$T"'/go ]; do sleep .05; done
           [ $TORCHELASTIC_RESTART_COUNT = 1 ] || exit 1
           [ $(pgrep -f "^sh -c while.*'"$m"'" | wc -l) = 2 ] &&
               echo session lives
           exit 0'
init=$(child_of $bg)
nsenter -t "$init" -p -m env -i PATH="$PATH" sh -c \
    "setsid sh -c 'while :; do sleep 1; done' $m >/dev/null 2>&1 &
     env -i setsid sh -c 'while :; do sleep 1; done' $m >/dev/null 2>&1 &
     until [ \$(pgrep -fc '^sh -c while.*$m') = 2 ]; do sleep .05; done"
touch "$T/go"
wait $bg
has "an exec session's processes survive a restart" "$T/out" 'session lives'

# Nobody reads agent's output: TERM still ends it.
mkfifo "$T/fifo"
exec 8<>"$T/fifo"
"$agent" --grace 1s -- sh -c 'echo ready >'"$T/r"'; yes' >"$T/fifo" 2>"$T/err" &
bg=$!
until_true 10 test -s "$T/r"
command sleep 0.3
kill -TERM $bg
ok "a stalled reader does not hold the stop" until_true 20 gone $bg
wait $bg
is "and the code is 143" "$?" 143
exec 8<&-

# Lines of many ranks are never torn, and none is lost.
as_init --nproc 4 -- sh -c 'i=0; while [ $i -lt 3000 ]; do
    echo "line $i of $RANK and some more words to make it longer"
    i=$((i + 1)); done'
is "12,000 lines of 4 ranks" "$(grep -cE \
    '^\[rank([0-3])\] line [0-9]+ of \1 and some more words to make it longer$' \
    "$T/out")" 12000
"$agent" --nproc 4 -- sh -c 'i=0; while [ $i -lt 2000 ]; do
    echo "out $i"; echo "err $i" >&2; i=$((i + 1)); done' >"$T/both" 2>&1
is "stdout and stderr on one file tear nothing" \
    "$(grep -cE '^\[rank[0-3]\] (out|err) [0-9]+$' "$T/both")" 16000
