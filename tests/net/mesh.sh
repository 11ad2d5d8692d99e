#!/usr/bin/env bash
# The mesh test: pods that do not reach each other are named before the workers
# start; with --mesh given that is the end, else a warning.
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/hosts.sh"
hosts 24

# job NAME H: pods 0-2 on hosts H to H+2, a strict job and one that warns.
job()
{
    local r h
    for r in 0 1 2; do
        h=$(($2 + r))
        sed -i '/zero/d' "/etc/netns/$net-$h/hosts"
        echo "${zero:-10.99.0.}$2 zero" >>"/etc/netns/$net-$h/hosts"
    done
    for r in 0 1 2; do
        pod "$1-s$r" $(($2 + r)) $r 3 -v --mesh ring echo ran
        pod "$1-w$r" $(($2 + r)) $r 3 -v --barrier-port 29401 echo ran
    done
}
# refused NAME WORDS: what both jobs have to say of ranks 1 and 2.
refused()
{
    local r
    ok "$1: 200 on all pods" codes "200 200 200" "$1"-s{0,1,2}
    is "$1: no worker runs" "$(cat "$T/$1"-s?.out)" ''
    for r in 0 1 2; do
        has "$1: pod $r names the pair" "$T/$1-s$r.err" "error: .*$2"
    done
    ok "$1: without --mesh the job runs" codes "0 0 0" "$1"-w{0,1,2}
    is "$1: and its workers" "$(cat "$T/$1"-w?.out | wc -l)" 3
    has "$1: with a warning" "$T/$1-w0.err" "warning: $2"
}
# fine NAME
fine()
{
    ok "$1: all is well" codes "0 0 0 0 0 0" "$1"-{s,w}{0,1,2}
    hasnt "$1: no warning" "$T/$1-w0.err" "warning"
    has "$1: pod 0 says so" "$T/$1-s0.err" "debug: 3 pods reach each other"
}
# deaf I FROM RULE...: host I does not hear this of host FROM.
deaf()
{
    local i=$1 from=$2
    shift 2
    on "$i" iptables -A INPUT -s "10.99.0.$from" "$@"
}

deaf 5 6 -j DROP
deaf 6 5 -j DROP
job both 4
deaf 9 8 -j DROP
job oneway 7
deaf 12 11 -p tcp --syn -j DROP
job syn 10
for i in 14 15; do
    deaf $i $((29 - i)) -m length --length 1001: -j DROP
done
job mtu 13
deaf 17 18 -m length --length 1001: -j DROP
job mtu1 16
deaf 21 19 -p tcp --syn -j REJECT
deaf 21 20 -p tcp --syn -j REJECT
job lonely 19
job fine 1
# IPv6 alone.
zero=fd99::
for i in 22 23 24; do
    on $i ip addr flush dev eth0 scope global
    on $i ip addr add "fd99::$i/64" dev eth0 nodad
done
on 24 ip6tables -A INPUT -s fd99::23 -p tcp --syn -j REJECT \
    --reject-with tcp-reset
job six 22

fine fine
pair='node rank [12] cannot reach node rank [12] at 10\.99\.0\.[0-9]+:[0-9]+:'
refused both "$pair no answer \(timed out\); nor the other way round"
has "the pod itself warns, too" "$T/both-w1.err" \
    "warning: cannot reach node rank 2 at 10\.99\.0\.6:[0-9]+: no answer"
refused oneway "$pair no answer \(timed out\); nor the other way round"
refused syn "node rank 1 cannot reach node rank 2 at 10\.99\.0\.12:[0-9]+: no \
answer \(timed out\); the other way round works"
refused mtu "$pair small packets pass, 64 KiB do not: is the MTU too large\?; \
nor the other way round"
refused mtu1 "$pair small packets pass, 64 KiB (from there )?do not arrive\
( there)?: is the MTU too large\?; nor the other way round"
refused lonely "node rank 0 cannot reach node rank 2 at 10\.99\.0\.21:[0-9]+: \
connection refused; the other way round works"
has "the pod that all have trouble with" "$T/lonely-s1.err" \
    "Node rank 2 is in all of them"
refused six "node rank 1 cannot reach node rank 2 at \[fd99::24\]:[0-9]+: \
connection refused; the other way round works"

on 24 ip6tables -F
job six2 22
fine six2
on 23 ip6tables -A INPUT -p tcp --syn --dport 4567 -j ACCEPT
pod port0 22 0 2 true
pod port1 23 1 2 --mesh-port 4567 \
    sh -c 'cat /proc/net/tcp /proc/net/tcp6 | grep -c " 0A " || :'
ok "a fixed --mesh-port" codes "0 0" port0 port1
ok "is connected to" on 23 \
    sh -c "ip6tables -nvxL INPUT | grep -qE '^ +1 .*4567'"
is "nothing listens while workers run" "$(cat "$T/port1.out")" '[rank1] 0'

# preflight's all-reduce names a pair, too, whatever becomes of it.
mkdir "$T/bin"
cp "$agent" "$T/bin/agent"
printf '#!/bin/sh\nexit 1\n' >"$T/bin/agent-allreduce"
chmod +x "$T/bin/agent-allreduce"
for r in 0 1 2; do
    on $((4 + r)) timeout -k 5 60 "$T/bin/agent" preflight --node-rank $r \
        --nnodes 3 --master-addr zero --barrier-port 29402 \
        --preflight allreduce >"$T/pre$r.out" 2>"$T/pre$r.err" </dev/null &
    pod_pid[pre$r]=$!
done
ok "preflight: 20 on all pods" codes "20 20 20" pre0 pre1 pre2
has "preflight: the pair is named" "$T/pre0.err" \
    'warning: node rank [12] cannot reach node rank [12] at 10.99.0'
