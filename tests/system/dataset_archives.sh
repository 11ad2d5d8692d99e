#!/usr/bin/env bash
# Archives are unpacked into the stage, and nothing of them gets out of it.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"

src=$T/src stage=$T/stage m=$T/m.json plain=$T/plain

# run COMMAND...: its stdout, stderr and status in $T/out, $T/err, $rc.
run()
{
    timeout 60 "$@" >"$T/out" 2>"$T/err" </dev/null
    rc=$?
}

stage() { run "$agent" stage --dataset "$m" --source "$src" --stage "$stage"; }

# clean: nothing in the stage but finished folders and locks.
clean()
{
    local f
    for f in "$stage"/.*; do
        case $f in */. | */.. | *.lock) ;; *) echo "left: $f"; return 1 ;; esac
    done
}

# --- good ones -----------------------------------------------------------
mkdir -p "$plain/deep/er" "$src/raw"
seq 100000 >"$plain/deep/er/numbers"
echo one >"$plain/ünï"
printf '#!/bin/sh\n' >"$plain/run.sh"
chmod 4711 "$plain/run.sh"
touch -d 2001-01-01 "$plain/run.sh"
ln "$plain/run.sh" "$plain/hard"
ln -s deep/../ünï "$plain/soft"
long=$(printf 'n%.0s' $(seq 180))
echo long >"$plain/deep/$long"
truncate -s 3M "$plain/hole"
printf end >>"$plain/hole"
cd "$plain" || exit 1
tar -cSf "$src/raw/t.tar" .
tar -cf "$src/raw/pax.tar.gz" --format=pax --transform 's,^\.,pax,S' .
tar -cf "$T/x.tar" --transform 's,^\.,xz,S' . && xz -1 -c "$T/x.tar" \
    >"$src/raw/x.tar.xz"
python3 - "$src/raw/z.zip" "$T/zs.tar" <<'PY'
import io, sys, tarfile, zipfile
with zipfile.ZipFile(sys.argv[1], "w", zipfile.ZIP_DEFLATED) as z:
    z.write("deep/er/numbers", "zip/deep/numbers")
    z.write("ünï", "zip/ünï")
    z.writestr(zipfile.ZipInfo("zip/empty/"), b"")
    z.writestr("zip/stored", b"x" * 1000, zipfile.ZIP_STORED)
    z.writestr("zip/lzma", b"y" * 1000, zipfile.ZIP_LZMA)
with tarfile.open(sys.argv[2], "w") as t:
    t.add("deep/er/numbers", "zst/numbers")
PY
zstd -q "$T/zs.tar" -o "$src/raw/zs.tar.zst"
run "$agent" manifest "$src" --unpack --name set -o "$m"
is "a manifest of archives" "$rc" 0
is "... says how each is unpacked" \
    "$(grep -o '"unpack": "[^"]*"' "$m" | cut -d'"' -f4 | sort | xargs)" \
    'tar tar.gz tar.xz tar.zst zip'
stage
is "archives are staged" "$rc" 0
dir=$(cat "$T/out")
# The folder of the archive is the place; owner, time, set-user-ID are not.
ok "... a tar beside itself" diff -r --no-dereference -x '*.tar*' -x pax \
    -x xz -x zip -x zst "$plain" "$dir/raw"
ok "... a tar.gz of pax" diff -r --no-dereference "$plain" "$dir/raw/pax"
ok "... a tar.xz" diff -r --no-dereference "$plain" "$dir/raw/xz"
ok "... a tar.zst" cmp deep/er/numbers "$dir/raw/zst/numbers"
ok "... a zip" cmp deep/er/numbers "$dir/raw/zip/deep/numbers"
ok "... with names that are no ASCII, in any locale" cmp "$plain/ünï" \
    "$dir/raw/zip/ünï"
ok "... with LZMA" grep -qx 'y\{1000\}' "$dir/raw/zip/lzma"
is "no set-user-ID and no owner's write comes along, but x does" \
    "$(stat -c %a "$dir/raw/run.sh" "$dir/raw/deep/er/numbers" | xargs)" \
    "755 644"
is "hard links are one file" "$(stat -c %h "$dir/raw/hard")" 2
is "links are links" "$(readlink "$dir/raw/soft")" deep/../ünï
ok "the archives themselves are not staged" sh -c \
    "! ls '$dir'/raw/*.tar* '$dir'/raw/*.zip"
ok "nothing else is left" clean
inode=$(stat -c %i "$dir/raw/run.sh")
mv "$src" "$src.away"
stage
is "a second start needs no source" "$rc" 0
has "... and copies nothing" "$T/err" 'already staged'
run "$agent" verify "$m" "$dir"
is "the stage verifies" "$rc" 0
mv "$src.away" "$src"
run "$agent" stage --reverify --dataset "$m" --source "$src" --stage "$stage"
has "... and is hashed again on request" "$T/err" 'already staged'
printf X | dd of="$dir/raw/zip/stored" bs=1 conv=notrunc status=none
run "$agent" verify "$m" "$dir"
is "a file from an archive that was changed is found: 65" "$rc" 65
has "... and named" "$T/out" "raw/zip/stored' has sha256 .*, the stage's marker"
stage
is "... and staged anew" "$rc" 0
has "... with a word" "$T/err" 'staged anew: .*raw/zip/stored'
ok "... rightly" grep -qx 'x\{1000\}' "$dir/raw/zip/stored"
ln -sf deep "$dir/raw/soft"
stage
has "so is a link" "$T/err" "staged anew: link '.*raw/soft' leads elsewhere"
is "... rightly" "$(readlink "$dir/raw/soft")" deep/../ünï
rm "$dir/raw/xz/hole"
stage
has "... and a file that is gone" "$T/err" "staged anew: .*hole' is missing"
run "$agent" stage --dataset "$m" --source "$src" --stage "$stage" -q
is "verify in place reads the archives" \
    "$("$agent" verify "$m" "$src" >/dev/null 2>&1; echo $?)" 0
sed 's/"unpack": "tar",/"unpack": "tar", "keep": true,/
    s/"unpack": "zip",/"unpack": "zip", "keep": true,/' "$m" >"$T/keep.json"
run "$agent" stage --dataset "$T/keep.json" --source "$src" --stage "$T/kept"
is "with keep the archive is staged, too" "$rc" 0
dir=$(cat "$T/out")
ok "... a tar" cmp "$src/raw/t.tar" "$dir/raw/t.tar"
ok "... a zip" cmp "$src/raw/z.zip" "$dir/raw/z.zip"
ok "... beside what was in it" cmp deep/er/numbers "$dir/raw/zip/deep/numbers"
run "$agent" verify "$T/keep.json" "$dir"
is "... and verifies" "$rc" 0
mkdir -p "$src/raw/zip" && touch "$src/raw/zip/stored"
run "$agent" manifest "$src" --unpack
is "an archive beside a file that is in it: 65" "$rc" 65
has "... and why" "$T/err" \
    "raw/z.zip' would unpack to 'raw/zip/stored', which is there, too"

mkdir "$T/cut" && tar -cf - run.sh | head -c 1024 >"$T/cut/t.tar"
run "$agent" manifest "$T/cut" --unpack
has "a tar that was cut between two files is told" "$T/err" \
    "warning: .*cut/t.tar' first: the tar ends without its two blocks"

# --- hostile and damaged ones --------------------------------------------
# hostile NAME REGEX PYTHON: a tar or zip that PYTHON makes is refused: 65, in
# one line, nothing is published, nothing is outside.
echo secret >"$T/secret"
cp "$T/secret" "$T/secret.was"
hostile()
{
    rm -rf "$src" "$stage" && mkdir -p "$src" "$stage"
    (cd "$src" && python3 - <<PY
import io, struct, tarfile, zipfile
def add(t, name, data=b"", **more):
    i = tarfile.TarInfo(name)
    i.size = len(data)
    for k, v in more.items():
        setattr(i, k, v)
    t.addfile(i, io.BytesIO(data) if data else None)
LINK, HARD = tarfile.SYMTYPE, tarfile.LNKTYPE
t = tarfile.open("a.tar", "w")
$3
t.close()
PY
    )
    local file=a.tar kind=tar
    [ ! -e "$src/a.zip" ] || file=a.zip kind=zip
    printf '{"manifest": 1, "name": "x", "files": [{"path": "%s", "size": %d,
        "sha256": "%s", "unpack": "%s"%s}]}' $file \
        "$(stat -c %s "$src/$file")" \
        "$(sha256sum <"$src/$file" | cut -d' ' -f1)" $kind "${4:-}" >"$m"
    stage
    is "$1: 65" "$rc" 65
    has "... and why" "$T/err" "error: '.*$file' $2|error: link $2"
    is "... in one line" "$(wc -l <"$T/err")" 1
    ok "... and nothing in the stage" clean
    is "... nothing published" "$(ls "$stage")" ""
    ok "... nothing outside" sh -c "cmp -s '$T/secret' '$T/secret.was' &&
        [ ! -e '$T/evil' ] && [ ! -e '$stage/evil' ]"
    run "$agent" verify "$m" "$src"
}
no='cannot be unpacked: '
hostile "path with .." "${no}its entry '../evil' is refused: it has a '..'" \
    'add(t, "../evil", b"x")'
hostile "absolute path" "${no}its entry '/.*/evil' is refused: it is absolute" \
    'add(t, "'"$T"'/evil", b"x")'
hostile "the marker's name" "${no}.*the name is kept for the marker" \
    'add(t, ".agent-stage", b"x")'
hostile "absolute link" "${no}its link 'l' is refused: it is absolute" \
    'add(t, "l", type=LINK, linkname="/etc/passwd")'
hostile "link with .." "${no}its link 'd/l' is refused: it leaves the folder" \
    'add(t, "d/l", type=LINK, linkname="../../secret")'
hostile "link through a link" "'l' of an archive is refused: it leaves" \
    'add(t, "x", type=LINK, linkname=".")
add(t, "l", type=LINK, linkname="x/../secret")'
hostile "file through a link" "${no}its entry 'd/evil' has a file or a link" \
    'add(t, "e/f", b"x")
add(t, "d", type=LINK, linkname="e")
add(t, "d/evil", b"x")'
hostile "folder in place of a link" "${no}its entry 'd' has a file or a link" \
    'add(t, "e/f", b"x")
add(t, "d", type=LINK, linkname="e")
add(t, "d", type=tarfile.DIRTYPE)'
hostile "file over a link" "${no}its entry 'd' would be made twice" \
    'add(t, "e", b"x")
add(t, "d", type=LINK, linkname="e")
add(t, "d", type=LINK, linkname="f")'
hostile "file over a link that is in it" "${no}its entry 'd' would be made" \
    'add(t, "e", b"x")
add(t, "d", type=LINK, linkname="e")
add(t, "d", b"y")'
hostile "link in place of the folder itself" "${no}an entry has no name" \
    'add(t, "./", type=LINK, linkname="e")'
hostile "hard link out" "${no}its entry 'h' is a hard link to no file" \
    'add(t, "h", type=HARD, linkname="'"$T"'/secret")'
hostile "hard link to a link" "${no}its entry 'h' is a hard link to no file" \
    'add(t, "l", type=LINK, linkname="e")
add(t, "h", type=HARD, linkname="l")'
hostile "device" "${no}its entry 'null' is a device" \
    'add(t, "null", type=tarfile.CHRTYPE, devmajor=1, devminor=3)'
hostile "pipe" "${no}its entry 'p' is a device, a pipe or a socket" \
    'add(t, "p", type=tarfile.FIFOTYPE)'
hostile "more than it says" "unpacks to more than the 10 bytes" \
    'add(t, "a", b"x" * 11)' ', "unpacked_size": 10'
hostile "less than it says" "unpacks to 9 bytes, the manifest says 10" \
    'add(t, "a", b"x" * 9)' ', "unpacked_size": 10'
hostile "a bomb of holes" "unpacks to more than 1000 times its size" \
    't.close(); import os
os.system("truncate -s 100G h && tar -cSf a.tar h && rm h")'
hostile "no tar" "${no}Unrecognized archive format|${no}.*Damaged" \
    't.close(); open("a.tar", "w").write("x" * 5000)'
hostile "cut" "${no}Truncated" \
    'add(t, "a", b"x" * 5000); t.close()
b = open("a.tar", "rb").read(); open("a.tar", "wb").write(b[:3000])'
hostile "zip with .." "${no}its entry '../evil' is refused" \
    'z = zipfile.ZipFile("a.zip", "w"); z.writestr("../evil", b"x"); z.close()'
hostile "zip with a link out" "${no}its link 'l' is refused: it leaves" \
    'z = zipfile.ZipFile("a.zip", "w"); i = zipfile.ZipInfo("l")
i.create_system, i.external_attr = 3, 0o120777 << 16
z.writestr(i, "../secret"); z.close()'
hostile "zip with a wrong CRC" "$no.*bad CRC" \
    'z = zipfile.ZipFile("a.zip", "w"); z.writestr("a", b"x" * 99); z.close()
b = open("a.zip", "rb").read().replace(b"xxx", b"yxx", 1)
open("a.zip", "wb").write(b)'
hostile "zip without its directory" "$no" \
    'z = zipfile.ZipFile("a.zip", "w"); z.writestr("a", b"x" * 99); z.close()
b = open("a.zip", "rb").read(); open("a.zip", "wb").write(b[:-40])'
hostile "zip with bzip2" "$no" \
    'z = zipfile.ZipFile("a.zip", "w", zipfile.ZIP_BZIP2)
z.writestr("a", b"x" * 99); z.close()'

# The formats of zstd 0.5 to 0.7 are not read, and do no harm.
rm -rf "$src" "$stage" && mkdir -p "$src"
for v in 25 26 27; do
    printf '%b%0100d' "\\x$v\\xb5\\x2f\\xfd" 0 >"$src/old.tar.zst"
    printf '{"manifest": 1, "name": "x", "files": [{"path": "old.tar.zst",
        "size": 104, "sha256": "%s", "unpack": "tar.zst"}]}' \
        "$(sha256sum <"$src/old.tar.zst" | cut -d' ' -f1)" >"$m"
    stage
    is "zstd 0.${v#2}: 65" "$rc" 65
    has "... and why" "$T/err" "old.tar.zst' cannot be unpacked: "
done

# Two archives may share folders, but no file.
rm -rf "$src" "$stage" && mkdir -p "$src/a" && cd "$src" || exit 1
echo 1 >a/1 && tar -cf 1.tar a && rm a/1 && echo 2 >a/2 && tar -cf 2.tar a
rm -r a
"$agent" manifest "$src" --unpack -o "$m" && stage
is "two archives with one folder" "$rc" 0
is "... give both files" "$(cat "$(cat "$T/out")"/a/*)" $'1\n2'
# sums FILE...: a manifest of these, archives where they end so.
sums()
{
    python3 - "$@" >"$m" <<'PY'
import hashlib, json, sys
print(json.dumps({"manifest": 1, "name": "x", "files": [
    {"path": f, "size": len(d), "sha256": hashlib.sha256(d).hexdigest(),
     **({"unpack": "tar"} if f.endswith(".tar") else {})}
    for f in sys.argv[1:] for d in [open(f, "rb").read()]]}))
PY
}
cp 1.tar 2.tar
sums 1.tar 2.tar && stage
is "two archives with one file: 65" "$rc" 65
has "... and why" "$T/err" "its entry 'a/1' would be made twice"
ok "... and nothing left" clean
run "$agent" manifest "$src" --unpack
is "... are found by agent manifest, too: 65" "$rc" 65
has "... and why" "$T/err" "/1.tar' and '.*/2.tar' would both make 'a/1'"
rm 2.tar
gzip -c /dev/null >a.gz
run "$agent" manifest "$src" --unpack
is "a file in place of an archive's folder: 65" "$rc" 65
has "... and why" "$T/err" "/a.gz' and '.*/1.tar' would both make 'a'"
rm a.gz
for i in $(seq 300); do echo "$i" >"f$i"; done # So that it comes last, mostly.
mkdir -p z && echo z >z/z && tar -cf 1.tar z
sums 1.tar f* z/z && stage
is "an archive and a file: 65" "$rc" 65
has "... and why" "$T/err" \
    "z/z' would be made twice(: an archive of the set|; agent verify .* names all)"
ok "... and nothing left" clean
