#!/usr/bin/env bash
# examples/cuda without a GPU: libcudart and libnccl as in ddp_nccl.sh, and
# libcuda and libnvrtc that run the example's kernels as C.
. "$(dirname "$0")/../lib/tap.sh"
mkdir "$T/lib" "$T/none"
gcc -shared -fPIC -w -o "$T/lib/libcudart.so.13" \
    "$top/tests/lib/fake/device_libraries.c" || exit 1
ln -s libcudart.so.13 "$T/lib/libnccl.so.2"
gcc -O1 -shared -fPIC -w -o "$T/lib/libcuda.so.1" \
    "$top/tests/lib/fake/kernel_libraries.c" -lm || exit 1
ln -s libcuda.so.1 "$T/lib/libnvrtc.so.13"

job() # NPROC FAKE PROGRAM WORDS: as a job of agent; $rc, $T/out
{
    FAKE_DIR=$T FAKE=$2 LD_LIBRARY_PATH=${libs:-$T/lib} DDP_TIMEOUT=60s \
        timeout -k 5 100 "$agent" -q --nproc "$1" --max-restarts 0 \
        --log-prefix none --dataset "$top/examples/digits/manifest.json" \
        --stage "$T/stage" -- "$O/examples/$3" "${@:4}" >"$T/out" 2>&1
    rc=$?
}
job 1 fine digits --epochs 10
want=$(grep '^epoch 10/10' "$T/out")
job 1 fine digits_cuda --epochs 10
is "kernels learn what the program for CPUs does" \
    "$rc $(grep '^epoch 10/10' "$T/out")" "0 $want"
rm -f "$T/log"
job 3 fine digits_cuda --epochs 10 --checkpoint "$T/checkpoint"
is "three ranks, too" "$rc $(grep '^epoch 10/10' "$T/out")" "0 $want"
is "with the same bits" \
    "$(grep -c '^parameters bit-equal on all 3 ranks' "$T/out")" 1
is "through NCCL" "$(grep -c "destroy [0-9]" "$T/log")" 3
job 2 fine digits_cuda --epochs 15 --checkpoint "$T/checkpoint"
is "a checkpoint is gone on from, by another number of ranks" \
    "$rc $(grep -c 'resumed from epoch 10' "$T/out")" "0 1"
job 1 fine digits --epochs 20 --checkpoint "$T/checkpoint"
is "and by the program for CPUs" \
    "$rc $(grep -c 'resumed from epoch 15' "$T/out")" "0 1"
job 2 'no compile' digits_cuda
is "what the compiler says is shown" \
    "$rc $(grep -cm1 'GPU [01]: libnvrtc: a log' "$T/out")" "2 1"
job 2 'no launch' digits_cuda
is "a kernel that cannot be launched" \
    "$rc $(grep -cm1 'cuLaunchKernel: unspecified launch failure' "$T/out")" \
    "2 1"
# Where a real CUDA is installed, it finds no GPU, or it has none of these.
libs=$T/none job 1 fine digits_cuda
is "without a GPU: one line that says so" \
    "$rc $(grep -c '^digits: rank 0: GPU 0: .*[a-z]' "$T/out")" "2 1"
