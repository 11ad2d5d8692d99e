#!/usr/bin/env bash
# Who this pod is, as the platform says: `agent env`, and `run` by it.
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/pods.sh"
env_of() { env "$@" "$agent" env --nproc 1 >"$T/out" 2>"$T/err"; rc=$?; }
# value NAME: "value source" of the JSON.
value()
{
    python3 -c 'import json, sys
x = json.load(open(sys.argv[1]))[sys.argv[2]]
print(json.dumps(x["value"]), x["source"])' "$T/json" "$1"
}

env_of PET_NNODES=2 PET_NODE_RANK=1 PET_MASTER_ADDR=t-0.t PET_MASTER_PORT=23456
is "the table" "$rc $(tr -s ' ' <"$T/out" | head -n 5 | tr '\n' ';')" \
    '0 nnodes 2 PET_NNODES;node-rank 1 PET_NODE_RANK;nproc 1 --nproc;master-addr t-0.t PET_MASTER_ADDR;master-port 23456 PET_MASTER_PORT;'
AGENT_JOB_ID='a"b' AGENT_NPROC_PER_NODE=3 SLURM_JOB_ID=7 SLURM_NODEID=1 \
    SLURM_JOB_NUM_NODES=4 SLURM_JOB_NODELIST='n[07-10]' JOB_COMPLETION_INDEX=2 \
    "$agent" env --json --barrier-port=1234 >"$T/json"
is "--json: nnodes" "$(value nnodes)" '4 SLURM_JOB_NUM_NODES'
is "--json: node_rank" "$(value node_rank)" '1 SLURM_NODEID'
is "--json: master_addr" "$(value master_addr)" '"n07" SLURM_JOB_NODELIST'
is "--json: a variable" "$(value job_id)" '"a\"b" AGENT_JOB_ID'
is "--json: a variable's other name" "$(value nproc)" '3 AGENT_NPROC_PER_NODE'
is "--json: an option" "$(value barrier_port)" '1234 --barrier-port'
is "--json: a default" "$(value master_port)" '29500 default'
is "--json: the platform" "$(value platform)" '"Slurm" environment'
has "--json: what is ignored" "$T/json" '"JOB_COMPLETION_INDEX".*give --nnodes'
env_of PET_NNODES=2 PET_NODE_RANK=1 PET_MASTER_ADDR=a RANK=0 WORLD_SIZE=2 \
    MASTER_ADDR=b
has "two that disagree are one warning" "$T/err" \
    'warning: PET_NODE_RANK=1, but RANK=0: the first counts'
has "and what is not used is told" "$T/out" 'ignored: RANK=0 \(PET'
env_of MASTER_PORT=tcp://10.0.0.1:80 RANK=0 WORLD_SIZE=1
is "a service link is 64" "$rc" 64
has "and explained" "$T/err" 'MASTER_PORT=tcp.* service link'
env_of RANK=4 WORLD_SIZE=4 MASTER_ADDR=a
is "a rank too high is 64" "$rc" 64
has "by the names of the variables" "$T/err" 'RANK 4 must be less than WORLD_SIZE 4'
env_of PET_NNODES=x PET_NODE_RANK=0 PET_MASTER_ADDR=a
is "no number is 64" "$rc" 64
has "by the name of the variable" "$T/err" 'PET_NNODES=x: use a number'
"$agent" env x 2>"$T/err"
is "agent env takes no words" $? 64
"$agent" env --help >"$T/out"
has "agent env --help" "$T/out" 'usage: agent env .*--json'

# The job that the platform describes is the one that runs.
job=(--barrier-port "$barrier_port" "${fast[@]}")
line() { echo "$GROUP_RANK/$GROUP_WORLD_SIZE $RANK/$WORLD_SIZE $MASTER_PORT"; }
export -f line
port=$(free_port)
for r in 0 1; do
    MASTER_ADDR=127.0.0.1 MASTER_PORT=$port WORLD_SIZE=4 RANK=$r \
        PET_MASTER_ADDR=127.0.0.1 PET_MASTER_PORT=$port PET_NNODES=2 \
        PET_NODE_RANK=$r PET_NPROC_PER_NODE=2 timeout -k 5 120 \
        "$agent" "${job[@]}" -- bash -c line >"$T/pod$r.out" 2>"$T/pod$r.err" &
    pod_pid[$r]=$!
done
ended 0 1
is "a PyTorchJob of two pods" \
    "$codes $(cat "$T"/pod?.out | sort | tr '\n' ';')" \
    "0 0 [rank0] 0/2 0/4 $port;[rank1] 0/2 1/4 $port;[rank2] 1/2 2/4 $port;[rank3] 1/2 3/4 $port;"
next_job
for r in 0 1; do
    PET_RDZV_ENDPOINT=127.0.0.1:$barrier_port PET_RDZV_BACKEND=c10d \
        PET_RDZV_ID=j7 PET_NNODES=2 timeout -k 5 120 \
        "$agent" "${fast[@]}" -- sh -c 'echo $GROUP_RANK $TORCHELASTIC_RUN_ID' \
        >"$T/pod$r.out" 2>"$T/pod$r.err" &
    pod_pid[$r]=$!
done
ended 0 1
is "an elastic one, without ranks" \
    "$codes $(cat "$T"/pod?.out | sort | tr '\n' ';')" \
    '0 0 [rank0] 0 j7;[rank1] 1 j7;'

# In a worker of an outer agent that worker's topology is not this one's.
next_job
timeout -k 5 120 "$agent" --nproc 2 -- "$agent" -- sh -c \
    'echo $RANK $WORLD_SIZE' >"$T/out" 2>"$T/err"
is "agent in a worker is a job of its own" \
    "$? $(sort "$T/out" | tr '\n' ';')" \
    '0 [rank0] [rank0] 0 1;[rank1] [rank0] 0 1;'
