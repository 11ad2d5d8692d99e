#!/usr/bin/env bash
# A name that resolves late; connections that are reset.
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
on 4 ss -K dst 10.99.0.3 >"$T/ss" 2>&1
if grep -q 10.99.0.3 "$T/ss"; then
    ok "pod 1 sees the reset" wait_for said c1 "retrying"
    back() { on 4 ss -tnH dst 10.99.0.3 | grep -q ESTAB; }
    ok "it is back" until_true 10 back
else
    skip "a connection is reset" "ss -K does nothing here"
fi
touch "$T/c"
ok "a reset alone is no loss" codes "0 0" c0 c1
hasnt "no second round" "$T/c0.out" "up 1"
