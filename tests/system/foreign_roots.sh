#!/usr/bin/env bash
# The one static file as PID 1 in roots of others: one with nothing else in it,
# one of musl, one whose nsswitch.conf names modules that must not be loaded.
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/musl.sh"
if [ "$(id -u)" -ne 0 ] || ! unshare -pf true 2>/dev/null; then
    skip "foreign roots" "not root, or no namespaces"
    exit
fi
chmod 755 "$T"
lines() { sort "$1" | paste -s -d '|'; }
# as_init ROOT COMMAND...: its code in $rc
as_init()
{
    local root=$1
    shift
    timeout -k 5 60 unshare -pf --kill-child chroot "$root" "$@" \
        >"$T/out" 2>"$T/err" </dev/null
    rc=$?
}
fast=(--restart-backoff 10ms:50ms)

# --- nothing but agent, as FROM scratch ---
mkdir "$T/empty"
cp "$agent" "$T/empty/agent"
v=$("$agent" --version)
as_init "$T/empty" /agent --nproc 2 -- /agent --version
is "an empty root" "$rc $(lines "$T/out")" "0 [rank0] $v|[rank1] $v"
as_init "$T/empty" /agent --max-restarts 1 "${fast[@]}" -- /agent --bogus
is "a worker that fails there, twice" "$rc" 64
has "is told with its last line" "$T/err" '^agent.*: .*--bogus'
as_init "$T/empty" /agent --max-restarts 0 -- /bin/sh
is "a command that is not there" "$rc" 127
as_init "$T/empty" /agent preflight --nproc 1
is "preflight looks at it, and misses /dev/shm" "$rc $(grep -c '^fatal' \
    "$T/out") $(grep -c '^fatal *shm .*/dev/shm: No such' "$T/out")" "30 1 1"
as_init "$T/empty" /agent manifest /none
is "a folder that is not there" "$rc" 66

# --- musl, as Alpine ---
musl=$T/musl
ok "a worker of musl" musl_root "$musl"
loader=$(loader_of "$musl/worker")
echo '127.0.0.1 zero' >"$musl/etc/hosts"
as_init "$musl" /agent --nproc 2 --max-restarts 1 "${fast[@]}" -- /worker fail
is "a failure, a restart, the end" "$rc $(grep -v 'round 0' "$T/out" | sort |
    paste -s -d '|')" "0 [rank0] rank 0 of 2, round 1, uid 0, master known|$(
    )[rank1] rank 1 of 2, round 1, uid 0, master known"
has "with the worker's words" "$T/err" 'exited with 3'
as_init "$musl" /agent -- /worker orphans
is "orphans" "$rc" 0
has "are reaped" "$T/err" '; (19[0-9]|200) orphans reaped'
cp /bin/true "$musl/true"
as_init "$musl" /agent --max-restarts 0 -- /true
is "a program of glibc" "$rc" 127
has "is told from one that is missing" "$T/err" "needs the loader '/lib"
cp -r "$top/examples/digits" "$musl/set"
as_init "$musl" /agent --dataset /set/manifest.json --stage /tmp/stage \
    --offline -- /worker
is "a data set is verified and staged" "$rc" 0
ok "and is there" test -s "$(echo "$musl"/tmp/stage/*/MNIST/raw/train-images*)"

# No passwd, a uid that nobody knows, a root that is read only; and root
# without a capability.
ro='r=$1; shift; mount --bind "$r" "$r" && mount -o remount,ro,bind "$r" &&
    exec unshare -pf --kill-child chroot --userspec=1234567:0 "$r" "$@"'
timeout -k 5 60 unshare -m --propagation private sh -c "$ro" sh "$musl" /agent \
    --nproc 2 --max-restarts 1 "${fast[@]}" -- /worker fail \
    >"$T/out" 2>"$T/err" </dev/null
ok "there is no passwd" test ! -e "$musl/etc/passwd"
is "read-only, with any uid: PID 1 restarts a job" \
    "$? $(grep -c 'round 1, uid 1234567' "$T/out")" "0 2"
as_init "$musl" /worker bare /agent --nproc 2 --max-restarts 1 "${fast[@]}" \
    -- /worker fail
is "uid 0 without a capability" "$rc $(grep -c 'round 1' "$T/out")" "0 2"
timeout -k 5 60 unshare -pf --kill-child chroot "$musl" /worker bare /agent \
    --grace 20s -- /worker hold >"$T/out" 2>"$T/err" </dev/null &
bg=$!
ok "it runs" until_true 30 grep -q rank "$T/out"
kill -TERM "$(child_of "$(child_of $bg)")"
wait $bg
is "and stops when it is told to" $? 143

# Two pods that find each other by name; each is PID 1.
# pods ROOT [PREFIX...]: both codes in $rc
pods()
{
    local root=$1 port mesh
    shift
    port=$(free_port)
    for n in 1 0; do
        timeout -k 5 60 unshare -pf --kill-child chroot "$root" "$@" /agent \
            --log-dir /tmp/logs$n --nnodes 2 --node-rank $n --master-addr zero \
            --barrier-port "$port" -- /worker >"$T/out$n" 2>"$T/err$n" \
            </dev/null &
        mesh[n]=$!
    done
    wait "${mesh[0]}"
    rc=$?
    wait "${mesh[1]}"
    rc="$rc $?"
}
pods "$musl"
both="0 0 [rank0] rank 0 of 2, round 0, uid 0, master known|$(
    )[rank1] rank 1 of 2, round 0, uid 0, master known"
is "two pods in it" "$rc $(cat "$T/out0" "$T/out1" | sort | paste -s -d '|')" \
    "$both"
# Container runtimes of before 2021 refuse, with EPERM, what they do not know.
pods "$musl" /worker old
is "two pods with a seccomp profile that is older than clone3" \
    "$rc $(cat "$T/out0" "$T/out1" | sort | paste -s -d '|')" "$both"
as_init "$musl" /worker old /agent --dataset /set/manifest.json \
    --stage /tmp/again -- /worker
is "a data set is staged there, too" "$rc" 0

# --- glibc, with modules that a static program would load ---
trap_root=$T/trap
mkdir -p "$trap_root"/{tmp,etc}
cp "$agent" "$trap_root/agent"
cp "$musl/etc/hosts" "$trap_root/etc/hosts"
echo 'hosts: mymachines resolve files dns' >"$trap_root/etc/nsswitch.conf"
echo '#include <fcntl.h>
__attribute__((constructor)) static void load(void)
{ (void)!creat("/tmp/loaded", 0666); }' >"$T/module.c"
cc -shared -fPIC -o "$T/module.so" "$T/module.c"
cc -D_GNU_SOURCE -o "$T/own" "$top/tests/lib/foreign.c"
cc -D_GNU_SOURCE -static -o "$trap_root/naive" "$top/tests/lib/foreign.c" \
    2>"$T/log"
libc=$(ldd "$T/own" | sed -n 's|.* \(/.*/libc.so.6\).*|\1|p')
for dir in /lib /lib64 "${libc%/*}"; do
    mkdir -p "$trap_root$dir"
    cp "$libc" "$trap_root$dir/libc.so.6"
    cp -L "$(cc -print-file-name="$(readelf -lW "$T/own" |
        sed -n 's|.*interpreter: .*/\(.*\)]|\1|p')")" "$trap_root$dir/"
    for m in mymachines resolve files dns; do
        cp "$T/module.so" "$trap_root$dir/libnss_$m.so.2"
    done
done
MASTER_ADDR=zero as_init "$trap_root" /naive
ok "the trap works: another static program loads a module" \
    test -e "$trap_root/tmp/loaded"
rm -f "$trap_root/tmp/loaded"
"$musl/worker" old "$trap_root/naive" >"$T/out" 2>&1
is "and so does the older profile: it has no thread there" $? 95
# A worker of glibc may load what it likes: this one does not.
cp "$musl/worker" "$trap_root/worker"
mkdir -p "$trap_root${loader%/*}"
cp -L "$loader" "$trap_root$loader"
pods "$trap_root"
is "two pods find each other" "$rc" "0 0"
ok "and agent loads none" test ! -e "$trap_root/tmp/loaded"
