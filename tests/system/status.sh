#!/usr/bin/env bash
# `agent status`: what is said, and to whom.
. "$(dirname "$0")/../lib/tap.sh"
. "$top/tests/lib/pods.sh"
. "$top/tests/lib/status.sh"

# --- one pod ---
start --nproc 2 --job-id j7 -- sh -c 'echo to stdout; echo "last \"$RANK\"" >&2
    (trap "" TERM; sleep 1000) & exec sleep 1000'
becomes 'w[1]["last_line"] == "last \"1\""'
ok "each worker's last line is told" is_true 'w[1]["last_line"] == "last \"1\""'
is "it runs, and is ready" "$(field '(j["phase"], j["ready"], j["job_id"])')" \
    "('running', True, 'j7')"
is "who it is" "$(field '(j["schema"], j["agent_pid"], j["nnodes"],
    j["node_rank"], j["nproc"], j["world_size"])')" "(1, $bg, 1, 0, 2, 2)"
is "its workers" "$(field '[(x["rank"], x["state"], x["starts"]) for x in w]')" \
    "[(0, 'running', 1), (1, 'running', 1)]"
# pgrep shows the guard, too.
is "their pids" "$(field 'sorted(x["pid"] for x in w)')" "[$(pgrep -P $bg -x \
    sleep | sort -n | paste -sd, | sed 's/,/, /g')]"
becomes 'w[0]["processes"] == 2'
is "what it wrote" "$(field '(w[1]["stdout"]["lines"],
    w[1]["stderr"]["bytes"], w[1]["stdout"]["dropped_lines"])')" '(1, 9, 0)'
ok "memory of the whole session" is_true 'w[0]["rss_bytes"] > 1000000'
is "how long, and that it is silent" "$(field 'w[0]["uptime_ms"] >=
    w[0]["silent_ms"] >= 0 and w[0]["exit_code"] is None')" true
status >"$T/table"
has "the table says the same" "$T/table" \
    '^   1 +[0-9]+ running .* last "1"$'
has "and who is asked" "$T/table" "^agent .*, pid $bg on "
is "the file is the owner's alone" "$(stat -c '%a' "$sock")" 600
is "HEALTHCHECK: 0 where an agent answers" \
    "$(status >/dev/null; echo $?)" 0
is "output that cannot be written is 202" \
    "$(status >/dev/full 2>/dev/null; echo $?)" 202
(status --watch --json >"$T/watch"; echo $? >"$T/watch.rc") &
until_true 20 sh -c "[ \$(wc -l <$T/watch) -ge 2 ]"
stop
is "a stop is no failure of the asker" "$(until_true 20 test -s "$T/watch.rc"
    cat "$T/watch.rc")" 0
ok "--watch --json: an object a line" python3 -c 'import json, sys
assert all(json.loads(l)["schema"] == 1 for l in open(sys.argv[1]))' "$T/watch"
is "stopped by TERM" "$rc" 143
ok "the socket file is gone" test ! -e "$sock"
status >"$T/table" 2>"$T/err"
is "no agent is 202" "$?" 202
is "in one line" "$(wc -l <"$T/err")" 1
has "that says where it looked" "$T/err" "no agent answers at --socket $sock"

# --- restarts ---
start --nproc 2 -- sh -c 'echo "round $TORCHELASTIC_RESTART_COUNT"
    [ "$RANK$TORCHELASTIC_RESTART_COUNT" != 10 ] || exit 7; exec sleep 1000'
becomes 'j["round"] == 1 and w[0]["state"] == "running" and
    w[1]["last_line"] == "round 1"'
is "after a restart" "$(field '(j["restarts_used"], j["max_restarts"],
    j["rounds"], [x["starts"] for x in w])')" "(1, 3, 2, [2, 2])"
has "the last failure is told" <(field 'j["last_failure"]') \
    '^rank 1 .*exited with 7'
stop
start --nproc 2 --restart-backoff 1h:1h -- sh -c '[ $RANK = 0 ] || exit 7
    exec sleep 1000'
becomes 'j["phase"] == "waiting"'
is "between rounds" "$(field '(j["ready"], w[1]["state"], w[1]["exit_code"],
    w[0]["signal"], w[0]["pid"])')" "(False, 'exited', 7, 'SIGTERM', None)"
has "with the time that is left" <(field 'j["waiting"]') \
    'next round starts in .* min'
status >"$T/table"
has "in the table, too" "$T/table" '^   1       - exit 7 '
stop
start --grace 60s -- sh -c 'trap "" TERM; echo ready; while :; do sleep 1; done'
until_true 20 grep -q ready "$T/out"
kill -TERM $bg
becomes 'j["phase"] == "stopping"'
is "while it stops" "$(field '(j["stop_signal"], w[0]["state"])')" \
    "('SIGTERM', 'stopping')"
kill -TERM $bg
wait $bg

# --- two agents, and dead ones ---
start -- sleep 1000
first=$bg
"$agent" -v --socket "$sock" -- sleep 1000 2>"$T/err2" &
second=$!
until_true 20 test -S "$T/a-$second.sock"
is "a live socket is not taken" "$(field 'j["agent_pid"]')" "$first"
until_true 20 "$agent" status --socket "$T/a-$second.sock"
is "a second agent has its own" \
    "$(field 'j["agent_pid"]' "$T/a-$second.sock")" "$second"
has "and says so" "$T/err2" "another agent has .*a-$second.sock"
kill -TERM $second
wait $second
ok "its file is gone" test ! -e "$T/a-$second.sock"
until_true 20 pgrep -P $first agent-guard
kill -KILL $first
wait $first 2>/dev/null
ok "a guard removes the file of a killed one" until_true 20 test ! -e "$sock"
python3 -c 'import socket, sys # What one leaves without a guard.
s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen()' "$sock"
status 2>"$T/err"
is "a dead one is 202" "$?" 202
start -- sleep 1000
is "what a dead one left is replaced" "$(field 'j["agent_pid"]')" "$bg"

# --- who may ask ---
if [ "$(id -u)" -eq 0 ] && setpriv --reuid=65534 --clear-groups true \
    2>/dev/null; then
    mkdir "$T/bin" && cp "$agent" "$T/bin/agent" && chmod 755 "$T" "$T/bin"
    nobody=(setpriv --reuid=65534 --clear-groups "$T/bin/agent" status)
    "${nobody[@]}" --socket "$sock" >"$T/o" 2>"$T/err"
    is "another uid is 77" "$?" 77
    has "with the reason" "$T/err" 'that of another user'
    chmod 666 "$sock"
    "${nobody[@]}" --socket "$sock" >"$T/o" 2>"$T/err"
    is "also where the file's mode lets it in" "$?" 77
    has "the agent refuses" "$T/err" 'refuses: only the uid'
    is "nothing is told" "$(wc -c <"$T/o")" 0
    setpriv --reuid=65534 --clear-groups "$T/bin/agent" --socket "$T/no.sock" \
        -- true 2>"$T/err"
    is "a socket that cannot be made is no failure" "$?" 0
    setpriv --reuid=65534 --clear-groups mkdir "/tmp/agent-test-$$"
    setpriv --reuid=65534 --clear-groups "$T/bin/agent" \
        --socket "/tmp/agent-test-$$/s" -- sleep 1000 2>/dev/null &
    other=$!
    ok "root may ask anyone" until_true 20 "$agent" status --socket \
        "/tmp/agent-test-$$/s"
    kill -TERM $other
    wait $other
    rmdir "/tmp/agent-test-$$"
else
    skip "another uid" "not root"
fi
kill -STOP $bg
status >"$T/o" 2>"$T/err"
is "an agent that stands still is 202" "$?" 202
has "and this is said" "$T/err" 'does not answer within 5 s'
kill -CONT $bg
stop

# --- default places ---
if unshare -m true 2>/dev/null; then
    # /run and /tmp of the test's own: other agents of the machine have names
    # there. places COMMAND: runs with them; "$1" is agent.
    places() { unshare -m sh -ec "mount -t tmpfs bin /mnt; cp \"\$1\" /mnt
        set -- /mnt/agent; mount -t tmpfs tmp /tmp; mount -t tmpfs run /run
        set +e; $1" sh "$agent" >"$T/out" 2>"$T/err" </dev/null; }
    wait_up='i=0; until "$1" status >/dev/null 2>&1; do sleep .05
        i=$((i + 1)); [ $i -lt 400 ] || exit 99; done;'
    places '"$1" -- sleep 1000 & '"$wait_up"'
        ls -a /run; "$1" status --json; kill -TERM $!; wait $!; ls -A /run'
    has "/run/agent.sock by default" "$T/out" '^agent.sock$'
    is "and nothing else" "$(grep -c agent "$T/out")" 2
    has "agent status finds it" "$T/out" '"phase":"running"'
    places 'mkdir /run/u; mount -o remount,ro /run; export XDG_RUNTIME_DIR=/run/u
        mount -t tmpfs u /run/u; "$1" -- sleep 1000 & '"$wait_up"'
        ls /run/u; "$1" status; kill -TERM $!; wait $!'
    has "else in XDG_RUNTIME_DIR" "$T/out" '^agent.sock$'
    places '"$1" -- sleep 1000 & a=$!; '"$wait_up"'
        "$1" -- sleep 1000 & b=$!
        until [ -S /run/agent-$b.sock ]; do sleep .05; done
        "$1" status --json >/dev/null; "$1" status --socket /run/agent.sock
        "$1" status >/tmp/o 2>/tmp/e; wc -l </tmp/e
        grep "^agent .* pid $a " /tmp/o
        grep "^agent: also here: pid $b, agent status --socket /run/agent-$b.sock$" /tmp/e
        kill -TERM $a; wait $a; '"$wait_up"'
        "$1" status --json | grep -o "\"agent_pid\":$b"
        kill -TERM $b; wait $b; ls -A /run'
    has "the only second agent is found, too" "$T/out" '"agent_pid":'
    has "and told of beside the first" "$T/out" '^agent: also here: pid '
    has "in one line" "$T/out" '^1$'
    hasnt "not with --json or --socket" "$T/err" 'also here'
    places '"$1" -- sleep 1000 & a=$!; '"$wait_up"'
        unset XDG_RUNTIME_DIR; own="setpriv --reuid=65534 --clear-groups $1"
        $own status; echo "rc $?"
        $own -- sleep 1000 & b=$!; i=0
        until $own status >/tmp/o 2>&1; do sleep .05
        i=$((i + 1)); [ $i -lt 400 ] || break; done
        grep "^agent .* pid $b " /tmp/o; kill -TERM $a $b; wait $a; wait $b'
    has "root's alone is 77 to another uid" "$T/out" '^rc 77$'
    has "whose own agent is asked behind it" "$T/out" '^agent .* pid '
    places 'mount -o remount,ro /run; mount -o remount,ro /tmp
        "$1" -v -- sh -c "sleep .2; exit 3"
        echo rc $?'
    has "nowhere to write: the job runs" "$T/out" '^rc 3$'
    is "and -v says it once" \
        "$(grep -c 'agent status has no socket' "$T/err")" 1
    places '"$1" status; echo rc $?'
    has "none at all is 202" "$T/out" '^rc 202$'
else
    skip "default places" "unshare -m is not permitted here"
fi

# --- several pods ---
next_job
pod 0 2 --socket "$T/p0" --http "$(free_port)" -- sleep 1000
until_true 20 "$agent" status --socket "$T/p0"
is "pod 0 says who is missing" "$(field '(j["phase"], j["barrier"]["phase"],
    j["barrier"]["missing"])' "$T/p0")" "('waiting', 'gathering', \
[{'node_rank': 1, 'state': 'unseen', 'percent': None, 'host': None}])"
is "in words, too" "$(field 'j["waiting"]' "$T/p0")" 'node rank 1 not seen yet'
pod 1 2 --socket "$T/p1" -- sleep 1000
becomes 'j["phase"] == "running"' "$T/p0"
becomes 'j["phase"] == "running"' "$T/p1"
is "the other pod" "$(field '(j["node_rank"], j["link"]["state"],
    j["barrier"], w[0]["rank"], j["world_size"])' "$T/p1")" \
    "(1, 'admitted', None, 1, 2)"
kill -KILL "$(agent_of 1)"
becomes 'j["phase"] == "waiting"' "$T/p0"
is "a lost pod" "$(field '[(x["node_rank"], x["state"]) for x in
    j["barrier"]["missing"]]' "$T/p0")" "[(1, 'lost')]"
kill -TERM "$(agent_of 0)"
ended 0 1
next_job
pod 1 2 --socket "$T/p1" -- sleep 1000
until_true 20 "$agent" status --socket "$T/p1"
becomes 'j["link"]["error"] is not None' "$T/p1"
has "a pod without pod 0" <(field 'j["waiting"]' "$T/p1") \
    'node rank 0 at 127.0.0.1:.* not reached yet'
kill -TERM "$(agent_of 1)"
ended 1
