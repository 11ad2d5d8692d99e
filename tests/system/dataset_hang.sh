#!/usr/bin/env bash
# A source that hangs in the middle of a file, as of a dead server: its stager
# lives and tells how far it is, always the same, and so does who waits for
# another one's stage. --barrier-timeout ends the job, and the pods are named.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/pods.sh"
if [ $# -eq 0 ]; then # Once more, with mounts of its own.
    ns="unshare -m --propagation private"
    $ns true 2>/dev/null || ns="unshare -Urm --propagation private"
    if $ns true 2>/dev/null; then
        rm -rf "$T"
        exec $ns "$0" inside
    fi
fi
if [ $# -eq 0 ] || ! true 2>/dev/null <>/dev/fuse; then
    skip "a source that hangs" "no mounts or no FUSE here"
    exit
fi
size=$((64 << 20))
mkdir "$T/good" "$T/bad"
truncate -s $size "$T/good/data"
"$agent" manifest "$T/good" --name set -o "$T/m.json"
final=$("$agent" stage --dataset "$T/m.json" --source "$T/good" \
    --stage "$T/stage")
rm -r "$final"
python3 "$top/tests/lib/stuck_fs.py" "$T/bad" $size $((size / 2)) \
    >"$T/fs" 2>&1 &
fs=$!
until_true 10 grep -q ready "$T/fs" || cat "$T/fs"
exec {lock}<>"$T/stage/.${final##*/}.lock"
flock "$lock"

timeout -k 5 100 "$agent" verify "$T/m.json" "$T/bad" 2>"$T/verify" \
    {lock}>&- </dev/null &
verify=$!
data=(--barrier-timeout 2s --dataset "$T/m.json" --source)
pod 0 3 "${data[@]}" "$T/good" -- true
pod 1 3 "${data[@]}" "$T/bad" -- true {lock}>&-
pod 2 3 "${data[@]}" "$T/good" --stage "$T/stage" -- true {lock}>&-
ended 0 1 2
is "the job ends with 200 on all pods" "$codes" "200 200 200"
has "who reads the source is named, and that it stands still" "$T/pod0.err" \
    'error: .*--barrier-timeout 2 s.*node rank.* staging .*, no progress for'
for r in 1 2; do
    has "and on pod $r" "$T/pod$r.err" \
        'error: .*node rank.* staging .*, no progress for'
done
has "its own pod asks after the source" "$T/pod1.err" \
    'warning: set: no progress for [0-9.]+ s: the file system of its source'
has "and the one that waits after the other process" "$T/pod2.err" \
    'warning: set: no progress for [0-9.]+ s: the process that stages this set'
ok "agent verify says so, too" until_true 30 grep -q \
    'warning: set: no progress for .*: the file system' "$T/verify"
kill $fs
wait $fs $verify 2>/dev/null
umount "$T/bad"
