#!/usr/bin/env bash
# agent manifest, by the real program: what is listed, and that others read it.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"

src=$T/src stage=$T/stage m=$T/m.json

# run COMMAND...: its stdout, stderr and status in $T/out, $T/err, $rc.
run()
{
    timeout 60 "$@" >"$T/out" 2>"$T/err" </dev/null
    rc=$?
}

# fresh: a source of three files, and its manifest.
fresh()
{
    rm -rf "$src"
    mkdir -p "$src/sub"
    echo one >"$src/a"
    seq 10000 >"$src/sub/b"
    seq 5000 | gzip -n >"$src/sub/c.gz"
    "$agent" manifest "$src" --unpack --name set -o "$m"
}

stage() { run "$agent" stage --dataset "$m" --source "$src" --stage "$stage"; }

shopt -s nullglob
mkdir "$T/small"
printf x >"$T/small/x"
"$agent" manifest "$T/small" -o "$T/small.json"
run "$agent" verify "$T/small.json" "$T/small"
has "one is no plural" "$T/err" 'small: 1 file, 1 byte, all right'
fresh
cp "$m" "$T/first"
run "$agent" manifest "$src" --unpack --name set
is "a manifest is the same each time" "$(cat "$T/out")" "$(cat "$T/first")"
run "$agent" manifest "$src" --unpack --name set -o "$src/m.json"
is "-o in the folder itself: not listed" "$(cat "$src/m.json")" \
    "$(cat "$T/first")"
run "$agent" manifest "$src" --unpack --name set -o "$src/m.json"
is "... also when it is there already" "$(cat "$src/m.json")" \
    "$(cat "$T/first")"
is "... with no temporary file left" "$(cd "$src" && echo .[!.]* *)" \
    "a m.json sub"
touch "$src/.m.json.123.tmp"
run "$agent" manifest "$src" --unpack --name set -o "$src/m.json"
is "... nor is one that a killed agent left listed" "$(cat "$src/m.json")" \
    "$(cat "$T/first")"
rm "$src/m.json" "$src/.m.json.123.tmp"
"$agent" manifest "$src" --unpack --name set >"$src/m.json"
is "stdout in the folder itself: not listed" "$(cat "$src/m.json")" \
    "$(cat "$T/first")"
run "$agent" manifest "$src" -o /dev/null
is "a device is written to, not replaced" "$rc $(stat -c %F /dev/null)" \
    "0 character special file"
rm "$src/m.json"
gzip -dk "$src/sub/c.gz"
run "$agent" manifest "$src" --unpack -o "$T/none.json"
is "--unpack of x.gz where x is there: 65" "$rc" 65
has "... and why" "$T/err" "error: '.*sub/c.gz' would unpack to 'sub/c', which"
ok "... and nothing is written" test ! -e "$T/none.json"
run "$agent" manifest "$src"
is "... without --unpack both are listed" "$rc $(grep -c '"path"' "$T/out")" \
    "0 4"
rm "$src/sub/c"
touch "$src"/$'odd \\ name\nwith\rall' "$src/-" "$src/ä"
run "$agent" manifest "$src" --format sha256sum -o "$T/sums"
ok "sha256sum -c accepts the sums, odd names and all" \
    sh -c "cd '$src' && sha256sum --strict -c '$T/sums'"
run "$agent" manifest "$src" -o "$m"
run "$agent" verify "$m" "$src"
is "odd names go through JSON too" "$rc" 0
stage
ok "... and through a stage" diff -r -x .agent-stage "$src" "$(cat "$T/out")"
stage
has "... and its marker" "$T/err" 'already staged'
rm -r "$src" && mkdir -p "$src/..2026/sub" && echo one >"$src/..2026/sub/a"
ln -s ..2026 "$src/..data" && ln -s ..data/sub/a "$src/a"
run "$agent" manifest "$src"
is "of a ConfigMap volume only the lasting names are listed" \
    "$(grep -o '"path": "[^"]*"' "$T/out")" '"path": "a"'
rm -r "$src" && mkdir "$src"
mkfifo "$src/pipe"
run "$agent" manifest "$src"
is "a pipe cannot be listed: 65" "$rc" 65
rm "$src/pipe"
ln -s /etc/passwd "$src/link"
run "$agent" manifest "$src"
is "nor a link that leaves the folder: 65" "$rc" 65
run "$agent" manifest "$T/none"
is "a missing folder: 66" "$rc" 66

# docs/data.md: its manifest is one, and its table has each key.
sed -n '/^```json/,/^```/{/^```/!p}' "$top/docs/data.md" >"$m"
run "$agent" verify "$m" "$T"
is "docs/data.md: its manifest is read" "$rc $(grep -c missing "$T/out")" "66 1"
python3 - "$top" >"$T/keys" <<'P'
import re, sys
code = open(sys.argv[1] + "/src/dataset/manifest_json.c").read()
names = "".join(re.findall(r"_keys\[N_\w+\] = \{(.*?)\}", code, re.S))
rows = "".join(line.split("|")[1] + line for line in
               open(sys.argv[1] + "/docs/data.md") if line[:3] == "| `")
print(sorted(set(re.findall(r'"(\w+)"', names)) -
             set(re.findall(r"`(\w+)`", rows))))
P
is "... and every key is told there" "$(cat "$T/keys")" '[]'
