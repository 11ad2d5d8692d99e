#!/usr/bin/env bash
# --offline between hosts: a worker still reaches the other pods by HTTP, by
# address and by name, and nobody else.
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/hosts.sh"
hosts 4
sed -i '/zero/d' "/etc/netns/$net-3/hosts"
echo "10.99.0.1 zero" >>"/etc/netns/$net-3/hosts"
cat >"$T/worker.py" <<'E'
"""Each rank serves; rank 2 then asks all others, and ends the job."""
import http.server, os, sys, threading, time, urllib.request

class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(os.environ["RANK"].encode())
        if self.path == "/end":
            threading.Thread(target=server.shutdown).start()
    def log_message(self, *a):
        pass

def ask(url, tries):
    for left in range(tries, 0, -1):
        try:
            return urllib.request.urlopen(url, timeout=20).read().decode()
        except OSError as e:
            if left == 1:
                return f"failed: {e}"
            time.sleep(0.05) # It may not serve yet.

if os.environ["RANK"] != "2":
    server = http.server.HTTPServer(("", 8000), Answer)
    server.serve_forever()
else:
    for host in sys.argv[1:]:
        print(host, ask(f"http://{host}:8000/", 400), flush=True)
    print("stranger", ask("http://10.99.0.4:8000/", 1), flush=True)
    for host in "10.99.0.1", "10.99.0.2":
        ask(f"http://{host}:8000/end", 1)
E
ip netns exec "$net-4" python3 -m http.server 8000 >/dev/null 2>&1 &
pod_pid[stranger]=$!
for r in 0 1 2; do
    pod "p$r" $((r + 1)) $r 3 --offline --log-prefix none -- \
        python3 "$T/worker.py" zero 10.99.0.1 10.99.0.2
done
ok "the job ends well" codes "0 0 0" p0 p1 p2
has "pod 0 by its name" "$T/p2.out" '^zero 0$'
has "pod 0 by its address" "$T/p2.out" '^10.99.0.1 0$'
has "another pod by its address" "$T/p2.out" '^10.99.0.2 1$'
has "a stranger is not reached" "$T/p2.out" '^stranger failed: .*refused'
