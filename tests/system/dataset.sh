#!/usr/bin/env bash
# agent stage, verify and manifest, by the real program.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"

src=$T/src stage=$T/stage m=$T/m.json
# shellcheck disable=SC2154 # top and agent come from tap.sh
digits=$top/examples/digits/manifest.json

# run COMMAND...: its stdout, stderr and status in $T/out, $T/err, $rc.
run()
{
    timeout 60 "$@" >"$T/out" 2>"$T/err" </dev/null
    rc=$?
}

# fresh: a source of three files, its manifest, and no stage.
fresh()
{
    rm -rf "$src" "$stage"
    mkdir -p "$src/sub"
    echo one >"$src/a"
    seq 10000 >"$src/sub/b"
    seq 5000 | gzip -n >"$src/sub/c.gz"
    "$agent" manifest "$src" --unpack --name set -o "$m"
}

stage() { run "$agent" stage --dataset "$m" --source "$src" --stage "$stage"; }

# same: the folder that was printed holds what the source does.
same()
{
    dir=$(cat "$T/out")
    cmp "$src/a" "$dir/a" && cmp "$src/sub/b" "$dir/sub/b" &&
        seq 5000 | cmp - "$dir/sub/c" && [ ! -e "$dir/sub/c.gz" ]
}

# clean: nothing in the stage but finished folders and locks.
clean()
{
    local f
    for f in "$stage"/.*; do
        case $f in */. | */.. | *.lock) ;; *) echo "left: $f"; return 1 ;; esac
    done
}

# --- the digits ----------------------------------------------------------
run "$agent" verify "$digits"
is "the committed digits are what their manifest says" "$rc" 0
is "... and nothing is on stdout" "$(cat "$T/out")" ""
has "... and stderr sums up" "$T/err" '^agent: digits: 4 files, 44854 bytes'
ok "the digits are IDX, and sum up to what scikit-learn's do" python3 - \
    "$top/examples/digits/MNIST/raw" <<'PY'
import gzip, struct, sys
total, labels = 0, []
for part, n in ("train", 1437), ("t10k", 360):
    x = gzip.open(f"{sys.argv[1]}/{part}-images-idx3-ubyte.gz").read()
    y = gzip.open(f"{sys.argv[1]}/{part}-labels-idx1-ubyte.gz").read()
    assert struct.unpack(">4I", x[:16]) == (0x803, n, 8, 8), part
    assert struct.unpack(">2I", y[:8]) == (0x801, n), part
    assert len(x) == 16 + 64 * n and len(y) == 8 + n
    assert all(v % 15 == 0 and v <= 240 for v in x[16:])
    total += sum(x[16:]) // 15
    labels += y[8:]
assert total == 561718, total
assert [labels.count(d) for d in range(10)] == \
    [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
PY
run "$agent" stage --dataset "$digits" --stage "$stage"
is "the digits are staged" "$rc" 0
is "... into name@digest16, the only line on stdout" "$(cat "$T/out")" \
    "$stage/digits@df2ad29f45a86554"
raw=MNIST/raw/train-images-idx3-ubyte
ok "... unpacked" sh -c "gzip -dc '$top/examples/digits/$raw.gz' |
    cmp - '$stage/digits@df2ad29f45a86554/$raw'"
has "... as the README shows it" "$top/README.md" \
    '44854 bytes verified in .*/digits@df2ad29f45a86554, digest df2ad29f45a8'
run "$agent" verify "$digits" "$stage/digits@df2ad29f45a86554"
is "a finished stage verifies against its manifest" "$rc" 0
is "the digest is of the lines that the interface tells" \
    "$(python3 - "$digits" <<'PY'
import hashlib, json, sys
lines = sorted("sha256:%(sha256)s %(size)d %(path)s %(unpack)s\n" % f
               for f in json.load(open(sys.argv[1]))["files"])
print(hashlib.sha256("".join(lines).encode()).hexdigest()[:16])
PY
)" df2ad29f45a86554

# --- staging -------------------------------------------------------------
fresh
stage
is "a set is staged" "$rc" 0
ok "... and holds what the source does" same
ok "... and nothing else is in the stage" clean
inode=$(stat -c %i "$dir/a")
stage
is "a second start copies nothing" "$(stat -c %i "$dir/a")" "$inode"
has "... and says so" "$T/err" 'already staged'
mv "$src" "$src.away"
stage
is "... and needs no source" "$rc" 0
mv "$src.away" "$src"
printf X | dd of="$dir/sub/b" bs=1 seek=99 conv=notrunc status=none
stage
is "a stage that somebody changed is staged anew" "$rc" 0
ok "... and right again" same
ok "... with nothing left over" clean
has "... and told" "$T/err" "warning: the set is staged anew: '.*/sub/b' has"
for u in 077 002; do
    rm -rf "$stage"
    (umask $u && stage)
    dir=$(cat "$T/out")
    is "umask $u is kept" "$(stat -c %a "$dir/sub" "$dir/a" | xargs)" \
        "$([ $u = 077 ] && echo 700 600 || echo 755 644)"
done

# --- what is wrong, and how it ends --------------------------------------
stage_is_empty() { clean && [ -z "$(ls "$stage" 2>/dev/null)" ]; }

# bad NAME STATUS REGEX COMMAND: COMMAND spoils a fresh source.
bad()
{
    fresh
    (cd "$src" && eval "$4")
    stage
    is "$1: stage ends with $2" "$rc" "$2"
    has "... and says what" "$T/err" "^agent: error: .*$3"
    is "... in one line" "$(wc -l <"$T/err")" 1
    is "... with nothing on stdout" "$(cat "$T/out")" ""
    ok "... and nothing in the stage" stage_is_empty
    run "$agent" verify "$m" "$src"
    is "... and verify ends with $2" "$rc" "$2"
}
hash='[0-9a-f]{64}'
bad "flipped byte" 65 "sub/b' has sha256 $hash, the manifest says $hash" \
    'printf X | dd of=sub/b bs=1 seek=99 conv=notrunc status=none'
bad "flipped byte in gzip data" 65 "sub/c.gz' has sha256 $hash, " \
    'printf X | dd of=sub/c.gz bs=1 seek=99 conv=notrunc status=none'
bad "short file" 65 "a' has 3 bytes, the manifest says 4" 'truncate -s 3 a'
bad "missing file" 66 "sub/b' is missing" 'rm sub/b'
bad "missing source" 66 "source folder '.*' is missing" 'rm -r ../src'
bad "pipe in place of a file" 65 'is a pipe, no regular file' \
    'rm a && mkfifo a'
bad "link out of the source" 65 'a link on its way leaves the source folder' \
    'mv a .. && ln -s ../a a'
bad "LFS pointer" 65 "is a Git LFS pointer, not the data: run 'git lfs pull'" \
    'printf "version https://git-lfs.github.com/spec/v1\noid x\n" >a'

# refused NAME REGEX TEXT: a manifest that is refused.
refused()
{
    printf '%b' "$3" >"$m"
    run "$agent" stage --dataset "$m" --stage "$stage"
    is "$1: 65" "$rc" 65
    has "... and where" "$T/err" "$2"
}
refused "path with .." "m.json:2:17: path '../a' is refused" \
    '{"manifest": 1, "name": "x", "files": [\n{       "path": "../a"}]}'
refused "malformed JSON" "m.json:3:1: a ',' should come here" \
    '{"manifest": 1\n\n"name": "x"}'
refused "unknown key" "m.json:1:16: unknown key 'file'" \
    '{"manifest":1, "file": []}'
refused "no file" 'm.json: it names no file' \
    '{"manifest":1,"name":"x","files":[]}'
refused "rar" "m.json:1:.*'unpack' must be none, gzip, tar, tar.gz, " \
    '{"manifest":1,"name":"x","files":[{"path":"a.rar","unpack":"rar"}]}'
run "$agent" stage --dataset "$T/none.json" --stage "$stage"
is "missing manifest: 66" "$rc" 66

fresh
rm "$src/a"
truncate -s 5 "$src/sub/b"
run "$agent" verify "$m" "$src"
is "verify: what is wrong comes before what is missing" "$rc" 65
is "... and each bad file has a line" "$(wc -l <"$T/out")" 2
has "... the first by name" "$T/out" "src/a' is missing"
has "... the second" "$T/out" "src/sub/b' has 5 bytes"
has "... and stderr sums up" "$T/err" 'set: 2 of 3 files are bad'

# --- killed and crowded --------------------------------------------------
rm -rf "$src" "$stage"
mkdir "$src"
for i in $(seq 10 49); do
    head -c 1000000 /dev/urandom >"$src/f$i"
done
"$agent" manifest "$src" --name big -o "$m"

# kill_at N: kill -9 a stager once N files are in its part folder.
killed=0 wrong=0
kill_at()
{
    local files=() end=$((SECONDS + 30)) pid
    "$agent" stage --dataset "$m" --source "$src" --stage "$stage" \
        >"$T/out" 2>"$T/err" </dev/null &
    pid=$!
    while [ ${#files[@]} -lt "$1" ] && [ $SECONDS -lt $end ]; do
        files=("$stage"/.big@*.part/f*)
        # Finished before it was seen: no harm, it counts as not killed.
        [ ! -d "$(echo "$stage"/big@*)" ] || break
    done
    kill -9 $pid 2>/dev/null
    wait $pid 2>/dev/null
    [ $? -ne 137 ] || killed=$((killed + 1))
    for dir in "$stage"/big@*; do
        [ ! -d "$dir" ] || diff -r -x .agent-stage "$src" "$dir" >&2 ||
            wrong=$((wrong + 1))
    done
}
shopt -s nullglob
for n in $(seq 1 2 40); do
    kill_at "$n" 2>>"$T/kill.log"
    [ "$n" -gt 30 ] || rm -rf "$stage"/big@*
done
ok "stagers were killed in the middle of their work" [ $killed -ge 5 ]
is "... and never left a finished folder that is wrong" $wrong 0
stage
is "... and the next one is not stopped by what they left" "$rc" 0
ok "... and makes the right folder" diff -r -x .agent-stage "$src" \
    "$(cat "$T/out")"
ok "... and leaves nothing over" clean

rm -rf "$stage"
for i in 1 2 3 4; do
    "$agent" stage --dataset "$m" --source "$src" --stage "$stage" \
        >"$T/out.$i" 2>"$T/err.$i" </dev/null &
    pids[i]=$!
done
rcs=
for i in 1 2 3 4; do
    wait "${pids[i]}"
    rcs+=$?
done
is "four stagers at once all succeed" "$rcs" 0000
is "... by one copy" "$(cat "$T"/err.? | grep -c 'bytes, staged')" 1
is "... that all have" "$(sort -u "$T"/out.? | wc -l)" 1

rm -rf "$stage"
mkdir "$stage"
name=$("$agent" stage --dataset "$m" --source "$src" --stage "$T/other" \
    2>/dev/null)
lock=$stage/.$(basename "$name").lock
exec 9>"$lock"
flock 9
"$agent" stage --dataset "$m" --source "$src" --stage "$stage" \
    >"$T/out" 2>"$T/err" </dev/null 9>&- &
pid=$!
ok "a stager that has to wait says so" until_true 20 \
    grep -q 'another process stages this set' "$T/err"
is "... and stages nothing meanwhile" "$(ls "$stage")" ""
exec 9>&-
wait $pid
is "... and goes on when the other one ends" "$?" 0
has "... by itself" "$T/err" 'bytes, staged'

# --- two of one name -----------------------------------------------------
fresh
mkdir "$T/second"
echo two >"$T/second/a"
"$agent" manifest "$T/second" --name SET -o "$T/second.json"
run "$agent" --dataset "$m" --source "$src" --dataset "$T/second.json" \
    --source "$T/second" --stage "$stage" -- true
is "two data sets with one variable are no fault" "$rc" 0
has "... but it is said which one workers do not see" "$T/err" \
    "warning: data sets 'set' and 'SET' have one variable, .*set@.*SET@"

# --- a limit of a file's size -------------------------------------------
fresh
(ulimit -f 1; run "$agent" stage --dataset "$m" --source "$src" \
    --stage "$stage"; exit "$rc")
is "a limit of file sizes is an error: 202" "$?" 202
has "... in words" "$T/err" "write '.*sub/b': File too large"

# --- full and read-only file systems -------------------------------------
# alone SCRIPT: run it with its own mounts.
if unshare -m true 2>/dev/null; then
    alone() { unshare -m --propagation private bash -c "$1"; }
elif unshare -Urm true 2>/dev/null; then
    alone() { unshare -Urm --propagation private bash -c "$1"; }
else
    alone() { return 77; }
fi
export agent src stage m T
if alone true; then
    fresh
    mkdir -p "$stage"
    cp "$src/sub/b" "$src/sub/d" # More than the 128 KiB that are there.
    "$agent" manifest "$src" --name full -o "$m"
    # shellcheck disable=SC2016 # expanded in there
    alone 'mount -t tmpfs -o size=64k none "$stage" || exit
        "$agent" stage --dataset "$m" --source "$src" --stage "$stage" \
            >"$T/out" 2>"$T/err"
        echo $? >"$T/rc"
        ls -A "$stage" >"$T/left"'
    is "no room: 202" "$(cat "$T/rc")" 202
    has "... before the copy, with needed and free bytes" "$T/err" \
        'the set needs [0-9]+ bytes, [0-9]+ are free'
    hasnt "... and nothing is left" "$T/left" 'part|full@[0-9a-f]*$'
    # shellcheck disable=SC2016
    alone 'mount -t tmpfs -o nr_inodes=1 none "$stage" || exit
        "$agent" stage --dataset "$m" --source "$src" --stage "$stage/new" \
            >"$T/out" 2>"$T/err"'
    is "no room for the stage's folder: 202" $? 202
    has "... and what to do" "$T/err" "/new': No space left on device: make room"

    rm -rf "$src"
    mkdir "$src"
    head -c 4000000 /dev/zero | gzip -1 -n >"$src/z.gz"
    "$agent" manifest "$src" --name full --unpack -o "$m"
    sed -i 's/, "unpacked_size": [0-9]*//' "$m"
    # shellcheck disable=SC2016
    alone 'mount -t tmpfs -o size=1m none "$stage" || exit
        "$agent" stage --dataset "$m" --source "$src" --stage "$stage" \
            >"$T/out" 2>"$T/err"
        echo $? >"$T/rc"
        ls -A "$stage" >"$T/left"'
    is "full in the middle of the copy: 202" "$(cat "$T/rc")" 202
    has "... with path, needed and free bytes" "$T/err" \
        "write '.*part/z': No space .*: the set needs [0-9]+ bytes, [0-9]+ "
    hasnt "... and nothing is left" "$T/left" 'part|full@[0-9a-f]*$'

    fresh
    # shellcheck disable=SC2016
    alone 'mount --bind "$src" "$src" && mount -o remount,ro,bind "$src" ||
            exit
        "$agent" stage --dataset "$m" --source "$src" --stage "$stage" \
            >"$T/out" 2>"$T/err"'
    is "a read-only source will do" "$?" 0
    ok "... and is copied" same
    # shellcheck disable=SC2016
    alone 'mount --bind "$stage" "$stage" &&
            mount -o remount,ro,bind "$stage" || exit
        "$agent" stage --dataset "$m" --source "$src" --stage "$stage" \
            >"$T/out" 2>"$T/err" || exit
        "$agent" stage --reverify --dataset "$m" --source "$src" \
            --stage "$stage" >"$T/out" 2>"$T/err" || exit
        mount -o remount,rw,bind "$stage" && chmod g+w "$stage"/set@*/a &&
            mount -o remount,ro,bind "$stage" || exit
        "$agent" stage --dataset "$m" --source "$src" --stage "$stage" \
            >"$T/out" 2>"$T/err"'
    is "a finished stage that is read-only will do" "$?" 0
    printf X | dd of="$(echo "$stage"/set@*/a)" conv=notrunc 2>"$T/log"
    # shellcheck disable=SC2016
    alone 'mount --bind "$stage" "$stage" &&
            mount -o remount,ro,bind "$stage" || exit
        "$agent" stage --dataset "$m" --source "$src" --stage "$stage" \
            >"$T/out" 2>"$T/err"'
    is "one that is damaged will not: 65" "$?" 65
    has "... and which file, and why it stays so, is told" "$T/err" \
        "/a' has sha256.*cannot be staged anew: .*Read-only file system"
    rm -rf "$stage"/set@*
    for what in "an empty one" "a new one"; do
        # shellcheck disable=SC2016
        alone 'mount --bind "$stage" "$stage" &&
                mount -o remount,ro,bind "$stage" || exit
            "$agent" stage --dataset "$m" --source "$src" --stage "$stage" \
                >"$T/out" 2>"$T/err"'
        is "$what is a wrong --stage: 64" "$?" 64
        has "... and told" "$T/err" 'Read-only file system: give a --stage'
        rm -f "$stage"/.set@* # The lock.
    done
else
    skip "full and read-only file systems" "no mount namespace"
fi

# The rename of a folder from a lower layer cannot be an exchange.
mkdir "$T/up" "$T/work" "$T/low"
over="lowerdir=$T/low,upperdir=$T/up/u,workdir=$T/up/w"
[ "$(id -u)" -eq 0 ] || over+=,userxattr
export over
# shellcheck disable=SC2016
if alone 'mount -t tmpfs none "$T/up" && mkdir "$T/up/u" "$T/up/w" &&
    mount -t overlay -o "$over" none "$T/work"' 2>/dev/null; then
    fresh
    stage="$T/low" stage
    echo damaged >"$(cat "$T/out")/a"
    # shellcheck disable=SC2016
    alone 'mount -t tmpfs none "$T/up" && mkdir "$T/up/u" "$T/up/w" &&
        mount -t overlay -o "$over" none "$T/work" || exit
        dir=$("$agent" stage --dataset "$m" --source "$src" \
            --stage "$T/work" 2>"$T/err") || exit
        cmp "$src/a" "$dir/a" || exit
        ls -A "$T/work" >"$T/left"
        "$agent" stage --dataset "$m" --source "$src" --stage "$T/work" \
            2>&1 >/dev/null | grep -q "already staged"'
    is "a damaged stage is replaced where names cannot be exchanged" "$?" 0
    is "... and nothing is left over" "$(grep -c part "$T/left")" 0
else
    skip "a stage in a lower layer" "no overlay mounts"
fi
