#!/usr/bin/env bash
# Signals, grace and orphans: what users of other launchers had trouble with.
. "$(dirname "$0")/../lib/tap.sh"
fast=(--restart-backoff 10ms:50ms)

run() { timeout -k 5 100 "$agent" "$@" >"$T/out" 2>"$T/err" </dev/null; rc=$?; }
# In the background, until `ready` is in its output; its pid is $bg.
start() { rm -f "$T/out"; "$agent" "$@" >"$T/out" 2>"$T/err" </dev/null & bg=$!
    until_true 30 grep -q ready "$T/out" || cat "$T/err"; }
stop() { kill -TERM $bg; wait $bg; rc=$?; }
mark() { echo "mark-$$-$1"; }
none_lives() { ! pgrep -f "$1" >/dev/null; }

# A worker that needs some time to save its state after TERM.
slow="trap 'sleep 1.5; echo saved >\"$T/saved\"; exit 0' TERM; echo ready
    while :; do sleep .05; done"
start --grace 30s -- sh -c "$slow"
stop
is "P1: with time enough the checkpoint is written" "$rc $(cat "$T/saved")" \
    '143 saved'
rm -f "$T/saved"
start --grace 200ms -- sh -c "$slow"
stop
is "P1: with too little time agent ends all the same" "$rc" 143
ok "P1: and nothing was written" test ! -e "$T/saved"
has "P1: which is told" "$T/err" \
    'warning: the grace of 200 ms \(--grace\) is over: KILL to rank 0 and'
AGENT_GRACE=30s start -- sh -c "$slow"
stop
is "P2, P3: the grace comes from the environment, too" \
    "$rc $(cat "$T/saved")" '143 saved'
hasnt "P2: a worker that ends in time is not killed" "$T/err" 'grace .*is over'
"$agent" --help >"$T/help" 2>&1
is "P2: the default, 25 s, leaves time before Kubernetes' 30 s" \
    "$(grep -A3 -- '--grace' "$T/help" | grep -o '25s' | head -n1)" 25s

start -- sh -c 'trap "echo first" USR1; trap "exit 0" USR2
    echo ready; while :; do sleep .05; done'
kill -USR1 $bg
until_true 30 grep -q first "$T/out"
kill -USR2 $bg
wait $bg
is "P4: USR1 and USR2 reach the worker and stop nothing" "$?" 0

start --grace 500ms -- sh -c 'trap "" TERM; echo ready; while :; do :; done'
stop
is "P6: a worker that ignores TERM and spins" "$rc" 143
m=$(mark dead)
start --nproc 2 -- sh -c "echo ready; while :; do sleep 1; done; : $m"
kill -KILL $bg
wait $bg 2>/dev/null
ok "P7: nothing outlives a killed agent" until_true 10 none_lives "$m"

m=$(mark data)
run --max-restarts 0 --grace 1s -- python3 -c "
import os, signal, time
r, w = os.pipe()
if os.fork() == 0:
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if os.fork() == 0:
        os.execvpe('sh', ['sh', '-c', 'trap \"\" TERM; yes >&%d' % w, '$m'], {})
    while True:
        os.write(w, b'x' * 65536)
time.sleep(.3)
os.kill(os.getpid(), signal.SIGKILL)"
is "P8: a data worker that blocks in its own pipe" "$rc" 137
ok "P8: is gone" none_lives "$m"

start --nproc 2 --max-restarts 1 "${fast[@]}" -- sh -c '
    until [ -e '"$T"'/go ]; do sleep .05; echo ready; done
    [ $TORCHELASTIC_RESTART_COUNT = 1 ] || exit 3; sleep 1'
ok "P10: there is a helper" until_true 20 pgrep -P $bg agent-guard
guard=$(pgrep -P $bg agent-guard)
touch "$T/go"
until_true 30 grep -q 'round 1 starts' "$T/err"
ok "P10: it survives a restart of the workers" kill -0 "$guard"
wait $bg
is "P10: and so does the job" "$?" 0

for bad in 2 3; do
    run --nproc 4 --max-restarts 0 -- sh -c "
        [ \$RANK != $bad ] || exit 3; exec sleep 100"
    is "P12, P13: rank $bad fails, the others end with it" "$rc" 3
    has "P12, P13: and it is named" "$T/err" "rank $bad .*exited with 3"
done

m=$(mark own)
run --grace 1s -- sh -c "setsid sh -c 'while :; do sleep 1; done' $m & exit 0"
is "P16: a grandchild that left the group" "$rc" 0
ok "P16: is ended before agent goes" none_lives "$m"

# Orphans, as PID 1 and not.
orphans='i=0; while [ $i -lt 1000 ]; do (true &) ; i=$((i + 1)); done'
run -- sh -c "$orphans; t=0
    while grep -l '^State:.Z' \$(grep -l \"^PPid:.\$PPID\$\" \
        /proc/[0-9]*/status 2>/dev/null) /dev/null >/dev/null 2>&1; do
        t=\$((t + 1)); [ \$t -lt 200 ] || { echo zombies; break; }; sleep .05
    done"
is "P19, P22: not PID 1: 1,000 orphans" "$rc" 0
hasnt "P19, P22: none is left as a zombie" "$T/out" zombies
has "P19, P22: and the verdict counts them" "$T/err" '; 1[0-9]{3} orphans reaped'
run -v -- true
is "P22: that agent is not PID 1 is said once, with -v"     "$(grep -c 'not PID 1' "$T/err")" 1
run -- true
hasnt "P22: and not without" "$T/err" 'PID 1'

m=$(mark zombie)
run --grace 1s -- python3 -c "
import os, time
if os.fork() == 0:
    os._exit(0)
time.sleep(.5)"
is "P18: a zombie that its own parent keeps is no leak" "$rc" 0
hasnt "P18: and nothing is said of it" "$T/err" 'outlives'

# What systemd handed to agent is not the workers'.
LISTEN_FDS=1 LISTEN_PID=$$ LISTEN_FDNAMES=a run -- env
hasnt "no LISTEN_FDS without its descriptors" "$T/out" LISTEN_

# Threads.
cpus=$(nproc)
run --nproc 1 -- sh -c 'echo threads $OMP_NUM_THREADS'
is "P59: OMP_NUM_THREADS is the share of the CPUs" \
    "$(grep -o 'threads.*' "$T/out")" "threads $cpus"
taskset -c "$(taskset -cp $$ | grep -oE '[0-9]+' | tail -n1)" \
    "$agent" -- sh -c 'echo threads $OMP_NUM_THREADS' >"$T/out" 2>"$T/err"
is "P59: of those that it may use" "$(grep -o 'threads.*' "$T/out")" "threads 1"
OMP_NUM_THREADS=7 run --nproc 2 -- sh -c 'echo threads $OMP_NUM_THREADS'
is "P59: a value that is set stays" \
    "$(grep -o 'threads.*' "$T/out" | sort -u)" "threads 7"

if ! unshare -pf --mount-proc true 2>/dev/null; then
    skip "P20: PID 1" "unshare -pf is not permitted here"
    exit
fi
rm -f "$T/go2"
unshare -pf --kill-child --mount-proc "$agent" -- sh -c '
    echo ready; until [ -e '"$T"'/go2 ]; do sleep .05; done
    t=0; while grep -q "^State:.Z" /proc/[0-9]*/status 2>/dev/null; do
        t=$((t + 1)); [ $t -lt 200 ] || { echo zombies; break; }; sleep .05
    done' >"$T/out" 2>"$T/err" </dev/null &
bg=$!
until_true 30 grep -q ready "$T/out"
nsenter -t "$(child_of $bg)" -p -m sh -c '(setsid true &)'
touch "$T/go2"
wait $bg
is "P20: what an exec session leaves" "$?" 0
hasnt "P20: is reaped" "$T/out" zombies
has "P20: and counted" "$T/err" '; [1-9][0-9]* orphans? reaped'
hasnt "P20: PID 1 says nothing of that" "$T/err" 'not PID 1'

# All that are passed on, each to its handler, and none stops the job.
cat >"$T/catcher" <<'E'
import os, signal, sys
names = {int(getattr(signal, "SIG" + n)): n for n in
         ("USR1", "USR2", "WINCH", "CONT", "ALRM", "RTMIN", "RTMAX")}
names[signal.SIGRTMIN + 5] = "RTMIN+5"
seen = []
signal.pthread_sigmask(signal.SIG_BLOCK, names)
open(sys.argv[1] + os.environ["RANK"], "w").close()
while len(seen) < len(names):
    got = names[signal.sigwait(names)]
    if got not in seen:
        seen.append(got)
print(*sorted(seen), flush=True)
E
timeout -k 5 90 "$agent" --nproc 2 --max-restarts 0 -- \
    python3 "$T/catcher" "$T/caught" >"$T/out" 2>"$T/err" </dev/null &
bg=$!
until_true 30 test -e "$T/caught0" -a -e "$T/caught1"
all=$(pgrep -P $bg -x agent)
send_all()
{
    local n
    for n in USR1 USR2 WINCH CONT ALRM RTMIN RTMIN+5 RTMAX; do
        kill -s "$n" "$all" 2>/dev/null
    done
    ! kill -0 "$all" 2>/dev/null
}
until_true 60 send_all # Plain ones may fall together.
wait $bg
is "P4: USR1, USR2, WINCH, CONT, ALRM and real-time signals are passed on" \
    "$? $(sort "$T/out" | paste -s -d ' ')" "0 [rank0] ALRM CONT RTMAX RTMIN \
RTMIN+5 USR1 USR2 WINCH [rank1] ALRM CONT RTMAX RTMIN RTMIN+5 USR1 USR2 WINCH"
