#!/usr/bin/env bash
# What the images are made of and no build of them is needed to test: the init
# container's script, as PID 1, and what all Dockerfiles say.
. "$(dirname "$0")/../lib/tap.sh"
version=$(sed -n 's/^VERSION := //p' "$top/Makefile")
for f in "$top"/docker/Dockerfile*; do
    is "${f##*/}: its version is the Makefile's" \
        "$(sed -n 's/^ARG VERSION=//p' "$f")" "$version"
    has "${f##*/}: and is told" "$f" 'image\.version="\$\{VERSION\}"'
done
export PATH=$O:$PATH
if ! unshare -Urpf true 2>/dev/null; then
    skip "the init container's script" "no namespaces"
    exit
fi
mkdir "$T/work"
checks=(--preflight env)
# init ARGS...: $rc, $T/{out,err}
init()
{
    timeout -k 5 60 unshare -Urpf --mount-proc --kill-child \
        "$top/docker/init.sh" "$@" >"$T/out" 2>"$T/err" </dev/null
    rc=$?
}
export AGENT_DIR=$T/work
umask 077
init "${checks[@]}"
umask 022
is "it hands agent over" "$rc $(stat -c %a "$T/work/agent")" "0 755"
ok "as it is" cmp "$agent" "$T/work/agent"
is "and nothing else" "$(ls -A "$T/work")" agent
AGENT_DIR=$T/none init "${checks[@]}"
is "without a volume: 69" "$rc" 69
has "with why, and what to do" "$T/err" \
    "^agent-init: .*AGENT_DIR '$T/none': No such .*emptyDir.*uid 0 "
init --bogus
is "a wrong option is preflight's" "$rc $(ls -A "$T/work")" "64 agent"
export AGENT_DATASET=$top/examples/digits/manifest.json AGENT_STAGE=$T/work/data
AGENT_DATASET=$T/none init "${checks[@]}"
is "a missing data set is agent stage's" "$rc $(ls -A "$T/work")" "66 agent"
rm "$T/work/agent"
init "${checks[@]}"
is "it stages" "$rc $(ls "$T/work" "$T/work/data" | grep -cE '^agent$|^digits@')" \
    "0 2"
stage=$(tail -n 1 "$T/out")
ok "and says where" test -s "$stage/MNIST/raw/t10k-labels-idx1-ubyte"

# Asked to stop while it waits for another stager.
rm -r "$stage" "$T/work/agent"
lock=$T/work/data/.${stage##*/}.lock
exec 9>>"$lock"
flock 9
timeout -k 5 100 unshare -Urpf --mount-proc --kill-child \
    "$top/docker/init.sh" "${checks[@]}" >"$T/out" 2>"$T/err" 9>&- </dev/null &
bg=$!
ok "it waits for another one that stages" until_true 30 \
    grep -q 'another process stages' "$T/err"
init=$(child_of $bg) && init=$(child_of "$init") && kill -TERM "$init"
wait $bg
is "TERM ends it, though it is PID 1" "$? $(ls -A "$T/work")" "143 data"
