#!/usr/bin/env bash
# --cpu-bind, and torchrun's --numa-binding: the CPUs that workers really have,
# on this machine and on one with two NUMA nodes and GPUs that is made up.
. "$(dirname "$0")/../lib/tap.sh"
cat >"$T/show" <<'E'
#!/bin/sh
n=$(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status)
echo "$LOCAL_RANK:$n"
E
chmod 755 "$T/show"
run() { timeout -k 5 60 "$agent" --log-prefix none "$@" >"$T/out" 2>"$T/err"
    rc=$?; }
shown() { echo "$rc $(sort "$T/out" | paste -s -d ' ')"; }
mine=$(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status)
first=${mine%%[-,]*}
sys=/sys/devices/system

run --nproc 2 -- "$T/show"
is "none by default" "$(shown)" "0 0:$mine 1:$mine"
run --nproc 1 --cpu-bind none -- "$T/show"
is "and where it is said" "$(shown)" "0 0:$mine"
run --nproc 1 --cpu-bind sockets -- "$T/show"
is "another word is refused" "$rc" 64
has "with the right ones" "$T/err" 'use one of: none, numa, cores'

# As many workers as this machine has CPUs in this test, and one more.
if [ -r $sys/cpu/cpu"$first"/topology/thread_siblings_list ]; then
    taskset -c "$first" "$agent" --nproc 1 --cpu-bind cores --dry-run -- true \
        >"$T/out" 2>"$T/err"
    has "within the affinity that agent was given" "$T/out" \
        "\"cpus\": ?\"$first\""
    taskset -c "$first" "$agent" --nproc 2 --cpu-bind cores --log-prefix none \
        -- "$T/show" >"$T/out" 2>"$T/err"
    rc=$?
    is "too few cores: not pinned, and the job runs" "$(shown)" \
        "0 0:$first 1:$first"
    has "and it is said" "$T/err" 'warning: --cpu-bind: NUMA node [0-9]+ has 1 core'
    # A pod that is given other CPUs between two rounds.
    run --nproc 1 --cpu-bind cores --max-restarts 1 --restart-backoff 10ms:10ms \
        -v -- sh -c '"$0"; [ "$TORCHELASTIC_RESTART_COUNT" = 1 ]' "$T/show"
    is "the same CPUs in the next round" "$(uniq "$T/out" | wc -l)" 1
    has "which was one" "$T/err" 'round 1 starts'
    has "-v lists them" "$T/err" 'debug: worker 0 is pinned to CPUs [0-9]'
else
    skip "cores of this machine" "sysfs does not say which CPUs make a core"
fi

"$agent" torchrun --numa-binding node --no-python "$T/show" >"$T/out" \
    2>"$T/err"
rc=$?
is "torchrun without GPUs: refused, as by torchrun" "$rc" 64
has "and why" "$T/err" 'worker L belongs to GPU L, and 0 GPUs are visible'

# A made-up machine over this one's sysfs: the CPUs of this test are split into
# two nodes. It needs two of them, and a mount namespace.
second=$(python3 -c 'import os; print(([*sorted(os.sched_getaffinity(0)), ""])[1])')
ns="unshare -m"
$ns true 2>/dev/null || ns="unshare -Urm"
if [ -z "$second" ] || ! $ns true 2>/dev/null; then
    skip "two NUMA nodes" "one CPU, or unshare -m is not permitted here"
    exit 0
fi
fake=$T/fake
mkdir -p "$fake"/{cpu,node/node0,node/node1,nvidia,pci,gpus}
echo "$first,$second" >"$fake/cpu/online"
echo 0-1 >"$fake/node/online"
echo "$first" >"$fake/node/node0/cpulist"
echo "$second" >"$fake/node/node1/cpulist"
for c in $first $second; do
    mkdir -p "$fake/cpu/cpu$c/topology"
    echo "$c" >"$fake/cpu/cpu$c/topology/thread_siblings_list"
    echo 0 >"$fake/cpu/cpu$c/topology/physical_package_id"
done
prefix=--log-prefix=none
# in_fake ARGS: agent there, with the CPUs of both nodes.
in_fake()
{
    # shellcheck disable=SC2086 # a command and its option
    taskset -c "$first,$second" timeout -k 5 60 $ns --propagation private \
        bash -c 'mount --bind "$1/cpu" /sys/devices/system/cpu &&
        mount --bind "$1/node" /sys/devices/system/node || exit 99
        shift; exec "$@"' - "$fake" "$agent" ${prefix:+"$prefix"} "$@" \
        >"$T/out" 2>"$T/err"
    rc=$?
}
in_fake --nproc 2 --cpu-bind numa -- "$T/show"
if [ $rc = 99 ]; then
    skip "two NUMA nodes" "nothing can be mounted over /sys here"
    exit 0
fi
is "numa: workers are spread over the nodes" "$(shown)" \
    "0 0:$first 1:$second"
in_fake --nproc 4 --cpu-bind numa -- "$T/show"
is "two on each" "$(shown)" "0 0:$first 1:$first 2:$second 3:$second"
in_fake --nproc 2 --cpu-bind cores -- "$T/show"
is "cores: one each" "$(shown)" "0 0:$first 1:$second"
both=$(taskset -c "$first,$second" sed -n \
    's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status)
AGENT_CPU_BIND=numa in_fake --nproc 2 --contract mxnet --servers 1 -- sh -c \
    '[ "$DMLC_ROLE" = scheduler ] || echo "$DMLC_ROLE" "$("$0")"' "$T/show"
is "by the variable; servers have all CPUs" "$(shown | sed 's/ *:/ /g')" \
    "0 server $both worker $first worker $second"
rm "$fake/node/node1/cpulist"
in_fake --nproc 2 --cpu-bind numa -- "$T/show"
is "a machine that says half: nobody is pinned" "$(shown)" "0 0:$both 1:$both"
has "and what is missing is said" "$T/err" \
    'warning: --cpu-bind: .*/node\*/cpulist cannot be read.* not pinned'
echo "$second" >"$fake/node/node1/cpulist"
CUDA_VISIBLE_DEVICES=0,1 in_fake --nproc 2 --cpu-bind numa -- "$T/show"
is "GPUs of which nothing is known: nobody is pinned" "$(shown)" \
    "0 0:$both 1:$both"
has "and it is said" "$T/err" 'which card GPU 0 is cannot be told \(none in'
prefix=
CUDA_VISIBLE_DEVICES=0,1 in_fake torchrun --numa-binding node --nproc-per-node \
    2 --no-python "$T/show"
is "with torchrun that is an error" "$rc" 64
