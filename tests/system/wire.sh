#!/usr/bin/env bash
# docs/wire.md has the frames as pods send them: what a pod and pod 0 say in a
# job in which everything happens is read by that document's tables.
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/pods.sh"
wire="python3 $top/tests/lib/wire.py"
doc=$top/docs/wire.md
head -c 32 /dev/urandom | base64 >"$T/token"
chmod 600 "$T/token"
body='echo up $TORCHELASTIC_RESTART_COUNT
      until [ -e '"$T"'/go ]; do
          [ $RANK = 1 ] && rm '"$T"'/fail 2>&- && { echo oops >&2; exit 3; }
          sleep .05
      done'
job=(--token-file "$T/token" --max-restarts 9/1h --restart-scope worker
    --pre-start true --offline)
work=(-- sh -c "$body")

# Pod 1 and all that is refused go through a relay.
python3 "$top/tests/lib/strangers.py" relay 0 "$barrier_port" "$T/wire" \
    >"$T/relay" &
relay_pid=$!
ok "the relay listens" until_true 30 grep -q . "$T/relay"
direct=$barrier_port relay=$(cat "$T/relay")
pod 0 3 "${job[@]}" "${work[@]}"
wait_for said 0 'node rank 0 arrived'
barrier_port=$relay
AGENT_TOKEN=another-one-it-has-not pod 2 3 -- true
ended 2
is "a wrong token" "$codes" 77
pod 1 3 "${job[@]}" "${work[@]}"
wait_for said 1 'waiting: '
barrier_port=$direct
# Who claims its rank, so that it is asked whether it lives.
timeout 60 "$agent" --nnodes 3 --node-rank 1 --master-addr 127.0.0.1 \
    --barrier-port "$direct" "${job[@]}" -- true 2>"$T/twin"
is "a rank that is claimed twice" $? 78
pod 2 3 "${job[@]}" "${work[@]}"
for r in 0 1 2; do wait_for wrote $r 'up 0'; done
touch "$T/fail"
wait_for wrote 1 'up 1' # It counts its own starts.
for r in 2 0; do
    kill -9 "$(agent_of $r)"
    ended $r
    pod $r 3 "${job[@]}" "${work[@]}"
    for other in 0 1 2; do wait_for wrote $other "up $((2 - r / 2))"; done
done
touch "$T/go"
ended 0 1 2
is "the job ends" "$codes" '0 0 0'
kill $relay_pid
wait $relay_pid 2>/dev/null

$wire "$doc" "$T"/wire.* >"$T/kinds" 2>"$T/wrong"
is "all frames are as documented" "$? $(cat "$T/wrong")" '0 '
is "of all kinds" "$(cat "$T/kinds")" "$(sed -n '/^| 1 | HELLO/,/^$/p' "$doc" |
    cut -d' ' -f4 | tr '\n' ' ' | sed 's/ *$//')"
is "so is the example" "$($wire "$doc")" HELLO
# Else the fuzzer would begin with frames that are all refused.
corpus=("$top"/tests/fuzz/corpus/wire/[!h]* "$top/tests/fuzz/corpus/wire/hello")
is "so are the inputs of the fuzzer" "$($wire "$doc" "${corpus[@]}")" \
    "$(cat "$T/kinds")"
# In each table one field has another width: that would be seen.
for row in '24 | 1 | 1: another' '12 | 8 | milliseconds since' '2 | 1 | signal'
do
    sed "s/| ${row% | *} | ${row##* | }/| ${row%% *} | 2 | ${row##* | }/" \
        "$doc" >"$T/doc.md"
    ok "the document has it wrong: $row" bash -c \
        "! cmp -s '$doc' '$T/doc.md' && ! $wire '$T/doc.md' $T/wire.*"
done
