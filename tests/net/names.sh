#!/usr/bin/env bash
# A name that resolves late; a name server that is silent; connections that
# are reset.
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/hosts.sh"
hosts 4

sed -i.bak /zero/d "/etc/netns/$net-2/hosts"
pod a1 2 1 2 true
ok "pod 1 waits for the name" wait_for said a1 "does not resolve"
pod a0 1 0 2 true
cat "/etc/netns/$net-2/hosts.bak" >"/etc/netns/$net-2/hosts"
ok "a name that resolves late is found" codes "0 0" a0 a1

pod c0 3 0 2 sh -c "$(until_file c)"
pod c1 4 1 2 sh -c "$(until_file c)"
ok "a job runs" wait_for wrote c0 "up 0"
ok "on both pods" wait_for wrote c1 "up 0"
ok "a connection is reset" on 3 python3 "$top/tests/lib/reset.py" 29400 \
    10.99.0.4
ok "pod 1 sees the reset" wait_for said c1 "connection reset by peer, retrying"
back() { on 4 ss -tnH dst 10.99.0.3 | grep -q ESTAB; }
ok "it is back" until_true 10 back
touch "$T/c"
ok "a reset alone is no loss" codes "0 0" c0 c1
hasnt "no second round" "$T/c0.out" "up 1"

# A name server that never answers is no reason to stay: exit() waits for the
# thread that asks it, and a rank by arrival is looked for before anything else.
for h in 1 2; do
    on $h python3 -c 'import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("127.0.0.53", 53))
print("ready", flush=True)
s.recv(100)
print("asked", flush=True)
time.sleep(100)' >"$T/dns$h" &
    pod_pid[dns$h]=$!
    ok "a name server $h" until_true 20 grep -q ready "$T/dns$h"
    echo "nameserver 127.0.0.53" >"/etc/netns/$net-$h/resolv.conf"
    echo "options timeout:30" >>"/etc/netns/$net-$h/resolv.conf"
    : >"/etc/netns/$net-$h/hosts"
done
began=$SECONDS
pod d1 1 1 2 true
pod d2 2 auto 2 true
for h in 1 2; do
    ok "it is asked ($h)" until_true 20 grep -q asked "$T/dns$h"
    kill -HUP "$(agent_of d$h)"
done
ok "told to stop, both end" codes "129 129" d1 d2
ok "and do not wait for the name server" test $((SECONDS - began)) -lt 25
pod d3 2 auto 2 --barrier-timeout 1s true
ok "nor longer than --barrier-timeout" codes "200" d3
has "which is said" "$T/d3.err" \
    'master-addr zero does not resolve: no answer of the name server in time'
