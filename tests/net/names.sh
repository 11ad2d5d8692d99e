#!/usr/bin/env bash
# A name that resolves late, lost packets, connections that are reset.
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/hosts.sh"
hosts 6

sed -i.bak /zero/d "/etc/netns/$net-2/hosts"
pod a1 2 1 2 true
ok "pod 1 waits for the name" wait_for said a1 "does not resolve"
pod a0 1 0 2 true
cat "/etc/netns/$net-2/hosts.bak" >"/etc/netns/$net-2/hosts"
ok "a name that resolves late is found" codes "0 0" a0 a1

for h in 3 4; do
    on $h iptables -A INPUT -i eth0 -m statistic --mode random \
        --probability 0.2 -j DROP
done
# shellcheck disable=SC2016 # for the worker's shell
lossy='[ $TORCHELASTIC_RESTART_COUNT = 2 ] || exit 3'
pod b0 3 0 2 sh -c "$lossy"
pod b1 4 1 2 sh -c "$lossy"

pod c0 5 0 2 sh -c "$(until_file c)"
pod c1 6 1 2 sh -c "$(until_file c)"
ok "a job runs" wait_for wrote c0 "up 0"
ok "on both pods" wait_for wrote c1 "up 0"
on 6 ss -K dst 10.99.0.5 >"$T/ss" 2>&1
if grep -q 10.99.0.5 "$T/ss"; then
    ok "pod 1 sees the reset" wait_for said c1 "retrying"
    back() { on 6 ss -tnH dst 10.99.0.5 | grep -q ESTAB; }
    ok "it is back" until_true 10 back
else
    skip "a connection is reset" "ss -K does nothing here"
fi
touch "$T/c"
ok "a reset alone is no loss" codes "0 0" c0 c1
hasnt "no second round" "$T/c0.out" "up 1"

ok "two restarts with a fifth of the packets lost" codes "0 0" b0 b1
