#!/usr/bin/env bash
# bench/gpu.sh [OUT]: all that needs GPUs, in one call of some minutes: what is
# there, preflight, all-reduce of libddp beside torch.distributed, the start of
# both, the examples, a killed and a stopped rank. Needs GPUs and PyTorch with
# CUDA; build first: make all build/bench/bench_device build/tests/ddp_device
# build/bench/nccl_hangs.so.
set -u
cd "$(dirname "$0")/.." || exit 1
O=${O:-build} out=${1:-$O/gpu}
mkdir -p "$out"
. bench/gpu_lib.sh
export OMP_NUM_THREADS=1 PYTHONWARNINGS=ignore # Else torch speaks between figures.
torchrun() { timeout -k 5 180 "$py" -W ignore -m torch.distributed.run --standalone "$@"; }
killed() # as agent; the newest of the workers is killed after its checkpoint
{
    local pid
    rm -f "$out/digits.save"
    DDP_TIMEOUT=60s "$O/agent" --preflight off --restart-backoff 100ms:100ms \
        "$@" &
    for ((i = 0; i < 600; i++)); do
        [ ! -e "$out/digits.save" ] || break
        sleep 0.1
    done
    pid=$(pgrep -n -x digits_cuda) && kill -KILL "$pid"
    wait $!
}
{
    part "what is there: $(date -u +%F), $n GPUs"
    nvidia-smi --query-gpu=name,memory.total,driver_version --format=csv,noheader
    uname -r
    "$py" -c 'import torch; print("torch", torch.__version__, "NCCL",
        ".".join(map(str, torch.cuda.nccl.version())))'
    "$O/agent-probe" | sed 's/"GPU-[^"]*"/"GPU-..."/'
    part "preflight"
    "$O/agent" preflight --nproc gpu
    echo "exit code $?"
    calls
    part "two ranks on one GPU, which NCCL refuses"
    CUDA_VISIBLE_DEVICES=0 CUDA_DEVICE_MAX_CONNECTIONS=1 DDP_TIMEOUT=100s \
        agent --nproc 2 --max-restarts 0 -- sh -c "LOCAL_RANK=0 exec $O/bench/bench_device first"
    echo "status $?"
    hangs
    part "all-reduce, device memory: libddp, torch, libddp"
    agent --nproc "$n" --max-restarts 0 -- "$O/bench/bench_device" table
    torchrun --nproc-per-node "$n" bench/gpu_torch.py table
    agent --nproc "$n" --max-restarts 0 -- "$O/bench/bench_device" table
    part "a reducer beside a backward pass: how much of it is hidden"
    for what in overlap overlap overlap tf32 tf32 tf32; do
        agent --nproc "$n" --max-restarts 0 -- "$O/bench/bench_device" $what
        torchrun --nproc-per-node "$n" bench/gpu_torch.py $what
    done
    agent --nproc "$n" --max-restarts 0 -- "$O/bench/bench_device" copies
    printf 'with NCCL_MAX_CTAS=8:\n'
    for what in overlap tf32 copies; do
        NCCL_MAX_CTAS=8 agent --nproc "$n" --max-restarts 0 -- \
            "$O/bench/bench_device" $what
    done
    part "start to the end of a program with one all-reduce"
    for _ in 1 2 3; do
        printf 'agent and libddp: '
        seconds agent --nproc "$n" --max-restarts 0 -- "$O/bench/bench_device" first
        printf 'torchrun and torch: '
        seconds torchrun --nproc-per-node "$n" bench/gpu_torch.py first
        printf 'agent and torch: '
        seconds agent --nproc "$n" --max-restarts 0 -- "$py" bench/gpu_torch.py first
    done
    part "the CUDA example: one GPU, all, and a rank that is killed"
    digits=(--dataset examples/digits/manifest.json --stage "$out/stage")
    for k in 1 "$n"; do
        seconds agent --nproc "$k" --max-restarts 0 "${digits[@]}" -- \
            "$O/examples/digits_cuda" --epochs 20
        cat "$out/last"
    done
    seconds killed --nproc "$n" --max-restarts 1 "${digits[@]}" -- \
        "$O/examples/digits_cuda" --epochs 40 --epoch-ms 100 \
        --checkpoint "$out/digits.save"
    cat "$out/last"
    part "the PyTorch example: agent, torchrun"
    data=$("$O/agent" stage "${digits[@]}" 2>"$out/last")
    for _ in 1 2; do
        printf 'agent: '
        seconds agent --nproc "$n" --max-restarts 0 "${digits[@]}" -- \
            "$py" examples/pytorch/train.py
        tail -n 2 "$out/last"
        printf 'torchrun: '
        seconds torchrun --nproc-per-node "$n" examples/pytorch/train.py \
            --data "$data"
        tail -n 2 "$out/last"
    done
    part "the PyTorch example: its last rank is killed in epoch 2"
    printf 'agent: '
    seconds "$O/agent" --preflight off --nproc "$n" --max-restarts 1 \
        --restart-backoff 100ms:100ms "${digits[@]}" -- "$py" \
        examples/pytorch/train.py --checkpoint "$out/a.pt" --fail-rank $((n - 1))
    grep -vE 'epoch [0-9]*[1-9]/' "$out/last" | tail -n 8
    printf 'torchrun: '
    seconds torchrun --nproc-per-node "$n" --max-restarts 1 \
        examples/pytorch/train.py --data "$data" --checkpoint "$out/t.pt" \
        --fail-rank $((n - 1))
    tail -n 2 "$out/last"
    [ "$n" -lt 2 ] || lost
} 2>&1 | tee "$out/gpu.txt"
rm -rf "$out"/{last,stage,digits.save,a.pt,t.pt}
