#!/bin/sh
# The entrypoint of docker/Dockerfile.init: check the pod, stage the data set,
# and hand agent to the main container, all into one volume.
#   AGENT_DIR       where to put agent (/agent)
#   AGENT_DATASET, AGENT_SOURCE, AGENT_STAGE as for `agent stage`; without
#                   AGENT_DATASET nothing is staged
#   arguments       options of `agent preflight`
set -eu
dir=${AGENT_DIR:-/agent}
new=$dir/.agent.new

# The kernel keeps from PID 1 what it has no handler for, and a shell hears
# nothing while it waits for a command: so what takes long is run beside it.
run()
{
    "$@" &
    wait $!
}
stop()
{
    trap '' TERM INT
    set +eu # There may be no child yet.
    kill -TERM $! 2>/dev/null
    wait
    exit "$1"
}
trap 'stop 143' TERM
trap 'stop 130' INT
trap 'rm -f "$new" 2>/dev/null' EXIT

# First, as it takes no time: a volume that is missing is told at once.
why=$({ cp "$(command -v agent)" "$new" && chmod 755 "$new"; } 2>&1) || {
    echo "agent-init: agent cannot be put into AGENT_DIR '$dir': ${why##*: }:" \
        "mount a volume there (emptyDir) with room for it, which uid" \
        "$(id -u) may write to (securityContext.fsGroup)" >&2
    exit 69
}
code=0
run agent preflight -q "$@" || code=$?
[ "$code" -eq 0 ] || [ "$code" -eq 10 ] || exit "$code"
if [ -n "${AGENT_DATASET:-}" ]; then
    run agent stage
fi
# By rename: a container that is started again may run the old one.
mv "$new" "$dir/agent"
