# shellcheck shell=bash
# Ranks of libddp on this machine, placed by their environment. Sourced after
# tap.sh.
declare -a pids

# rank R COMMAND...: start one rank of $n; its output goes to $T/out.R.
rank()
{
    local r=$1
    shift
    RANK=$r WORLD_SIZE=$n LOCAL_RANK=$r LOCAL_WORLD_SIZE=$n "$@" \
        >"$T/out.$r" 2>&1 </dev/null &
    pids[r]=$!
}

# start N COMMAND...: all ranks, the last one first, on a fresh port. Ranks
# that a failed test left behind would take the processor from the next ones.
start()
{
    local r left
    n=$1
    shift
    left=$(jobs -pr)
    # shellcheck disable=SC2086 # one by one
    [ -z "$left" ] || kill -9 $left
    MASTER_PORT=$(free_port)
    pids=()
    rm -f "$T"/out.*
    for ((r = n - 1; r >= 0; r--)); do rank $r "$@"; done
}

# ended N SECONDS RANK...: the ranks' statuses, each wanted to be N, in time.
ended()
{
    local want=$1 limit=$2 r rc
    shift 2
    for r; do
        until_true "$limit" gone "${pids[r]}" || {
            echo "rank $r still runs"
            return 1
        }
        wait "${pids[r]}"
        rc=$?
        [ $rc -eq "$want" ] && continue
        echo "rank $r: status $rc, wanted $want"
        cat "$T/out.$r"
        return 1
    done
}

# said REGEX RANK...: each rank's output has a line that matches.
said()
{
    local re=$1 r
    shift
    for r; do
        grep -qE -- "$re" "$T/out.$r" && continue
        echo "rank $r has not said: $re"
        cat "$T/out.$r"
        return 1
    done
}

# maps N RANK...: each rank's memory has N mappings of the shared file.
maps()
{
    local want=$1 r
    shift
    for r; do
        [ "$(grep -c /memfd:ddp "/proc/${pids[r]}/maps")" = "$want" ] || return 1
    done
}
