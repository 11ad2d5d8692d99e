#!/usr/bin/env bash
# libddp between two hosts: two network namespaces and a cable.
. "$(dirname "$0")/../lib/tap.sh"
. "$top/tests/lib/ddp.sh"
check=$O/tests/ddp_check
ns=$(command -v unshare)
if "$ns" -n true 2>/dev/null; then
    ns="$ns -n"
elif "$ns" -Urn true 2>/dev/null; then
    ns="$ns -Urn"
else
    skip "libddp between two hosts" "unshare -n is not permitted here"
    exit
fi

# Two processes that hold a host each; b's is a child of a's, so that one user
# namespace covers both.
$ns bash -c "unshare -n sleep 600 & echo \$! >'$T/b.tmp'
    mv '$T/b.tmp' '$T/b'; wait" &
a=$!
until_true 10 test -s "$T/b" || exit 1
b=$(cat "$T/b")
# enter HOST COMMAND...: in place of this shell.
enter()
{
    local host=$1
    shift
    if [ "$(id -u)" -eq 0 ]; then
        exec nsenter -t "$host" -n "$@"
    else
        exec nsenter -t "$host" -U --preserve-credentials -n "$@"
    fi
}
on() { (enter "$@"); }
other_net()
{
    [ "$(readlink /proc/"$b"/ns/net)" != "$(readlink /proc/"$a"/ns/net)" ] &&
        [ "$(readlink /proc/"$a"/ns/net)" != "$(readlink /proc/$$/ns/net)" ]
}
until_true 10 other_net
ok "two hosts and a cable" on "$a" bash -ec "
    ip link set lo up
    ip link add va type veth peer name vb netns $b
    ip addr add 10.9.0.1/24 dev va
    ip link set va up"
ok "its other end" on "$b" bash -ec "
    ip link set lo up
    ip addr add 10.9.0.2/24 dev vb
    ip link set vb up"

# rank R HOST ADDR COMMAND...: of n.
n=4
rank()
{
    local r=$1 host=$2 addr=$3
    shift 3
    RANK=$r WORLD_SIZE=$n MASTER_ADDR=$addr MASTER_PORT=29500 \
        enter "$host" "$@" >"$T/out.$r" 2>&1 </dev/null &
    pids[r]=$!
}
# Ranks 0 and 1 are on host a, 2 and 3 on host b.
both()
{
    local addr_a=$1 addr_b=$2
    shift 2
    rank 3 "$b" "$addr_b" "$@"
    rank 2 "$b" "$addr_b" "$@"
    rank 1 "$a" "$addr_a" "$@"
    rank 0 "$a" "$addr_a" "$@"
}

both 10.9.0.1 10.9.0.1 "$check" sums
ok "IPv4" ended 0 60 0 1 2 3

export DDP_SOCKETS=5
both 10.9.0.1 10.9.0.1 "$check" sums
ok "5 sockets" ended 0 60 0 1 2 3
unset DDP_SOCKETS

settled() { on "$1" ip -6 addr show dev "$2" scope link | grep inet6 |
    grep -qv tentative; }
if until_true 5 settled "$a" va && until_true 5 settled "$b" vb; then
    on "$a" ip -6 addr add fd09::1/64 dev va nodad
    on "$b" ip -6 addr add fd09::2/64 dev vb nodad
    both fd09::1 fd09::1 "$check" sums
    ok "IPv6" ended 0 60 0 1 2 3
    local_a=$(on "$a" ip -6 addr show dev va scope link |
        awk '/inet6/ {sub("/.*", "", $2); print $2}')
    both "$local_a%va" "$local_a%vb" "$check" sums
    ok "IPv6, link-local" ended 0 60 0 1 2 3
else
    skip "IPv6" "there is none here"
fi

# Rank 0's machine knows its own name by loopback, and ranks are not in order.
export DDP_TIMEOUT=20s
rank 0 "$a" node0.invalid "$check" sums
rank 2 "$a" 127.0.0.1 "$check" sums
rank 1 "$b" 10.9.0.1 "$check" sums
rank 3 "$b" 10.9.0.1 "$check" sums
ok "an address that is loopback elsewhere is an error" ended 3 60 0 1 2 3
ok "which says so" said \
    "code -1 peer 2 .*MASTER_ADDR must not be loopback on rank 2's" 0 1 2 3

# Ranks of one host share memory, and rails go between the hosts: whoever dies
# or stops is named by the one who shares its memory, by the one on its rail,
# and by the one who has neither to do with it.
unset DDP_TIMEOUT
for k in 1000000 100; do # A large one, a small one.
    both 10.9.0.1 10.9.0.1 "$check" loop $k
    ok "$k: a loop of all_reduce on two hosts" \
        until_true 30 said "in the loop" 0 1 2 3
    ok "$k: ranks of a host share memory" maps 1 0 1 2 3
    kill -9 "${pids[3]}"
    ok "$k: kill -9 of rank 3: the others fail, long before the deadline" \
        ended 3 10 0 1 2
    ok "$k: each names rank 3" \
        said "code -6 peer 3 .*rank 3 died or failed" 0 1 2

    export DDP_TIMEOUT=1500ms
    both 10.9.0.1 10.9.0.1 "$check" loop $k
    ok "$k: a loop of all_reduce, again" \
        until_true 30 said "in the loop" 0 1 2 3
    kill -STOP "${pids[1]}"
    ok "$k: SIGSTOP of rank 1: the others fail at the deadline" \
        ended 3 15 0 2 3
    ok "$k: each names rank 1" said \
        "code -5 peer 1 .*after 1.5 s: rank 1 (is silent|has not made)" 0 2 3
    kill -CONT "${pids[1]}"
    ok "$k: rank 1 wakes up and learns it" ended 3 15 1
    unset DDP_TIMEOUT
done

# Ranks that are dealt out, and one of each host dies: all others wait for one
# in their memory, which has none of its neighbours in the ring.
n=6
for r in 5 4 3 2 1 0; do
    rank $r "$([ $((r % 2)) = 0 ] && echo "$a" || echo "$b")" 10.9.0.1 \
        "$check" loop 100000 1 4
done
ok "six ranks, dealt out to two hosts" \
    until_true 30 said "in the loop" 0 1 2 3 4 5
ok "ranks of a host share memory" maps 1 0 1 2 3 4 5
kill -9 "${pids[1]}" "${pids[4]}"
ok "kill -9 of one on each: the others fail, long before the deadline" \
    ended 3 10 0 2 3 5
ok "each names one of them" \
    said "code -6 peer [14] .*rank [14] died or failed" 0 2 3 5
n=4

# Host b has no memory: all go over the ring alone.
rank 3 "$b" 10.9.0.1 "$check" loop 1000
rank 1 "$a" 10.9.0.1 "$check" loop 1000
rank 0 "$a" 10.9.0.1 "$check" loop 1000
rank 2 "$b" 10.9.0.1 sh -c 'ulimit -f 64; exec "$@"' - "$check" loop 1000
ok "a host without memory" until_true 30 said "in the loop" 0 1 2 3
ok "nobody shares any" maps 0 0 1 2 3
kill -9 "${pids[3]}"
ok "kill -9 of rank 3 there" ended 3 10 0 1 2

export DDP_TIMEOUT=2s
both 10.9.0.1 10.9.0.1 "$check" loop 10000
ok "a loop of all_reduce" until_true 20 said "in the loop" 0 1 2 3
ok "the cable is cut" on "$a" ip link set va down
ok "all ranks fail at the deadline" ended 3 60 0 1 2 3
quiet="is silent|has not made this call"
ok "ranks of host a name one of host b" said "code -5 peer [23] .*($quiet)" 0 1
ok "ranks of host b name one of host a" said "code -5 peer [01] .*($quiet)" 2 3
kill "$b"
wait "$a"
