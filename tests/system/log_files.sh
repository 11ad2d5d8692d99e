#!/usr/bin/env bash
# --log-dir: raw bytes of each worker in files, rotated, whatever the disk does.
. "$(dirname "$0")/../lib/tap.sh"
fast=(--restart-backoff 10ms:50ms)
d=$T/logs

run() { timeout -k 5 60 "$agent" "$@" >"$T/out" 2>"$T/err" </dev/null; rc=$?; }

# --- P52: some ranks on the console, all in files ----------------------------
run --nproc 4 --log-ranks 0 --log-dir "$d" -- bash -c \
    'for i in {1..10000}; do echo "$RANK line $i"; done; echo e$RANK >&2'
is "P52 the console has rank 0 alone" \
    "$(grep -c '^\[rank0\] 0 line ' "$T/out") $(wc -l <"$T/out")" '10000 10000'
for r in 0 1 2 3; do
    is "P52 the file of rank $r has all, without prefix" \
        "$(md5sum <"$d/attempt_0/rank_$r/stdout.log")" \
        "$(seq -f "$r line %.0f" 10000 | md5sum)"
    is "P52 and its stderr" "$(cat "$d/attempt_0/rank_$r/stderr.log")" "e$r"
done

# --- raw bytes, attempts, what is there already -------------------------------
run --log-dir "$d/new/deep" --max-restarts 1 "${fast[@]}" -- sh -c \
    'printf "\r10%%\r20%%\n\0\377 no end"; echo $TORCHELASTIC_RESTART_COUNT >&2
     exit 3'
for a in 0 1; do
    is "attempt $a has its folder and the raw bytes" \
        "$(od -c <"$d/new/deep/attempt_$a/rank_0/stdout.log")" \
        "$(printf '\r10%%\r20%%\n\0\377 no end' | od -c)"
    is "attempt $a: stderr" \
        "$(cat "$d/new/deep/attempt_$a/rank_0/stderr.log")" $a
done
run --log-dir "$d/new/deep" --pre-start 'echo before' -- sh -c 'echo again'
is "a second agent appends" \
    "$(tail -c 13 "$d/new/deep/attempt_0/rank_0/stdout.log" | tr -d '\0')" \
    ' no endagain'
is "--pre-start has a file, too" \
    "$(cat "$d/new/deep/attempt_0/pre-start/stdout.log")" before
ok "a worker that is silent has empty files" \
    test -e "$d/new/deep/attempt_0/pre-start/stderr.log"
(cd "$T" && run --log-dir here -- sh -c 'cd /; echo hi')
is "a folder that is relative is the agent's" \
    "$(cat "$T/here/attempt_0/rank_0/stdout.log")" hi

# --- rotation ----------------------------------------------------------------
run --log-dir "$d/r" --log-max 64K:2 -- seq 100000
(cd "$d/r/attempt_0/rank_0" && ls) >"$T/ls"
is "--log-max: so many old files stay" "$(tr '\n' ' ' <"$T/ls")" \
    'stderr.log stdout.log stdout.log.1 stdout.log.2 '
cd "$d/r/attempt_0/rank_0" || exit
is "--log-max: none is larger" \
    "$(find . -size +64k | wc -l) $(find . -name 'stdout.log.*' -size -60k |
        wc -l)" '0 0'
cat stdout.log.2 stdout.log.1 stdout.log >"$T/all"
is "--log-max: together they end as what was written" \
    "$(md5sum <"$T/all")" "$(seq 100000 | tail -c "$(wc -c <"$T/all")" |
        md5sum)"
cd "$top" || exit

# --- what goes wrong ----------------------------------------------------------
run --log-dir "$0" -- echo never
is "a folder that cannot be: 202, before any worker" "$rc $(wc -c <"$T/out")" \
    '202 0'
has "... and which it is" "$T/err" '^agent\[0\]: error: --log-dir .*log_files.sh: Not a dir'
run --log-dir /proc/logs -- echo never
has "below /proc: what to do" "$T/err" \
    "^agent\\[0\\]: error: --log-dir /proc/logs: .*: give a folder that can be"
# Root's alone is a folder that may be written to; others are told at once.
run --log-dir /proc -- echo hi
[ -w /proc ] && why='.* 3 bytes could not be written.*' || why='Permission denied'
has "... where the folder is there, and no file can be" "$T/err" \
    "log-dir /proc: $why: give a folder that can"
run --log-max 1M -- true
is "--log-max alone is 64" "$rc" 64
# A FIFO in the place of a file, and nobody reads: the disk hangs.
mkdir -p "$d/hung/attempt_0/rank_0"
mkfifo "$d/hung/attempt_0/rank_0/stdout.log"
run --log-dir "$d/hung" --grace 2s --log-overflow drop --max-restarts 0 \
    --report "$T/report" -- sh -c 'seq 2000000; exit 5'
is "a disk that hangs: the code is the worker's" "$rc" 5
dropped=$(python3 -c 'import json, sys
print(json.load(open(sys.argv[1]))["output"][0]["dropped_lines"])' "$T/report")
is "... the console has all but what it dropped itself" \
    "$(($(wc -l <"$T/out") + dropped))" 2000000
has "... and it is said" "$T/err" 'log-dir .*not all is on the disk'
has "... with the bytes that found no room" "$T/err" \
    'log-dir .*too slow; [0-9]+ bytes could not be written'
"$agent" --log-dir "$d/hung" --grace 1s -- yes >/dev/null 2>"$T/err" \
    </dev/null &
pid=$!
until_true 30 pgrep -P $pid -x yes
kill -TERM $pid
wait $pid
is "a disk that hangs, and TERM" $? 143

# shellcheck disable=SC2016
if unshare -rm true 2>/dev/null; then
    mkdir "$T/small"
    # All of rank 0 is in the file, or counted.
    cat >"$T/settled.py" <<'PY'
import json, os, subprocess, sys
d = os.environ["T"]
s = json.loads(subprocess.check_output(
    [os.environ["agent"], "status", "--json", "--socket", d + "/sock"]))
o = s["workers"][0]["stdout"]
size = os.path.getsize(d + "/small/attempt_0/rank_0/stdout.log")
sys.exit(size + o["file_dropped_bytes"] != 2688895)
PY
    export T agent
    timeout -k 5 60 unshare -rm bash -c '
        mount -t tmpfs -o size=1m none "$T/small" || exit 99
        head -c 300K /dev/zero >"$T/small/ballast"
        "$agent" --nproc 2 --log-dir "$T/small" --report "$T/report" \
            --socket "$T/sock" -- bash -c "
            [ \$RANK = 1 ] || seq 400000
            until [ -e \"$T/more\" ]; do sleep .05; done
            echo; echo the end" >"$T/out" 2>"$T/err" &
        pid=$!
        for i in {1..600}; do
            python3 "$T/settled.py" && break; sleep .05
        done 2>"$T/settled.err"
        rm "$T/small/ballast"
        touch "$T/more"; wait $pid; echo $? >"$T/rc"
        cp "$T/small/attempt_0/rank_0/stdout.log" "$T/part"' </dev/null
    is "a full disk is no failure" "$(cat "$T/rc")" 0
    has "... it is said, with the bytes" "$T/err" \
        'log-dir .*No space left on device; [0-9]+ bytes'
    is "... the console has all" "$(wc -l <"$T/out")" 400004
    is "... what follows is not glued to a torn line" \
        "$(tail -n 2 "$T/part" | tr '\n' '|')" '|the end|'
    is "... the report has the bytes, of the rank whose they are" \
        "$(python3 -c 'import json, sys
o = json.load(open(sys.argv[1]))["output"]
print(o[0]["file_dropped_bytes"] > 1000000, o[1]["file_dropped_bytes"])
' "$T/report")" 'True 0'
else
    skip "a full disk" "no namespaces here"
fi
