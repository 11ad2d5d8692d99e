#!/usr/bin/env bash
# agent-fetch against a real web server with every fault that servers have.
. "$(dirname "$0")/../lib/tap.sh"
for v in $(compgen -e); do
    case $v in *_proxy | *_PROXY | CURL_* | SSL_CERT_*) unset "$v" ;; esac
done
export HOME=$T # No ~/.netrc of the caller.
mkdir -p "$T/www/sub dir" "$T/state"
head -c 300000 /dev/urandom >"$T/www/a"
head -c 200000 /dev/urandom >"$T/www/sub dir/b#1"
head -c 5000000 /dev/urandom >"$T/www/big"
printf '<!doctype html><p>data\n' >"$T/www/page"
: >"$T/www/empty"
python3 "$top/tests/lib/http_server.py" "$T/www" "$T/state" >"$T/port" &
server=$!
end() { kill "$server" 2>/dev/null; tap_end; }
trap end EXIT
until_true 30 test -s "$T/port" || exit 1
base=http://127.0.0.1:$(cat "$T/port")

# manifest FILE URL...: of one file of $T/www with these URLs.
manifest()
{
    python3 - "$T/www" "$@" >"$T/m.json" <<'E'
import hashlib, json, sys
root, path, *urls = sys.argv[1:]
data = open(f"{root}/{path}", "rb").read()
print(json.dumps({"manifest": 1, "name": "set", "files": [{"path": path,
      "size": len(data), "sha256": hashlib.sha256(data).hexdigest(),
      **({"urls": urls} if urls else {})}]}))
E
}
run()
{
    timeout -k 5 100 "$O/agent-fetch" "$@" >"$T/out" 2>"$T/err" </dev/null
    rc=$?
}
# fetched NAME FILE URL...: these URLs give the file, whatever happens to it.
fetched()
{
    local name=$1 file=$2
    shift 2
    rm -rf "$T/d" "$T/state/log"
    manifest "$file" "$@"
    run -v "${more[@]}" "$T/m.json" "$T/d"
    is "$name" "$rc $(cmp "$T/www/$file" "$T/d/$file" 2>&1)" '0 '
    is "$name: nothing else is there" "$(find "$T/d" -type f | wc -l)" 1
}
# refused NAME CODE WORDS URL...: a, that is; and nothing is there then.
refused()
{
    local name=$1 code=$2 words=$3
    shift 3
    rm -rf "$T/d"
    manifest a "$@"
    run "${more[@]}" "$T/m.json" "$T/d"
    is "$name is $code" "$rc" "$code"
    has "$name: why" "$T/err" "$words"
    ok "$name: nothing looks finished" test ! -e "$T/d/a"
}
asked() { grep -c "^$1 " "$T/state/log"; }
more=()

fetched "a file" a "$base/plain/a"
has "the end is told" "$T/err" '1 of 1 files are there and right, 292.9 KiB: 1 f'
run -v "$T/m.json" "$T/d"
is "once more" "$rc" 0
has "it is there already" "$T/err" 'debug: a: 292.9 KiB, was there already'
is "and is not asked for" "$(asked GET)" 1
printf x | dd of="$T/d/a" bs=1 seek=7 conv=notrunc 2>/dev/null
run "$T/m.json" "$T/d"
is "a file that is wrong is replaced" \
    "$rc $(cmp "$T/www/a" "$T/d/a" 2>&1)" '0 '
fetched "a file:// URL" a "file://$T/www/a"
fetched "an empty file" empty "$base/plain/empty"
fetched "a page that is the data" page "$base/plain/page"
fetched "without a length, and with a wrong type" big "$base/chunked/big"
fetched "a redirect" a "$base/redirect/a"

printf '\xef\xbb\xbf' | cat - "$T/m.json" >"$T/bom.json"
rm -rf "$T/d"
timeout -k 5 100 "$O/agent-fetch" "$T/bom.json" "$T/d" 2>"$T/err" <&-
is "a manifest with a byte order mark, and no stdin" \
    "$? $(cmp "$T/www/a" "$T/d/a" 2>&1)" '0 '

# Faults that pass.
fetched "cut connections" big "$base/cut/big"
is "each goes on where the last one ended" \
    "$(cut -d' ' -f3 "$T/state/log" | tr '\n' ' ')" \
    '- bytes=1000000- bytes=2000000- bytes=3000000- '
has "it is said, and what comes next" "$T/err" \
    'warning: big: .*cut/big: .*, retrying in'
fetched "a server without ranges" big "$base/norange/big"
fetched "another range than asked for" big "$base/badrange/big"
has "that is said" "$T/err" 'a range from 2500000 was asked for'
fetched "a range that ends early" big "$base/shortrange/big"
fetched "a range with wrong bytes" big "$base/wrongbytes/big"
has "both hashes are told" "$T/err" \
    'sha256 is [0-9a-f]{64}, the manifest says [0-9a-f]{64}'
fetched "one wrong bit, once" a "$base/fliponce/a"
fetched "503 twice" a "$base/s503/a"
is "it is asked three times" "$(asked GET)" 3
fetched "429, and to wait for 2 s" a "$base/s429/a"
has "so long it waits" "$T/err" 'HTTP status 429, retrying in 2 s'
fetched "408" a "$base/s408/a"
more=(--stall-timeout 1s)
fetched "a slow drip" a "$base/drip/a"
fetched "no answer at all" a "$base/mute/a"
more=(--retries 1)
dead=http://127.0.0.1:$(free_port)

# Mirrors.
fetched "a mirror that refuses" a "$dead/a" "$base/plain/a"
has "the other one is tried" "$T/err" 'trying another URL'
fetched "a mirror without the file" a "$base/plain/none" "$base/plain/a"
fetched "a mirror with another file" a "$base/flip/a" "$base/plain/a"
fetched "a mirror with a page" a "$base/html/a" "$base/plain/a"
fetched "a cut mirror's bytes are gone on with" big "$base/cutoff/big" \
    "$base/plain/big"
has "by a range at the other" "$T/state/log" 'plain/big bytes=2500000-'
more=(--mirror "$base/plain")
fetched "--mirror alone, and a path that needs %XX" 'sub dir/b#1'
more=(--retries 0)

# Faults that stay.
refused "no such file" 66 'HTTP status 404; it begins: no such' "$base/plain/x"
refused "gone" 66 'HTTP status 410; it begins: <html>gone' "$base/gone/a"
refused "an HTML page" 65 \
    'an HTML page came instead of the file; it begins: <!DOCTYPE html>' \
    "$base/html/a"
refused "an HTML page with its length" 65 \
    'has 237 bytes, 300000 are wanted: it is an HTML page; it begins: <!DOC' \
    "$base/htmlsize/a"
refused "a Git LFS pointer" 65 'it is a Git LFS pointer; it begins: version' \
    "$base/lfs/a"
refused "one byte less" 65 'has 299999 bytes, 300000 are wanted' "$base/short/a"
refused "one byte less, chunked" 65 'ends after 299999 of 300000' \
    "$base/shortchunked/a"
refused "one byte more, chunked" 65 'more than the 300000 bytes' \
    "$base/longchunked/a"
refused "a wrong bit" 65 'sha256 is .*, the manifest says' "$base/flip/a"
refused "500 for ever" 202 'HTTP status 500' "$base/s500/a"
refused "nobody listens" 202 'refused|[Cc]onnect' "$dead/a"
refused "a redirect in a circle" 66 'redirects' "$base/loop/a"
refused "a redirect to a file of this machine" 66 'file' "$base/tofile/a"
refused "no such host" 202 'resolve' "http://nowhere.invalid/a"
refused "a secret in a URL is not told" 66 '//127.0.0.1:[0-9]*/plain/x\?\.\.\.:' \
    "http://me:pw7@${base#http://}/plain/x?token=t7"
hasnt "neither password nor query" "$T/err" 'pw7|t7'
refused "a URL without a scheme" 65 'm.json:1: .*has no scheme' "plain/a"
refused "another scheme" 65 'none of https' "gopher://x/a"
refused "no URL at all" 65 'm.json:1: .a. has no URL: .*--mirror'
more=(--retries 3)
refused "cut for ever, without ranges" 202 'retrying in' "$base/cutoff/a"

# Users and passwords.
more=()
refused "a password is wanted" 66 '401: .*netrc' "$base/auth/a"
echo "machine 127.0.0.1 login user password secret" >"$T/.netrc"
fetched "~/.netrc" a "$base/auth/a"
mv "$T/.netrc" "$T/n"
more=(--netrc-file "$T/n")
fetched "--netrc-file" a "$base/auth/a"
more=()
fetched "in the URL" a "http://user:secret@${base#http://}/auth/a"
manifest a "$base/plain/a"
http_proxy=$dead run --retries 0 "$T/m.json" "$T/e"
is "a proxy is used" "$rc" 202
http_proxy=$dead no_proxy=127.0.0.1 run "$T/m.json" "$T/e"
is "and no_proxy" "$rc" 0

# Several files at a time; one that fails does not stop the others.
"$agent" manifest "$T/www" --name all -o "$T/all.json" 2>/dev/null
rm -f "$T"/state/in-*
run --mirror "$base/together" "$T/all.json" "$T/p"
is "files are fetched at a time" "$rc $(diff -r "$T/www" "$T/p")" '0 '
python3 - "$T/all.json" "$base" <<'E' >"$T/some.json"
import json, sys
m = json.load(open(sys.argv[1]))
for f in m["files"]:
    f["urls"] = [f"{sys.argv[2]}/{'gone' if f['path'] == 'a' else 'plain'}/"
                 + f["path"].replace(" ", "%20").replace("#", "%23")]
print(json.dumps(m))
E
run -j 1 "$T/some.json" "$T/q"
is "one file is missing: 66" "$rc" 66
has "it is named" "$T/err" 'error: a: not fetched'
is "the others are there" "$(cd "$T/q" && find . -type f | sort | tr '\n' ' ')" \
    './big ./empty ./page ./sub dir/b#1 '
ok "agent takes what was fetched" "$agent" verify "$T/all.json" "$T/p"

# A list of sums has no sizes and no URLs.
(cd "$T/www" && find . -type f -printf '%P\n' | xargs -d '\n' md5sum) >"$T/sums"
run --mirror "$base/cut" --mirror "$base/plain" "$T/sums" "$T/sum"
is "a list of sums" "$rc $(diff -r "$T/www" "$T/sum")" '0 '
has "of a weak hash" "$T/err" 'warning: .*md5 is good against accidents'
for n in 5000000 2000000 6000000; do # Whole, half and more than whole.
    rm "$T/sum/big"
    "$O/agent-fetch" --mirror "$base/gate/$n" "$T/sums" "$T/sum" 2>/dev/null &
    pid=$!
    half() { [ "$(cat "$T"/sum/.*.part | wc -c)" -ge 2500000 ]; }
    until_true 30 half
    kill -9 $pid
    wait $pid 2>/dev/null
    cat "$T/www/big" "$T/www/big" | head -c $n >"$(echo "$T"/sum/.*.part)"
    run --mirror "$base/plain" "$T/sums" "$T/sum"
    is "a list of sums, a part of $n bytes" "$rc $(diff -r "$T/www" "$T/sum")" \
        '0 '
done
run --mirror "$base/html" --retries 0 "$T/sums" "$T/sum2"
is "pages instead of files without sizes" "$rc" 65

# --check: HEAD only.
rm -f "$T/state/log"
run --check "$T/some.json"
is "--check: a file without a URL is 66" "$rc" 66
has "it is named" "$T/err" 'error: a: no URL has it'
is "nothing but HEAD is sent" "$(cut -d' ' -f1 "$T/state/log" | sort -u)" HEAD
manifest a "$base/plain/a" "$base/gone/a" "file://$T/www/a"
run --check "$T/m.json"
is "--check: one good URL is enough" "$rc" 0
has "the other is told" "$T/err" 'warning: a: .*gone/a: HTTP status 410'
manifest a "$base/short/a"
run --check "$T/m.json"
is "--check: a wrong size is 65" "$rc" 65
manifest a "$base/nohead/a"
run --check "$T/m.json"
has "--check: a server without HEAD is told" "$T/err" 'takes no HEAD'

# kill -9 in the middle; the next run goes on.
manifest big "$base/gate/big"
"$O/agent-fetch" "$T/m.json" "$T/k" >/dev/null 2>&1 &
pid=$!
half() { [ "$(cat "$T"/k/.*.part | wc -c)" -ge 2500000 ]; }
ok "half of it comes" until_true 30 half
run "$T/m.json" "$T/k"
is "a second one at the same time is 202" "$rc" 202
has "and says why" "$T/err" 'another agent-fetch'
kill -9 $pid
wait $pid 2>/dev/null
is "nothing looks finished" "$(ls "$T/k")" ''
run "$T/m.json" "$T/k"
is "the next run is fine" "$rc $(cmp "$T/www/big" "$T/k/big")" '0 '
has "by a range" "$T/state/log" 'gate/big bytes=2500000-'
is "no part is left" "$(find "$T/k" -type f | wc -l)" 1
# The part has all bytes, or wrong ones, or too many.
rm -f "$T/state/log"
for fault in whole wrong longer; do
    rm -rf "$T/k"
    manifest big "$base/cutoff/big"
    run --retries 0 "$T/m.json" "$T/k"
    part=$(echo "$T"/k/.*.part)
    case $fault in
    whole) cp "$T/www/big" "$part" ;;
    wrong) head -c 5000000 /dev/zero >"$part" ;;
    longer) head -c 6000000 /dev/zero >"$part" ;;
    esac
    cat "$T/www/big" >"$T/www/big2"
    sed -i "s|/cutoff/|/plain/|" "$T/m.json"
    run "$T/m.json" "$T/k"
    is "a part that is $fault" "$rc $(cmp "$T/www/big" "$T/k/big")" '0 '
done
rm "$T/www/big2"

# TERM ends it, and keeps what is there.
manifest big "$base/gate/big?2"
"$O/agent-fetch" "$T/m.json" "$T/t" >/dev/null 2>"$T/err" &
pid=$!
half() { [ "$(cat "$T"/t/.*.part | wc -c)" -ge 2500000 ]; }
until_true 30 half
kill -TERM $pid
wait $pid
is "TERM is 143" $? 143
has "and says so" "$T/err" 'run it again to go on'

# Progress: a line each 5 s, a bar on a terminal.
manifest big "$base/gate/big?4"
"$O/agent-fetch" "$T/m.json" "$T/g" >/dev/null 2>"$T/err" &
pid=$!
shown() { grep -q 'agent-fetch: 0 of 1 files, 2.3 MiB of 4.7 MiB (50 %)' "$T/err"; }
ok "a line each 5 s" until_true 30 shown
kill $pid
wait $pid
rm -rf "$T/g"
manifest big "$base/gate/big?5"
script -qefc "stty columns 120; '$O/agent-fetch' '$T/m.json' '$T/g'" \
    "$T/typed" >/dev/null 2>&1 </dev/null &
pid=$!
shown() { grep -q $'\r\033\\[K\\[=* *\\] 0 of 1 files' "$T/typed"; }
ok "a bar on a terminal" until_true 30 shown
touch "$T/state/gate"
wait $pid
has "which goes away" "$T/typed" $'\r\033\\[Kagent-fetch: 1 of 1 files are there'
rm "$T/state/gate"

# Links, folders, disks.
manifest 'sub dir/b#1' "$base/plain/sub%20dir/b%231"
mkdir -p "$T/l" "$T/elsewhere"
ln -s ../elsewhere "$T/l/sub dir"
run "$T/m.json" "$T/l"
is "a link that leaves the folder is 64" "$rc" 64
is "and nothing is written there" "$(ls "$T/elsewhere")" ''
mkdir -p "$T/f/sub dir/b#1"
run "$T/m.json" "$T/f"
is "a folder in the file's place is 64" "$rc" 64
run "$T/m.json" "$T/m.json/x"
is "a file in the folder's place is 64" "$rc" 64
manifest big "$base/gate/big?3"
cat >"$T/full.sh" <<'E'
mkdir -p "$T/full"
mount -t tmpfs -o size=1m none "$T/full" || exit 99
"$O/agent-fetch" "$T/m.json" "$T/full" 2>"$T/err"
echo $? >"$T/codes"
mount -t tmpfs -o size=6m none "$T/full"
"$O/agent-fetch" "$T/m.json" "$T/full" 2>"$T/err2" &
until [ "$(cat "$T"/full/.*.part 2>/dev/null | wc -c)" -ge 2500000 ]; do
    kill -0 $! || exit
    sleep 0.02
done
cat /dev/zero >"$T/full/other" 2>/dev/null
touch "$T/state/gate"
wait $!
echo $? >>"$T/codes"
rm "$T/full/other"
"$O/agent-fetch" "$T/m.json" "$T/full" 2>/dev/null
cmp "$T/full/big" "$T/www/big" && echo $? >>"$T/codes"
E
export T O
if unshare -m true 2>/dev/null; then
    unshare -m --propagation private timeout 100 bash "$T/full.sh"
else
    unshare -Urm --propagation private timeout 100 bash "$T/full.sh"
fi
if [ -s "$T/codes" ]; then
    is "too small a disk; one that fills up; and room again" \
        "$(tr '\n' ' ' <"$T/codes")" '202 202 0 '
    has "both numbers are told" "$T/err" \
        "needs 5000000 bytes more, 1048576 are free"
    has "and what to do" "$T/err2" 'No space left .*make room, and run this'
else
    skip "a full disk" "no file system can be mounted here"
fi

# The command line.
run "$T/m.json"
is "no folder is 64" "$rc" 64
run --nope "$T/m.json" "$T/d"
is "an unknown option is 64" "$rc" 64
run --parallel 0 "$T/m.json" "$T/d"
is "a bad number is 64" "$rc" 64
run "$T/none.json" "$T/d"
is "no manifest is 66" "$rc" 66
has "and told by agent-fetch's own name" "$T/err" '^agent-fetch: error: '
echo '{' >"$T/bad.json"
run "$T/bad.json" "$T/d"
is "a bad manifest is 65" "$rc" 65
run --help
has "--help" "$T/out" 'usage: agent-fetch'
timeout -k 5 60 "$agent" fetch --version >"$T/out"
has "agent fetch runs it" "$T/out" '^agent-fetch [0-9]'
manifest a "$base/plain/a"
run -qq "$T/m.json" "$T/d2"
is "-qq says nothing" "$rc $(wc -c <"$T/err")" '0 0'
