#!/usr/bin/env bash
# --hang-timeout: workers that stand still get a signal, are stopped, and the
# job is restarted or ends with 203. Those that write, compute, or send
# heartbeats do not.
. "$(dirname "$0")/../lib/tap.sh"
fast=(--restart-backoff 1ms:1ms --grace 2s)
run() { timeout -k 5 90 "$agent" "${fast[@]}" "$@" >"$T/out" 2>"$T/err" \
    </dev/null; rc=$?; }
declare -A of
# job NAME ARGS...: one in the background: they mostly wait.
job()
{
    local name=$1
    shift
    timeout -k 5 90 "$agent" "${fast[@]}" "$@" >"$T/$name.out" \
        2>"$T/$name.err" </dev/null &
    of[$name]=$!
}
# ends NAME: its code is $rc.
ends() { wait "${of[$1]}"; rc=$?; }
report() { python3 -c 'import json, sys
r = json.load(open(sys.argv[1]))
print(eval(sys.argv[2], {"r": r, "c": r["cause"]}))' "$T/r.json" "$1"; }

cat >"$T/where" <<'E'
import faulthandler, signal, sys, time
faulthandler.register(signal.SIGUSR1, file=sys.stderr)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
def waits_for_rank_7():
    while True:
        time.sleep(600)
waits_for_rank_7()
E
cat >"$T/beats" <<'E'
import os, sys, time
fd = int(os.environ["AGENT_HEARTBEAT_FD"])
for i in range(20):
    os.write(fd, b".")
    time.sleep(0.3)
while len(sys.argv) > 1: # No more of them: it spins, as in a wait for a GPU.
    pass
E
tick='i=0; while [ $((i += 1)) -le 20 ]; do printf .; sleep 0.3; done'

# These hang.
job once --nproc 2 --hang-timeout 1s --max-restarts 1 -- sh -c '
    [ "$TORCHELASTIC_RESTART_COUNT" = 1 ] || exec sleep 600'
job where --hang-timeout 1s --max-restarts 0 --grace 1s --report "$T/r.json" \
    -- python3 "$T/where"
job map --hang-timeout 1s --max-restarts 0 --exit-map hang=7 --hang-signal KILL \
    -- sleep 600
job zero --hang-timeout 1s --no-restart-on 203 --hang-signal SIGTERM -- sh -c '
    trap "exit 0" TERM; while :; do sleep 600 & wait; done'
job nomore --hang-timeout 4s --max-restarts 0 --hang-signal KILL \
    -- python3 "$T/beats" stop
# These do not, for longer than --hang-timeout.
job output --hang-timeout 4s --max-restarts 0 -- sh -c "$tick"
job cpu --hang-timeout 4s --max-restarts 0 -- sh -c 'setsid -w python3 -c "
import time
end = time.time() + 6
while time.time() < end: pass"'
job beats --hang-timeout 4s --max-restarts 0 -- python3 "$T/beats"
job one --nproc 2 --hang-timeout 4s --max-restarts 0 -- sh -c "
    [ \"\$RANK\" = 0 ] || exec sleep 6
    $tick"
job prestart --hang-timeout 1s --max-restarts 0 --pre-start 'sleep 3' -- true
mkfifo "$T/pipe"
timeout -k 5 90 "$agent" --hang-timeout 1s --max-restarts 0 -- \
    sh -c 'yes | head -c 3000000' >"$T/pipe" 2>"$T/unread.err" </dev/null &
of[unread]=$!
{
    sleep 4 # Nobody reads: longer than --hang-timeout.
    cat >"$T/unread.out"
} <"$T/pipe"

ends once
is "a job that hangs once is restarted" "$rc" 0
has "it is said, with the signal" "$T/once.err" \
    'warning: the workers of this pod hang: .* for 1 s; SIGUSR1 to them'
has "and as the cause" "$T/once.err" \
    'rank 0 \(.*\) hung, as all of this pod; .*restart 1 of 1'
ends where
is "a hang that stays ends with 203" "$rc" 203
has "the verdict has the class" "$T/where.err" \
    'failed with exit code 203 \(hang\): rank 0 .* hung, as all of this pod'
has "and where it hung" "$T/where.err" '^agent.0.:.*waits_for_rank_7'
is "the report, too" "$(report '[r["class"], r["retryable"], c["kind"],
    c["exit_code"], c["signal"], any("waits_for" in x for x in c["stderr"])]')" \
    "['hang', True, 'hang', 203, None, True]"
has "it was stopped" "$T/where.err" 'hint: all workers .* in a collective$'
ends map
is "--exit-map; a signal that kills is a hang all the same" "$rc" 7
has "which is told" "$T/map.err" \
    'hint: .*; it was SIGKILL \(--hang-signal\) that ended them$'
hasnt "KILL needs no handler" "$T/map.err" 'handler'
has "of USR1 a program without one dies" "$T/once.err" \
    'SIGUSR1 to them, of which a program without a handler dies, and in 5 s'
ends zero
is "so is an end with 0 then" "$rc" 203
has "--no-restart-on has its code" "$T/zero.err" \
    'no restart: --no-restart-on has 203'
ends nomore
is "once there were heartbeats only they count" "$rc" 203
ends output
is "output is a sign of life, without a newline, too" "$rc" 0
ends cpu
is "so is CPU time, in another session, too" "$rc" 0
ends beats
is "so are heartbeats" "$rc" 0
ends one
is "one of two that works" "$rc" 0
ends prestart
is "--pre-start is not watched" "$rc" 0
ends unread
is "a reader that stalls is no hang" "$rc $(wc -c <"$T/unread.out")" \
    '0 15000000'

# A pod that stands still, as with its machine.
"$agent" "${fast[@]}" --hang-timeout 2s --max-restarts 0 --log-prefix none -- \
    sh -c 'echo $$; exec sleep 60' >"$T/out" 2>"$T/err" </dev/null &
bg=$!
until_true 20 test -s "$T/out"
worker=$(cat "$T/out")
kill -STOP "$worker" $bg
sleep 4
kill -CONT $bg "$worker"
sleep 0.3 # Its timer is over since long.
kill -TERM $bg
wait $bg
is "a pod that stood still is stopped as ever" $? 143
hasnt "and did not hang" "$T/err" 'hang'

# Descriptors: the pipe, with --hang-timeout alone.
run -- sh -c 'echo "${AGENT_HEARTBEAT_FD-unset}"; ls /proc/self/fd | wc -l'
is "no pipe without it" "$(paste -s -d ' ' "$T/out")" '[rank0] unset [rank0] 4'
run --hang-timeout 9s -- sh -c '[ -p /proc/self/fd/$AGENT_HEARTBEAT_FD ] &&
    ls /proc/self/fd | wc -l'
is "one with it" "$rc $(cat "$T/out")" '0 [rank0] 5'
# However many agent has itself.
run --hang-timeout 9s --nproc 9 -- sh -c 'echo $AGENT_HEARTBEAT_FD
    [ -p /proc/self/fd/3 ] && echo >&$AGENT_HEARTBEAT_FD'
is "its number has one digit, which every shell can name" \
    "$rc $(sort -u "$T/out" | sed 's/.* //' | sort -u)" '0 3'
AGENT_HEARTBEAT_FD=7 run -- sh -c 'echo "${AGENT_HEARTBEAT_FD-unset}"'
is "that of an outer agent is not handed on" "$(cat "$T/out")" '[rank0] unset'

# Without /proc nobody is called idle; heartbeats count as ever.
ns="unshare -m"
$ns true 2>/dev/null || ns="unshare -Urm"
cat >"$T/bare" <<'E'
mount -t tmpfs none /proc || exit 99
exec "$@"
E
no_proc()
{
    # shellcheck disable=SC2086 # a command and its option
    timeout -k 5 90 $ns --propagation private bash "$T/bare" "$agent" \
        --hang-timeout 1s --max-restarts 0 --hang-signal KILL "$@" \
        >"$T/out" 2>"$T/err" </dev/null
    rc=$?
}
no_proc -- sleep 2.5
if [ $rc = 99 ] || ! $ns true 2>/dev/null; then
    skip "no /proc" "nothing can be mounted over it here"
    exit 0
fi
is "without /proc nobody is idle" "$rc" 0
has "and it is said" "$T/err" 'warning: --hang-timeout: without /proc'
# shellcheck disable=SC2016 # the worker expands it
no_proc -- sh -c 'echo >&$AGENT_HEARTBEAT_FD; exec sleep 60'
is "but a heartbeat that stops is a hang" "$rc" 203
