#!/usr/bin/env bash
# What cannot be printed is lost to whoever waits for it: all that prints ends
# with 202 and one line where stdout is closed or full.
. "$(dirname "$0")/../lib/tap.sh"
mkdir "$T/set"
echo good >"$T/set/a"
"$agent" manifest -q "$T/set" -o "$T/set.json"
cp -r "$T/set" "$T/bad"
echo evil >"$T/bad/a"
timeout 300 "$agent" --socket "$T/s" -- sleep 290 >"$T/out" 2>"$T/err" \
    </dev/null &
bg=$!
ok "an agent runs" until_true 60 "$agent" status --socket "$T/s"

# try CASE FILE: "$@" with its stdout closed, or FILE.
try()
{
    local how=$1
    shift
    if [ "$how" = closed ]; then
        timeout -k 5 60 "$@" >&- 2>"$T/said" </dev/null
    else
        timeout -k 5 60 "$@" >/dev/full 2>"$T/said" </dev/null
    fi
    echo "$? $(grep -c 'write to stdout\|write the manifest' "$T/said") of" \
        "$(wc -l <"$T/said")"
}

n=0
while read -r name line; do
    read -ra words <<<"${line//@/$T}"
    n=$((n + 1))
    for how in closed full; do
        is "$name $line: $how" "$(try $how "$O/$name" "${words[@]}")" \
            '202 1 of 1'
    done
done <<'E2'
agent --version
agent --help
agent --help=man
agent --help=bash
agent --help=zsh
agent --help=env
agent --help=json
agent env --help
agent torchrun --help
agent env
agent env --json
agent preflight
agent preflight --json
agent status --socket @/s
agent status --json --socket @/s
agent manifest -q @/set
agent manifest -q --format sha256sum @/set
agent stage -q --dataset @/set.json --source @/set --stage @/stage
agent --dry-run -- true
agent probe --help
agent probe --version
agent fetch --help
agent allreduce --version
agent-probe --help
agent-probe --version
agent-probe --only rdma
agent-fetch --help
agent-fetch --version
agent-allreduce --help
agent-allreduce --version
agent-allreduce -b 8 -e 8 -n 1
E2
is "all of them" "$n" 31
is "agent verify, which tells of the set, too" \
    "$(try full "$agent" verify -q "$T/set.json" "$T/bad")" '202 1 of 2'
kill $bg
wait $bg
"$agent" manifest -q "$T/set" -o "$T/again.json" >&-
is "what prints nothing needs no stdout" \
    "$? $(cmp "$T/set.json" "$T/again.json")" '0 '
"$agent" -- echo line >&- 2>"$T/err"
is "nor do workers" $? 0
has "that end well" "$T/err" 'finished'

# Descriptors that are missing do not become those of files.
(cd "$T" && "$O/agent-fetch" no-such.json x >&- 2>&- <&-)
is "all three closed" $? 66
