#!/usr/bin/env bash
# --contract, --pass-local-rank, --expand: what the workers of real jobs see.
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/pods.sh"
run() { timeout -k 5 60 "$agent" "$@" >"$T/out" 2>"$T/err" </dev/null; rc=$?; }

# json FILE EXPRESSION: of the object x
json()
{
    python3 -c 'import json, sys
x = json.load(open(sys.argv[1]))
print(json.dumps(eval(sys.argv[2]), separators=(",", ":")))' "$@"
}
# of RANK REGEX: its variables of that name, sorted, on one line
of() { sed -nE "s/^\[rank$1\] ($2)/\1/p" "$T/out" | sort | tr '\n' ' '; }

run --contract all --nproc 2 --master-port "$(free_port)" -- env
is "all dialects" "$rc" 0
port=$(sed -nE 's/^\[rank1\] MASTER_PORT=//p' "$T/out")
is "jax" "$(of 1 JAX_)" "JAX_COORDINATOR_ADDRESS=127.0.0.1:$port \
JAX_NUM_PROCESSES=2 JAX_PROCESS_ID=1 "
is "mpi" "$(of 1 OMPI_)" "OMPI_COMM_WORLD_LOCAL_RANK=1 \
OMPI_COMM_WORLD_LOCAL_SIZE=2 OMPI_COMM_WORLD_NODE_RANK=1 \
OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 OMPI_UNIVERSE_SIZE=2 "
is "horovod" "$(of 1 HOROVOD_)" "HOROVOD_CROSS_RANK=0 HOROVOD_CROSS_SIZE=1 \
HOROVOD_HOSTNAME=$(uname -n) HOROVOD_LOCAL_RANK=1 HOROVOD_LOCAL_SIZE=2 \
HOROVOD_RANK=1 HOROVOD_SIZE=2 "
has "tensorflow" "$T/out" "^\[rank1\] TF_CONFIG=\{\"cluster\": \{\"worker\": \
\[\"127.0.0.1:$port\", \"127.0.0.1:$((port + 1))\"\]\}, \
\"task\": \{\"type\": \"worker\", \"index\": 1\}\}\$"
has "mxnet" "$T/out" '^\[rank1\] DMLC_ROLE=worker$'
has "torch" "$T/out" '^\[rank1\] RANK=1$'

# What srun told agent is of agent, and JAX would take it for the worker's.
SLURM_JOB_ID=7 SLURM_JOB_NUM_NODES=1 SLURM_NODEID=0 SLURM_PROCID=0 \
    SLURM_LOCALID=0 SLURM_NTASKS=1 SLURM_STEP_NODELIST=localhost \
    run --contract jax --nproc 2 -- env
is "jax under srun" "$(of 1 'SLURM_(PROCID|NTASKS|LOCALID)')" \
    'SLURM_LOCALID=1 SLURM_NTASKS=2 SLURM_PROCID=1 '
RANK=0 WORLD_SIZE=1 run --contract jax --pre-start 'env | grep -c JAX_; :' \
    -- env
is "no torch" "$(of 0 '(RANK|WORLD_SIZE|MASTER_|TORCHELASTIC)')" ''
has "a pre-start is nobody" "$T/out" '^\[pre-start\] 0$'
AGENT_CONTRACT=mpi run -- env
has "by the variable" "$T/out" 'OMPI_COMM_WORLD_RANK=0'
run --contract torch,caffe -- true
is "another word is 64" "$rc" 64
run --contract tensorflow --nproc 2 --master-port 65535 --max-restarts 3 -- true
is "ports that do not exist are 64, at once" "$rc" 64
has "and it says so" "$T/err" 'TF_CONFIG: .*above 65535'

# Two pods, of which one has more workers: each worker reaches each other one.
cat >"$T/tf.py" <<'P'
import json, os, socket, sys, time
tf = json.loads(os.environ["TF_CONFIG"])
workers, me = tf["cluster"]["worker"], tf["task"]["index"]
assert tf["task"]["type"] == "worker" and me == int(os.environ["RANK"])
assert len(workers) == int(os.environ["WORLD_SIZE"])
mine = socket.create_server(("", int(workers[me].rsplit(":", 1)[1])))
for other in workers:
    host, port = other.rsplit(":", 1)
    for _ in range(3000):
        try:
            socket.create_connection((host, int(port)), 5).close()
            break
        except OSError:
            time.sleep(0.01)
    else:
        sys.exit(other + " is not reached")
for _ in workers:
    mine.accept()
print("reached", len(workers), "among", os.environ["GROUP_WORLD_SIZE"])
P
for r in 0 1; do
    pod $r 2 --contract torch,tensorflow --offline --nproc $((r + 1)) \
        -- python3 "$T/tf.py"
done
ended 0 1
is "each worker of two pods reaches all of TF_CONFIG" "$codes" '0 0'
is "three of them" "$(cat "$T"/pod*.out | sort | tr '\n' ';')" \
    "$(printf '[rank%d] reached 3 among 2;' 0 1 2)"
[ "$codes" = '0 0' ] || sed 's/^/# /' "$T"/pod*.err

# --- the command ---
run --nproc 2 --pass-local-rank --log-prefix none -- echo a
is "--local-rank" "$(sort "$T/out" | tr '\n' ';')" \
    'a --local-rank=0;a --local-rank=1;'
run --pass-local-rank=underscore -- echo a
has "--local_rank" "$T/out" ' a --local_rank=0$'
run --pass-local-rank underscore
is "its value is never the next word" "$rc" 127

run --nproc 2 --expand --role w --log-prefix '{local_rank} ' -- echo \
    '{rank}.{local_rank}/{world_size}' '{node_rank}' '{nnodes}' '{role}' \
    '{master_addr}' '{master_ip}' '{attempt}' '{"a": {b}}' 'x {rank'
is "macros in arguments" "$(sed -n 's/^1 //p' "$T/out")" \
    '1.1/2 0 1 w 127.0.0.1 127.0.0.1 0 {"a": {b}} x {rank'
run -- echo '{rank}'
has "not without it" "$T/out" ' \{rank\}$'
run --expand --max-restarts 1 --restart-backoff 1ms:1ms -- sh -c \
    'echo "try {attempt}"; [ {attempt} = 1 ]'
is "each attempt has its own" "$rc $(tr '\n' ' ' <"$T/out")" \
    '0 [rank0] try 0 [rank0] try 1 '
run --expand -- '{rank}'
is "the command itself stays" "$rc" 127
has "with its name" "$T/err" '\{rank\}'

# {master_ip} is an address, on pod 0 and on the others.
next_job
for r in 0 1; do
    timeout -k 5 60 "$agent" --nnodes 2 --node-rank $r --master-addr localhost \
        --barrier-port "$barrier_port" --mesh off --expand -- \
        echo "{master_addr} {master_ip} {rank}" \
        >"$T/pod$r.out" 2>"$T/pod$r.err" </dev/null &
    pod_pid[$r]=$!
done
ended 0 1
is "two pods by name" "$codes" '0 0'
for r in 0 1; do
    has "an address on pod $r" "$T/pod$r.out" \
        "^\[rank$r\] localhost (127\.0\.0\.1|::1) $r\$"
done

# --- GPUs ---
export CUDA_VISIBLE_DEVICES=GPU-a,GPU-b
run --nproc gpu --procs-per-gpu 2 -- env
is "two workers a GPU" "$(of 3 '(AGENT_GPU|LOCAL_RANK|CUDA_VISIBLE)')" \
    'AGENT_GPU=1 CUDA_VISIBLE_DEVICES=GPU-a,GPU-b LOCAL_RANK=3 '
run --nproc gpu --procs-per-gpu 2 --gpu-bind single --contract torch,jax \
    -- env
is "each sees its own GPU alone" \
    "$(of 2 '(AGENT_GPU|LOCAL_RANK|CUDA_VISIBLE|JAX_LOCAL)')" \
    'AGENT_GPU=1 CUDA_VISIBLE_DEVICES=GPU-b JAX_LOCAL_DEVICE_IDS=0 LOCAL_RANK=0 '
has "of four" "$T/out" '^\[rank3\] WORLD_SIZE=4$'
run --contract mpi --gpu-bind single -- env
has "without torch, too" "$T/out" '^\[rank1\] CUDA_VISIBLE_DEVICES=GPU-b$'
run --nproc 3 -- env
is "no GPU is made up" "$(of 2 AGENT_GPU)" ''
run --nproc 3 --gpu-bind single -- true
is "more workers than GPUs are 64" "$rc" 64
has "with the numbers" "$T/err" '3 workers, and 2 GPUs are visible'
CUDA_VISIBLE_DEVICES='' run --nproc 1 --gpu-bind single -- true
is "no GPU at all, too" "$rc" 64

# --- the plan ---
cat >"$T/plan.py" <<'P'
import json, re, sys
plan = json.load(open(sys.argv[1]))
for p in plan["processes"]:
    seen = {}
    for line in open(sys.argv[2], errors="replace"):
        m = re.match(r"\[%s%d\] (\w+)=(.*)" % (p["role"],
                     p.get("rank", p.get("index"))), line)
        if m:
            seen[m[1]] = m[2]
    differ = {k for k, v in p["env"].items() if seen.get(k) != v}
    # Known at the start alone, or of one run.
    own = {k for k in seen if k not in p["env"] and re.match(
        "(RANK|LOCAL_|WORLD_|ROLE_|GROUP_|MASTER_|TORCHEL|DMLC_|TF_CONFIG|JAX_)", k)}
    assert not differ and own <= {"TORCHELASTIC_ERROR_FILE"}, (differ, own)
    assert p["argv"][0] == "sh" and len(p["argv"]) >= 3
print(len(plan["processes"]), plan["world_size"], plan["deadlines"]["grace_s"])
P
job=(--nproc 2 --servers 1 --contract all --gpu-bind single --grace 9s --expand
    --master-port "$(free_port)")
run "${job[@]}" --dry-run -- sh -c "env; touch $T/{role}"
cp "$T/out" "$T/plan"
is "--dry-run" "$rc $(cat "$T/err")" '0 '
ok "starts nothing" test ! -e "$T/worker"
run "${job[@]}" -- sh -c 'env'
is "and says what a start does" "$(python3 "$T/plan.py" "$T/plan" "$T/out")" \
    '4 2 9.0'
is "the command as the worker gets it" \
    "$(json "$T/plan" 'x["processes"][0]["argv"]')" '["sh","-c","env; touch '"$T"'/worker"]'
SECRET=x AGENT_TOKEN=not-for-eyes run --nnodes 4 --node-rank 2 --nproc 3 \
    --master-addr no.such.host --contract all --dry-run -- true
is "of one pod of four" "$(json "$T/out" '[x["nnodes"], x["node_rank"],
    x["world_size"], x["processes"][1]["rank"],
    x["processes"][1]["env"]["JAX_COORDINATOR_ADDRESS"]]')" '[4,2,12,7,"no.such.host:29500"]'
hasnt "nothing that is not agent's" "$T/out" 'SECRET|not-for-eyes|PATH'
run --nnodes 2 --node-rank auto --master-addr no.such.host --dry-run -- true
is "ranks by arrival" "$rc $(json "$T/out" 'x["node_rank"]')" '0 "auto"'

"$agent" --dry-run -- true >/dev/full 2>"$T/err"
is "a full disk is 202" $? 202
