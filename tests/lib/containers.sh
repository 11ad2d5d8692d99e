# containers.sh: real containers by podman, with an image store of this build's
# own; sourced after tap.sh. Nothing is fetched from a registry: the base is
# made from Debian's packages. Needs root, podman, runc, mmdebstrap.
# shellcheck shell=bash disable=SC2034,SC2154
O=$(cd "$O" && pwd)
agent=$O/agent
store=${CONTAINER_STORE:-$O/containers}
release=${CONTAINER_RELEASE:-bookworm}
base=docker.io/library/debian:$release-slim
merged_usr=--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr
made=()

containers_end()
{
    local status=$?

    [ ${#made[@]} -eq 0 ] ||
        podman rm -f -t 0 "${made[@]}" >/dev/null 2>&1
    (exit $status)
    ${containers_end_also:-tap_end}
}

# Limits are this machine's: where podman may not raise them it must not try.
containers_begin()
{
    local files

    files=$(ulimit -Hn)
    mkdir -p "$store"
    cat >"$store/containers.conf" <<E
[containers]
netns = "none"
default_ulimits = ["nofile=$files:$files", "nproc=32768:32768"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
E
    cat >"$store/storage.conf" <<E
[storage]
driver = "overlay"
graphroot = "$store/root"
runroot = "$store/run"
E
    export CONTAINERS_CONF=$store/containers.conf
    export CONTAINERS_STORAGE_CONF=$store/storage.conf
    trap containers_end EXIT
    trap 'exit 1' INT TERM HUP
    cd "$T" || exit 1 # conmon leaves a file where an OOM kill was.
}

# A look-alike of debian:<release>-slim, once for this build.
base_image()
{
    local r=$T/base

    podman image exists "$base" && return
    mmdebstrap --quiet --variant=apt \
        ${merged_usr:+"$merged_usr"} \
        --dpkgopt='path-exclude=/usr/share/man/*' \
        --dpkgopt='path-exclude=/usr/share/info/*' \
        --dpkgopt='path-exclude=/usr/share/locale/*' \
        --dpkgopt='path-exclude=/usr/share/doc/*' \
        --dpkgopt='path-include=/usr/share/doc/*/copyright' \
        "$release" "$r" || return
    rm -rf "$r"/var/lib/apt/lists/* "$r"/var/cache/apt/*.bin
    tar -C "$r" --numeric-owner -c . | podman import -q -c \
        'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' \
        -c 'CMD ["bash"]' - "$base" || return
    rm -rf "$r"
}

# image NAME DOCKERFILE ARGS...: of this tree, or of the one in $context
image()
{
    local name=$1 file=$2 from=${context:-$top}
    shift 2
    podman build -q --pull=never --network=host --timestamp 0 \
        --format docker -t "$name" -f "$from/docker/$file" "$@" "$from"
}
# of IMAGE TEMPLATE: what the image says of itself
of() { podman image inspect -f "$2" "$1"; }
# is_described NAME IMAGE TITLE BASE USER HEALTH
is_described()
{
    local l='{{index .Config.Labels "org.opencontainers.image.'
    is "$1: its labels, user and health check" \
        "$(of "$2" "${l}title\"}} ${l}version\"}}, ${l}base.name\"}}, $(
            )"'{{.Config.User}}, {{join .Config.Healthcheck.Test " "}}')" \
        "$("$agent" --version | sed "s/^agent/$3/"), $4, $5, $6"
}
asked='CMD agent status'

# run NAME ARGS...: to its end; its code, $T/NAME.{out,err}
run()
{
    local name=$1
    shift
    timeout -k 5 120 podman run --rm --name "$name-$$" "$@" \
        >"$T/$name.out" 2>"$T/$name.err"
}
# start NAME ARGS...: in the background; logs_of NAME gives both streams.
start()
{
    local name=$1
    shift
    made+=("$name-$$")
    podman run -d --name "$name-$$" "$@" >"$T/$name.id"
}
# container NAME HOST RANK NNODES ARGS... [-- COMMAND...]: a pod on a host of
# hosts.sh. ARGS are podman's, the image and agent's own.
container()
{
    local name=$1 h=$2
    export AGENT_NODE_RANK=$3 AGENT_NNODES=$4 AGENT_MASTER_ADDR=zero \
        AGENT_NPROC=2 AGENT_GRACE=2s AGENT_RESTART_BACKOFF=10ms:50ms \
        AGENT_STAGE=/tmp/stage
    shift 4
    start "$name" --network "ns:/run/netns/$net-$h" --env 'AGENT_*' \
        -v "/etc/netns/$net-$h/hosts:/etc/hosts:ro" "$@"
}
# Little is allowed; names of hosts are asked of modules that are not there.
tight=(--read-only --read-only-tmpfs=false --user 12345:12345 --cap-drop all
    --security-opt no-new-privileges --passwd=false
    -v "$T/nsswitch:/etc/nsswitch.conf:ro")
echo 'hosts: mymachines resolve wins' >"$T/nsswitch"
tight_words='uid 12345, capabilities 0, seccomp 2, root Read-only file system'
# is_tight NAME IMAGE PASSWD WORKER [ARG...]: a restart of tests/lib/foreign.c
is_tight()
{
    local name=$1 image=$2 passwd=$3 worker=$4
    shift 4
    run tight "${tight[@]}" "$@" "$image" --nproc 2 --max-restarts 1 \
        --restart-backoff 10ms:50ms -- "$worker" confined
    is "$name" "$? $(grep -c "$tight_words, $passwd passwd$" "$T/tight.out")" \
        "0 2"
}
# A worker that ends in the second round.
# shellcheck disable=SC2016 # for the worker's shell
second_round='echo up $TORCHELASTIC_RESTART_COUNT
    until [ "$TORCHELASTIC_RESTART_COUNT" = 1 ]; do sleep .1; done'
logs_of() { podman logs "$1-$$" 2>&1; }
says() { logs_of "$1" | grep -qE -- "$2"; }
wait_for()
{
    until_true 60 "$@" && return
    echo "never: $*"
    logs_of "$2" | tail -n 20
    return 1
}
# code_of NAME: when it ends
code_of() { timeout 120 podman wait "$1-$$"; }

# tiny_image NAME PROGRAM...: these programs of this machine and this build,
# with the libraries that they need, in /bin, and agent as the entrypoint.
tiny_image()
{
    local name=$1 r=$T/tiny lib program
    shift
    rm -rf "$r"
    mkdir -p "$r"/bin "$r/tmp" && chmod 1777 "$r/tmp" || return
    for program in "$agent" "$@"; do
        cp -L "$program" "$r/bin/" || return
        ldd "$program" 2>/dev/null | grep -oE '/[^ ]+' | while read -r lib; do
            mkdir -p "$r${lib%/*}" && cp -L "$lib" "$r$lib"
        done
    done
    tar -C "$r" --numeric-owner -c . | podman import -q -c 'ENV PATH=/bin' \
        -c 'ENTRYPOINT ["agent"]' - "$name"
}

# Where podman is not there or may not run here, the test says so, and ends.
containers_or_skip()
{
    local why

    if [ "$(id -u)" -ne 0 ]; then
        why="not root"
    elif ! command -v podman >/dev/null; then
        why="podman is not installed"
    elif ! tiny_image probe:test /bin/true >"$T/why" 2>&1 ||
        ! timeout 60 podman run --rm --entrypoint /bin/true probe:test >"$T/why" 2>&1; then
        why="podman does not run here: $(tail -n 1 "$T/why")"
    else
        return
    fi
    skip "real containers" "$why"
    exit
}
