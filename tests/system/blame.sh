#!/usr/bin/env bash
# The cause is named, not a peer that died of it a millisecond later: one rank
# of a tight training loop is killed, and its peers see closed sockets.
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/pods.sh"
digits=$O/examples/digits

# The process of rank $1 in job $2, by its environment.
pid_of()
{
    local p
    for p in $(pgrep -x digits); do
        tr '\0' '\n' 2>/dev/null <"/proc/$p/environ" | awk -v r="RANK=$1" \
            -v j="TORCHELASTIC_RUN_ID=$2" '$0 == r || $0 == j { n++ }
            END { exit n != 2 }' && echo "$p" && return 0
    done
    return 1
}

for rank in 3 1 2 3; do
    next_job
    job=blame-$$-$barrier_port
    for r in 0 1; do
        pod $r 2 --nproc 2 --job-id "$job" --max-restarts 0 \
            --dataset "$top/examples/digits/manifest.json" \
            --stage "$T/stage$r" -- "$digits" --epochs 1000000
    done
    wait_for wrote 0 'epoch'
    kill -9 "$(pid_of $rank "$job")"
    ended 0 1
    is "kill -9 of rank $rank of four: the code" "$codes" '137 137'
    for r in 0 1; do
        has "pod $r blames it" "$T/pod$r.err" "error: .*rank $rank .*SIGKILL"
    done
done
