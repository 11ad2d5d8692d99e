#!/usr/bin/env bash
# The quick part: agent as PID 1 of real containers, from an image of this
# machine's own programs; nothing is fetched.
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/containers.sh"
. "$(dirname "$0")/../lib/hosts.sh"
. "$(dirname "$0")/../lib/musl.sh"
containers_end_also=hosts_end
hosts 2
containers_begin
containers_or_skip
cp "$O/tests/foreign" "$T/worker"
ok "an image" tiny_image smoke:test "$T/worker" "$O/examples/digits" /bin/sh \
    /bin/sleep /usr/bin/head /usr/bin/tail /usr/bin/id

# shellcheck disable=SC2016 # for the worker's shell
run pid1 smoke:test --nproc 2 -- sh -c 'echo $PPID $RANK'
is "agent is PID 1, and the workers are its children" \
    "$? $(sort "$T/pid1.out" | paste -s -d ' ')" "0 [rank0] 1 0 [rank1] 1 1"
run code smoke:test --max-restarts 0 -- sh -c 'exit 42'
is "a worker's code is the container's" $? 42
run orphans --pids-limit 40 smoke:test -- worker orphans
is "200 orphans with 40 processes allowed" $? 0
has "are reaped" "$T/orphans.err" '; (19[0-9]|200) orphans reaped'
is_tight "read-only, any uid, no passwd, no capability, seccomp: a restart" \
    smoke:test no worker
ok "a root of musl" musl_root "$T/musl"
tar -C "$T/musl" --numeric-owner -c . | podman import -q \
    -c 'ENTRYPOINT ["/agent"]' - musl:test >"$T/log"
is_tight "the same in an image of musl" musl:test no /worker

start stop smoke:test -- sh -c 'trap "echo asked; exit 0" TERM; echo up
    while :; do sleep .05; done'
ok "a job runs" wait_for says stop 'up'
ok "agent status answers" podman exec "stop-$$" agent status
ok "podman stop" podman stop -t 20 "stop-$$"
is "ends it with 143" "$(code_of stop)" 143
ok "the worker was asked" says stop 'asked'

# 200 MiB in a pod of 64: the worker is killed, and agent says by whom.
run oom --memory 64m --memory-swap 64m smoke:test --max-restarts 0 -- \
    sh -c 'head -c 200m /dev/zero | tail'
is "out of memory: 137, of tail or of the shell" $? 137
has "the verdict knows that it was memory" "$T/oom.err" 'OOM|out of memory'
run small --shm-size 1m smoke:test preflight --nproc 8
is "a small /dev/shm is found before" $? 30
has "with what to do" "$T/small.out" 'medium: Memory'
run bus --shm-size 1m smoke:test --max-restarts 0 -- worker fill
is "where it was not: SIGBUS" $? 135
has "is explained" "$T/bus.err" 'SIGBUS most often means that /dev/shm is full'

# Two pods with a network each.
with_set=(-v "$top/examples/digits:/set:ro" smoke:test
    --dataset /set/manifest.json)
container a0 1 0 2 "${with_set[@]}" -- digits --epochs 5
container a1 2 1 2 "${with_set[@]}" -- digits --epochs 5
is "two pods train" "$(code_of a0) $(code_of a1)" "0 0"
ok "with a result" says a0 'accuracy'
container b0 1 0 2 smoke:test -- sh -c "$second_round"
container b1 2 1 2 smoke:test -- sh -c "$second_round"
ok "two pods run" wait_for says b1 'up 0'
podman kill -s KILL "b1-$$" >"$T/log"
is "one is killed" "$(code_of b1)" 137
container b2 2 1 2 smoke:test -- sh -c "$second_round"
is "it is created anew, and the job goes on" \
    "$(code_of b0) $(code_of b2)" "0 0"
