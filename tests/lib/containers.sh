# containers.sh: real containers by podman, with an image store of this build's
# own; sourced after tap.sh. Nothing is fetched from a registry: the base is
# made from Debian's packages. Needs root, podman, runc, mmdebstrap.
# shellcheck shell=bash disable=SC2034,SC2154
O=$(cd "$O" && pwd)
agent=$O/agent
store=${CONTAINER_STORE:-$O/containers}
release=${CONTAINER_RELEASE:-bookworm}
base=docker.io/library/debian:$release-slim
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
        --hook-dir=/usr/share/mmdebstrap/hooks/merged-usr \
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

# image NAME DOCKERFILE ARGS...
image()
{
    local name=$1 file=$2
    shift 2
    podman build -q --pull=never --network=host --timestamp 0 \
        --format docker -t "$name" -f "$top/docker/$file" "$@" "$top"
}

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
