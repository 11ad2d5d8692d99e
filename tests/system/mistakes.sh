#!/usr/bin/env bash
# What people do wrong at first: each ends with the right code, and with one
# line of error that says what, where, and what to do.
. "$(dirname "$0")/../lib/tap.sh"
digits=$top/examples/digits
cd "$T" || exit 1
gz=MNIST/raw/t10k-labels-idx1-ubyte.gz
agent=("$agent")

# mistake CODE REGEX [VAR=VALUE...] WORDS: of agent. The last words' hint is
# part of the one error. A job goes no further than to its barrier.
mistake()
{
    local code=$1 regex=$2 env=() rc n

    shift 2
    while [[ ${1-} =~ ^[A-Za-z_]+= ]]; do
        env+=("$1")
        shift
    done
    timeout -k 5 60 env "${env[@]}" "${agent[@]}" "$@" >out 2>err </dev/null
    rc=$?
    n=$(grep -c 'error: ' err)
    is "${env[*]} agent $*: the code" "$rc" "$code"
    has "... the reason" err "(error|hint): .*$regex"
    is "... one error" "$n" 1
}

# Words and options.
mistake 64 'no command to run; use: agent '
mistake 64 'no command to run' --nproc 2
mistake 64 '--nprocs: no such option; did you mean --nproc\?' --nprocs 2 -- true
mistake 64 '--nproc 2: this is one word: .* write =' '--nproc 2' -- true
mistake 64 '--nproc: it needs a value' --nproc
mistake 64 '--nproc=many: use a number .*auto, gpu' --nproc many -- true
mistake 64 'N/PERIOD: 5/1h' --max-restarts x -- true
mistake 64 '--restart-backoff=5: MAX is missing: use MIN:MAX' \
    --restart-backoff 5 -- true
mistake 64 'MIN at most MAX' --nnodes 4:2 -- true
mistake 64 '--node-rank 1 .* --nnodes 1, the default: say how many' \
    --node-rank 1 -- true
mistake 64 '--node-rank 2 must be less than --nnodes 2$' \
    torchrun --nnodes 2 --node-rank 2 x
mistake 64 'AGENT_GRACE=1x: a duration is' AGENT_GRACE=1x -- true
mistake 64 'AGENT_NPROCC: .*did you mean AGENT_NPROC' AGENT_NPROCC=2 -- true
mistake 64 'one of: never, on-failure' --restart-policy sometimes -- true

# Programs.
printf 'print(1)\n' >train.py
printf '#!/no/such/python\n' >script
printf '#!/bin/sh\r\n' >windows
chmod +x script windows
mistake 127 "'nothing' was not found in PATH\$" nothing
mistake 127 "'--nproc' was not found in PATH; options go before --\$" \
    -- --nproc 2 echo
mistake 127 "'sh -c ls' is one word: give command and arguments as words of \
their own, or let sh -c run it\$" 'sh -c ls'
mistake 127 "'./train.py --lr 1' is one word: give" './train.py --lr 1'
mistake 127 "'nothing --lr 1' was not found in PATH\$" 'nothing --lr 1'
mistake 127 'is an empty word: a variable that is not set' ''
ln -s /no/target linked
mistake 127 "there is no './gone.sh' in '$T', the working directory" ./gone.sh
mistake 127 "there is no '/no/such/program' in the image" /no/such/program
mistake 127 "'./linked' is a link to '/no/target', which is missing" ./linked
mistake 127 'in this folder: use \./train\.py, or the name of its inter' train.py
mkdir bin && : >bin/python3
mistake 127 "'python' .*; there is '$T/bin/python3': use python3\$" \
    PATH="$T/bin" python train.py
mistake 126 'no execute permission \(chmod \+x\)' ./train.py
mistake 127 "interpreter '/no/such/python' is missing" ./script
mistake 127 'Windows line ends \(dos2unix\)' ./windows
mistake 126 'is a folder' "$T"
mistake 127 "did you mean 'agent stage'\?" stag
mistake 127 "did you mean 'agent --help'\?" help

# Data.
"${agent[@]}" manifest --unpack "$digits/MNIST" -o away.json 2>/dev/null
cp -r "$digits" bad
printf X | dd of=bad/$gz bs=1 seek=50 conv=notrunc status=none
: >empty
mistake 66 "manifest '/no/set.json' is missing" --dataset /no/set.json -- true
mistake 66 "missing \(without --source .* the manifest's folder" \
    --dataset away.json -- true
mistake 66 'is DIR, .* where they are\?' verify away.json
mistake 66 "folder '/no' is missing" verify --structure /no
mistake 66 "source folder '/no' is missing;" --dataset away.json --source /no \
    -- true
mistake 65 "$gz' has sha256 .*the manifest says .*; agent verify \
'bad/manifest.json' names all that is bad; no worker" \
    --dataset bad/manifest.json -- true
mistake 65 "; agent verify 'bad/manifest.json' './bad' names all that is bad" \
    stage --dataset bad/manifest.json --source ./bad --stage "$T/stage"
mistake 65 "train.py:1:1: neither JSON .* it; agent manifest DIR writes a man" \
    --dataset train.py -- true
mistake 65 'a NUL byte: this is data and no manifest' --dataset "bad/$gz" -- true
mistake 65 'empty: it names no file' --dataset empty -- true
mistake 65 'give the manifest file in it' --dataset bad -- true
mistake 64 'give a --stage that can be written to' \
    --dataset "$digits/manifest.json" --stage /dev/null -- true
mistake 64 'there is nothing to stage' --stage "$T/stage" -- true
mistake 64 "write '/no/x': .*: give an -o that can be written" \
    manifest "$digits" -o /no/x

# Places and ports.
free=$(free_port)
coproc holder { exec python3 -c "
import socket, sys
s = socket.create_server(('', $free)); print('listens', flush=True)
sys.stdin.read()"; }
read -r _ <&"${holder[0]}"
# bash forgets its own names as soon as the coproc has ended.
# shellcheck disable=SC2154 # of the coproc
pid=$holder_PID to=${holder[1]}
mistake 202 "--master-port $free is taken by pid $pid \(python3\)" \
    --master-port "$free" -- true
mistake 202 "--barrier-port $free is taken by .*\(python3\): give the job" \
    --nnodes 2 --barrier-port "$free" -- true
exec {to}>&-
wait "$pid"
"$agent" --nnodes 2 --barrier-port "$free" -- true 2>"$T/zero" &
zero=$!
ok "pod 0 listens" until_true 20 bash -c ": </dev/tcp/127.0.0.1/$free"
mistake 202 "is taken by pid $zero \(agent\): if that is pod 0 of this job, \
give this one its --node-rank; else give the job another one, the same on all" \
    --nnodes 2 --barrier-port "$free" -- true
kill $zero
wait $zero
mistake 202 'Not a directory: give a folder' --log-dir empty -- true
mistake 202 'no agent answers at --socket .*none' status \
    --socket "$T/none"
mistake 66 '--token-file /no/token: No such file' --token-file /no/token \
    --nnodes 2 -- true
mistake 64 '--token-file empty: the token is empty' --token-file empty \
    --nnodes 2 -- true

# Platforms.
mistake 64 'WORLD_SIZE=2 pods, .*give --master-addr HOST' RANK=1 WORLD_SIZE=2 \
    -- true
mistake 64 'RANK 2 must be less than WORLD_SIZE 2' RANK=2 WORLD_SIZE=2 \
    MASTER_ADDR=h -- true
mistake 64 'is a Kubernetes service link' RANK=1 WORLD_SIZE=2 MASTER_ADDR=h \
    MASTER_PORT=tcp://10.0.0.1:80 -- true
mistake 64 'give --node-rank' PET_NNODES=2 -- true
mistake 64 'this rendezvous is not served.*use c10d or static' PET_NNODES=2 \
    PET_NODE_RANK=0 PET_RDZV_BACKEND=etcd -- true
mistake 64 'no list of hosts, such as n' SLURM_NODEID=0 SLURM_NNODES=2 \
    SLURM_NODELIST='n[1' -- true
ompi=(OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2)
mistake 64 'started 2 agents on this node.*ppr:1:node' "${ompi[@]}" \
    OMPI_COMM_WORLD_LOCAL_SIZE=2 -- true
mistake 64 "not told \('$T/empty' names no host\): give --master-addr" \
    "${ompi[@]}" OMPI_MCA_orte_default_hostfile="$T/empty" -- true
mistake 64 'DMLC_ROLE=boss: a role is scheduler, server or worker' \
    DMLC_ROLE=boss --contract mxnet -- true
mistake 200 'train-0.invalid:[0-9]+ was not reached: the name does not resolve' \
    --nnodes 2 --node-rank 1 --master-addr train-0.invalid \
    --barrier-timeout 200ms -- true
mistake 200 '--master-addr train-0.invalid does not resolve' --nnodes 2 \
    --node-rank auto --master-addr train-0.invalid --barrier-timeout 1s -- true
has "which is told while it is waited for, and for how long" err \
    "waiting: --master-addr .*; for at most 1 s more \\(--barrier-timeout\\)"

# A port that another agent has reserved, and nobody listens on yet.
"${agent[@]}" --master-port "$free" -- sh -c 'echo up; exec sleep 1000' \
    >first 2>&1 &
first=$!
until_true 20 grep -q up first
mistake 202 "--master-port $free is taken by another agent, pid $first \
\(agent\), which reserved it for its workers: give another one" \
    --master-port "$free" -- true
kill -TERM $first
wait $first
fresh first # It has "up" in it already.
if unshare -n true 2>/dev/null; then # Others may have the default port here.
    # shellcheck disable=SC2016
    unshare -n sh -c '"$1" -- sh -c "echo up; exec sleep 1000" >first 2>&1 &
        i=0; until grep -q up first; do sleep .05
        i=$((i + 1)); [ $i -lt 400 ] || exit 99; done
        "$1" -- true 2>err; "$1" -q -- true 2>quiet
        kill $!; wait $!; echo "$!" >pid' sh "${agent[@]}" </dev/null
    has "the default port: who has it is told" err "the default --master-port \
29500 is taken by another agent, pid $(cat pid) \(agent\), .*; the workers get"
    hasnt "... but not with -q" quiet 'taken'
else
    skip "the default port" "unshare -n is not permitted here"
fi

# Not an error, as each pod may be meant alone.
JOB_COMPLETION_INDEX=1 "${agent[@]}" -- true 2>err
is "an Indexed Job without --nnodes runs" $? 0
has "... and is warned" err 'warning: JOB_COMPLETION_INDEX=1, .*give --nnodes'
JOB_COMPLETION_INDEX=1 "${agent[@]}" --nnodes 1 -- true 2>err
hasnt "... but not where that is said" err 'warning'
