#!/usr/bin/env bash
# The job's token: who has it joins, who has not is refused alone; it is seen
# nowhere.
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/pods.sh"
strangers="python3 $top/tests/lib/strangers.py"
secret="correct horse battery staple $$" # No other test's: ps shows all.
umask 077
echo "$secret" >"$T/token"
printf %s "$secret" >"$T/token2" # The same without a newline.
echo "correct horse battery staple x$$" >"$T/wrong"

# The same token, however it is given; nothing of it is ever seen.
$strangers relay 0 "$barrier_port" "$T/wire" >"$T/relay" &
relay_pid=$!
ok "the relay listens" until_true 30 grep -q . "$T/relay"
relay_port=$(cat "$T/relay")
body='env; tr "\0" "\n" </proc/$PPID/environ; tr "\0" " " </proc/$PPID/cmdline
      cat /proc/[0-9]*/cmdline 2>/dev/null | tr "\0" " "
      echo up; while [ ! -e '"$T"'/go ]; do sleep .05; done'
AGENT_TOKEN=$secret pod 0 2 -vv -- sh -c "$body"
timeout -k 5 120 "$agent" --nnodes 2 --node-rank 1 --master-addr 127.0.0.1 \
    --barrier-port "$relay_port" -vv --token-file "$T/token2" \
    -- sh -c "$body" >"$T/pod1.out" 2>"$T/pod1.err" </dev/null &
pod_pid[1]=$!
wait_for wrote 0 'up$'
wait_for wrote 1 'up$'
touch "$T/go"
ended 0 1
is "a variable here, a file there: the same token" "$codes" '0 0'
cat "$T"/wire.*.up "$T"/wire.*.down >"$T/on_the_wire"
ok "pods talked through the relay" test -s "$T/on_the_wire"
for f in on_the_wire pod0.err pod1.err pod0.out pod1.out; do
    ok "the token is not in $f" bash -c "! grep -aqF 'staple $$' '$T/$f'"
done
hasnt "no variable of it reaches a worker" "$T/pod0.out" \
    '^\[rank0\] AGENT_TOKEN=.'
hasnt "nor of the file" "$T/pod1.out" '^(\[rank1\] )?AGENT_TOKEN'
hasnt "with a token nothing is said of an open barrier" "$T/pod0.err" 'no token'
kill $relay_pid
wait $relay_pid 2>/dev/null

# What was recorded is worth nothing later; a pod made from docs/wire.md is.
next_job
pod 0 2 --token-file "$T/token" -- true
wait_for said 0 'node rank 0 arrived'
$strangers replay "$barrier_port" "$(ls "$T"/wire.*.up | head -n 1)" \
    >"$T/replay"
is "a recorded handshake is challenged anew" "$(sed -n 1p "$T/replay")" \
    CHALLENGE
has "and refused" "$T/replay" '^REFUSE 77 node rank 1 .*wrong token'
$strangers pod "$barrier_port" "$secret" reflect >"$T/reflect"
has "pod 0's own kind of proof is refused" "$T/reflect" '^REFUSE 77'
$strangers pod "$barrier_port" 'wrong' >"$T/py"
has "a wrong proof is refused" "$T/py" '^REFUSE 77'
$strangers pod "$barrier_port" "$secret" >"$T/py"
is "another program with the token is admitted" "$(tr '\n' ' ' <"$T/py")" \
    'CHALLENGE PROOF pod 0 has the token WELCOME '
pod 1 2 --token-file "$T/token" -- true
ended 0 1
is "the job goes on after all that" "$codes" '0 0'

# A wrong token ends that pod alone, before and after the start.
next_job
pod 0 2 --token-file "$T/token" -- sh -c \
    'echo up; while [ ! -e '"$T"'/go2 ]; do sleep .05; done'
pod 1 2 --token-file "$T/wrong" -- echo ran
ended 1
is "a wrong token: 77" "$codes" 77
has "it is told so" "$T/pod1.err" \
    'refuses this pod: node rank 1 .* wrong token; give all pods the same'
has "pod 0 says who it was" "$T/pod0.err" \
    'warning: refused 127.0.0.1:[0-9]+: node rank 1 .* wrong token'
is "its workers never ran" "$(cat "$T/pod1.out")" ''
pod 1 2 -- echo ran
ended 1
is "no token where the job has one: 77" "$codes" 77
has "which says what is missing" "$T/pod1.err" \
    'node rank 1 .* has no token, and node rank 0 has one'
pod 1 2 --token-file "$T/token" -- sh -c \
    'echo up; while [ ! -e '"$T"'/go2 ]; do sleep .05; done'
wait_for wrote 1 up
timeout 60 "$agent" --nnodes 2 --node-rank 1 --master-addr 127.0.0.1 \
    --barrier-port "$barrier_port" --token-file "$T/wrong" -- true \
    2>"$T/late.err"
is "a late one with a wrong token" "$?" 77
touch "$T/go2"
ended 0 1
is "the job was not disturbed" "$codes" '0 0'
next_job
pod 0 2 --barrier-timeout 30s -- true
pod 1 2 --token-file "$T/token" -- echo ran
ended 1
is "a token where the job has none: 77" "$codes" 77
has "which says so" "$T/pod1.err" \
    'node rank 1 .* has a token, and node rank 0 has none'
is "the open barrier is told once" "$(grep -c 'no token: whoever reaches' \
    "$T/pod0.err")" 1
pod 1 2 -- true
ended 0 1
is "and that job goes on as well" "$codes" '0 0'

# Somebody else at pod 0's address.
for how in welcome challenge mirror refuse; do
    next_job
    fresh "$T/zero"
    $strangers zero "$barrier_port" $how >"$T/zero" &
    zero_pid=$!
    until_true 30 grep -q ready "$T/zero"
    pod 1 2 --token-file "$T/token" -- echo ran
    ended 1
    wait $zero_pid
    is "a pod 0 without the token ($how): 77" "$codes" 77
    has "it is named ($how)" "$T/pod1.err" \
        "node rank 0 at 127.0.0.1:$barrier_port (does not prove|refuses)"
    is "no worker ran ($how)" "$(cat "$T/pod1.out")" ''
done

# Pods that are lost prove it again when they come back; so does a new pod 0.
next_job
body='echo "up $TORCHELASTIC_RESTART_COUNT"
      while [ ! -e '"$T"'/go3.$TORCHELASTIC_RESTART_COUNT ]; do sleep .05; done'
for r in 0 1; do pod $r 2 --token-file "$T/token" -- sh -c "$body"; done
for r in 0 1; do wait_for wrote $r 'up 0'; done
kill -9 "$(agent_of 1)"
wait_for said 0 'node rank 1 .* did not come back within 2 s'
pod 1 2 --token-file "$T/token" -- sh -c "$body"
for r in 0 1; do wait_for wrote $r 'up 1'; done
kill -9 "$(agent_of 0)"
wait_for said 1 'node rank 0 at .*: connection refused'
pod 0 2 --token-file "$T/token" -- sh -c "$body"
for r in 0 1; do wait_for wrote $r 'up 2'; done
touch "$T/go3.2"
ended 0 1
is "lost pods come back with a token" "$codes" '0 0'

# What is no token, and what is worth a warning.
# fails NAME CODE REGEX ENV... -- ARGS...
fails()
{
    local name=$1 code=$2 words=$3
    shift 3
    env "$@" >"$T/fails.out" 2>&1
    is "$name: $code" "$?" "$code"
    has "$name is named" "$T/fails.out" "$words"
}
: >"$T/empty"
head -c 4097 /dev/zero | tr '\0' x >"$T/long"
fails "a missing file" 66 'token-file .*missing: No such file' \
    "$agent" --token-file "$T/missing" -- true
fails "an empty file" 64 'empty: the token is empty' \
    "$agent" --token-file "$T/empty" -- true
fails "a long file" 64 'longer than 4096 bytes' \
    "$agent" --token-file "$T/long" -- true
fails "an empty variable" 64 'AGENT_TOKEN: the token is empty' \
    AGENT_TOKEN= "$agent" -- true
fails "a variable of another name" 64 'did you mean AGENT_TOKEN' \
    AGENT_TOKNE=x "$agent" -- true
AGENT_TOKEN_FILE=$T/token "$agent" -- true 2>"$T/one.err"
is "the file's name may come from the environment" "$?" 0
"$agent" --token-file <(echo "$secret") -- true 2>"$T/one.err"
is "a pipe will do" "$?" 0
hasnt "one pod alone has no barrier to speak of" "$T/one.err" 'no token|token'
chmod 644 "$T/token"
"$agent" --token-file "$T/token" -- true 2>"$T/open.err"
has "a file for everyone is worth a warning" "$T/open.err" \
    'warning: .*token may be read by every user \(mode 0644\)'
AGENT_TOKEN=short "$agent" -- true 2>"$T/short.err"
has "so is a short token" "$T/short.err" 'warning: .*shorter than 16 bytes'
hasnt "which is not repeated there" "$T/short.err" ' short '
"$agent" --help | grep -A 2 -e --token-file | tr -d '\n' >"$T/help"
has "the help knows it" "$T/help" 'token-file PATH .*AGENT_TOKEN'
