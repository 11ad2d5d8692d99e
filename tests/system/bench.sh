#!/usr/bin/env bash
# The benchmarks: what they say where nothing is built. They are run by hand.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"

for b in "$top"/bench/run_*.py; do
    O=$T/none python3 "$b" >"$T/out" 2>"$T/err"
    is "${b##*/} without a build fails" "$?" 1
    is "... and says what to do" "$(cat "$T/err")" \
        "$T/none/agent is not there: make bench-built"
done
