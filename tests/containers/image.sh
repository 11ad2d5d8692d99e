#!/usr/bin/env bash
# The images, and agent as PID 1 of real containers.
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/containers.sh"
containers_begin
ok "a base from Debian's packages" base_image
ok "docker/Dockerfile" image agent:test Dockerfile
nobody=65534:65534
is_described "docker/Dockerfile" agent:test agent debian:bookworm-slim \
    $nobody "$asked"

run help agent:test
is "by itself it says how it is used" \
    "$? $(head -c 12 "$T/help.out")" "0 usage: agent"
# shellcheck disable=SC2016 # for the worker's shell
run pid1 agent:test --nproc 2 -- sh -c 'echo $PPID $RANK'
is "it is PID 1, and the workers are its children" \
    "$? $(sort "$T/pid1.out" | paste -s -d ' ')" "0 [rank0] 1 0 [rank1] 1 1"
run code agent:test --max-restarts 0 -- sh -c 'exit 42'
is "a worker's code is the container's" $? 42
ok "agent-probe runs" run probe --entrypoint agent-probe agent:test \
    --only nccl

echo '#include <ddp.h>
int main(void)
{
    struct ddp_comm *c;
    return ddp_init(&c, 0, 0) ? 1 : ddp_size(c) == 2 ? 0 : 2;
}' >"$T/user.c"
ok "a program with libddp" cc -I "$top/include" -o "$T/user" "$T/user.c" \
    -L "$O" -lddp
ok "finds it there" run user -v "$T/user:/user:ro" agent:test --nproc 2 \
    --max-restarts 0 -- /user

# Dockerfile.mnist, with digits of this tree from a server on this machine.
mkdir -p "$T/ctx/docker"
port=$(free_port)
python3 -m http.server --bind 127.0.0.1 --directory "$top/examples/digits" \
    "$port" >"$T/http.log" 2>&1 &
server=$!
python3 - "$top/examples/digits/manifest.json" "$port" \
    >"$T/ctx/docker/mnist.json" <<'E'
import json, sys
m = json.load(open(sys.argv[1]))
for f in m["files"]:
    f["urls"] = [f"http://127.0.0.1:{sys.argv[2]}/{f['path']}"]
json.dump(m, sys.stdout)
E
# As in a checkout of somebody whose umask is 077.
cp "$top/docker/init.sh" "$T/ctx/docker"
chmod 600 "$T/ctx/docker/mnist.json"
chmod 700 "$T/ctx/docker/init.sh"
ok "Dockerfile.mnist fetches and verifies" podman build -q --pull=never \
    --format docker --network=host -t mnist:test -f "$top/docker/Dockerfile.mnist" \
    --build-arg AGENT=agent:test --build-arg BASE="$base" "$T/ctx"
kill "$server"
is_described "Dockerfile.mnist" mnist:test agent-mnist "$base" $nobody "$asked"
# shellcheck disable=SC2016 # for the worker's shell
run mnist mnist:test -- sh -c 'ls "$AGENT_DATASET_DIR/MNIST/raw"; env'
is "it has the set unpacked" \
    "$? $(grep -c 'rank0. t.*-ubyte$' "$T/mnist.out")" "0 4"
has "and is offline" "$T/mnist.out" 'http_proxy=http://127'

# The init container hands agent and the data set to an image without either.
ok "Dockerfile.init" podman build -q --pull=never --format docker \
    --network=host -t agent-init:test -f "$top/docker/Dockerfile.init" \
    --build-arg AGENT=agent:test --build-arg BASE="$base" "$T/ctx"
is_described "Dockerfile.init" agent-init:test agent-init "$base" $nobody NONE
mkdir -m 777 "$T/work"
in_pod=(-v "$T/work:/work" -v "$top/examples/digits:/sets:ro"
    -e AGENT_DATASET=/sets/manifest.json -e AGENT_STAGE=/work/data)
run init "${in_pod[@]}" -e AGENT_DIR=/work --shm-size 128m agent-init:test \
    --nproc 2
is "the init container ends with 0" $? 0
# shellcheck disable=SC2016 # for the worker's shell
run main "${in_pod[@]}" --entrypoint /work/agent "$base" -- \
    sh -c 'ls "$AGENT_DATASET_DIR/MNIST/raw"'
is "the main container has both" \
    "$? $(grep -c 'rank0. t.*-ubyte$' "$T/main.out")" "0 4"
has "and finds the stage" "$T/main.err" 'found verified in .work.data'
printf X | dd of="$(echo "$T"/work/data/digits@*/MNIST/raw/t10k-images*)" \
    conv=notrunc 2>"$T/log"
run wrong "${in_pod[@]}" --user 12345 --entrypoint /work/agent "$base" -- true
is "a stage that was damaged is refused: 65" $? 65
has "with the file, and why it stays so" "$T/wrong.err" \
    't10k-images.* has sha256 .* cannot be staged anew: .*Permission denied'
run again "${in_pod[@]}" -e AGENT_DIR=/work --shm-size 128m agent-init:test \
    --nproc 2
is "the init container mends it" $? 0
lock=$(echo "$T"/work/data/.digits@*.lock)
exec 9>>"$lock"
flock 9
rm -r "$T"/work/data/digits@*
start waits "${in_pod[@]}" -e AGENT_DIR=/work --shm-size 128m agent-init:test \
    --nproc 2
ok "while somebody else stages it waits" wait_for says waits \
    'another process stages'
ok "podman stop" podman stop -t 30 "waits-$$"
exec 9>&-
is "is heard" "$(code_of waits)" 143
run small "${in_pod[@]}" -e AGENT_DIR=/work --shm-size 1m agent-init:test \
    --nproc 8
is "a small /dev/shm is found before" $? 30
has "with what to do" "$T/small.out" 'medium: Memory'

# The one static file in an image with nothing else.
mkdir "$T/scratch"
cp "$agent" "$T/scratch/agent"
printf 'FROM scratch\nCOPY agent /agent\nENTRYPOINT ["/agent"]\n' \
    >"$T/scratch/Dockerfile"
podman build -q -t agent-scratch:test "$T/scratch" >"$T/log" 2>&1
run scratch agent-scratch:test -- /agent --version
is "FROM scratch" "$? $(cat "$T/scratch.out")" "0 [rank0] $("$agent" --version)"
start health agent:test -- sh -c 'echo up; exec sleep 60'
ok "a job runs" wait_for says health 'up'
ok "its health is asked by agent status" podman healthcheck run "health-$$"
start idle --entrypoint sleep agent:test 60
is "without agent it is not healthy" \
    "$(podman healthcheck run "idle-$$" >"$T/log" 2>&1; echo $?)" 1
ok "a worker that needs nothing of its image" musl-gcc -static -O1 \
    -D_GNU_SOURCE -o "$T/worker" "$top/tests/lib/foreign.c"
with_worker=(-v "$T/worker:/worker:ro")
is_tight "read-only, any uid, no capability, seccomp: a restart" \
    agent:test a /worker "${with_worker[@]}"
is_tight "the same in FROM scratch" agent-scratch:test no /worker \
    "${with_worker[@]}"
start some --read-only --read-only-tmpfs=false --tmpfs /tmp --user 12345 \
    agent:test -- sh -c 'echo up; exec sleep 60'
ok "with a /tmp, as any user" wait_for says some 'up'
ok "it is healthy" podman healthcheck run "some-$$"
podman exec -u 0 "some-$$" agent status >"$T/log" 2>&1
is "asked as root it is not found" $? 202
has "but root is told as whom to ask" "$T/log" 'PID 1 is of uid 12345'

# A root with an older glibc than agent was built with.
release=bullseye base=docker.io/library/debian:bullseye-slim
merged_usr= # Debian 11 has no package that this asks for.
ok "a base of Debian 11" base_image
# shellcheck disable=SC2016 # for the worker's shell
run old -v "$agent:/agent:ro" --entrypoint /agent "$base" --nproc 2 \
    --max-restarts 1 --restart-backoff 10ms:50ms -- bash -c '
    [ "$TORCHELASTIC_RESTART_COUNT" = 1 ] || exit 3
    getconf GNU_LIBC_VERSION; echo $PPID'
is "agent is PID 1 there, too, and restarts a job" \
    "$? $(sort "$T/old.out" | paste -s -d ' ')" \
    "0 [rank0] 1 [rank0] glibc 2.31 [rank1] 1 [rank1] glibc 2.31"
is_tight "read-only, any uid, no capability, seccomp there" "$base" a /worker \
    "${with_worker[@]}" -v "$agent:/agent:ro" --entrypoint /agent
