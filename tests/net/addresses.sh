#!/usr/bin/env bash
# A name of pod 0 with several addresses: they are tried in turn.
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/hosts.sh"
hosts 3
for i in 1 2 3; do on $i ip addr add "fd99::$i/64" dev eth0 nodad; done

# order ADDRESS...: these are zero's, for host 2, and the resolver gives them
# in this order, for it sorts by rules of its own.
order()
{
    local a
    sed -i '/zero/d' "/etc/netns/$net-2/hosts"
    for a; do
        echo "$a zero" >>"/etc/netns/$net-2/hosts"
    done
    [ "$(on 2 getent ahosts zero | awk '$2 == "STREAM" { print $1 }' |
        tr '\n' ' ')" = "$* " ]
}
# meet NAME: pods 0 and 1 meet by the name as it is.
meet()
{
    pod zero 1 0 2 true
    pod one 2 1 2 true
    ok "$1" codes "0 0" zero one
}
# Host 3 has seen somebody knock, and answers by RULE...
answers()
{
    on 3 iptables -F
    on 3 iptables -A INPUT -s 10.99.0.2 -p tcp --dport 29400 "$@"
}
was_tried()
{
    on 3 iptables -nvxL INPUT | awk '/29400/ && $1 > 0 { n = 1 } END { exit !n }'
}

answers -j ACCEPT
ok "one that refuses, then pod 0's" order 10.99.0.3 10.99.0.1
meet "a refused address is not the last word"
ok "it was tried" was_tried
answers -j DROP
meet "nor is one that does not answer"
ok "it was tried, too" was_tried
ok "IPv6 without a host, then IPv4" order fd99::77 10.99.0.1
meet "nor one where nobody is"
ok "it was looked for" on 2 sh -c "ip -6 neigh | grep -q fd99::77"
answers -j ACCEPT
ok "two that refuse" order fd99::3 10.99.0.3
pod one 2 1 2 --barrier-timeout 2s true
ok "when all refuse, 200" codes 200 one
has "with the name and the reason" "$T/one.err" \
    'node rank 0 at zero:29400 was not reached: connection refused'

# The interface of the barrier's connection, for NCCL where it is asked for.
cat >"$T/shows" <<'E'
#!/bin/sh
echo "$GLOO_SOCKET_IFNAME ${NCCL_SOCKET_IFNAME-unset}"
E
chmod 755 "$T/shows"
ok "pod 0's address" order 10.99.0.1
pod zero 1 0 2 --nccl-ifname barrier "$T/shows"
pod one 2 1 2 "$T/shows"
ok "a job that shows interfaces" codes "0 0" zero one
is "--nccl-ifname barrier" "$(cat "$T/zero.out")" '[rank0] eth0 =eth0'
is "and a pod without it" "$(cat "$T/one.out")" '[rank1] eth0 unset'
export NCCL_SOCKET_IFNAME=eth
pod zero 1 0 2 --nccl-ifname barrier "$T/shows"
pod one 2 1 2 --nccl-ifname=none "$T/shows"
ok "another such job" codes "0 0" zero one
is "what is set stays" "$(cat "$T/zero.out" "$T/one.out" | tr '\n' ' ')" \
    '[rank0] eth0 eth [rank1] eth0 eth '
