# hosts.sh: several hosts on this machine, each a network namespace on one
# bridge; sourced after tap.sh. Everything has this run's name and is removed at
# the end. Where namespaces are not permitted, the whole test is skipped.
# shellcheck shell=bash disable=SC2034,SC2154
net=ag$$
n_hosts=0
declare -A pod_pid

hosts_end()
{
    local status=$? i p

    for p in "${pod_pid[@]}"; do
        kill -KILL "$p" 2>/dev/null
    done
    wait 2>/dev/null
    for ((i = 1; i <= n_hosts; i++)); do
        ip netns del "$net-$i" 2>/dev/null
        rm -rf "/etc/netns/$net-$i"
    done
    ip netns del "$net-br" 2>/dev/null
    (exit $status)
    tap_end
}

# hosts N: 10.99.0.1 .. 10.99.0.N; hosts 1, 3, 5 ... are known to themselves and
# to the next one as zero.
hosts()
{
    local i

    if ! ip netns add "$net-br" 2>"$T/why"; then
        skip "several hosts" "ip netns add: $(head -n 1 "$T/why")"
        exit
    fi
    trap hosts_end EXIT
    trap 'exit 1' INT TERM HUP
    ip -n "$net-br" link add br0 type bridge
    ip -n "$net-br" link set br0 up
    for ((i = 1; i <= $1; i++)); do
        n_hosts=$i
        ip netns add "$net-$i"
        ip link add "v$i" netns "$net-br" type veth peer name eth0 \
            netns "$net-$i"
        ip -n "$net-br" link set "v$i" master br0 up
        ip -n "$net-$i" addr add "10.99.0.$i/24" dev eth0
        ip -n "$net-$i" link set eth0 up
        ip -n "$net-$i" link set lo up
        mkdir -p "/etc/netns/$net-$i"
        echo "127.0.0.1 localhost" >"/etc/netns/$net-$i/hosts"
        echo "10.99.0.$((i - (i + 1) % 2)) zero" >>"/etc/netns/$net-$i/hosts"
        : >"/etc/netns/$net-$i/resolv.conf"
    done
}
on()
{
    local h=$1
    shift
    ip netns exec "$net-$h" "$@"
}

# Packets vanish, both ways; and back.
part() { ip -n "$net-br" link set "v$1" down; }
heal() { ip -n "$net-br" link set "v$1" up; }

# delay HOST MS: from now on each way takes so much longer. False where it could
# not be done.
delay()
{
    local h=$1 lib i

    lib=$(dirname "${BASH_SOURCE[0]}")
    for ((i = 1; i <= n_hosts; i++)); do
        on "$i" python3 "$lib/delay.py" plain eth0 || return 1
    done
    ip -n "$net-br" link set "v$h" nomaster &&
        ip -n "$net-br" link add "r$h" type veth peer name "b$h" &&
        ip -n "$net-br" link set "b$h" master br0 up &&
        ip -n "$net-br" link set "r$h" up || return 1
    ip netns exec "$net-br" python3 "$lib/delay.py" relay "v$h" "r$h" "$2" \
        >"$T/delay$h" &
    pod_pid[delay$h]=$!
    until_true 20 grep -q ready "$T/delay$h"
}

# pod NAME HOST RANK NNODES ARGS...: an agent as PID 1 of its own host;
# $T/NAME.{out,err}
pod()
{
    local name=$1 h=$2 r=$3 n=$4
    shift 4
    fresh "$T/$name.out" "$T/$name.err"
    ip netns exec "$net-$h" unshare --fork --kill-child --pid --mount-proc --uts \
        "$agent" --nnodes "$n" --node-rank "$r" --master-addr zero \
        --restart-backoff 10ms:50ms --grace 1s "$@" \
        >"$T/$name.out" 2>"$T/$name.err" </dev/null &
    pod_pid[$name]=$!
}
# The agent, seen from outside.
agent_of() { pgrep -P "${pod_pid[$1]}"; }
said() { grep -qE -- "$2" "$T/$1.err"; }
wrote() { grep -qE -- "$2" "$T/$1.out"; }
# wait_for said|wrote NAME REGEX
wait_for()
{
    until_true 60 "$@" && return
    echo "never: $*"
    tail -n 30 "$T"/*.err
    return 1
}
# codes WANTED NAME...: these end with these codes, in order.
codes()
{
    local want=$1 got= name
    shift
    for name; do
        until_true 60 gone "${pod_pid[$name]}" || {
            echo "$name still runs"
            return 1
        }
        wait "${pod_pid[$name]}"
        got="$got${got:+ }$?"
    done
    [ "$got" = "$want" ] && return
    echo "got: $got; wanted: $want"
    for name; do
        sed "s/^/$name: /" "$T/$name.err" | tail -n 15
    done
    return 1
}
# A worker that says its round and runs until $T/FILE is there.
until_file()
{
    echo "echo up \$TORCHELASTIC_RESTART_COUNT
        until [ -e '$T/$1' ]; do sleep 0.05; done"
}
