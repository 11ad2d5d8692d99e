#!/usr/bin/env bash
# bench/gpu_nccl.sh OUT DIR...: libddp with other versions of NCCL, each in a
# folder of its own (pip install --no-deps --target DIR nvidia-nccl-cu12==2.18.3
# puts one into DIR/nvidia/nccl/lib). Build as for gpu.sh.
set -u
cd "$(dirname "$0")/.." || exit 1
O=${O:-build} out=$1
shift
mkdir -p "$out"
. bench/gpu_lib.sh
libraries=$LD_LIBRARY_PATH
for dir in "$@"; do
    LD_LIBRARY_PATH=$dir:$libraries
    part "$(NCCL_DEBUG=VERSION agent --nproc "$n" --max-restarts 0 -- \
        "$O/bench/bench_device" first)"
    "$O/agent" preflight --nproc gpu | grep ' nccl '
    calls
    hangs
    part "all-reduce, device memory; a reducer beside a backward pass"
    for what in table overlap overlap; do
        agent --nproc "$n" --max-restarts 0 -- "$O/bench/bench_device" $what
    done
    [ "$n" -lt 2 ] || lost
done 2>&1 | tee "$out/nccl.txt"
rm -f "$out/last"
