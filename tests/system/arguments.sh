#!/usr/bin/env bash
# Programs that take their rank as an argument (docs/arguments.md), with
# stand-ins that parse the same arguments.
. "$(dirname "$0")/../lib/tap.sh"
llmc=(python3 "$top/tests/lib/llmc.py")
LLMC_PORT=$(free_port)
export LLMC_PORT
run() # ARGS...: $T/out, $T/err, $rc
{
    timeout -k 5 90 "$agent" -q "$@" >"$T/out" 2>"$T/err" </dev/null
    rc=$?
}
ids() { grep -oE '128 [0-9a-f]{16}' "$T/out" | sort -u | wc -l; }

run --nproc 3 --master-addr localhost --expand --max-restarts 0 -- \
    "${llmc[@]}" -i '{x}/*.bin' -pi tcp -pn '{world_size}' -pr '{rank}' \
    -pg '{local_world_size}' -ps '{master_ip}'
is "llm.c over TCP: all have rank 0's id" "$rc $(ids)" "0 1"
is "each its rank and GPU, other braces stay" \
    "$(sed 's/^\[.*\] //; s/128 .* /_ /' "$T/out" | sort | tr '\n' ';')" \
    'rank 0 of 3 on GPU 0: _ {x}/*.bin;rank 1 of 3 on GPU 1: _ {x}/*.bin;rank 2 of 3 on GPU 2: _ {x}/*.bin;'

mkdir "$T/shared"
FAIL_FIRST=1 run --nproc 2 --expand --max-restarts 1 \
    --restart-backoff 1ms:1ms -- sh -c 'mkdir -p "$0" && exec "$@"' \
    "$T/shared/{attempt}" "${llmc[@]}" -pi fs -pf "$T/shared/{attempt}" \
    -pn '{world_size}' -pr '{rank}' -pg 2
is "llm.c over a folder, a restart" "$rc" 0
is "each attempt has a file of its own" \
    "$(find "$T/shared" -name '*.sync' -printf '%P\n' | sort | tr '\n' ' ')" \
    "0/ncclUniqueId.sync 1/ncclUniqueId.sync "
id=$(od -An -tx1 -N8 "$T/shared/1/ncclUniqueId.sync" | tr -d ' ')
is "the second attempt's ranks have the second id" \
    "${#id} $(grep -c "128 $id" "$T/out")" "16 2"
run --max-restarts 0 -- "${llmc[@]}" -pi tcp -pr '{rank}'
is "without --expand the stand-in refuses a macro" "$rc" 1

# nccl-tests: getopt with the same letters.
cat >"$T/all_reduce_perf" <<'S'
#!/bin/sh
while getopts b:e:f:i:n:w:c:t:g:J: o; do
    case $o in '?') exit 3 ;; g) g=$OPTARG ;; J) j=$OPTARG ;; esac
done
shift $((OPTIND - 1))
[ $# = 0 ] || exit 4
echo "$g GPUs" >"${j:-/dev/stdout}"
S
chmod +x "$T/all_reduce_perf"
run --nproc 1 -- "$T/all_reduce_perf" -b 8 -e 1G -f 2 -g 8
is "nccl-tests: one process drives all GPUs" "$rc $(cat "$T/out")" \
    "0 [rank0] 8 GPUs"
run --nproc 2 --expand -- "$T/all_reduce_perf" -b 1M -e 1G -f 4 -g 1 \
    -J "$T/{rank}.json"
is "or one process each" "$rc $(cat "$T/0.json" "$T/1.json" | tr '\n' ' ')" \
    "0 1 GPUs 1 GPUs "
