#!/usr/bin/env bash
# Lines of the workers: whole, in order, whoever reads them, or nobody.
. "$(dirname "$0")/../lib/tap.sh"
fast=(--restart-backoff 10ms:50ms)

run() { timeout -k 5 60 "$agent" "$@" >"$T/out" 2>"$T/err" </dev/null; rc=$?; }

# --- P53: the prefix -------------------------------------------------------
run --nproc 2 --log-prefix '{role}{rank}/{world_size} n{node_rank} {x}: ' -- \
    sh -c '[ $RANK = 0 ] || echo "a line"'
is "P53 the prefix is a template" "$(cat "$T/out")" \
    'rank1/2 n0 {x}: a line'
run -- echo hi
is "P53 by default rank and a space" "$(cat "$T/out")" '[rank0] hi'
run --log-timestamps --max-restarts 0 \
    --dataset "$top/examples/digits/manifest.json" -- sh -c 'echo hi; exit 3'
stamp='20[0-9]{2}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-6][0-9]\.[0-9]{6}Z'
has "P53 the time is before it" "$T/out" "^$stamp \[rank0\] hi$"
has "P53 and before agent's own lines" "$T/err" \
    "^$stamp agent\[0\]: error: failed with exit code 3: rank 0 "
has "P53 those of its child that stages, too" "$T/err" ' warning: 4 of the 4 '
is "P53 all of them" "$(grep -vcE "^$stamp agent\[0\]: " "$T/err")" 0

# --- P54: lines come at once -----------------------------------------------
# Each of 100 lines is written when the one before was seen.
mkfifo "$T/seen" "$T/lines"
timeout -k 5 60 "$agent" -- bash -c \
    'for i in {1..100}; do echo "$i"; read -r _ <&3 || exit 9; done 3<"$0"' \
    "$T/seen" >"$T/lines" 2>"$T/err" </dev/null &
pid=$!
n=0
exec 4<"$T/lines" 3>"$T/seen"
while read -r -t 30 line <&4; do
    n=$((n + 1))
    [ "$line" = "[rank0] $n" ] && echo >&3 || break
done
exec 3>&- 4<&-
wait $pid
is "P54 a line is there before the next one is written" "$n $?" '100 0'

# --- P55: no flush needed; nothing added -----------------------------------
run -- python3 -c 'import os, time
print("half", end=""); print(" done")
os.kill(os.getpid(), 9)'
has "P55 python's lines need no flush" "$T/out" '^\[rank0\] half done$'
run --log-prefix none -- printf 'a,b\n  1,2\n\n'
is "P55 --log-prefix none adds nothing" "$(cat "$T/out"; echo .)" \
    "$(printf 'a,b\n  1,2\n\n.')"

# --- P56: progress bars, long lines, odd bytes ------------------------------
run --nproc 2 -- bash -c 'for i in {1..1000}; do printf "\r%d%%" $i; done; echo'
is "P56 of 1000 states of a bar the last is a line" "$(sort "$T/out")" \
    "$(printf '[rank0] 1000%%\n[rank1] 1000%%')"
run -- bash -c 'printf "\rE 0"; for i in {1..300}; do
    printf "\n\rb 1\033[A\n\rb 2\033[A\n\r   \033[A\rE %d" $i; done; echo'
is "P56 an outer bar ends as its last state" "$(tail -n 1 "$T/out")" \
    "[rank0] E 300"
ok "P56 and gives no line at each of its updates" \
    test "$(wc -l <"$T/out")" -lt 60
# What tqdm and rich wrote; three bytes before it are the fuzz target's.
bars() { run -- tail -c +4 "$top/tests/fuzz/corpus/relay/$1"; }
last() { sed -E 's/^\[rank0\] (\x1b\[2K)?//; s/[^a-z0-9%: ].*//' "$T/out" |
    tr -d ' ' | tr '\n' ' '; }
bars tqdm_nested3_leave
is "P56 tqdm: three loops that stay: the last state of each" "$(last)" \
    'run:0% step:100% step:100% step:100% epoch:100% step:100% step:100% step:100% epoch:100% run:100% '
bars tqdm_write
is "P56 tqdm.write() in an inner loop is all there" "$(last)" \
    'epoch:0% loss0 loss1 loss2 epoch:100% '
bars rich
is "P56 rich: two bars and their last states" \
    "$(grep -ac '^\[rank0\] .*100%' "$T/out") $(($(wc -l <"$T/out") < 8))" \
    '2 1'
timeout -k 5 60 "$agent" -- bash -c 'exec 3<>"$0"; printf "\r 10%%\r 20%%" >&2
    read -r _ <&3; printf "\r100%%\n" >&2' "$T/seen" >"$T/out" 2>"$T/err" \
    </dev/null &
pid=$!
ok "P56 a bar that stands still is shown" \
    until_true 30 grep -q '^\[rank0\]  20%$' "$T/err"
echo >"$T/seen"
wait $pid
is "P56 and its end" "$(grep -a rank0 "$T/err" | tr '\n' '|')" \
    '[rank0]  20%|[rank0] 100%|'
run -- python3 -c 'import sys
w = sys.stdout.buffer
w.write(b"x" * 1000000 + b"\n" + b"y" * 65536 + b"\nshort\n"); w.write("\u20ac\n".encode()[:1])
w.flush(); w.write("\u20ac\n".encode()[1:] + b"nul \0 ff \xff\nno end")'
cat >"$T/check.py" <<'PY'
import sys
lines = open(sys.argv[1], "rb").read().split(b"\n")
mark, head = b" [line goes on]", b"[rank0] "
assert all(l.startswith(head) for l in lines[:-1]) and lines[-1] == b""
parts = [l[len(head):] for l in lines[:-1]]
n = next(i for i, p in enumerate(parts) if not p.endswith(mark))
assert n == 15, n
long = b"".join(p[:-len(mark)] for p in parts[:n]) + parts[n]
assert long == b"x" * 1000000
assert parts[n + 1:] == [b"y" * 65536, b"short", "\u20ac".encode(), b"nul \0 ff \xff",
                         b"no end"], parts[n + 1:]
PY
ok "P56 a line of 1 MB in marked parts; 64 KiB whole; UTF-8, NUL, no end" \
    python3 "$T/check.py" "$T/out"

# --- whole lines -------------------------------------------------------------
# Each writes its lines in pieces; stdout and stderr are one file.
timeout -k 5 120 "$agent" --nproc 4 -- python3 -c 'import os, random
random.seed(int(os.environ["RANK"]))
for n in range(3000):
    fd = 1 + n % 2
    line = b"%d:%d:%s:end\n" % (fd, n, b"z" * random.randrange(300))
    cut = random.randrange(len(line))
    os.write(fd, line[:cut]); os.write(fd, line[cut:])' \
    >"$T/both" 2>&1 </dev/null
cat >"$T/check.py" <<'PY'
import re, sys
last, n = {}, 0
for line in open(sys.argv[1]):
    if line.startswith("agent[0]: "):
        continue
    m = re.fullmatch(r"\[rank(\d)\] (\d):(\d+):z*:end\n", line)
    assert m, line
    key, at = (m[1], m[2]), int(m[3])
    assert last.get(key, -1) < at, line
    last[key] = at
    n += 1
assert n == 12000, n
PY
ok "four ranks, two streams, one file: whole lines in order" \
    python3 "$T/check.py" "$T/both"

# --- JSON --------------------------------------------------------------------
cat >"$T/worker.py" <<'PY'
import os, random
random.seed(7)
out = b"".join(random.choice([bytes([random.randrange(256)]), b"word ",
    "\u20ac\u00e9".encode(), b'"\\', b"\n"]) for _ in range(20000))
os.write(1, out.replace(b"\r", b"")[:60000])
os.write(2, b"err\n")
os._exit(3)
PY
run --log-format json --max-restarts 0 --role w -- python3 "$T/worker.py"
is "JSON: the code is the worker's" "$rc" 3
cat >"$T/check.py" <<'PY'
import io, json, runpy, os, sys
got = []
os.write = lambda fd, b: got.append((fd, b))
def stop(code): raise SystemExit
os._exit = stop
try:
    runpy.run_path(sys.argv[3])
except SystemExit:
    pass
want = got[0][1].split(b"\n")
want = want[:-1] if want[-1] == b"" else want
rows = [json.loads(l) for l in open(sys.argv[1], "rb").read().decode(
    "utf-8", "strict").split("\n")[:-1]]
keys = ["time", "node", "rank", "local_rank", "stream", "attempt", "line"]
assert all(list(r) == keys for r in rows)
assert all(r["rank"] == 0 and r["stream"] == "stdout" for r in rows)
assert len(rows) == len(want), (len(rows), len(want))
for r, w in zip(rows, want):
    for junk in (w.decode("utf-8", "replace"),):
        assert r["line"].replace("\ufffd", "") == junk.replace("\ufffd", "")
err = [json.loads(l) for l in open(sys.argv[2])]
assert [r["line"] for r in err if r["stream"] == "stderr"] == ["err"]
own = [r for r in err if r["stream"] == "agent"]
assert own and all(list(r) == keys and r["rank"] is None for r in own)
assert any(r["line"].startswith("agent[0]: error: failed with exit code 3")
           for r in own)
PY
ok "JSON: each line is an object with the keys, in UTF-8; agent's own, too" \
    python3 "$T/check.py" "$T/out" "$T/err" "$T/worker.py"

run --log-format json -- python3 -c 'print("y" * 65536); print("z" * 140000)'
is "JSON: of a line over 64 KiB each part but the last says that it goes on" \
    "$(python3 -c 'import json, sys
for line in open(sys.argv[1]):
    o = json.loads(line)
    print(len(o["line"]), set(o["line"]), o.get("goes_on"), len(o))
' "$T/out" | tr '\n' ' ')" \
    "65536 {'y'} None 7 65536 {'z'} True 8 65536 {'z'} True 8 8928 {'z'} None 7 "

# --- P52: some ranks ---------------------------------------------------------
run --nproc 4 --log-ranks 0,2-3 -- sh -c 'echo out; echo err >&2'
is "P52 --log-ranks: stdout of those alone" "$(sort "$T/out" | tr '\n' ' ')" \
    '[rank0] out [rank2] out [rank3] out '
is "P52 and stderr" "$(grep -c '^\[rank[023]\] err$' "$T/err")" 3
hasnt "P52 and nothing else" "$T/err" '^\[rank1'
run --nproc 2 --log-ranks 0 --max-restarts 0 -- \
    sh -c 'echo why >&2; exit $((RANK * 3))'
has "P52 the last words of a hidden rank that fails" "$T/err" \
    '^agent\[0\]:   why$'
hasnt "P52 no warning where the ranks are there" "$T/err" 'log-ranks'
run --nproc 2 --log-ranks 0-99,9,12-14 --max-restarts 1 "${fast[@]}" -- \
    sh -c 'exit 3'
is "P52 ranks that no such job has are warned of, once" \
    "$(grep -c . <(grep 'log-ranks' "$T/err"))" 1
has "P52 ... which, why, and what to do" "$T/err" \
    '^agent\[0\]: warning: --log-ranks: the job has no rank 9,12-14: its ranks are 0 to 1, so'
python3 "$top/tests/lib/terminal.py" -- "$agent" --log-ranks 1 -- echo hidden \
    >"$T/tty" 2>&1 </dev/null
hasnt "P52 also where a lone worker would have the terminal" "$T/tty" '^hidden'

# Of each rank in the report: lines that it wrote, not shown; bytes likewise.
counts()
{
    python3 -c 'import json, sys
for o in json.load(open(sys.argv[1]))["output"]:
    print(o["lines"], o["dropped_lines"], o["bytes"], o["dropped_bytes"])' "$1"
}

# --- P57: nobody reads -------------------------------------------------------
# The FIFO is held open and not read. Told by the worker when it is stuck.
mkfifo "$T/unread"
exec 8<>"$T/unread"
flood='yes "$(printf "%0100d" 7)"'
# N `yes` in sessions of agent $1's children have written nothing since the last
# look.
blocked()
{
    local w p last=$written
    written=
    for w in $(pgrep -P "$1"); do
        for p in $(pgrep -s "$w" -x yes); do
            written+=$(grep wchar "/proc/$p/io")$'\n'
        done
    done
    [ "$(printf %s "$written" | wc -l)" = "$2" ] && [ "$written" = "$last" ]
}
written=
"$agent" --nproc 2 --grace 2s --report "$T/report" -- sh -c "exec $flood" \
    >"$T/unread" 2>"$T/err" </dev/null &
pid=$!
ok "P57 workers wait for the reader" until_true 30 blocked $pid 2
start=$SECONDS
kill -TERM $pid
wait $pid
is "P57 TERM ends it" $? 143
ok "P57 within the grace, and a little" test $((SECONDS - start)) -le 15
has "P57 and what is lost is said" "$T/err" 'stdout: nobody reads it'
has "P57 counted by rank" "$T/err" 'bytes\) of local rank 0-1 were dropped'
# A pipe holds 64 KiB, which somebody may read still.
ok "P57 the report has all of it, by rank" awk '$2 == 0 || $4 == 0 { bad = 1 }
    { left += $1 - $2; bytes += $3 - $4 }
    END { exit bad || NR != 2 || left < 0 || left > 700 || bytes > 70000 }' \
    <(counts "$T/report")
is "P57 before the verdict, which is last" \
    "$(tail -n1 "$T/err" | grep -c 'stopped by')" 1

# Restarts and heartbeats go on meanwhile.
"$agent" --nproc 2 --grace 1s --max-restarts 2 "${fast[@]}" -- bash -c \
    "[ \$RANK = 1 ] || exec $flood
     exec >&2; sleep .3; exit 5" >"$T/unread" 2>"$T/err" </dev/null
is "P57 restarts go on while the reader is stuck" "$?" 5
has "P57 all of them" "$T/err" '2 of 2 restarts used'

# One file for both, and full: agent's own lines have room, and the verdict.
"$agent" --nproc 1 --grace 1s --max-restarts 2 "${fast[@]}" -- bash -c \
    "$flood | head -c 3000000; exit 5" >"$T/unread" 2>&1 </dev/null &
pid=$!
exec 9<"$T/unread" # Reads only after the end of the workers.
until_true 30 blocked $pid 1
kill -TERM $pid
cat <&9 8>&- >"$T/late" &
reader=$!
wait $pid
exec 8>&- 9<&-
wait $reader
has "P57 agent's lines come through a full queue" "$T/late" \
    'agent\[0\]: stopping|agent\[0\]: .*stopped by'

# drop: workers never wait; what is missing is counted.
rm -f "$T/err" # What the last run said is no answer.
mkfifo "$T/slow"
exec 8<>"$T/slow"
"$agent" --log-overflow drop --grace 2s --report "$T/report" -- bash -c \
    "$flood | head -n 100000" >"$T/slow" 2>"$T/err" </dev/null &
pid=$!
ok "P57 drop: it is said at once" until_true 30 grep -q 'dropped so far' "$T/err"
cat <"$T/slow" 8>&- >"$T/shown" &
reader=$!
wait $pid
is "P57 drop: the workers end" $? 0
exec 8>&-
wait $reader
dropped=$(sed -nE 's/.* ([0-9]+) lines .* dropped: .*/\1/p' "$T/err" | tail -n1)
is "P57 drop: what is shown and what is missing is all" \
    "$(($(wc -l <"$T/shown") + ${dropped:-0}))" 100000
is "P57 drop: and the report has it" "$(python3 -c 'import json, sys
o = json.load(open(sys.argv[1]))["output"][0]
print(o["bytes"], o["lines"], o["dropped_lines"])' "$T/report")" \
    "10100000 100000 $dropped"
is "P57 drop: and no line is torn" \
    "$(grep -cvE '^\[rank0\] 0{99}7$' "$T/shown")" 0

# --- a reader that goes, a disk that is full ---------------------------------
timeout -k 5 60 "$agent" --max-restarts 0 --report "$T/report" -- \
    sh -c 'seq 100000; echo done >&2; exit 4' \
    2>"$T/err" </dev/null | head -n1 >"$T/out"
is "a closed stdout: the code is the worker's" "${PIPESTATUS[0]}" 4
has "a closed stdout: it is said" "$T/err" 'stdout: Broken pipe; [0-9]+ lines'
is "a closed stdout: and the report has as many" \
    "$(counts "$T/report" | cut -d ' ' -f 1,2)" \
    "100001 $(sed -nE 's/.*Broken pipe; ([0-9]+) lines.*/\1/p' "$T/err" |
        tail -n1)"
timeout -k 5 60 "$agent" --nproc 2 --report "$T/report" -- \
    sh -c '[ $RANK = 0 ] || seq 1000' >/dev/full 2>"$T/err" </dev/null
is "a full disk under stdout is survived" "$?" 0
has "a full disk under stdout is said, with the numbers" "$T/err" \
    'stdout: No space left on device; 1000 lines \(11893 bytes\)'
is "a full disk under stdout: the report has them, of the rank" \
    "$(counts "$T/report" | tr '\n' '|')" '0 0 0 0|1000 1000 3893 3893|'

# --- who holds the pipe ------------------------------------------------------
timeout -k 5 60 "$agent" --grace 60s -- sh -c 'echo $$; read -r _ <"$0"' \
    "$T/seen" >"$T/out" 2>"$T/err" </dev/null &
pid=$!
until_true 30 grep -q rank0 "$T/out"
worker=$(sed 's/.* //' "$T/out")
exec 7>"/proc/$worker/fd/1" # This test is a stranger that holds it.
echo >"$T/seen"
start=$SECONDS
wait $pid
is "a pipe that a stranger holds does not delay the end" $? 0
ok "a pipe that a stranger holds: at once" test $((SECONDS - start)) -lt 20
exec 7>&-
