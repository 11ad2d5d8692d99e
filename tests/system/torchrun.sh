#!/usr/bin/env bash
# The torchrun command line, without PyTorch; scripts/check-torch has it beside
# the real one.
# shellcheck disable=SC2016 # the workers' shell expands it
. "$(dirname "$0")/../lib/tap.sh"
export TMPDIR=$T/tmp
mkdir "$TMPDIR"
d=$T/logs

run()
{
    rm -rf "$d"
    timeout -k 5 60 "$agent" torchrun "$@" >"$T/out" 2>"$T/err" </dev/null
    rc=$?
}
sh_run() { run --no-python "${@:1:$#-1}" sh -c "${@: -1}"; }
all() { sort "$T/out" | tr '\n' ' '; }
# tree DIR: its files, without the random part of the first folder.
tree() { (cd "$1" && find . -mindepth 1 | sed -E 's/_[A-Za-z0-9]{6}(\/|$)/_R\1/' |
    sort | tr '\n' ' '); }

# --- Python -------------------------------------------------------------------
cat >"$T/say.py" <<'END'
import sys
print(sys.orig_argv[1:], __name__)
END
run "$T/say.py" -x --nnodes 3
is "a script runs under python -u, the rest is its own" "$rc $(cat "$T/out")" \
    "0 ['-u', '$T/say.py', '-x', '--nnodes', '3'] __main__"
(cd "$T" && run -m say a; cat "$T/out" >"$T/m")
has "-m runs a module" "$T/m" "'-u', '-m', 'say', 'a'.* __main__"
run --run-path "$T/say.py" b
has "--run-path" "$T/out" "say.py', 'b'\\] __main__"
sh_run 'echo "$0 $LOCAL_RANK"'
is "--no-python runs a program" "$(cat "$T/out")" 'sh 0'
# fake NAME: a Python that says which one it is.
fake()
{
    mkdir -p "$(dirname "$1")"
    printf '#!/bin/sh\necho "%s"\n' "${1#"$T/"}" >"$1"
    chmod +x "$1"
}
fake "$T/exec/py"
fake "$T/venv/bin/python"
fake "$T/conda/bin/python3"
fake "$T/path/python3"
fake "$T/site/python"
mkdir "$T/none"
for tool in rm timeout; do
    ln -s "$(command -v $tool)" "$T/none"
    ln -s "$(command -v $tool)" "$T/path"
done
which() { cat "$T/out"; }
export PATH=$T/path:$PATH
PYTHON_EXEC=$T/exec/py VIRTUAL_ENV=$T/venv run x
is "PYTHON_EXEC comes first" "$(which)" exec/py
VIRTUAL_ENV=$T/venv CONDA_PREFIX=$T/conda run x
is "then the virtual environment" "$(which)" venv/bin/python
CONDA_PREFIX=$T/conda run x
is "then conda's" "$(which)" conda/bin/python3
PATH=$T/path run x
is "then the first in PATH" "$(which)" path/python3
PYTHON_EXEC=path/../python3 PATH=$T/path:$PATH run x
is "PYTHON_EXEC is taken as it is" "$rc" 127
PYTHON_EXEC=python3 run x
is "PYTHON_EXEC may be in PATH" "$(which)" path/python3
mkdir "$T/site/bin"
mv "$T/site/python" "$T/site/bin"
ln -s "$agent" "$T/site/bin/torchrun"
"$T/site/bin/torchrun" x >"$T/out" 2>"$T/err"
is "called torchrun, the one beside it" "$(which)" site/python
VIRTUAL_ENV=$T/venv "$T/site/bin/torchrun" x >"$T/out" 2>"$T/err"
is "but not before the environment's" "$(which)" venv/bin/python
: >"$T/site/pyvenv.cfg"
VIRTUAL_ENV=$T/venv "$T/site/bin/torchrun" x >"$T/out" 2>"$T/err"
is "unless it is of one itself" "$(which)" site/python
VIRTUAL_ENV=$T/venv PATH=$T/site/bin:$PATH torchrun x >"$T/out" 2>"$T/err"
is "also where it is found in PATH" "$(which)" site/python
PATH=$T/none run x
is "no Python: 127" "$rc" 127
has "and what to do" "$T/err" 'set PYTHON_EXEC, or give --no-python'
PATH=${PATH#"$T/path:"}

# --- environment --------------------------------------------------------------
sh_run --nproc-per-node 2 --max-restarts 2 --role r \
    'echo $ROLE_NAME$RANK $LOCAL_RANK $WORLD_SIZE $OMP_NUM_THREADS \
        $TORCHELASTIC_MAX_RESTARTS $TORCHELASTIC_SIGNALS_TO_HANDLE'
is "the workers' environment" "$(all)" \
    "r0 0 2 1 2 SIGTERM,SIGINT,SIGHUP,SIGQUIT \
r1 1 2 1 2 SIGTERM,SIGINT,SIGHUP,SIGQUIT "
run --nproc-per-node 2 --no-python echo '${local_rank}' '$local_rank$$x' \
    '$RANK ${rank} $'
is "a template in the arguments" "$(all)" \
    '0 0$x $RANK ${rank} $ 1 1$x $RANK ${rank} $ '
AGENT_EXPAND=1 run --no-python echo '${local_rank}:{role}'
is "and macros, where they are asked for" "$(all)" '0:default '
sh_run 'echo "${OMP_NUM_THREADS-unset} $TORCHELASTIC_RUN_ID"'
has "one worker: no OMP_NUM_THREADS, and a random id" "$T/out" \
    '^unset [0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$'
CUDA_VISIBLE_DEVICES=7,GPU-b sh_run --virtual-local-rank --nproc-per-node 2 \
    'echo $RANK $LOCAL_RANK $CUDA_VISIBLE_DEVICES ${TORCHELASTIC_ERROR_FILE##*attempt}'
is "--virtual-local-rank" "$(all)" \
    '0 0 7 _0/0/error.json 1 0 GPU-b _0/1/error.json '
CUDA_VISIBLE_DEVICES=7 sh_run --virtual-local-rank --nproc-per-node 2 true
is "--virtual-local-rank: fewer devices than workers" "$rc" 64
PET_NPROC_PER_NODE=2 PET_ROLE=e PET_STANDALONE='' sh_run 'echo $ROLE_NAME$RANK'
is "PET_*" "$(all)" 'e0 e1 '
AGENT_ROLE=no AGENT_NPROC=3 AGENT_LOG_TIMESTAMPS=1 AGENT_JOB_ID=no \
    sh_run --rdzv-id j --master-port "$(free_port)" --tee 1 --log-dir "$d" \
    'echo $TORCHELASTIC_RUN_ID'
has "AGENT_*: where torchrun has no such option" "$T/out" \
    '^2[0-9-]*T[0-9:.]*Z \[default0\]:j$'

# --- output and files -----------------------------------------------------------
two='echo out$RANK; echo err$RANK >&2'
sh_run --nproc-per-node 2 "$two"
is "plain: no prefix" "$(all)" 'out0 out1 '
is "and no folder" "$(ls "$TMPDIR")" ''
sh_run --nproc-per-node 2 --tee 3 --log-dir "$d/new" --rdzv-id j \
    --master-port "$(free_port)" "$two"
is "--tee: a prefix" "$(all)" '[default0]:out0 [default1]:out1 '
has "of stderr, too" "$T/err" '^\[default1\]:err1$'
is "--tee: the files" "$(tree "$d/new")" "./j_R ./j_R/attempt_0 \
./j_R/attempt_0/0 ./j_R/attempt_0/0/stderr.log ./j_R/attempt_0/0/stdout.log \
./j_R/attempt_0/1 ./j_R/attempt_0/1/stderr.log ./j_R/attempt_0/1/stdout.log "
is "--tee: raw" "$(cat "$d"/new/j_*/attempt_0/1/stdout.log)" out1
sh_run --nproc-per-node 2 -r 0:1 -t 1:2 --log-dir "$d" "$two"
is "by local rank: the console" "$(all)" 'out1 '
has "by local rank: stderr" "$T/err" '^err0$'
has "by local rank: teed stderr" "$T/err" '^\[default1\]:err1$'
is "by local rank: the files" "$(cd "$d"/*/attempt_0 && echo */*)" \
    '0/stdout.log 1/stderr.log'
sh_run --nproc-per-node 2 --local-ranks-filter 1 -t 1 --log-dir "$d" "$two"
is "--local-ranks-filter" "$(all)" '[default1]:out1 '
hasnt "--local-ranks-filter: what is not teed, too" "$T/err" '^err0$'
is "--local-ranks-filter: all files" "$(cat "$d"/*/attempt_0/*/stdout.log |
    tr '\n' ' ')" 'out0 out1 '
TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE='${rank}/$role_name|' \
    sh_run --tee 1 --log-dir "$d" "$two"
is "the template of the prefix" "$(cat "$T/out")" '0/default|out0'
sh_run --nproc-per-node 2 -t 3 --log-dir "$d" \
    --duplicate-stdout-filters 'ap,,ple,default' \
    'echo "ap,ple $RANK"; echo "apple $RANK"; echo ap,ple >&2'
is "--duplicate-stdout-filters" "$(sort "$d"/*/attempt_0/filtered_stdout.log |
    tr '\n' ' ')" '[default0]:ap,ple 0 [default1]:ap,ple 1 '
ok "--duplicate-stdout-filters: of stdout alone" test ! -e \
    "$(echo "$d"/*/attempt_0)/filtered_stderr.log"
sh_run -r 3 "$two"
is "without --log-dir: a folder in TMPDIR" "$(tree "$TMPDIR"/torchelastic_*/ |
    tr ' ' '\n' | grep -c 'std...\.log$')" 2
has "and where is said" "$T/err" "$TMPDIR/torchelastic_"
rm -rf "${TMPDIR:?}"/*
sh_run -t 3 --log-dir /dev/null 'echo "[$TORCHELASTIC_ERROR_FILE]"'
is "--log-dir /dev/null: no files, no prefix" "$(cat "$T/out") $(ls "$TMPDIR")" \
    '[] '
run -r 1 --log-dir /proc/none/x --no-python true
is "a folder that cannot be" "$rc" 202

# --- restarts and ends -----------------------------------------------------------
sh_run --max-restarts 2 -r 1 --log-dir "$d" \
    'echo $TORCHELASTIC_RESTART_COUNT; echo x >$TORCHELASTIC_ERROR_FILE; exit 7'
is "no restart is added, and the code is the worker's" \
    "$rc $(cat "$d"/*/attempt_*/0/stdout.log | tr '\n' ' ')" '7 0 1 2 '
is "error files stay" "$(cd "$d"/* && echo attempt_*/0/error.json)" \
    'attempt_0/0/error.json attempt_1/0/error.json attempt_2/0/error.json'
sh_run 'exit 7'
has "none by default" "$T/err" '0 of 0 restarts used'
AGENT_EXIT_MAP=worker=1 sh_run 'exit 7'
is "torchrun's own code, where that is wanted" "$rc" 1
# USR1 is the job's end where torchrun is to handle it.
timeout -k 5 60 "$agent" torchrun --signals-to-handle SIGTERM,SIGUSR1 \
    --no-python bash -c 'trap "echo saved; exit 0" USR1; : >"$0"
        while :; do sleep 0.05; done' "$T/ready" >"$T/out" 2>"$T/err" &
until_true 20 test -e "$T/ready"
pkill -USR1 -P $! -x agent
wait $!
is "--signals-to-handle: workers get it, and the job ends" \
    "$? $(cat "$T/out")" '138 saved'
run --rdzv-backend etcd x
is "etcd is refused" "$rc" 64
"$agent" torchrun --help >"$T/out"
has "help is of its own table" "$T/out" '^  -t, --tee STREAMS '

# --- pods --------------------------------------------------------------------------
# pods ARGS...: two, and then their codes.
pods()
{
    local pid=()
    for i in 0 1; do
        timeout -k 5 60 "$agent" torchrun "$@" >"$T/pod$i.out" \
            2>"$T/pod$i.err" </dev/null &
        pid+=($!)
    done
    codes=
    for p in "${pid[@]}"; do
        wait "$p"
        codes="$codes$? "
    done
}
port=$(free_port)
pods --nnodes 2 --nproc-per-node 2 --rdzv-backend c10d --rdzv-id p \
    --rdzv-endpoint "localhost:$port" --no-python sh -c \
    'echo $RANK $GROUP_RANK $WORLD_SIZE $GROUP_WORLD_SIZE $LOCAL_RANK'
is "c10d: ranks by arrival" "$codes$(sort "$T"/pod?.out | tr '\n' ' ')" \
    '0 0 0 0 4 2 0 1 0 4 2 1 2 1 4 2 0 3 1 4 2 1 '
port=$(free_port)
pods --nnodes 1:2 --rdzv-backend c10d --rdzv-endpoint "localhost:$port" \
    --rdzv-conf last_call_timeout=30 --no-python sh -c 'echo $WORLD_SIZE'
is "c10d: MIN:MAX" "$codes$(sort "$T"/pod?.out | tr '\n' ' ')" '0 0 2 2 '
timeout 60 "$agent" torchrun --nnodes 1:2 --rdzv-backend c10d --rdzv-endpoint \
    "localhost:$(free_port)" --rdzv-conf last_call_timeout=1 --no-python sh -c \
    'echo $WORLD_SIZE' >"$T/out" 2>"$T/err"
is "c10d: MIN alone, after the last call" "$? $(cat "$T/out")" '0 1'
port=$(free_port)
for i in 0 1; do
    PET_NODE_RANK=$i timeout -k 5 60 "$agent" torchrun --nnodes 2 \
        --master-addr 127.0.0.1 --master-port "$port" --no-python sh -c \
        'echo $RANK $MASTER_ADDR:$MASTER_PORT' >"$T/pod$i.out" \
        2>"$T/pod$i.err" &
done
wait
is "static: ranks are given" "$(cat "$T"/pod?.out | tr '\n' ' ')" \
    "0 127.0.0.1:$port 1 127.0.0.1:$port "
