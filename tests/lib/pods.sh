# pods.sh: several agents on this machine; sourced after tap.sh.
# shellcheck shell=bash disable=SC2034,SC2154
fast=(--restart-backoff 10ms:50ms)
declare -A pod_pid
barrier_port=$(free_port)

# pod R NNODES ARGS...: start node rank R in the background; $T/podR.{out,err}
pod()
{
    local r=$1 n=$2
    shift 2
    fresh "$T/pod$r.out" "$T/pod$r.err"
    timeout -k 5 120 "$agent" --nnodes "$n" --node-rank "$r" \
        --master-addr 127.0.0.1 --barrier-port "$barrier_port" "${fast[@]}" \
        "$@" >"$T/pod$r.out" 2>"$T/pod$r.err" </dev/null &
    pod_pid[$r]=$!
}
# The agent itself, not the timeout around it.
agent_of() { pgrep -P "${pod_pid[$1]}"; }
# ended R...: wait for these; their codes in $codes
ended()
{
    codes=
    for r; do
        wait "${pod_pid[$r]}"
        codes="$codes${codes:+ }$?"
    done
}
said() { grep -qE -- "$2" "$T/pod$1.err"; }
wrote() { grep -qE -- "$2" "$T/pod$1.out"; }
# wait_for said|wrote R REGEX
wait_for() { until_true 30 "$@" || { echo "# never: $*"; cat "$T"/pod*.err; }; }
next_job() { barrier_port=$(free_port); rm -f "$T"/pod*; }
