#!/usr/bin/env bash
# One pod: ranks, environment, restarts, exit codes, verdict.
. "$(dirname "$0")/../lib/tap.sh"
fast=(--restart-backoff 10ms:50ms)

run() { timeout -k 5 60 "$agent" "$@" >"$T/out" 2>"$T/err" </dev/null; rc=$?; }

# One file for any image.
is "agent is a static pie" "$(readelf -dW "$agent" | grep -cE 'NEEDED|PIE')" 1
# src/agent/start.ld: what a start runs, of ours and of libc.
start=$(readelf -SW "$agent" | sed -n 's/.*\.text\.start *PROGBITS *\([0-9a-f]*\) [0-9a-f]* \([0-9a-f]*\) .*/\1 \2/p')
is "what a start runs lies together" "$(nm "$agent" | while read -r at _ name; do
    case $name in main | plan_make | contract_env | malloc)
        [ $((0x$at - 0x${start% *})) -lt $((0x${start#* })) ] && echo $name ;;
    esac
done | sort | tr '\n' ' ')" "contract_env main malloc plan_make "
is "that needs no loader" "$(readelf -lW "$agent" | grep -c INTERP)" 0
strip -o "$T/stripped" "$agent"
ok "and is under 2.5 MB, stripped" \
    test "$(stat -c %s "$T/stripped")" -lt 2500000

# The example of the README: rank 2 fails in every attempt.
run --nproc 4 "${fast[@]}" -- sh -c \
    'echo $RANK $LOCAL_RANK $WORLD_SIZE; [ $RANK != 2 ] || { sleep .3; exit 1; }
     exec sleep 60'
is "a failing rank's code is agent's" "$rc" 1
is "four lines an attempt, four attempts" "$(wc -l <"$T/out")" 16
is "the lines of rank 3" "$(grep -c '^\[rank3\] 3 3 4$' "$T/out")" 4
has "the verdict names the rank" "$T/err" 'exit code 1: rank 2 '
has "and the restarts" "$T/err" '3 of 3 restarts'
is "the verdict is the last word" \
    "$(grep -c 'error: ' "$T/err")" 1
run --nproc 4 "${fast[@]}" -- sh -c \
    '[ $RANK != 2 ] || { sleep .1; kill -9 $$; }; exec sleep 60'
is "killed by SIGKILL is 137" "$rc" 137
has "and the verdict says SIGKILL" "$T/err" 'rank 2 .*SIGKILL'

for code in 1 3 42 255; do
    run --max-restarts 0 -- sh -c "exit $code"
    is "exit $code" "$rc" $code
done
for sig in 1 2 6 7 8 9 11 15; do
    run --max-restarts 0 -- sh -c "kill -$sig \$\$"
    is "death by signal $sig" "$rc" $((128 + sig))
done
run --nproc 3 -- true
is "all workers end with 0" "$rc" 0
has "success is said" "$T/err" 'finished: all 3 workers'

run --nproc 2 -- "$T/missing"
is "a missing command is 127" "$rc" 127
hasnt "and is not tried again" "$T/err" 'round 1'
echo 'echo hi' >"$T/plain"
run -- "$T/plain"
is "a file without x is 126" "$rc" 126
printf '#!/no/such/interpreter\n' >"$T/script"
chmod +x "$T/script"
run -- "$T/script"
is "a missing interpreter is 127" "$rc" 127
has "and is explained" "$T/err" 'interpreter'
run --no-restart-on 2,77 "${fast[@]}" -- sh -c 'echo start; exit 77'
is "--no-restart-on keeps the code" "$rc" 77
is "--no-restart-on starts once" "$(grep -c start "$T/out")" 1
run --restart-policy never "${fast[@]}" -- sh -c 'echo start; exit 9'
is "--restart-policy never starts once" "$rc $(grep -c start "$T/out")" '9 1'
run --restart-policy exit-code "${fast[@]}" -- sh -c 'echo start; exit 9'
is "exit-code: below 128 is permanent" "$rc $(grep -c start "$T/out")" '9 1'
run --restart-policy exit-code --max-restarts 1 "${fast[@]}" -- \
    sh -c 'echo start; exit 200'
is "exit-code: from 128 on is retried" "$rc $(grep -c start "$T/out")" '200 2'
run --restart-policy always --max-restarts 2 "${fast[@]}" -- sh -c 'echo start'
is "always: restarts after success, too" "$rc $(grep -c start "$T/out")" '0 3'
is "and says why, and not that it stops what has ended" "$(grep -c \
    '\]: all workers ended with 0, and .* is always; next round' "$T/err")" 2
run --max-restarts 1 "${fast[@]}" -- sh -c 'exit 9'
has "one worker: no other is stopped for it" "$T/err" \
    'exited with 9 .* in round 0; next round in '
run --grace 0 --max-restarts 0 --nproc 2 -- sh -c 'trap "" TERM
    if [ $RANK = 1 ]; then : >"'"$T"'/up"; while :; do sleep 1; done; fi
    until [ -e "'"$T"'/up" ]; do sleep .05; done; exit 5'
is "--grace 0 kills at once" "$rc" 5
hasnt "and nobody is warned of what was asked for" "$T/err" 'warning: .*grace'

# The contract of torchrun.
port=$(free_port)
run --nproc 2 --job-id j7 --max-restarts 5 --master-port "$port" -- sh -c '
    [ $RANK = 1 ] || exit 0
    echo "$RANK $LOCAL_RANK $WORLD_SIZE $LOCAL_WORLD_SIZE $GROUP_RANK"
    echo "$GROUP_WORLD_SIZE $ROLE_NAME $ROLE_RANK $ROLE_WORLD_SIZE"
    echo "$MASTER_ADDR:$MASTER_PORT $TORCHELASTIC_RUN_ID"
    echo "$TORCHELASTIC_RESTART_COUNT/$TORCHELASTIC_MAX_RESTARTS"
    echo "$TORCHELASTIC_USE_AGENT_STORE $PYTHONUNBUFFERED"
    echo "$TORCH_NCCL_ASYNC_ERROR_HANDLING $AGENT_PROCESS_INDEX"
    [ "$OMP_NUM_THREADS" -ge 1 ] && [ -d "${TORCHELASTIC_ERROR_FILE%/*}" ] &&
        echo fine'
is "the torch contract" "$(sed 's/^\[rank1\] //' "$T/out" | tr '\n' ';')" \
    "1 1 2 2 0;1 rank 1 2;127.0.0.1:$port j7;0/5;False 1;1 1;fine;"
run --nproc 1 "${fast[@]}" --max-restarts 1 -- sh -c \
    'echo $TORCHELASTIC_RESTART_COUNT $TORCHELASTIC_ERROR_FILE; exit 1'
is "the round counts up" "$(cut -d' ' -f2 "$T/out" | tr '\n' ' ')" '0 1 '
is "a fresh error file each" "$(cut -d' ' -f3 "$T/out" | sort -u | wc -l)" 2
is "nothing is left of it" \
    "$(cut -d' ' -f3 "$T/out" | xargs -n1 dirname | xargs ls -d 2>/dev/null)" ''
OMP_NUM_THREADS=7 AGENT_GRACE=3s run -- sh -c \
    'echo $OMP_NUM_THREADS "${AGENT_GRACE-none}"; env | grep -c ^AGENT_COOKIE='
is "set values stay, option variables go" \
    "$(sed 's/^\[rank0\] //' "$T/out" | tr '\n' ' ')" '7 none 1 '
exec 9<"$0"
run -- sh -c 'ls /proc/self/fd | tr "\n" " "; readlink /proc/self/fd/0'
exec 9<&-
is "no descriptor leaks to a worker" \
    "$(sed 's/^\[rank0\] //' "$T/out")" '0 1 2 3 /dev/null'
run --log-prefix '<{role}:{rank}/{world_size}> ' --role w -- echo hi
is "--log-prefix" "$(cat "$T/out")" '<w:0/1> hi'
run --log-prefix none -- printf 'no newline'
is "--log-prefix none, last line completed" "$(cat "$T/out")" 'no newline'

# The termination log: short, the cause first, never a reason to fail.
run --max-restarts 0 --termination-log "$T/log" -- sh -c \
    'seq 1 5000 >&2; echo last words >&2; exit 3'
is "the code is kept" "$rc" 3
has "the cause is in the first line" <(head -n1 "$T/log") 'exit code 3: rank 0'
has "the last words are there" "$T/log" 'last words'
ok "at most 4096 bytes" test "$(wc -c <"$T/log")" -le 4096
run --termination-log /no/such/folder/log -- true
is "a termination log that cannot be written is no failure" "$rc" 0

(ulimit -n 64; timeout 20 "$agent" --nproc 64 -- true 2>"$T/err")
has "too few descriptors are named" "$T/err" \
    'could not be started in round|descriptor limit'

run --nprocs 4 -- true
is "an unknown option is 64" "$rc" 64
has "with the nearest name" "$T/err" 'nproc'
run
is "no command is 64" "$rc" 64
cp "$agent" "$T/agent" # Alone in its folder, and no tool in PATH.
PATH=/usr/bin:/bin timeout 60 "$T/agent" fetch x 2>"$T/err"
is "a tool that is missing is 127" $? 127
has "and says what is missing" "$T/err" 'agent-fetch'

for words in --version --help env "env --json" "status --help" "fetch --help"; do
    # shellcheck disable=SC2086 # Words.
    "$agent" $words >/dev/full 2>"$T/err"
    is "agent $words to a full disk is 202" $? 202
    has "and it is said ($words)" "$T/err" 'No space left|cannot be written'
done
