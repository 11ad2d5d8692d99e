#!/usr/bin/env bash
# Classic faults of data have a word of their own, with a manifest and without.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"

src=$T/src m=$T/m.json

# run COMMAND...: its stdout, stderr and status in $T/out, $T/err, $rc.
run()
{
    timeout 60 "$@" >"$T/out" 2>"$T/err" </dev/null
    rc=$?
}

# One good file of each kind.
mkdir -p "$src/raw"
python3 - "$src" <<'PY'
import gzip, io, json, struct, sys, tarfile, zipfile
top = sys.argv[1] + "/"
idx = struct.pack(">4I", 0x803, 10, 4, 4) + bytes(range(160))
open(top + "raw/train-images-idx3-ubyte", "wb").write(idx)
open(top + "raw/t10k-images-idx3-ubyte.gz", "wb").write(gzip.compress(idx))
head = json.dumps({"__metadata__": {"a": "b"}, "w": {
    "dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]}}).encode()
open(top + "m.safetensors", "wb").write(
    struct.pack("<Q", len(head)) + head + bytes(16))
for name, mode in (("s.tar", "w"), ("s.tar.gz", "w:gz"), ("l.tgz", "w:gz")):
    with tarfile.open(top + name, mode, format=tarfile.PAX_FORMAT if
                      name[0] == "l" else tarfile.GNU_FORMAT) as t:
        for i in range(20):
            info = tarfile.TarInfo("a" * (90 + i) + "/%d.jpg" % i)
            info.size = 1000 * i
            t.addfile(info, io.BytesIO(bytes([i]) * info.size))
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, "a"
        t.addfile(link)
with zipfile.ZipFile(top + "z.zip", "w") as z:
    z.writestr("a", b"x" * 1000)
open(top + "tokens.bin", "wb").write(
    struct.pack("<3i", 20240520, 1, 50) + bytes(1012) + bytes(100))
open(top + "page.html", "w").write("<!DOCTYPE html>\n")
open(top + "p.parquet", "wb").write(b"PAR1" + bytes(50) + b"PAR1")
open(top + "any", "wb").write(bytes(100))
PY
truncate -s 5M "$T/sparse" && tar -C "$T" -S -cf "$src/sparse.tar" sparse
xz -c "$src/any" >"$src/x.xz"
{
    printf '\x50\x2a\x4d\x18\4\0\0\0\0\0\0\0' # As pzstd begins.
    zstd -qc "$src/any"
} >"$src/p.zst"
run "$agent" verify --structure "$src"
is "good files: 0" "$rc" 0
is "... and nothing on stdout" "$(cat "$T/out")" ""
has "... what was looked at is said" "$T/err" \
    '14 files, 12 of a known structure, none looks wrong; no hash was checked'
"$agent" manifest "$src" -o "$m"
run "$agent" verify --structure "$m" "$src"
is "with a manifest the hashes are checked, too" "$rc" 0
has "... and told" "$T/err" 'src: 14 files, [0-9]* bytes, all right'
rm -rf "$T/good" && cp -r "$src" "$T/good"

# bad FILE REGEX COMMAND: COMMAND spoils FILE. Both ways say so.
bad()
{
    rm -rf "$src" && cp -r "$T/good" "$src"
    (cd "$src" && f=$1 && eval "$3")
    run "$agent" verify --structure "$src"
    is "$1, ${3%%$'\n'*}: 65" "$rc" 65
    has "... in one line" "$T/out" "^'.*$1': $2"
    is "... alone" "$(wc -l <"$T/out")" 1
    run "$agent" stage --dataset "$m" --source "$src" --stage "$T/stage"
    is "... and stage explains it: 65" "$rc" 65
    has "... likewise" "$T/err" "'.*$1' has .*the manifest says .*: $2"
}
# shellcheck disable=SC2016 # $f is expanded in there
{
    lfs='printf "version https://git-lfs.github.com/spec/v1\n" >$f'
    bad any "it is a Git LFS pointer, not the data: run 'git lfs pull'" "$lfs"
    bad any 'it is an HTML page, an error page perhaps, not the data' \
        'printf "\n <HTML><body>503" >$f'
    bad m.safetensors 'it is an HTML page' 'printf "<!doctype html>" >$f'
    bad any 'it is an error message of the server, in XML' \
        'printf "<?xml version=\"1.0\"?>\n<Error><Code>AccessDenied" >$f'
    bad raw/train-images-idx3-ubyte \
        'its IDX header asks for 176 bytes, and it has 175: it is cut' \
        'truncate -s 175 $f'
    bad raw/train-images-idx3-ubyte 'it has no IDX header' 'echo x >$f'
    bad raw/t10k-images-idx3-ubyte.gz 'the gzip data ends early' \
        'truncate -s -9 $f'
    bad raw/t10k-images-idx3-ubyte.gz \
        'its IDX header asks for 176 bytes, and it has 100: it is cut' \
        'gzip -dc $f | head -c 100 | gzip -n >x && mv x $f'
    bad s.tar "the tar ends within 'a*.*, at byte 60000: it is cut" \
        'truncate -s 60000 $f'
    bad s.tar 'the tar ends without its two blocks of zeros: it is cut' \
        'tar --delete -f $f link; size=$(stat -c %s $f)
        while tail -c 512 $f | cmp -s -n 512 - /dev/zero; do
            truncate -s -512 $f; done'
    bad s.tar 'its tar header at byte 512 is damaged' \
        'printf X | dd of=$f bs=1 seek=600 conv=notrunc status=none'
    bad s.tar.gz 'the tar ends without its two blocks of zeros' \
        'gzip -dc $f | python3 -c "import sys
b = sys.stdin.buffer.read().rstrip(bytes(1)); b += bytes(-len(b) % 512)
sys.stdout.buffer.write(b)" | gzip -n >x && mv x $f'
    bad l.tgz 'the gzip data is damaged' \
        'printf XXXX | dd of=$f bs=1 seek=200 conv=notrunc status=none'
    bad m.safetensors 'its safetensors header asks for 117 bytes, and it has ' \
        'truncate -s -1 $f'
    bad m.safetensors 'it ends within its safetensors header: it is cut' \
        'truncate -s 50 $f'
    bad m.safetensors 'it has no safetensors header' 'echo x >$f'
    bad z.zip 'the zip has no directory at its end: it is cut' \
        'truncate -s -30 $f'
    bad tokens.bin 'its header of tokens asks for 1124 bytes, and it has 1123' \
        'truncate -s -1 $f'
    bad p.parquet 'it does not end as parquet: it is cut' 'truncate -s -1 $f'
    bad x.xz 'it does not end as xz: it is cut' 'truncate -s -1 $f'
}
rm -rf "$src" && cp -r "$T/good" "$src"
printf 'version https://git-lfs.github.com/spec/v1\n' >"$src/any"
run "$agent" manifest "$src" -o "$m"
is "a manifest of a Git LFS pointer can be made" "$rc" 0
has "... with a warning" "$T/err" \
    "warning: 1 file looks wrong, '.*/any' first: it is a Git LFS pointer"
run "$agent" verify "$m" "$src"
is "... it is what it is" "$rc" 0
run "$agent" verify --structure "$m" "$src"
is "... but no data" "$rc" 65
run "$agent" verify --structure "$T/none"
is "a folder that is missing: 66" "$rc" 66
