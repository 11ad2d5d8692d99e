#!/usr/bin/env bash
# agent as PID 1 in control groups, of v2 and of v1, in guests of qemu with
# Debian's kernel: no KVM and no root is needed. `make check-cgroup`.
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/guest.sh"

guest_or_skip
guest_new "$top/tests/cgroup/guest.sh"
cp "$O/tests/foreign" "$guest/foreign"
guest_put "$(command -v unshare)" "$guest/foreign"
guest_pack
for v in v2 v1; do guest_run $v cgroup=$v & done
wait

oom='hint: .*OOM killer was at work in this pod \(1 kill since'
limit='the memory limit of 32 MiB was reached'
for v in v2 v1; do
    d=$T/$v
    if [ -e "$d/missing" ]; then
        # Some kernels have no v1 any more.
        [ $v = v2 ] && ok "v2 has its controllers" false ||
            skip "v1" "this kernel has no controllers of v1"
        continue
    fi
    for view in own host; do
        f=$d/oom-$view
        has "$v, $view view: a worker that takes too much: 137" "$f" '^code 137$'
        has "$v, $view view: by the OOM killer, and at which limit" "$f" \
            "$oom.*$limit"
        has "$v, $view view: which rank" "$f" 'rank 1 .*was killed by SIGKILL'
    done
    has "$v: where a shell tells it" "$d/oom-shell" \
        "137 is what a shell returns.*OOM killer was at work.*$limit"
    has "$v: a restart" "$d/oom-again" '^\[rank0\] child of 1$'
    has "$v: which succeeds" "$d/oom-again" '^code 0$'
    has "$v: kill -9 is told apart" "$d/kill" "hint: .*somebody's kill -9"
    has "$v: preflight takes no more of /dev/shm than memory allows" "$d/shm" \
        'memory has [0-9]+ MiB left'
    has "$v: and lives" "$d/shm" '^code (0|10|30)$'
    for view in pids pids-host; do
        has "$v: $view: too few processes: 202" "$d/$view" '^code 202$'
        has "$v: $view: why, and how many there are" "$d/$view" \
            "fork: .*pids.max, which is 12, of which 12 are used"
    done
    has "$v: a worker's fork fails" "$d/pids-worker" \
        'hint: a process or thread could not be started.*pids.max. is 12$'
    has "$v: preflight sees it before" "$d/pids-preflight" \
        '^fatal +limits +the pod may have 12 processes and threads'
    is "$v: CPUs without a quota, with one, and seen from the host" "$(
        for view in cpus cpus-own cpus-host; do
            grep -c 'worker$' "$d/$view"; done | paste -s -d ' ')" "2 1 1"
    has "$v: as the first process: it lives, and starts the next round" \
        "$d/init" 'round 1 starts; 1 of 1 restarts used'
done
has "v2: a limit above the container's own is told apart" "$T/v2/oom-above" \
    "own memory limit was not hit, but the OOM killer .*above this container's"
has "v2: with its code" "$T/v2/oom-above" '^code 137$'
has "v2: memory.oom.group is said at the start" "$T/v2/group" \
    'memory.oom.group is set for this container'
has "v2: for agent goes with the worker" "$T/v2/group" '^code 137$'
hasnt "v2: and has no last words" "$T/v2/group" 'failed with exit code'
