#!/usr/bin/env bash
# Odd surroundings of PID 1: descriptors that are closed or broken, a root
# without /proc, /tmp and /dev or one that is read-only, any uid, few processes.
. "$(dirname "$0")/../lib/tap.sh"
fast=(--restart-backoff 10ms:50ms)
run() { timeout -k 5 60 "$agent" "$@" >"$T/out" 2>"$T/err" </dev/null; rc=$?; }
lines() { sort "$1" | paste -s -d ' '; }

# --- descriptors ---

(exec <&- >&- 2>&-
 "$agent" --nproc 2 --report "$T/r.json" -- sh -c 'echo out; echo err >&2
     read -r x; exec >"'"$T"'/fds.$RANK"; ls -l /proc/self/fd |
     sed -n "s/.* \([0-2]\) -> .*/\1/p"')
is "0, 1 and 2 are closed: the job runs" \
    "$? $(lines "$T/fds.0") $(lines "$T/fds.1")" '0 0 1 2 0 1 2'
is "and is reported" "$(python3 -c 'import json, sys
print(json.load(open(sys.argv[1]))["exit_code"])' "$T/r.json")" 0
for fd in 0 1 2; do
    (eval "exec $fd<&-"
     "$agent" --nproc 2 --max-restarts 1 "${fast[@]}" -- sh -c '
        [ ! -e /proc/self/fd/3 ] || exit 9
        echo x; echo x >&2; [ $RANK = 0 ] || exec sleep 60; exit 5') \
        >"$T/out" 2>"$T/err" </dev/null
    is "$fd is closed: the code of a failed job" "$?" 5
done
# What cannot be written or read at all.
"$agent" -- sh -c 'read -r x; echo "read $?"' 0>"$T/in" >"$T/out" 2>"$T/err"
is "0 cannot be read: workers have /dev/null" "$? $(cat "$T/out")" \
    '0 [rank0] read 1'
"$agent" --max-restarts 0 -- sh -c 'echo x; exit 6' 1</dev/null 2>"$T/err"
is "1 cannot be written: the job runs" "$?" 6
has "and it is said" "$T/err" 'stdout: Bad file descriptor; 1 line \(10 bytes\) could'
"$agent" --max-restarts 0 -- sh -c 'echo x; echo y >&2; exit 6' >"$T/out" \
    2</tmp
is "2 is a folder: the job runs" "$? $(cat "$T/out")" '6 [rank0] x'
python3 - "$agent" >"$T/code" <<'E'
import socket, subprocess, sys
a, b = socket.socketpair()
b.close()
r = subprocess.run([sys.argv[1], "--max-restarts", "0", "--", "sh", "-c",
                    "echo x; echo y >&2; exit 6"], stdout=a, stderr=a)
print(r.returncode)
E
is "1 and 2 are a socket that nobody reads" "$(cat "$T/code")" 6

# None but 0, 1 and 2 reaches a worker: ls has one more, for the folder.
(exec 3</dev/null 9<"$T" 300>"$T/x"
 run --nproc 2 --log-dir "$T/logs" --socket "$T/s" -- ls /proc/self/fd)
is "no descriptor leaks to a worker" "$(lines "$T/out")" \
    "$(printf '[rank0] %s\n' 0 1 2 3 | paste -s -d ' ') $(
        printf '[rank1] %s\n' 0 1 2 3 | paste -s -d ' ')"
(exec 3</dev/null
 run --nproc 2 --max-restarts 1 "${fast[@]}" -- sh -c '
    [ $TORCHELASTIC_RESTART_COUNT = 1 ] || exit 1; exec ls /proc/self/fd')
hasnt "nor in a second round" "$T/out" '\] [4-9]|\] [0-9][0-9]'
has "which was one" "$T/err" 'round 1 starts'
python3 - "$agent" >"$T/out" 2>"$T/err" <<'E'
import os, socket, sys
s = socket.socket()
s.bind(("127.0.0.1", 0))
s.listen()
os.dup2(s.fileno(), 3)
os.environ.update(LISTEN_FDS="1", LISTEN_PID=str(os.getpid()),
                  LISTEN_FDNAMES="web", HERE="yes")
os.execv(sys.argv[1], [sys.argv[1], "--", "sh", "-c", """
    env | grep -E '^(LISTEN_|HERE)'; [ ! -e /proc/self/fd/3 ] || echo leaks"""])
E
is "a socket of systemd's and LISTEN_FDS stop at agent" "$(cat "$T/out")" \
    '[rank0] HERE=yes'

# --- a parent that does not care for its children ---

timeout -k 5 60 python3 - "$agent" >"$T/out" 2>"$T/err" <<'E'
import os, signal, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
os.execv(sys.argv[1], [sys.argv[1], "--nproc", "2", "--max-restarts", "1",
                       "--restart-backoff", "0:0", "--", "sh", "-c", "exit 5"])
E
is "SIGCHLD is ignored: agent hears of its workers' ends" "$?" 5

# --- few processes ---

if [ "$(id -u)" -ne 0 ] || ! unshare -pfm --mount-proc true 2>/dev/null; then
    skip "odd roots" "not root, or no namespaces"
    exit
fi
chmod 755 "$T"
mkdir -m 755 "$T/bin"
cp "$agent" "$T/bin/agent"
few() # LIMIT COMMAND...: as a user of its own, with so many processes
{
    local limit=$1
    shift
    timeout -k 5 100 setpriv --reuid=54321 --regid=0 --clear-groups \
        prlimit --nproc="$limit" "$@" >"$T/out" 2>"$T/err" </dev/null
    rc=$?
}
cat >"$T/bin/orphans.py" <<'E'
import os, sys, time
def fork():
    end = time.monotonic() + 30
    while True:
        try:
            return os.fork()
        except BlockingIOError: # All are taken: until one is reaped.
            if time.monotonic() > end:
                print("no fork for 30 s", flush=True)
                os._exit(1)
            time.sleep(.001)
for i in range(int(sys.argv[1])):
    pid = fork()
    if pid == 0:
        fork()
        os._exit(0)
    os.waitpid(pid, 0)
print("fork works")
E
few 16 "$T/bin/agent" -- python3 -S "$T/bin/orphans.py" 2000
is "2,000 orphans, 16 processes allowed: fork works" "$rc $(cat "$T/out")" \
    '0 [rank0] fork works'
timeout -k 5 100 unshare -pf --mount-proc setpriv --reuid=54321 --regid=0 \
    --clear-groups prlimit --nproc=16 "$T/bin/agent" -- \
    python3 -S "$T/bin/orphans.py" 1000 >"$T/out" 2>"$T/err" </dev/null
is "as PID 1 1,000 of them, too" "$? $(cat "$T/out")" '0 [rank0] fork works'
cat >"$T/bin/fill.py" <<'E'
import os, signal, sys, time
if os.environ["TORCHELASTIC_RESTART_COUNT"] == "4":
    sys.exit(0)
n = 0
while True: # Until no more can be had; they stay.
    try:
        if os.fork() == 0:
            os.setsid()
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            time.sleep(100)
            os._exit(0)
        n += 1
    except BlockingIOError:
        print("filled" if n > 0 else "no room", flush=True)
        os._exit(3)
E
few 16 "$T/bin/agent" --grace 100ms --max-restarts 9 --restart-backoff 0:0 \
    -- python3 "$T/bin/fill.py"
is "what fills the limit is gone and reaped before the next round" \
    "$rc $(lines "$T/out")" \
    '0 [rank0] filled [rank0] filled [rank0] filled [rank0] filled'

# --- a /proc whose numbers are not ours ---

timeout -k 5 60 unshare -pf --kill-child "$agent" --nproc 2 --grace 1s \
    --max-restarts 1 "${fast[@]}" -- sh -c '
        setsid sleep 300 </dev/null >/dev/null 2>&1 &
        [ $TORCHELASTIC_RESTART_COUNT = 1 ] || exit 3' >"$T/out" 2>"$T/err" \
    </dev/null
is "/proc of another PID namespace: nobody of it is taken for ours" "$?" 0

# --- roots ---

# Only /usr and agent: no /proc, /tmp, /dev, /run, /etc.
bare=$T/bare
mkdir -p "$bare/usr"
for d in bin sbin lib lib32 lib64; do
    [ ! -L /$d ] || cp -d /$d "$bare/$d"
done
cp "$agent" "$bare/agent"
in_root() # SETUP COMMAND...: in a mount namespace, after SETUP
{
    local setup=$1
    shift
    timeout -k 5 60 unshare -m --propagation private sh -c '
        r=$1; mount --bind /usr "$r/usr" || exit 99; eval "$2" || exit 99
        shift 2; exec "$@"' sh "$bare" "$setup" "$@" \
        >"$T/out" 2>"$T/err" </dev/null
    rc=$?
}
job='read -r x; echo "read $?"; [ ! -e /proc ] && [ ! -e /tmp ] &&
    [ ! -e /dev ] || exit 9
    [ $TORCHELASTIC_RESTART_COUNT = 1 ] && exit 0
    [ $RANK = 1 ] || exec sleep 60; echo lost >&2; exit 7'
for init in "" "unshare -pf"; do
    # shellcheck disable=SC2086 # words, or none
    bare_agent() { in_root : $init chroot "$bare" /agent "$@"; }
    name="a bare root${init:+, PID 1}"
    bare_agent --nproc 2 --max-restarts 1 "${fast[@]}" -- sh -c "$job"
    is "$name: a failure, a restart, the end" "$rc" 0
    has "$name: stdin is at its end" "$T/out" '^\[rank1\] read 1'
    has "$name: round 1" "$T/err" 'round 1 starts'
    bare_agent --max-restarts 0 --grace 1s -- sh -c '
        sleep 300 & echo lost >&2; exit 7'
    is "$name: the code" "$rc" 7
    has "$name: the last words" "$T/err" '^agent.*: +lost'
    bare_agent --max-restarts 0 -- /none
    is "$name: a missing command" "$rc" 127
    bare_agent -- sh -c 'kill -TERM $PPID; exec sleep 60'
    is "$name: TERM" "$rc" 143
done
bare_agent --grace 1s -- sh -c '
    i=0; while [ $i -lt 500 ]; do (true &); i=$((i + 1)); done
    setsid sleep 300 & sleep .2; exit 0'
is "a bare root, PID 1: orphans, and one that stays" "$rc" 0
has "they are reaped" "$T/err" '; [45][0-9][0-9] orphans reaped'

# Its parent is PID 1 there; here a guard has to do without /proc.
bare_agent() { in_root : chroot "$bare" /agent "$@"; }
bare_agent --socket /s -- sh -c "sleep 36$$ | {
    until /agent status --socket /s >/x; do sleep .05; done
    kill -KILL \$PPID; cat; }"
ok "a bare root: kill -9 of agent leaves nothing of a worker's group" \
    until_true 20 sh -c "! pgrep -f '^sleep 36$$'"

in_root 'mount --bind "$r" "$r" && mount -o remount,ro,bind "$r" &&
    mount --bind /usr "$r/usr"' chroot "$bare" sh -c '
    ! (: >/x) 2>/dev/null || exit 98
    exec /agent --nproc 2 --max-restarts 1 --restart-backoff 0:0 -- sh -c "
        [ \$TORCHELASTIC_RESTART_COUNT = 1 ] || exit 1; echo ok"'
is "a read-only root" "$rc $(lines "$T/out")" '0 [rank0] ok [rank1] ok'
in_root 'mount --bind "$r" "$r" && mount -o remount,ro,bind "$r"' \
    chroot "$bare" /agent --log-dir /logs -- true
is "a read-only root and --log-dir" "$rc" 202
has "says why" "$T/err" '/logs.*Read-only file system'
in_root : chroot --userspec=1000680000:0 "$bare" /agent --nproc 2 -- sh -c \
    'id -u; id -g'
is "a uid that nobody knows, group 0" "$rc $(lines "$T/out")" \
    '0 [rank0] 0 [rank0] 1000680000 [rank1] 0 [rank1] 1000680000'
in_root : unshare -pf chroot --userspec=1000680000:0 "$bare" /agent \
    --max-restarts 1 "${fast[@]}" -- sh -c \
    '[ $TORCHELASTIC_RESTART_COUNT = 1 ] || kill -KILL $$; echo ok'
is "as PID 1, too, killed and started again" "$rc $(cat "$T/out")" \
    '0 [rank0] ok'
