#!/usr/bin/env bash
# Manifests that other tools write, by those tools where they are here.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"

src=$T/set stage=$T/stage

# run COMMAND...: its stdout, stderr and status in $T/out, $T/err, $rc.
run()
{
    timeout 60 "$@" >"$T/out" 2>"$T/err" </dev/null
    rc=$?
}

# good NAME ARGS...: agent verify ARGS ends with 0.
good()
{
    local name=$1
    shift
    run "$agent" verify "$@"
    is "$name" "$rc" 0
}

# bad NAME STATUS REGEX ARGS...: ... with STATUS, and says why.
bad()
{
    local name=$1 want=$2 why=$3
    shift 3
    run "$agent" verify "$@"
    is "$name: $want" "$rc" "$want"
    cat "$T/out" "$T/err" >"$T/both"
    has "... and why" "$T/both" "$why"
}

mkdir -p "$src/sub"
echo one >"$src/a b"
seq 1000 >"$src/sub/(c) = d"
printf x >"$src/"$'new\nline \\ back'
printf y >"$src/"$'ca\rriage'
: >"$src/empty"
cd "$src" || exit 1

# --- lines ---------------------------------------------------------------
sums() { find . -type f ! -name '*SUM*' -print0 | sort -z | xargs -0 "$@"; }
for kind in md5 sha1 sha256 sha512; do
    sums ${kind}sum >SUMS
    good "${kind}sum's lines" SUMS
    n=$(grep -c 'good against accidents, not against intent' "$T/err")
    case $kind in md5 | sha1) want=1 ;; *) want=0 ;; esac
    is "... with $want warnings" "$n" $want
    sums ${kind}sum --tag >SUMS
    good "... with --tag" SUMS
    sums ${kind}sum -b >SUMS
    good "... with -b" SUMS
done
sums openssl dgst -sha256 >SUMS 2>/dev/null &&
    sed -i '/\\/d;/new$/d;/\r/d' SUMS
good "openssl dgst's lines" SUMS
sums sha256sum >SUMS
sed 's/$/\r/' SUMS >DOSSUMS
good "lines that end with CR and LF" DOSSUMS
{
    printf '\xef\xbb\xbf# a comment\n\n'
    sed 's/^/sha256:/;s/^sha256:\\/\\sha256:/' SUMS
} >COMMENTSUMS
good "a byte order mark, comments, empty lines and sha256:" COMMENTSUMS
{
    printf -- '-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA512\n\n'
    cat SUMS
    printf -- '-----BEGIN PGP SIGNATURE-----\n\nabc=\n'
    printf -- '-----END PGP SIGNATURE-----\n'
} >SIGNEDSUMS
good "lines within a PGP signature" SIGNEDSUMS
{
    md5sum 'a b'
    sha256sum 'a b'
} >MIXEDSUMS
good "sums of two kinds for one file: the stronger counts" MIXEDSUMS
hasnt "... so there is no warning" "$T/err" warning
cat SUMS SUMS >TWICESUMS
good "a file that is listed twice alike" TWICESUMS
has "... counts once" "$T/err" ': 5 files, '
{
    cat SUMS
    echo "$(printf '%064d' 1)  a b"
} >CLASHSUMS
bad "a file that is listed twice, not alike" 65 \
    "CLASHSUMS:6: 'a b' is listed twice and differs from line 1" CLASHSUMS
h=$(printf '%064d' 0)
echo "$h  ../x" >OUTSUMS
bad "a path that leaves the folder" 65 \
    "OUTSUMS:1:67: path '../x' is refused: it has a '..' component" OUTSUMS
echo "$h  /etc/passwd" >OUTSUMS
bad "an absolute path" 65 "OUTSUMS:1:67: .*it is absolute" OUTSUMS
printf 'x  y\n' >NOSUMS
bad "no manifest at all" 65 'NOSUMS:1:1: neither JSON nor a line of a hash' \
    NOSUMS
sha384sum 'a b' >OTHERSUMS
bad "a hash that is not read" 65 'OTHERSUMS:1:1: a hash of 96 hex digits: ' \
    OTHERSUMS
b2sum 'a b' >B2SUMS
bad "hashes of the same length that are not read" 65 \
    "B2SUMS' has BLAKE2 hashes, as its name says" B2SUMS
iconv -t UTF-16 SUMS >WIDESUMS
bad "UTF-16" 65 'WIDESUMS:1:1: it is UTF-16' WIDESUMS
printf '<!DOCTYPE html>\n' >PAGESUMS
bad "an HTML page" 65 'PAGESUMS:1:1: it is an HTML or XML page' PAGESUMS
printf 'outs:\n- md5: x.dir\n' >x.dvc
bad "a .dvc file" 65 'x.dvc:1:1: it is YAML.*the .dir object' x.dvc
printf X >>'a b'
bad "a file that changed" 65 "a b' has sha256 [0-9a-f]*, the manifest says" \
    SUMS
echo one >'a b'
mv empty away
bad "a file that is missing" 66 "empty' is missing" SUMS
mv away empty

cp SUMS "$T/SHA256SUMS"
run "$agent" stage --dataset "$T/SHA256SUMS" --source "$src" --stage "$stage"
is "sums are staged" "$rc" 0
dir=$(cat "$T/out")
is "... under the name of their folder" "${dir%@*}" "$stage/$(basename "$T")"
ok "... all of it" sh -c "cd '$dir' && sha256sum --quiet -c '$T/SHA256SUMS'"
run "$agent" stage --dataset "$T/SHA256SUMS" --source "$T/none" \
    --stage "$stage"
is "... and found again, without their source" "$rc" 0
has "... with their size" "$T/err" ' 5 files, 3899 bytes, already staged'

# --- what agent writes, sha256sum reads -----------------------------------
rm ./*SUMS x.dvc
run "$agent" manifest "$src" --format sha256sum -o "$T/sums"
ok "sha256sum -c takes what agent manifest writes" \
    sha256sum --strict --quiet -c "$T/sums"
good "... and so does agent" "$T/sums" "$src"

# --- BagIt ---------------------------------------------------------------
bag=$T/bag
mkdir -p "$bag/data/sub"
printf 'BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n' \
    >"$bag/bagit.txt"
echo one >"$bag/data/100%25"
echo two >"$bag/data/sub/"$'new\nline'
cd "$bag" || exit 1
list() # of HASHSUM
{
    echo "$("$1" <'data/100%25' | cut -d' ' -f1)  data/100%2525"
    echo "$("$1" <$'data/sub/new\nline' | cut -d' ' -f1)	data/sub/new%0Aline"
}
list md5sum >manifest-md5.txt
list sha512sum >manifest-sha512.txt
sha256sum bagit.txt manifest-*.txt >tagmanifest-sha256.txt
good "a bag by its manifest" manifest-sha512.txt
good "... by its folder" "$bag"
has "... which has the bag's name" "$T/err" 'bag: 2 files, 8 bytes'
hasnt "... by the strongest of its hashes" "$T/err" warning
good "... by bagit.txt" bagit.txt
good "... its tag files" tagmanifest-sha256.txt
# As bagit-python writes them: no percent sign is escaped.
sed 's/%2525/%25/' manifest-sha512.txt >"$T/escaped"
mv "$T/escaped" manifest-sha512.txt
good "a bag whose percent signs are not escaped" "$bag"
echo more >data/unlisted
bad "a file in the payload that is not listed" 65 \
    "data/unlisted' is in the payload of the bag, and its manifest does not" \
    "$bag"
run "$agent" stage --dataset "$bag" --stage "$stage"
is "... is not staged either" "$rc" 65
rm data/unlisted
run "$agent" stage --dataset "$bag" --stage "$stage"
is "a bag is staged" "$rc" 0
ok "... its payload" diff -r data "$(cat "$T/out")/data"
echo "$h  elsewhere" >manifest-sha256.txt
bad "a payload outside data/" 65 \
    'manifest-sha256.txt:1:67: .*the payload of a bag is under data/' \
    manifest-sha256.txt
bad "a folder that is no bag" 65 "is a folder, and no BagIt bag" "$src"

# --- DVC -----------------------------------------------------------------
cd "$src" || exit 1
python3 - "$src" >"$T/x.dir" <<'PY'
import hashlib, json, os, sys
out = []
for top, _, files in os.walk(sys.argv[1]):
    for f in files:
        p = os.path.join(top, f)
        out.append({"md5": hashlib.md5(open(p, "rb").read()).hexdigest(),
                    "relpath": os.path.relpath(p, sys.argv[1])})
print(json.dumps(sorted(out, key=lambda e: e["relpath"])), end="")
PY
good "a .dir object of DVC" "$T/x.dir" "$src"
has "... with its warning" "$T/err" 'warning: .*: md5 is good against acc'
md5=$(md5sum <"$T/x.dir" | cut -d' ' -f1)
cached=$T/cache/files/md5/${md5:0:2}/${md5:2:30}.dir
mkdir -p "${cached%/*}"
cp "$T/x.dir" "$cached"
good "... in DVC's cache" "$cached" "$src"
sed -i 's/^\[/[ /' "$cached"
bad "... whose name it must fit" 65 'not the one that its name says' \
    "$cached" "$src"
echo '[{"md5": "x", "relpath": "a"}]' >"$T/x.dir"
bad "... where something is wrong" 65 \
    "x.dir:1:10: 'md5' must be 32 hex digits" "$T/x.dir" "$src"

# --- Git LFS -------------------------------------------------------------
seq 5000 >"$T/w.bin"
oid=$(sha256sum <"$T/w.bin" | cut -d' ' -f1)
printf 'version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize %d\n' \
    "$oid" "$(stat -c %s "$T/w.bin")" >"$T/w.bin.lfs"
good "a Git LFS pointer beside its object" "$T/w.bin.lfs"
mv "$T/w.bin.lfs" "$T/w.bin.text"
good "... whatever it is called" "$T/w.bin.text"
mkdir "$T/repo" "$T/data"
mv "$T/w.bin.text" "$T/repo/w.bin"
mv "$T/w.bin" "$T/data/w.bin"
good "... and one of the same name in another folder" "$T/repo/w.bin" "$T/data"
cp "$T/data/w.bin" "$T/repo/$oid"
good "... and one that is called by its hash" "$T/repo/w.bin"
rm "$T/repo/$oid"
bad "a pointer without its object" 65 'Git LFS pointer, not the data' \
    "$T/repo/w.bin"
truncate -s 100 "$T/data/w.bin"
bad "an object that is cut" 65 "has 100 bytes, the manifest says 23893" \
    "$T/repo/w.bin" "$T/data"
sed -i 's/^size/size x/' "$T/repo/w.bin"
bad "a pointer that is none" 65 "w.bin:3:1: a Git LFS pointer needs 'size'" \
    "$T/repo/w.bin" "$T/data"
