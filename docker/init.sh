#!/bin/sh
# The entrypoint of docker/Dockerfile.init: check the pod, stage the data set,
# and hand agent to the main container, all into one volume.
#   AGENT_DIR       where to put agent (/agent)
#   AGENT_DATASET, AGENT_SOURCE, AGENT_STAGE as for `agent stage`; without
#                   AGENT_DATASET nothing is staged
#   arguments       options of `agent preflight`
set -eu
dir=${AGENT_DIR:-/agent}
code=0
agent preflight -q "$@" || code=$?
[ "$code" -eq 0 ] || [ "$code" -eq 10 ] || exit "$code"
if [ -n "${AGENT_DATASET:-}" ]; then
    agent stage
fi
# By rename: a container that is started again may run the old one.
cp /usr/local/bin/agent "$dir/.agent.$$"
mv "$dir/.agent.$$" "$dir/agent"
