#!/usr/bin/env bash
# The examples of docs/platforms.md are run as they are written, with what each
# platform would set.
. "$(dirname "$0")/../lib/tap.sh"
cd "$top" || exit 1
lib=tests/lib/platforms.py
export AGENT_PROGRAM=$agent

own=(unshare -nm)
"${own[@]}" true 2>/dev/null || own=(unshare -Urnm)
if ! "${own[@]}" true 2>"$T/why"; then
    skip "the examples of docs/platforms.md" "$(cat "$T/why")"
    exit
fi
python3 $lib list >"$T/list"
while read -r name; do
    ok "$name" timeout -k 5 150 "${own[@]}" python3 $lib "$name" </dev/null
done <"$T/list"
is "ten of them" "$(wc -l <"$T/list")" 10
