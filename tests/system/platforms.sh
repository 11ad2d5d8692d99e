#!/usr/bin/env bash
# The examples of docs/platforms.md, with what each platform would set.
. "$(dirname "$0")/../lib/tap.sh"
cd "$top" || exit 1
lib=tests/lib/platforms.py
export AGENT_PROGRAM=$agent

python3 $lib list >"$T/list"
while read -r name; do
    ok "$name" python3 $lib "$name"
done <"$T/list"
is "ten of them" "$(wc -l <"$T/list")" 10
