# What bench/gpu.sh and bench/gpu_nccl.sh share. They set O, and out, a folder.
# NVLink multicast stays off, as it may put GPUs that others share out of
# service.
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
part() { printf '\n== %s\n' "$1"; }
two() # two ranks on one GPU that says it is of two hosts
{
    agent --nproc 2 --max-restarts 0 -- sh -c \
        'LOCAL_RANK=0 NCCL_HOSTID=host$RANK exec "$0" "$@"' "$@"
}
seconds() # COMMAND...: how long it took, and its status
{
    local began=$EPOCHREALTIME
    "$@" >"$out/last" 2>&1
    local rc=$?
    awk -v a="$began" -v b="$EPOCHREALTIME" -v rc=$rc \
        'BEGIN { printf "%.2f s, status %d\n", b - a, rc }'
    [ $rc -eq 0 ] || tail -n 5 "$out/last"
}
calls() # on all GPUs, and on one by sockets
{
    local what
    part "libddp's calls against a reference"
    for what in sums reducer "queue 1000"; do
        DDP_TIMEOUT=100s agent --nproc "$n" --max-restarts 0 -- \
            "$O/tests/ddp_device" $what
        echo "status $?"
    done
    part "two ranks on one GPU that says it is of two hosts: by sockets"
    for what in sums reducer "queue 300"; do
        DDP_TIMEOUT=100s two "$O/tests/ddp_device" $what
        echo "status $?"
    done
}
hangs() # one of two ranks hangs in NCCL
{
    local what
    part "one of two ranks hangs in NCCL: the other's error, deadline 5 s"
    for what in init split call; do
        printf '%s: ' $what
        DDP_TIMEOUT=5s NCCL_HANGS=$what \
            LD_PRELOAD=$(realpath "$O/bench/nccl_hangs.so") \
            seconds two "$O/bench/bench_device" first
    done
}
lost() # a rank is killed, a rank is stopped
{
    part "a rank is killed in the middle; the job restarts and trains on"
    seconds env DDP_TIMEOUT=60s "$O/agent" --preflight off --nproc "$n" \
        --max-restarts 1 --restart-backoff 100ms:100ms -- \
        "$O/bench/bench_device" train 2000
    cat "$out/last"
    part "a rank is stopped: the others' error, deadline 5 s"
    seconds env DDP_TIMEOUT=5s "$O/agent" --preflight off --nproc "$n" \
        --max-restarts 0 --grace 2s -- "$O/bench/bench_device" stop
    cat "$out/last"
}
