# musl.sh: a root of musl, as Alpine's; sourced after tap.sh.
# shellcheck shell=bash disable=SC2154
# musl_root DIR: agent, a worker of musl, and nothing else that runs
musl_root()
{
    local loader
    mkdir -p "$1/tmp" "$1/etc" && chmod 1777 "$1/tmp"
    musl-gcc -O1 -D_GNU_SOURCE -o "$1/worker" "$top/tests/lib/foreign.c" ||
        return
    loader=$(loader_of "$1/worker")
    mkdir -p "$1${loader%/*}"
    cp -L "$loader" "$1$loader" && cp "$agent" "$1/agent"
}
loader_of() { readelf -lW "$1" | sed -n 's/.*interpreter: \(.*\)]/\1/p'; }
