#!/usr/bin/env bash
# bench/gpu.sh [OUT]: all that needs GPUs, in one call of some minutes: what is
# there, preflight, all-reduce of libddp beside torch.distributed, the start of
# both, the examples, a killed and a stopped rank. Needs GPUs and PyTorch with
# CUDA; build first: make all build/bench/bench_device build/tests/ddp_device
# build/bench/nccl_hangs.so.
# NVLink multicast stays off, as it may put GPUs that others share out of
# service.
set -u
cd "$(dirname "$0")/.." || exit 1
O=${O:-build} out=${1:-$O/gpu}
mkdir -p "$out"
export NCCL_NVLS_ENABLE=${NCCL_NVLS_ENABLE:-0} PYTHONUNBUFFERED=1
py=${PYTHON:-python3}
n=$(nvidia-smi -L | grep -c '^GPU')
site=$("$py" -c 'import site; print(site.getsitepackages()[0])')
LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-}
for l in libcudart.so.1 libnccl.so.2 libnvrtc.so.1 libcublas.so.1; do
    d=$(find "$site/nvidia" /usr/local/cuda*/lib64 -name "$l*" -printf '%h\n' \
        2>/dev/null | head -n 1)
    [ -z "$d" ] || [[ :$LD_LIBRARY_PATH: = *:$d:* ]] || LD_LIBRARY_PATH=$d:$LD_LIBRARY_PATH
done
export LD_LIBRARY_PATH
agent() { timeout -k 5 180 "$O/agent" -q --preflight off --log-prefix none "$@"; }
export OMP_NUM_THREADS=1 # Else torchrun says that it sets it.
torchrun() { timeout -k 5 180 "$py" -W ignore -m torch.distributed.run --standalone "$@"; }
two() # two ranks on one GPU that says it is of two hosts
{
    agent --nproc 2 --max-restarts 0 -- sh -c \
        'LOCAL_RANK=0 NCCL_HOSTID=host$RANK exec "$0" "$@"' "$@"
}
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
part() { printf '\n== %s\n' "$1"; }
seconds() # COMMAND...: how long it took, and its status
{
    local began=$EPOCHREALTIME
    "$@" >"$out/last" 2>&1
    local rc=$?
    awk -v a="$began" -v b="$EPOCHREALTIME" -v rc=$rc \
        'BEGIN { printf "%.2f s, status %d\n", b - a, rc }'
    [ $rc -eq 0 ] || tail -n 5 "$out/last"
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
    part "libddp's calls against a reference"
    DDP_TIMEOUT=100s agent --nproc "$n" --max-restarts 0 -- \
        "$O/tests/ddp_device" sums
    echo "status $?"
    DDP_TIMEOUT=100s agent --nproc "$n" --max-restarts 0 -- \
        "$O/tests/ddp_device" reducer
    echo "status $?"
    DDP_TIMEOUT=100s agent --nproc "$n" --max-restarts 0 -- \
        "$O/tests/ddp_device" queue 1000
    echo "status $?"
    part "two ranks on one GPU, which NCCL refuses"
    CUDA_VISIBLE_DEVICES=0 CUDA_DEVICE_MAX_CONNECTIONS=1 DDP_TIMEOUT=100s \
        agent --nproc 2 --max-restarts 0 -- sh -c "LOCAL_RANK=0 exec $O/bench/bench_device first"
    echo "status $?"
    part "two ranks on one GPU that says it is of two hosts: by sockets"
    for what in sums reducer "queue 300"; do
        DDP_TIMEOUT=100s two "$O/tests/ddp_device" $what
        echo "status $?"
    done
    part "one of them hangs in NCCL: the other's error, deadline 5 s"
    for what in init split call; do
        printf '%s: ' $what
        DDP_TIMEOUT=5s NCCL_HANGS=$what \
            LD_PRELOAD=$(realpath "$O/bench/nccl_hangs.so") \
            seconds two "$O/bench/bench_device" first
    done
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
    if [ "$n" -gt 1 ]; then
        part "a rank is killed in the middle; the job restarts and trains on"
        seconds env DDP_TIMEOUT=60s "$O/agent" --preflight off --nproc "$n" \
            --max-restarts 1 --restart-backoff 100ms:100ms -- \
            "$O/bench/bench_device" train 2000
        cat "$out/last"
        part "a rank is stopped: the others' error, deadline 5 s"
        seconds env DDP_TIMEOUT=5s "$O/agent" --preflight off --nproc "$n" \
            --max-restarts 0 --grace 2s -- "$O/bench/bench_device" stop
        cat "$out/last"
    fi
} 2>&1 | tee "$out/gpu.txt"
rm -rf "$out"/{last,stage,digits.save,a.pt,t.pt}
