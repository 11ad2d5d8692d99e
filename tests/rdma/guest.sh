#!/bin/sh
# The guest's part of tests/rdma/rdma.sh: soft RDMA on a pair of interfaces.
# A line `@NAME` begins what rdma.sh keeps in NAME.
part() { printf '\n@%s\n' "$1"; }
ip=/usr/sbin/ip # Not the applet.
[ -x $ip ] || ip=/usr/bin/ip
port=/sys/class/infiniband/rxe0/ports/1/state
until_port() # WORD
{
    i=0
    until grep -q "$1" "$port" 2>/dev/null; do
        i=$((i + 1))
        [ $i -lt 300 ] || return 1
        sleep 0.1
    done
}
$ip link set lo up
part none
/agent-probe --only rdma
echo
part none-preflight
/agent preflight --preflight rdma
echo "code $?"
part none-all
/agent preflight --preflight shm,memlock,limits
$ip link add va type veth peer name vb
$ip addr add 10.50.0.1/24 dev va
$ip link set va up
$ip link set vb up
rdma link add rxe0 type rxe netdev va
until_port ACTIVE
part up
/agent-probe --only rdma
echo
part up-preflight
/agent preflight --preflight rdma
echo "code $?"
part up-json
/agent preflight --preflight rdma,memlock --json
echo
part user
chmod 666 /dev/infiniband/uverbs0
ulimit -l 1024
/usr/bin/setpriv --reuid 1000 --clear-groups /agent-probe --only rdma
echo
part user-preflight
/usr/bin/setpriv --reuid 1000 --clear-groups /agent preflight \
    --preflight rdma,memlock
echo "code $?"
part down
$ip link set vb down
until_port DOWN
/agent-probe --only rdma
echo
part down-preflight
/agent preflight --preflight rdma
echo "code $?"
part end
