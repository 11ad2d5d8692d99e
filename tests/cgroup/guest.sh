#!/bin/sh
# The guest's part of tests/cgroup/cgroup.sh: agent as PID 1 in control groups of
# v2, or of v1 where the kernel's command line says so. A line `@NAME` begins
# what cgroup.sh keeps in NAME.
part() { printf '\n@%s\n' "$1"; }
alone='/usr/bin/unshare -mpf --kill-child --mount-proc'
cg=/sys/fs/cgroup
v1=$(sed -n 's/.*cgroup=v1.*/yes/p' /proc/cmdline)
if [ "$v1" ]; then
    controllers='memory pids cpu,cpuacct'
    mount -t tmpfs c $cg
    for c in $controllers; do
        mkdir $cg/$c
        mount -t cgroup -o $c c $cg/$c || part missing
        mkdir -p $cg/$c/pod/train
    done
    ln -s cpu,cpuacct $cg/cpu
    memory=memory.limit_in_bytes
    namespace= # A container of v1 has mounts alone.
    narrow="for c in $controllers; do
        mount --bind $cg/\$c/pod/train $cg/\$c || exit; done"
else
    controllers=.
    mount -t cgroup2 c $cg
    mkdir $cg/pod $cg/pod/train
    for g in $cg $cg/pod; do
        echo '+memory +pids +cpu' >$g/cgroup.subtree_control || part missing
    done
    memory=memory.max namespace=-C
    narrow="umount $cg && mount -t cgroup2 c $cg"
fi
file() { echo "$cg/${v1:+$1/}$2"; } # CONTROLLER PATH
enter() { for c in $controllers; do echo 0 >$cg/$c/pod/train/cgroup.procs; done; }
# pod VIEW COMMAND...: as PID 1 in pod/train, which is all that it sees (own, a
# container), or it sees the whole tree (host).
# With a pipe, as a worker alone has a terminal itself.
pod()
{
    view=$1
    shift
    { (
        enter
        [ "$view" = own ] || exec $alone "$@"
        exec $alone $namespace sh -c "$narrow"' && exec "$@"' sh "$@"
    ) 2>&1; echo "code $?"; } </dev/null | cat
}
limit() { echo "$3" >"$(file "$1" "$2")"; }
one_eats='[ $RANK = 1 ] || exec sleep 60; exec /foreign eat'

limit memory pod/train/$memory 33554432
for view in own host; do
    part oom-$view
    pod $view /agent --nproc 2 --max-restarts 0 -- sh -c "$one_eats"
done
part oom-shell
pod own /agent --max-restarts 0 -- sh -c '/foreign eat; exit $?'
part oom-again
pod own /agent --max-restarts 1 --restart-backoff 10ms:50ms -- sh -c '
    [ $TORCHELASTIC_RESTART_COUNT = 1 ] || exec /foreign eat; echo "child of $PPID"'
part kill
pod own /agent --max-restarts 0 -- sh -c 'kill -9 $$'
part shm
pod own /agent preflight --preflight shm
if [ ! "$v1" ]; then
    # The group's own limit is far away: that of the group above is not.
    limit memory pod/train/memory.max 33554432
    limit memory pod/memory.max 33554432
    part oom-above
    pod own /agent --max-restarts 0 -- /foreign eat
    limit memory pod/memory.max max
    limit memory pod/train/memory.max 33554432
    limit memory pod/train/memory.oom.group 1
    part group
    pod own /agent --max-restarts 0 -- sh -c 'until [ -e /tmp/go ]; do
        sleep .1; done; exec /foreign eat' >/tmp/group 2>&1 &
    i=0
    until grep -q oom.group /tmp/group || [ $i -eq 300 ]; do
        i=$((i + 1))
        sleep .1
    done
    : >/tmp/go
    wait
    cat /tmp/group
    limit memory pod/train/memory.oom.group 0
fi

limit pids pod/train/pids.max 12
part pids
pod own /agent --nproc 16 --max-restarts 0 --grace 5s -- sleep 60
part pids-host
pod host /agent --nproc 16 --max-restarts 0 --grace 5s -- sleep 60
part pids-worker
pod own /agent --max-restarts 0 --grace 5s -- sh -c '
    for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 60 & done; wait'
part pids-preflight
pod own /agent preflight --preflight limits --nproc 4
limit pids pod/train/pids.max max

part cpus
pod own /agent --nproc cpu -- echo worker
if [ "$v1" ]; then
    limit cpu pod/train/cpu.cfs_quota_us 50000
else
    limit cpu pod/train/cpu.max '50000 100000'
fi
for view in own host; do
    part cpus-$view
    pod $view /agent --nproc cpu -- echo worker
done

# And as the first process of all, which the OOM killer spares.
part init
enter
exec /agent --max-restarts 1 --restart-backoff 10ms:50ms -- sh -c '
    [ $TORCHELASTIC_RESTART_COUNT = 1 ] || exec /foreign eat
    stty sane </dev/console # When all of it is out.
    poweroff -f'
