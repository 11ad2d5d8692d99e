#!/usr/bin/env bash
# Hints: real deaths, and what the verdict says of their causes.
. "$(dirname "$0")/../lib/tap.sh"

run() { timeout -k 5 60 "$agent" "$@" >"$T/out" 2>"$T/err" </dev/null; rc=$?; }

# What cannot be run, and why.
mkdir "$T/d"
printf '#!/no/such/interpreter -x\n' >"$T/script"
printf '#!/bin/sh\r\necho hi\r\n' >"$T/dos"
printf 'echo hi\n' >"$T/plain"
printf '#!/usr/bin/env no-such-python\n' >"$T/env"
python3 - "$(command -v sleep)" "$T" <<'P'
import re, sys
b = open(sys.argv[1], "rb").read()
foreign = bytearray(b)
foreign[18:20] = (22).to_bytes(2, "little")  # s390
open(sys.argv[2] + "/foreign", "wb").write(foreign)
at = re.search(rb"/lib[\w/.-]*ld-linux[\w.-]*\0", b)
loader = b"/lib/ld-no.so.1"
open(sys.argv[2] + "/loader", "wb").write(
    b[:at.start()] + loader + bytes(len(at[0]) - len(loader)) + b[at.end():])
P
chmod +x "$T"/{script,dos,env,foreign,loader}
cannot() # NAME CODE REGEX COMMAND
{
    run -- "$4"
    is "exec: $1: the code" "$rc" "$2"
    has "exec: $1: the reason" "$T/err" "hint: .*$3"
    hasnt "exec: $1: not tried again" "$T/err" 'restart 1 of|round 1 starts'
}
cannot "no interpreter" 127 "its interpreter '/no/such/interpreter' is missing" \
    "$T/script"
cannot "Windows line ends" 127 'carriage return' "$T/dos"
cannot "no loader" 127 "needs the loader '/lib/ld-no.so.1'" "$T/loader"
cannot "another architecture" 126 'is built for s390x, and this machine is' \
    "$T/foreign"
cannot "no permission" 126 'no execute permission \(chmod' "$T/plain"
cannot "a folder" 126 'is a folder' "$T/d"
cannot "not in PATH" 127 "'no-such-command-here' was not found in PATH" \
    no-such-command-here
cannot "env without the interpreter" 127 'asks env for is not in PATH' \
    "$T/env"
(mkdir "$T/gone" && cd "$T/gone" && rmdir "$T/gone" &&
    run --max-restarts 0 -- python3 train.py)
has "the working directory is gone" "$T/err" \
    'hint: the working directory of agent has been removed'

# Real last words.
run --max-restarts 0 -- python3 -c 'import no_such_module'
has "python: a missing module" "$T/err" 'hint: this Python does not find'
again=(--max-restarts 1 --restart-backoff 10ms:50ms)
for scope in job worker; do
    run "${again[@]}" --restart-scope $scope -- python3 -c 'import no_module'
    is "scope $scope: a restart tells the hint, and the end does" \
        "$(grep -c 'hint: this Python does not find' "$T/err")" 2
done
run "${again[@]}" --pre-start 'kill -KILL $$' -- true
is "and so with --pre-start" \
    "$(grep -c 'hint: agent did not send it' "$T/err")" 2
run --max-restarts 0 -- python3 /no/such/train.py
has "python: a missing script" "$T/err" 'hint: the script is not there'
run --max-restarts 0 -- python3 -c 'input("Go on? ")'
has "python: input() without a stdin" "$T/err" "hint: workers' stdin is /dev/nu"
port=$(free_port)
python3 -c 'import socket, sys, time
s = socket.socket(); s.bind(("127.0.0.1", int(sys.argv[1]))); s.listen()
print("up", flush=True); time.sleep(99)' "$port" >"$T/up" &
holder=$!
until_true 20 grep -q up "$T/up"
run --max-restarts 0 -- python3 -c '
import socket, sys
try:
    s = socket.socket(); s.bind(("127.0.0.1", int(sys.argv[1])))
except OSError as e:
    sys.exit(f"DistNetworkError: port: {sys.argv[1]}, code: -98, message: {e}")
' "$port"
has "a port in use, and by whom" "$T/err" \
    "hint: a port is taken.*port $port is held by pid $holder \(python3"
kill $holder
wait $holder 2>/dev/null
for how in -St -t; do
    timeout 60 sh -c "ulimit $how 1"' && exec "$@"' sh "$agent" \
        --max-restarts 0 -- sh -c 'while :; do :; done' 2>"$T/err"
    has "ulimit $how" "$T/err" 'hint: .*limit of CPU time .*, 1 s, was reac'
done
run --nproc 2 -- sh -c '[ $RANK = 1 ] || exit 0
    (until grep -q stands "'"$T"'/err"; do sleep .05; done; kill -CONT $$) &
    kill -STOP $$; wait'
is "a worker that is stopped runs on later" "$rc" 0
has "and it is told" "$T/err" \
    'warning: rank 1 \(.*was stopped by SIGSTOP, .*`kill -CONT [0-9]+`'
run --max-restarts 0 -- sh -c 'kill -9 $$'
has "a kill -9 is told apart" "$T/err" "hint: agent did not send it.*kill -9"

# What needs mounts and cgroups of its own.
if unshare -m true 2>/dev/null; then
    cat >"$T/bus.py" <<'P'
import mmap
f = open("/dev/shm/big", "wb+")
f.truncate(8 << 20)
m = mmap.mmap(f.fileno(), 8 << 20)
for i in range(0, 8 << 20, 4096):
    m[i] = 1
P
    # shellcheck disable=SC2016
    unshare -m sh -c 'mount -t tmpfs -o size=1m shm /dev/shm && exec "$@"' sh \
        timeout 60 "$agent" --max-restarts 0 -- python3 "$T/bus.py" \
        >"$T/out" 2>"$T/err"
    is "P82: /dev/shm is full: SIGBUS" "$?" 135
    has "P82: the verdict says so" "$T/err" \
        'hint: SIGBUS most often means that /dev/shm is full'
    has "P82: with its size and use" "$T/err" \
        '/dev/shm has 1 MiB, (9[0-9]|100) % used'
    has "P83: and the fix for Kubernetes" "$T/err" \
        'emptyDir of medium: Memory at /dev/shm'
    unshare -m sh -c 'mount -t tmpfs -o size=1m t "$0" && cd "$0" &&
        exec "$@"' "$T/d" timeout 60 "$agent" --max-restarts 0 -- \
        python3 -c 'open("x", "wb").write(bytes(2 << 20))' \
        >"$T/out" 2>"$T/err"
    has "a full disk is named" "$T/err" \
        'hint: a file system .*full.*working directory has 0 KiB free of 1 MiB'
    unshare -m sh -c 'mount -t tmpfs -o noexec t "$0" && cp "$1" "$0/x" &&
        shift && exec "$@"' "$T/d" "$(type -P true)" \
        timeout 60 "$agent" -- "$T/d/x" >"$T/out" 2>"$T/err"
    is "exec: mounted noexec" "$?" 126
    has "exec: mounted noexec: the reason" "$T/err" 'that is mounted noexec'
else
    skip "P82, P83, a full disk, noexec" "no mount namespaces here"
fi

group=/sys/fs/cgroup/memory/agent-test-$$
limit=memory.limit_in_bytes
if [ ! -d /sys/fs/cgroup/memory ]; then
    group=/sys/fs/cgroup/agent-test-$$
    limit=memory.max
fi
if mkdir "$group" 2>/dev/null && echo 67108864 2>/dev/null >"$group/$limit"; then
    [ ! -e "$group/memory.swap.max" ] || echo 0 >"$group/memory.swap.max"
    # shellcheck disable=SC2016
    sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" \
        timeout 60 "$agent" --nproc 2 --max-restarts 0 -- sh -c '
        [ $RANK = 1 ] || exec sleep 60
        exec python3 -c "x = bytearray(256 << 20); print(len(x))"' \
        >"$T/out" 2>"$T/err"
    is "OOM: the code" "$?" 137
    has "OOM: the counter tells it from other kills" "$T/err" \
        "hint: the kernel's OOM killer was at work in this pod \(1 kill"
    has "OOM: and the rank" "$T/err" 'exit code 137: rank 1 .*SIGKILL'
    until_true 20 rmdir "$group"
else
    rmdir "$group" 2>/dev/null
    skip "OOM" "no memory cgroup can be made here"
fi
