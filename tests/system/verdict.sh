#!/usr/bin/env bash
# The verdict: who was first, what its last words were, and where it is written.
. "$(dirname "$0")/../lib/tap.sh"

run() { timeout -k 5 60 "$agent" "$@" >"$T/out" 2>"$T/err" </dev/null; rc=$?; }

# torch's error file, in all forms in which it was seen.
cat >"$T/w.py" <<'P'
import json, os, sys
path, how = os.environ["TORCHELASTIC_ERROR_FILE"], sys.argv[1]
stack = ('Traceback (most recent call last):\n  File "/app/train.py", line 12, '
         'in main\n    loss(x)\nValueError: loss is nan\n')
inner = {"message": "ValueError: loss is nan",
         "extraInfo": {"py_callstack": stack, "timestamp": "1700000000"}}
text = json.dumps({"message": inner})
if how == "2":
    text = json.dumps({"message": "plain words", "timestamp": 5})
if how == "cut":
    text = text[:50]
if how == "huge":
    inner["extraInfo"]["py_callstack"] = "x" * 10_000_000
    text = json.dumps({"message": inner})
if how == "none":
    text = None
if how == "noise":
    text = "\x01{{[\"" * 99
if how == "fifo":
    os.mkfifo(path)
    text = None
if how == "child":
    inner["message"] = "a.b.errors.ChildFailedError: \n==="
    text = json.dumps({"message": inner})
if text:
    with open(path, "w") as f:
        f.write(text)
print("words on stderr", file=sys.stderr)
sys.exit(3)
P
file() # FORM REGEX: what the verdict says of it
{
    TORCHELASTIC_ERROR_FILE=$T/own.json run --max-restarts 0 \
        --report "$T/r.json" -- python3 "$T/w.py" "$1"
    is "P27: $1: the code" "$rc" 3
    has "P27: $1" "$T/err" "$2"
}
own() { python3 -c "import json; print(json.load(open('$T/own.json'))$1)"; }
file 1 '^agent\[0\]:   ValueError: loss is nan$'
has "P27: 1: with the frame" "$T/err" 'File "/app/train.py", line 12, in main'
hasnt "P27: 1: instead of stderr" "$T/err" '^agent.*words on stderr'
is "P27: 1: it is agent's own, with the code" \
    "$(own '["message"]["errorCode"]') $(own '["message"]["message"]')" \
    '3 ValueError: loss is nan'
file 2 '^agent\[0\]:   plain words$'
is "P27: 2: it is agent's own" "$(own '["message"]')" 'plain words'
rm "$T/own.json"
file cut '^agent\[0\]:   ValueError: loss is n'
file huge '^agent\[0\]:   ValueError: loss is nan$'
is "P27: huge: handed on whole" "$(own '["message"]["errorCode"]')" 3
rm "$T/own.json"
for form in none noise fifo child; do
    file $form '^agent\[0\]:   words on stderr$'
done
ok "P27: fifo: nothing is handed on" test ! -e "$T/fifo.json"

# A launcher inside: its box is no cause.
cat >"$T/box.sh" <<'B'
echo 'ValueError: the real one' >&2
cat >&2 <<'X'
E1128 07:00:00.2 12 torch/distributed/elastic/multiprocessing/api.py:874] failed (exitcode: 1) local_rank: 0 (pid: 13) of binary: /usr/bin/python
Traceback (most recent call last):
  File "/usr/bin/torchrun", line 8, in <module>
    sys.exit(main())
torch.distributed.elastic.multiprocessing.errors.ChildFailedError: 
============================================================
train.py FAILED
------------------------------------------------------------
Failures:
  <NO_OTHER_FAILURES>
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  exitcode  : 1 (pid: 13)
============================================================
X
exit 1
B
run --max-restarts 0 -- sh "$T/box.sh"
has "box: the last words are the worker's" "$T/err" \
    '^agent\[0\]:   ValueError: the real one$'
hasnt "box: not the launcher's" "$T/err" \
    '^agent.*(FAILED|ChildFailed|Root Cause|exitcode)'

# Who died first, though both are reaped together: rank 3, then rank 0.
cat >"$T/order.sh" <<'B'
: >ready$RANK
stopped() { grep -q "T (stopped)" /proc/$PPID/status; }
dead() { [ "$(ps --ppid $PPID -o stat= | grep -c Z)" -ge $1 ]; }
case $RANK in
3) until stopped; do sleep .01; done; exit 33 ;;
0) until [ -e one ]; do sleep .01; done; exit 30 ;;
1) until [ -e ready0 ] && [ -e ready3 ]; do sleep .01; done
    kill -STOP $PPID
    until dead 1; do sleep .01; done
    : >one
    until dead 2; do sleep .01; done
    kill -CONT $PPID ;;
esac
exec sleep 60
B
(cd "$T" && run --nproc 4 --max-restarts 0 -- sh "$T/order.sh"; exit "$rc")
is "order: who died first is the cause" "$?" 33
has "order: and named" "$T/err" 'exit code 33: rank 3 '

# The report.
member() { python3 -c "import json; print(json.load(open('$T/r.json'))$1)"; }
# A worker that wrote nothing: that is told, and not mistaken for a fault.
nothing='^agent\[0\]: it wrote nothing to stderr$'
run --max-restarts 0 --report "$T/r.json" -- sh -c 'echo out; exit 3'
has "nothing on stderr is told" "$T/err" "$nothing"
is "last" "$(tail -n 1 "$T/err")" 'agent[0]: it wrote nothing to stderr'
is "not in the report" "$(grep -c 'wrote nothing' "$T/r.json")" 0
run --max-restarts 1 --restart-backoff 1ms:1ms -- sh -c '
    [ $TORCHELASTIC_RESTART_COUNT = 1 ] || echo words >&2; exit 3'
has "of the last attempt alone" "$T/err" "$nothing"
run --max-restarts 0 --pre-start 'exit 4' -- true
has "of --pre-start, too" "$T/err" "$nothing"
run --max-restarts 0 -- sh -c 'echo words >&2; exit 3'
hasnt "not where there are words" "$T/err" 'wrote nothing'
run --max-restarts 0 -- "$T/no-such-file"
hasnt "nor where nothing ran" "$T/err" 'wrote nothing'
run -- true
hasnt "nor at a good end" "$T/err" 'wrote nothing'

run --nproc 2 --max-restarts 1 --restart-backoff 10ms:20ms --job-id j7 \
    --report "$T/r.json" -- sh -c \
    '[ $RANK = 1 ] || exec sleep 60; echo "a \"b\" \\" >&2; kill -9 $$'
is "report: the end" "$(member '["exit_code"]') $(member '["class"]') \
$(member '["restarts_used"]') $(member '["job_id"]')" '137 worker 1 j7'
is "report: the cause" "$(member '["cause"]["rank"]') \
$(member '["cause"]["signal"]') $(member '["cause"]["round"]')" '1 SIGKILL 1'
is "report: the last lines" "$(member '["cause"]["stderr"]')" \
    "['a \"b\" \\\\']"
is "report: nothing else is left there" "$(cd "$T" && echo r.json*)" r.json
python3 - "$T/r.json" "$top/docs/report.md" >"$T/members" <<'P'
import json, re, sys
r = json.load(open(sys.argv[1]))
known = set(re.findall(r"`([a-z_]+)`", "\n".join(
    line.split("|")[1] for line in open(sys.argv[2]) if line[:2] == "| ")))
print(sorted((set(r) | set(r["cause"])) - known))
P
is "report: every member is in docs/report.md" "$(cat "$T/members")" '[]'
run --report "$T/r.json" -- true
is "report: success" "$(member '["exit_code"]') $(member '["class"]') \
$(member '["cause"]')" '0 ok None'
run --report "$T/r.json" --nproc gpu -- true
is "report: a fault before the job" "$(member '["class"]') \
$(member '["cause"]["kind"]') $(member '["world_size"]')" 'usage agent 0'
run --report "$T/r.json" --exit-map worker=9 --max-restarts 0 -- false
is "report: with --exit-map" \
    "$(member '["exit_code"]') $(member '["class_code"]')" '9 1'
# What is no plain file is written to, and never replaced.
mkfifo "$T/fifo"
exec 7<>"$T/fifo"
run --report "$T/fifo" -- true
is "report: a FIFO's reader gets it" "$(timeout 20 python3 -c 'import json, os
print(json.loads(os.read(7, 65536))["class"])')" ok
exec 7>&-
ok "report: and the FIFO stays one" test -p "$T/fifo"
run --report "$T/fifo" -- true
is "report: a FIFO that nobody reads is not waited for" "$rc" 0
has "report: which is said" "$T/err" 'report .*/fifo: No such device'
ln -s /dev/null "$T/null"
run --report "$T/null" -- true
is "report: a device stays one" "$(readlink "$T/null")" /dev/null
"$agent" -q --report /proc/self/fd/1 -- true >"$T/piped" 2>"$T/err"
has "report: a descriptor's file is where it goes" "$T/piped" '"class": ?"ok"'
"$agent" --report /dev/stdout --termination-log /dev/stderr --max-restarts 0 -- \
    sh -c 'echo words >&2; exit 6' >"$T/all" 2>&1 </dev/null
is "report: in the file of agent's own lines it has a place of its own" \
    "$(grep -c '^.rank0. words$' "$T/all") $(grep -c "^agent.*  words$" "$T/all"
    ) $(sed -n '/^{$/,/^}$/p' "$T/all" | python3 -c 'import json, sys
print(json.load(sys.stdin)["exit_code"])')" '1 1 6'
has "log: and that of the container, too" "$T/all" '^failed with exit code 6: .*'
ln -s r.json "$T/link"
run --report "$T/link" --max-restarts 0 -- sh -c 'exit 6'
is "report: a link stays one" "$(readlink "$T/link") $(member '["exit_code"]')" \
    'r.json 6'
ln -s new/r.json "$T/early"
mkdir "$T/new"
run --report "$T/early" -- true
is "report: also where what it names is yet to be made" \
    "$(readlink "$T/early") $(ls "$T/new")" 'new/r.json r.json'
# A pid comes again: in a container it is always the same one.
sh -c ': >"$0.$$.part"; exec "$@" --report "$0" -- true' "$T/again" "$agent" \
    >"$T/out" 2>"$T/err"
has "report: what a killed agent left is not in the way" "$T/again" '"class"'
is "report: and goes" "$(cd "$T" && echo again*)" again
TORCHELASTIC_ERROR_FILE=$T/null run --max-restarts 0 -- sh -c \
    'echo "{\"message\": \"told\"}" >"$TORCHELASTIC_ERROR_FILE"; exit 7'
is "error file: a device stays one, too" "$(readlink "$T/null")" /dev/null
hasnt "error file: and nothing is wrong" "$T/err" 'TORCHELASTIC_ERROR_FILE'
run --report /no/such/folder/r.json --max-restarts 0 -- sh -c 'exit 4'
is "report: where it cannot be written the code is the same" "$rc" 4
has "report: and that is said" "$T/err" '/no/such/folder/r.json: No such file'

# The termination log: valid, short, the cause first, before a job, too.
run --termination-log "$T/log" --max-restarts 0 -- sh -c \
    'head -c 20000 /dev/urandom >&2; printf "\n\377\303\n" >&2; exit 3'
ok "log: valid UTF-8" iconv -f utf-8 -t utf-8 "$T/log"
ok "log: at most 4096 bytes" test "$(wc -c <"$T/log")" -le 4096
has "log: the cause first" <(head -n1 "$T/log") 'exit code 3: rank 0'
run --termination-log "$T/log" --nproc gpu -- true
has "log: a fault before the job" "$T/log" \
    'exit code 64 \(usage\): --nproc gpu: no GPU'
