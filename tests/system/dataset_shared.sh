#!/usr/bin/env bash
# Several stagers of one folder: one copies, the others wait, see how far it is
# and reuse. Also where a lock of one host is unknown to the other: here two
# mounts of one folder by FUSE, each with locks of its own.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"
src=$T/src m=$T/m.json
mkdir "$src"
truncate -s 40M "$src/large" # So that they meet.
for i in $(seq 20); do head -c 100000 /dev/urandom >"$src/f$i"; done
"$agent" manifest "$src" --name set -o "$m"
sum=$(cd "$src" && sha256sum -- * | sha256sum)

# stager N FOLDER ARGS...: in the background
stager()
{
    local n=$1 to=$2
    shift 2
    timeout -k 5 100 "$agent" stage --dataset "$m" --source "$src" \
        --stage "$to" "$@" >"$T/out.$n" 2>"$T/err.$n" </dev/null &
    pids[n]=$!
}
# ended N...: $codes, when they have ended
ended()
{
    codes=
    for n; do
        wait "${pids[n]}"
        codes+="$? "
    done
}
# one_copied FOLDER: of all in $T/err.*
one_copied()
{
    local dir
    dir=$(echo "$1"/set@*)
    is "... by one copy" "$(cat "$T"/err.* | grep -c 'bytes, staged')" 1
    is "... which seven reuse" \
        "$(cat "$T"/err.* | grep -c 'already staged')" 7
    is "... and that is right" "$(cd "$dir" && sha256sum -- * | sha256sum)" \
        "$sum"
    is "... with nothing left but the lock" "$(ls -A "$1" |
        grep -cvE '^set@[0-9a-f]*$|^\.set@[0-9a-f]*\.lock$')" 0
    rm -f "$T"/err.* "$T"/out.*
}

for n in 1 2 3 4 5 6 7 8; do stager $n "$T/stage"; done
ended 1 2 3 4 5 6 7 8
is "eight stagers of one folder" "$codes" "0 0 0 0 0 0 0 0 "
one_copied "$T/stage"

# --- how far it is -------------------------------------------------------
# A holder that stands still, with what it has put into the lock's file.
name=$(basename "$T"/stage/set@*)
rm -rf "$T/stage/$name"
lock=$T/stage/.$name.lock
printf '%-255s\n' 'agent-lease 1 0123456789abcdef x:1 7 60000 20971520 41943040 5 21 .' \
    >"$lock"
exec 9>>"$lock"
flock 9
stager 1 "$T/stage" 9>&-
python3 "$top/tests/lib/terminal.py" \
    'expect set: another process stages this set: waiting for it' \
    'expect \r\x1b\[Kset: another process stages it: 5 of 21 files, 20.0 MiB of 40.0 MiB \(50 %\)' \
    'send \x03' -- "$agent" stage --dataset "$m" --source "$src" \
    --stage "$T/stage" >"$T/tty" 2>&1 9>&-
is "on a terminal: a bar, with what the other one has done" $? 130
ok "in a log: a line each 5 s" until_true 30 grep -q \
    '^agent: set: another process stages it: 5 of 21 files, 20.0 MiB of 40.0' \
    "$T/err.1"
hasnt "... and no bar" "$T/err.1" $'\r'
# The pods of a job: each says who is still staging.
port=$(free_port)
for r in 0 1; do
    args=(--nnodes 2 --node-rank $r --master-addr 127.0.0.1
        --barrier-port "$port" --nproc 1 --dataset "$m" --source "$src")
    # Pod 1 waits for the lock, pod 0 for pod 1.
    [ $r = 0 ] || args+=(--stage "$T/stage")
    timeout -k 5 100 "$agent" "${args[@]}" -- true >"$T/out.$((r + 2))" \
        2>"$T/err.$((r + 2))" </dev/null 9>&- &
    pids[r + 2]=$!
done
ok "pod 1 says that it waits" until_true 30 grep -q \
    'set: another process stages this set: waiting for it' "$T/err.3"
ok "pod 0 is told how far that is" until_true 60 grep -qE \
    'node rank 1 staging \(50 %\)' "$T/err.2"
exec 9>&-
ended 1 2 3
is "they go on when it is gone" "$codes" "0 0 0 "

truncate -s 1G "$src/huge"
for what in "manifest $src -o $T/big.json" "verify $T/big.json $src"; do
    IFS=' ' read -ra words <<<"$what"
    python3 "$top/tests/lib/terminal.py" \
        'expect \r\x1b\[K[a-z]+: [0-9]+ of 22 files, .* of 1.0 GiB \([0-9]+ %\)' \
        'expect \r\x1b\[K' -- "$agent" "${words[@]}" >"$T/tty" 2>&1
    rc=$?
    is "agent ${words[0]} has a bar on a terminal" $rc 0
    [ $rc = 0 ] || tail -c 600 "$T/tty" | sed 's/^/# /'
done
"$agent" verify -q "$T/big.json" "$src" >"$T/out" 2>"$T/err"
is "-q: nothing of all that" "$? $(cat "$T/out" "$T/err")" "0 "
rm -f "$src/huge" "$T"/err.* "$T"/out.*

# --- locks that are not shared -------------------------------------------
if ! command -v bindfs >/dev/null || [ ! -w /dev/fuse ] ||
    ! unshare -m true 2>/dev/null; then
    skip "two mounts with locks of their own" \
        "bindfs, /dev/fuse or mounts are not there"
    exit
fi
export T agent src m
# shellcheck disable=SC2016 # expanded in there
timeout -k 5 250 unshare -m --propagation private bash -c '
    mkdir "$T/real" "$T/m1" "$T/m2"
    bindfs "$T/real" "$T/m1" && bindfs "$T/real" "$T/m2" || exit 77
    start()
    {
        "$agent" stage --stage-lease 2s --dataset "$m" --source "$src" \
            --stage "$T/m$2" >"$T/out.$1" 2>"$T/err.$1" &
        pids[$1]=$!
    }
    for n in 1 2 3 4 5 6 7 8; do start $n $((n % 2 + 1)); done
    for n in 1 2 3 4 5 6 7 8; do
        wait ${pids[n]}
        echo -n "$? "
    done >"$T/codes"
    mkdir "$T/eight"
    mv "$T"/err.* "$T"/out.* "$T/eight"
    # A host dies in the middle of it; then a process does.
    for to in 2 1; do
        rm -rf "$T"/m1/set@*
        start 1 1
        until [ -e "$(echo "$T"/real/.set@*.part/*/f1)" ]; do sleep .01; done
        kill -9 ${pids[1]}
        start $((to + 1)) $to
        wait ${pids[to + 1]}
        echo $? >"$T/code.$to"
    done
    ls -A "$T/real" >"$T/left2"
    umount "$T/m1" "$T/m2"' 2>"$T/inside.err"
rc=$?
if [ $rc = 77 ]; then
    skip "two mounts with locks of their own" "FUSE is not permitted here"
    exit
fi
is "a host that died is replaced by the other one" "$(cat "$T/code.2")" 0
has "... after its silence, which is told" "$T/err.3" \
    "was being staged by a process on another host that fell silent for 2 s"
is "a process that died, by the next one there" "$(cat "$T/code.1")" 0
hasnt "... at once" "$T/err.2" 'fell silent'
is "nothing is left" "$(grep -cvE '^set@[0-9a-f]*$|^\.set@[0-9a-f]*\.lock$' \
    "$T/left2")" 0
is "eight stagers on two hosts" "$rc $(cat "$T/codes")" "0 0 0 0 0 0 0 0 0 "
mv "$T"/eight/* "$T"
cp -r "$T/real" "$T/copy"
one_copied "$T/copy"
