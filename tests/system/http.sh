#!/usr/bin/env bash
# --http: what is answered, and what asking cannot do.
. "$(dirname "$0")/../lib/tap.sh"
. "$top/tests/lib/pods.sh"
. "$top/tests/lib/status.sh"
ask=("$top/tests/lib/ask.py")

# --- while staging: another stager has the lock ---
mkdir "$T/data" "$T/stage"
echo hello >"$T/data/f"
"$agent" manifest "$T/data" --name d -o "$T/d.json"
part=$("$agent" stage --dataset "$T/d.json" --source "$T/data" \
    --stage "$T/stage")
lock=$T/stage/.${part##*/}.lock
rm -rf "$part"
exec 7>"$lock"
flock 7
port=$(free_port)
start --http "$port" --dataset "$T/d.json" --source "$T/data" \
    --stage "$T/stage" -- sleep 1000 7>&-
is "while it stages" "$(field '(j["phase"], j["staging_percent"], j["ready"],
    w[0]["state"], w[0]["rank"])')" "('staging', 0, False, 'waiting', None)"
is "/readyz is 503" "$("${ask[@]}" get localhost "$port" /readyz)" \
    '503 staging (0 %)'
is "/healthz is 200" "$("${ask[@]}" get localhost "$port" /healthz)" '200 ok'
exec 7>&-
becomes 'j["phase"] == "running"'
is "/readyz is 200 once they run" \
    "$("${ask[@]}" get localhost "$port" /readyz)" '200 running'

# --- HTTP ---
has "/status is the same JSON" <("${ask[@]}" get 127.0.0.1 "$port" /status) \
    '^200 \{"schema":1,.*"workers":\[\{'
has "/status.txt is the table" \
    <("${ask[@]}" get 127.0.0.1 "$port" /status.txt) '^200 agent '
is "HEAD has no body" "$("${ask[@]}" get 127.0.0.1 "$port" /status HEAD)" \
    '200 '
has "another page is 404" <("${ask[@]}" get 127.0.0.1 "$port" /x) \
    '^404 .*/healthz /readyz'
has "POST is 405" <("${ask[@]}" get 127.0.0.1 "$port" /status POST) '^405 '
has "no HTTP is 400" <("${ask[@]}" raw 127.0.0.1 "$port" 'hello\n\n') '^400 '
has "a request that is too long is 431" \
    <("${ask[@]}" raw 127.0.0.1 "$port" 'GET /xxxxxxxxxxxxxxxxxxxx' 4000) \
    '^431 '
ok "it is on loopback alone" python3 -c 'import socket, sys
s = socket.socket()
try: s.connect((socket.gethostbyname(socket.gethostname()), int(sys.argv[1])))
except OSError: sys.exit(0)
sys.exit(s.getpeername()[0][:4] != "127.")' "$port"
is "a slow client is cut" "$("${ask[@]}" slow 127.0.0.1 "$port")" cut
"$agent" --http "$port" -- true >"$T/o" 2>"$T/err"
is "a busy port is 202" "$?" 202
has "and its holder is named" "$T/err" \
    "--http :$port: the port is taken by pid $bg \(agent\)"
stop
if python3 -c 'import socket
socket.socket(socket.AF_INET6).bind(("::1", 0))' 2>/dev/null; then
    start --http "[::1]:$port" -- sleep 1000
    is "IPv6" "$("${ask[@]}" get ::1 "$port" /readyz)" '200 running'
    stop
    start --http "*:$port" -- sleep 1000
    is "all addresses: IPv6" "$("${ask[@]}" get ::1 "$port" /healthz)" '200 ok'
else
    skip "IPv6" "no IPv6 here"
    start --http "*:$port" -- sleep 1000
fi
is "all addresses: IPv4" "$("${ask[@]}" get 127.0.0.1 "$port" /healthz)" \
    '200 ok'
stop
"$agent" --http 192.0.2.77:80 -- true >"$T/o" 2>"$T/err"
is "an address that is not here is 202" "$?" 202
"$agent" --http 999.0.2.77:80 -- true >"$T/o" 2>"$T/err"
is "one that is none is 64" "$?" 64

# --- too many ---
start --http "$port" --nproc 2 -- sh -c 'trap "echo term; exit 0" TERM
    echo ready; while :; do sleep .05; done'
# held WHAT N: N connections in the background, until `exec 6>&-`.
held()
{
    mkfifo "$T/hold.$1"
    "${ask[@]}" "$1" 127.0.0.1 "$port" "$2" <"$T/hold.$1" >"$T/held.$1" \
        2>&1 6>&- &
    exec 6>"$T/hold.$1"
    until_true 60 grep -q open "$T/held.$1" || cat "$T/held.$1"
}
held idle 1000
is "1,000 idle connections: it answers" \
    "$("${ask[@]}" get 127.0.0.1 "$port" /healthz)" '200 ok'
ok "agent status, too" status
ok "it holds few of them" [ "$(ls "/proc/$bg/fd" | wc -l)" -lt 150 ]
exec 6>&-
held reader 300
is "300 that read nothing: it answers" \
    "$("${ask[@]}" get 127.0.0.1 "$port" /healthz)" '200 ok'
python3 -c 'import os, signal, sys
os.kill(int(sys.argv[1]), signal.SIGTERM)' $bg
wait $bg
is "a signal is handled meanwhile" "$?" 143
is "and the workers' lines are all there" "$(grep -c term "$T/out")" 2
exec 6>&-
