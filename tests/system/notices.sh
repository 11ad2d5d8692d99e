#!/usr/bin/env bash
# What is linked into the programs is told: NOTICE, licences, SPDX document.
. "$(dirname "$0")/../lib/tap.sh"
spdx=$O/doc/agent.spdx.json
cat >"$T/read.py" <<'E'
import json, sys
d = json.load(open(sys.argv[1]))
by_id = {p["SPDXID"]: p for p in d["packages"]}
own = [by_id[r["relatedSpdxElement"]]["name"] for r in d["relationships"]
       if r["relationshipType"] == "DESCRIBES"]
links = [(by_id[r["spdxElementId"]], by_id[r["relatedSpdxElement"]])
         for r in d["relationships"] if r["relationshipType"] == "STATIC_LINK"]
assert len(by_id) == len(d["packages"]) and d["spdxVersion"] == "SPDX-2.3"
assert d["creationInfo"]["created"].endswith("Z") and d["documentNamespace"]
ask = sys.argv[2]
if ask == "own":
    print(*own)
elif ask == "unsure":
    print(*(p["name"] for p in d["packages"] if "NOASSERTION" in
            (p["versionInfo"], p["licenseDeclared"])))
elif ask == "in":
    print(*sorted(b["SPDXID"][8:] for a, b in links
                  if a["name"] == sys.argv[3]))
elif ask == "names":
    print(*{b["name"] for _, b in links}, sep="\n")
elif ask == "version":
    print(by_id["SPDXRef-" + sys.argv[3]]["versionInfo"])
E
ask() { python3 "$T/read.py" "$spdx" "$@"; }
is "the document has all that is installed" "$(ask own)" \
    "agent agent-fetch agent-probe agent-allreduce libddp.so.1"
is "each with version and licence" "$(ask unsure)" ""
ask in agent | tr ' ' '\n' | sed 's/^gcc-.*/gcc/' >"$T/in"
# Found by what the program itself has.
nm "$agent" >"$T/nm"
for s in uv_loop_init:libuv1 json_loadb:jansson inflate:zlib \
    SHA256_Update:openssl archive_read_new:libarchive lzma_code:xz-utils \
    ZSTD_decompressStream:libzstd malloc:glibc _Unwind_Find_FDE:gcc; do
    ok "agent has ${s#*:}, and it is listed" bash -c \
        'grep -q " [tTwWiI] $1\$" "$3/nm" && grep -qx "$2" "$3/in"' \
        sh "${s%:*}" "${s#*:}" "$T"
done
is "and no more than these" "$(wc -l <"$T/in")" 9
is "a package URL has no bare plus" "$(grep -c 'pkg:deb/.*+' "$spdx")" 0
ok "agent-fetch has jansson" grep -qw jansson <(ask in agent-fetch)
# shellcheck disable=SC2016 # dpkg's own
is "in the version that is installed" "$(ask version jansson)" \
    "$(dpkg-query -W -f '${source:Version}\n' libjansson-dev | head -n 1)"
ask names >"$T/names"
is "NOTICE names each" "$(while read -r n; do
    grep -qF "  $n " "$top/NOTICE" || echo "$n"; done <"$T/names")" ""
ok "and the build's copy says its version" bash -c \
    'sed -n "s/^  libuv  *//p" "$1" | grep -qxF "$2"' sh "$O/doc/NOTICE" \
    "$(ask version libuv1)"
is "the libraries' own notices are there" \
    "$(grep -c 'is not on the machine' "$O/doc/licenses") $(grep -cE \
    '^==== (libuv1|libjansson|zlib1g|libssl|libarchive|libzstd|liblzma|libc6)-dev$' \
    "$O/doc/licenses")" "0 8"
strip -o "$T/stripped" "$agent"
is "the program is known by its build id, stripped or not" "$(grep -c \
    "build ID $(readelf -n "$T/stripped" | sed -n 's/.*Build ID: //p')" \
    "$spdx")" 1

# Libraries that nobody has a row for: a package's, and one's own.
mkdir "$T/out" "$T/mine"
cp "$agent" "$T/out/agent"
: >"$T/mine/libmine.a"
crypt=$(find /usr/lib -maxdepth 2 -name libcrypt.a | head -n 1)
{
    grep -v "$O/" "$O/agent.map"
    echo "$crypt(crypt.o)"
    echo "$T/mine/libmine.a(mine.o)"
} >"$T/out/agent.map"
"$top/scripts/sbom" 1 "$T/doc" "$top/NOTICE" "$T/out/agent" 2>"$T/err"
has "a package without a row is said" "$T/err" 'libxcrypt is linked; a row'
has "a file of no package, too" "$T/err" 'libmine.a is of no package'
spdx=$T/doc/agent.spdx.json
is "and both are listed" "$(ask unsure | tr ' ' '\n' | sort -u |
    paste -s -d ' ')" "libmine.a libxcrypt"
# A build folder behind a link: its own objects are nobody's.
ln -s out "$T/link"
: >"$T/out/main.o"
{
    grep -v "$O/" "$O/agent.map"
    echo "LOAD $T/link/main.o"
} >"$T/out/agent.map"
"$top/scripts/sbom" 1 "$T/doc" "$top/NOTICE" "$T/link/agent" 2>"$T/err"
is "our own objects are not listed" "$? $(cat "$T/err")" "0 "
echo nothing >"$T/out/agent.map"
"$top/scripts/sbom" 1 "$T/none" "$top/NOTICE" "$T/out/agent" 2>"$T/err"
is "a map that says nothing is an error" "$? $(ls "$T/none")" "1 "
