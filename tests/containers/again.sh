#!/usr/bin/env bash
# docker/Dockerfile built twice, from two folders: the same bytes.
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/containers.sh"
containers_begin
ok "a base from Debian's packages" base_image
ok "docker/Dockerfile" image agent:test Dockerfile
# Other times, another umask, and nothing of the first build is taken.
mkdir "$T/copy"
(umask 077 && cd "$top" && git ls-files -co --exclude-standard |
    tar -cT - --mtime=@1000000000 | tar -xC "$T/copy" --no-same-permissions)
context=$T/copy
ok "once more, from another folder" image again:test Dockerfile --no-cache
context=
sums() # IMAGE: of all that is ours in it
{
    podman run --rm --entrypoint sh "$1" -c \
        'find /usr/local -type f -exec sha256sum {} + | sort'
}
sums agent:test >"$T/first"
sums again:test >"$T/second"
is "agent is the same" "$(grep /usr/local/bin/agent$ "$T/second")" \
    "$(grep /usr/local/bin/agent$ "$T/first")"
ok "there is one" grep -q ' /usr/local/bin/agent$' "$T/first"
ok "and so are all its files" diff "$T/first" "$T/second"
is "layer by layer" "$(of again:test '{{.RootFS.Layers}}')" \
    "$(of agent:test '{{.RootFS.Layers}}')"
