#!/usr/bin/env bash
# --offline: a stray download fails at once instead of hanging the job; the job
# itself, this machine and what was allowed are reached. And: a whole job works
# where there is no network at all.
. "$(dirname "$0")/../lib/tap.sh"
unset http_proxy https_proxy all_proxy no_proxy
unset HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY
run() { timeout -k 5 100 "$agent" "$@" >"$T/out" 2>"$T/err" </dev/null; rc=$?; }

run --offline --offline-allow hub.local,10.9.0.0/16 -- env
for v in HF_HUB_OFFLINE HF_DATASETS_OFFLINE TRANSFORMERS_OFFLINE PIP_NO_INDEX; do
    has "$v is set" "$T/out" "^\[rank0\] $v=1\$"
done
is "four proxies, one port" "$(sed -nE \
    's/^\[rank0\] (http_proxy|https_proxy|HTTP_PROXY|HTTPS_PROXY)=//p' \
    "$T/out" | sort | uniq -c | sed -E 's/[0-9]+$/P/; s/^ +//')" \
    '4 http://127.0.0.1:P'
for v in no_proxy NO_PROXY; do
    has "$v has what is always there" "$T/out" \
        "$v=localhost,127.0.0.1,127.0.0.0/8,::1,.*,.svc,.cluster.local"
    has "$v has this host" "$T/out" "$v=.*,$(uname -n)(,|\$)"
    has "$v has what is allowed" "$T/out" "$v=.*,hub.local,10.9.0.0/16"
done
has "it says what it is" "$T/err" 'offline: .*no sandbox'
KUBERNETES_SERVICE_HOST=10.96.7.7 AGENT_OFFLINE=1 run -- env
has "the API server's address" "$T/out" 'no_proxy=.*,10\.96\.7\.7(,|$)'
http_proxy=http://p:1 no_proxy='*' PIP_NO_INDEX=0 run --offline -- env
hasnt "what the image sets does not win" "$T/out" 'p:1|proxy=\*|NO_INDEX=0'
run -- env
hasnt "without it nothing is set" "$T/out" 'HF_HUB|127.0.0.0/8|PIP_NO_INDEX'
hasnt "nor said" "$T/err" 'offline'

# The port is held: it is refused, and nobody can listen there meanwhile.
cat >"$T/port.py" <<'E'
import os, socket
port = int(os.environ["http_proxy"].rsplit(":", 1)[1])
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
try:
    s.bind(("127.0.0.1", port))
    print("bound")
except OSError:
    print("held")
try:
    socket.create_connection(("127.0.0.1", port))
    print("connected")
except ConnectionRefusedError:
    print("refused")
E
run --offline --log-prefix none -- python3 "$T/port.py"
is "the port is held, and refuses" "$(tr '\n' ' ' <"$T/out")" 'held refused '

for args in '--offline-allow a' '--offline --offline-allow a,,b' \
    '--offline --offline-allow *' '--offline --offline-allow='; do
    IFS=' ' read -ra words <<<"$args"
    run "${words[@]}" -- true
    is "$args is 64" "$rc" 64
done
AGENT_OFFLINE_ALLOW=a run -- true
is "the variable alone is the image's" "$rc" 0

# --- a network of its own, with hosts that accept and never answer ---
if unshare -n true 2>/dev/null; then
    ns=(unshare -n)
elif unshare -Urn true 2>/dev/null; then
    ns=(unshare -Urn)
else
    skip "a network of its own" "unshare -n is not permitted here"
    exit
fi
# The address is on lo, so that it is none of the pod's own.
cat >"$T/net.py" <<'E'
"""serve FILE: 203.0.113.7:80 accepts and never answers; connections are told
in FILE. 127.0.0.1:8000 answers. fetch URL...: one line for each."""
import http.server, os, socket, sys, threading, urllib.request

class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"fine")
    def log_message(self, *a):
        pass

def mute(path):
    s = socket.create_server(("203.0.113.7", 80))
    kept = []
    open(path + ".ready", "w").close()
    while True:
        kept.append(s.accept())
        open(path, "a").write("accepted\n")

if sys.argv[1] == "serve":
    threading.Thread(target=mute, args=[sys.argv[2]], daemon=True).start()
    http.server.HTTPServer(("", 8000), Answer).serve_forever()
for url in sys.argv[2:]:
    try:
        print(url, urllib.request.urlopen(url).read().decode(), flush=True)
    except OSError as e:
        print(url, "failed:", e, flush=True)
E
cat >"$T/inside.sh" <<'E'
set -u
ip link set lo up
ip addr add 203.0.113.7/32 dev lo
python3 "$T/net.py" serve "$T/accepted" & server=$!
until [ -e "$T/accepted.ready" ] && (: <>/dev/tcp/127.0.0.1/8000) 2>/dev/null
do sleep 0.02; done
run() { timeout -k 5 100 "$agent" --grace 1s --log-prefix none "$@"; }
run --offline -- python3 "$T/net.py" fetch http://203.0.113.7/x \
    https://203.0.113.7:80/y http://localhost:8000/ http://127.0.0.1:8000/ \
    http://[::1]:8000/ >"$T/refused"
wc -l <"$T/accepted" >"$T/before" 2>/dev/null || echo 0 >"$T/before"
run --offline --offline-allow 203.0.113.7:8000,x -- python3 "$T/net.py" fetch \
    http://203.0.113.7:8000/ >"$T/allowed"
# Without --offline the same worker hangs.
run -- python3 "$T/net.py" fetch http://203.0.113.7/x >"$T/hung" & job=$!
until [ -s "$T/accepted" ] || ! kill -0 $job; do sleep 0.02; done
[ -s "$T/hung" ] || echo hangs >"$T/control"
kill $job $server
wait
E
export T agent
timeout -k 5 200 "${ns[@]}" bash "$T/inside.sh" 2>"$T/inside.err"
is "urlopen of a mute host fails at once" \
    "$(grep -c '203.0.113.7.* failed: .*refused' "$T/refused")" 2
is "it was not even asked" "$(cat "$T/before")" 0
has "this machine is reached by name" "$T/refused" 'localhost:8000/ fine'
has "and by address" "$T/refused" '127.0.0.1:8000/ fine'
has "what is allowed is reached" "$T/allowed" ' fine'
is "without --offline it hangs" "$(cat "$T/control" 2>&1)" hangs

# Two pods of two workers with a data set, a killed worker and a restart.
ok "make demo passes with nothing but loopback" timeout -k 5 250 \
    "${ns[@]}" bash -c "ip link set lo up; O='$O' '$top/scripts/demo'"
