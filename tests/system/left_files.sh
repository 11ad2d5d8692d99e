#!/usr/bin/env bash
# Files that outlive those who made them: of dead workers in shared memory, of
# a killed agent wherever it makes some.
. "$(dirname "$0")/../lib/tap.sh"
fast=(--restart-backoff 10ms:50ms)

# An own one beside that of the machine, and said to be: agent spares a host's.
if [ "${1-}" != inside ]; then
    if ! unshare -m -i --propagation private sh -c \
        'mount -t tmpfs none /dev/shm && mount -t tmpfs none /run' 2>/dev/null
    then
        skip "left-over files" "no mount namespace"
        exit
    fi
    trap - EXIT
    rm -rf "$T"
    exec unshare -m -i --propagation private sh -c '
        mount -t tmpfs none /dev/shm && mount -t tmpfs none /run &&
        exec "$0" inside' "$0"
fi
run() { timeout -k 5 60 "$agent" "$@" >"$T/out" 2>"$T/err" </dev/null; rc=$?; }
# In the background, until `ready` is in its output; its pid is $bg.
start() { rm -f "$T/out"; "$agent" "$@" >"$T/out" 2>"$T/err" </dev/null & bg=$!
    until_true 30 grep -q ready "$T/out" || cat "$T/err"; }
shm() { ls /dev/shm | grep -v '^agent-run-' | sort | tr '\n' ' '; }

# Round 0 leaves files, round 1 lists what it finds.
leave='cd /dev/shm; [ $TORCHELASTIC_RESTART_COUNT = 0 ] || {
    ls | grep -v ^agent-run- | sort | tr "\n" " "; echo; exit 0; }
    for f in nccl-left torch_left sem.left psm_left other; do echo x >$f; done
    kill -KILL $$'
echo x >/dev/shm/nccl-before
run --max-restarts 1 "${fast[@]}" -- sh -c "$leave"
is "a round finds nothing that dead workers left" "$rc $(cat "$T/out")" \
    '0 [rank0] nccl-before other '
has "and what was removed is told" "$T/err" \
    'removed what dead workers left in /dev/shm: 4 files, 16 KiB \('
rm -f /dev/shm/other
run --max-restarts 0 -- sh -c "$leave"
is "after the last round it is not looked for" "$(shm)" \
    'nccl-before nccl-left other psm_left sem.left torch_left '
rm -f /dev/shm/[!a]*

# Mapped by somebody, be it in another PID namespace: a side-car that shares
# the pod's memory.
unshare -pf --kill-child python3 -c '
import mmap, os, sys, time
while not os.path.exists("/dev/shm/nccl-both"):
    time.sleep(.02)
f = os.open("/dev/shm/nccl-both", os.O_RDWR)
m = mmap.mmap(f, 4)
os.close(f)
open(sys.argv[1], "w").close()
time.sleep(60)' "$T/mapped" &
holder=$!
run --max-restarts 1 "${fast[@]}" -- sh -c '
    [ $TORCHELASTIC_RESTART_COUNT = 0 ] || { ls /dev/shm/nccl-*; exit 0; }
    echo 1234 >/dev/shm/nccl-both; echo x >/dev/shm/nccl-own
    until [ -e '"$T"'/mapped ]; do sleep .05; done; exit 1'
is "a file that another container has mapped stays" "$rc $(cat "$T/out")" \
    '0 [rank0] /dev/shm/nccl-both'
kill -KILL $holder
wait $holder 2>/dev/null
rm -f /dev/shm/[!a]*

# With another job on the machine, what may be meant for later stays.
start --socket "$T/o.sock" -- sh -c 'echo ready; exec sleep 60'
other=$bg
until_true 20 "$agent" status --socket "$T/o.sock"
run --max-restarts 1 "${fast[@]}" -- sh -c "$leave"
is "beside another job only what nobody can want goes" "$rc $(cat "$T/out")" \
    '0 [rank0] other psm_left sem.left torch_left '
kill -TERM $other
wait $other
rm -f /dev/shm/[!a]*
run --max-restarts 1 "${fast[@]}" -- sh -c 'd=${TORCHELASTIC_ERROR_FILE%/*}
    mkdir "$TORCHELASTIC_ERROR_FILE" && : >"$d/x" && : >"$d/../../x"; exit 3'
is "agents leave nothing of their own" "$(ls /dev/shm)" ''

# kill -9 of agent: its guard removes its files, whatever it was doing.
start -- sh -c 'echo ready; exec sleep 60'
ok "a folder for errors" until_true 10 sh -c 'ls /dev/shm/agent-run-*'
until_true 20 test -S /run/agent.sock
kill -KILL $bg
wait $bg 2>/dev/null
ok "kill -9: its folder is removed" until_true 20 sh -c '! ls /dev/shm/agent*'
ok "kill -9: and its socket" until_true 20 test ! -e /run/agent.sock

# A second one that waits for another pod: no worker was ever started.
start -- sh -c 'echo ready; exec sleep 60'
until_true 20 test -S /run/agent.sock
"$agent" --nnodes 2 --node-rank 1 --master-addr 127.0.0.1 \
    --barrier-port "$(free_port)" -- true >"$T/out2" 2>&1 </dev/null &
second=$!
disown $second
ok "a second agent has a socket of its own" \
    until_true 20 test -S /run/agent-$second.sock
kill -KILL $second
ok "kill -9 before any worker: its socket is removed, too" \
    until_true 20 test ! -e /run/agent-$second.sock
ok "the first one's is not" "$agent" status
kill -TERM $bg
wait $bg

# A socket beside the folder that it was started in.
cd "$T" || exit
start --socket here.sock -- sh -c 'echo ready; exec sleep 60'
until_true 20 test -S here.sock
kill -KILL $bg
wait $bg 2>/dev/null
ok "kill -9: a relative --socket, too" until_true 20 test ! -e here.sock

# PID 1 has no guard: the next agent finds what it left.
mkdir /dev/shm/agent-run-00000001-0000000000000002
start -- sh -c 'echo ready; exec sleep 60'
until_true 20 test -S /run/agent.sock
ok "a young folder may be a living agent's" \
    test -d /dev/shm/agent-run-00000001-0000000000000002
kill -TERM $bg
wait $bg
true
