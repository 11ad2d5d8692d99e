# status.sh: one pod that is asked; sourced after tap.sh and pods.sh.
# shellcheck shell=bash disable=SC2034,SC2154
sock=$T/a.sock

# start ARGS...: one pod in the background, its agent's pid in $bg, answering.
start()
{
    rm -f "$T/out"
    "$agent" --socket "$sock" "${fast[@]}" "$@" >"$T/out" 2>"$T/err" \
        </dev/null &
    bg=$!
    until_true 20 "$agent" status --socket "$sock" || cat "$T/err"
}
stop() { kill -TERM $bg; wait $bg; rc=$?; }
status() { timeout 30 "$agent" status --socket "$sock" "$@"; }
# field EXPRESSION [SOCKET]: of the JSON, which is `j`.
field()
{
    timeout 30 "$agent" status --json --socket "${2-$sock}" |
        python3 -c 'import json, sys
j = json.load(sys.stdin)
v = eval("(" + sys.argv[1] + ")", {"j": j, "w": j["workers"]})
print(json.dumps(v) if isinstance(v, (bool, type(None))) else v)' "$1"
}
# becomes EXPRESSION [SOCKET]: until it is true.
becomes() { until_true 30 is_true "$@" || field j "${2-$sock}"; }
is_true() { [ "$(field "$@")" = true ]; }
