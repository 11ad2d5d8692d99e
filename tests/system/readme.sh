#!/usr/bin/env bash
# What README shows is what agent prints. In a network namespace, where nobody
# else has the default ports.
. "$(dirname "$0")/../lib/tap.sh"
cd "$top" || exit 1
O=$(dirname "$(realpath "$agent")")
export O
lib=tests/lib/readme.py

own=(unshare -n)
"${own[@]}" true 2>/dev/null || own=(unshare -Urn)
if ! "${own[@]}" true 2>"$T/why"; then
    skip "the commands of README" "$(cat "$T/why")"
    exit
fi
python3 $lib list >"$T/list"
n=0
while read -r line; do
    ok "${line:0:60}" timeout -k 5 150 "${own[@]}" sh -c \
        "ip link set lo up && exec python3 $lib $n" </dev/null
    n=$((n + 1))
done <"$T/list"
is "three blocks" "$n" 3
