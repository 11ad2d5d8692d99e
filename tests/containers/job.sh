#!/usr/bin/env bash
# A training job of two pods, each a container with a network of its own.
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/containers.sh"
. "$(dirname "$0")/../lib/hosts.sh"
containers_end_also=hosts_end
hosts 4
containers_begin
ok "a base from Debian's packages" base_image
ok "docker/Dockerfile" image agent:test Dockerfile

# An image with the data set and the program, as people build them.
mkdir "$T/job"
mkdir "$T/job/set" && cp -r "$top/examples/digits/." "$T/job/set"
cp "$O/examples/digits" "$T/job/train"
cat >"$T/job/Dockerfile" <<'E'
ARG AGENT
FROM ${AGENT}
COPY set /data
COPY train /usr/local/bin/train
RUN agent verify /data/manifest.json
E
podman build -q --build-arg AGENT=agent:test -t digits:test "$T/job" \
    >"$T/log" 2>&1
is "the data set is verified when the image is built" $? 0

# container NAME HOST RANK ARGS...
container()
{
    local name=$1 h=$2 rank=$3
    shift 3
    start "$name" --network "ns:/run/netns/$net-$h" \
        -v "/etc/netns/$net-$h/hosts:/etc/hosts:ro" digits:test \
        --nnodes 2 --node-rank "$rank" --nproc 2 --master-addr zero \
        --grace 2s --restart-backoff 10ms:50ms \
        --dataset /data/manifest.json --stage /tmp/stage "$@"
}

container a0 1 0 -- train --epochs 40
container a1 2 1 -- train --epochs 40
is "two pods train" "$(code_of a0) $(code_of a1)" "0 0"
ok "with a result" says a0 'accuracy'

# shellcheck disable=SC2016 # for the worker's shell
wait_go='echo up $TORCHELASTIC_RESTART_COUNT
    until [ "$TORCHELASTIC_RESTART_COUNT" = 1 ]; do sleep .1; done'
container b0 3 0 -- sh -c "$wait_go"
container b1 4 1 -- sh -c "$wait_go"
ok "a job runs" wait_for says b1 'up 0'
podman kill -s KILL "b1-$$" >"$T/log"
is "a pod is killed" "$(code_of b1)" 137
container b2 4 1 -- sh -c "$wait_go"
is "it is created anew, and the job goes on" \
    "$(code_of b0) $(code_of b2)" "0 0"

# A layer that lost a bit.
printf 'FROM digits:test\nCOPY bad /data/MNIST/raw/%s\n' \
    train-labels-idx1-ubyte.gz >"$T/job/Dockerfile"
cp "$T/job/set/MNIST/raw/train-labels-idx1-ubyte.gz" "$T/job/bad"
printf 'X' | dd of="$T/job/bad" bs=1 seek=60 conv=notrunc 2>"$T/log"
podman build -q -t bad:test "$T/job" >"$T/log" 2>&1
run bad bad:test --dataset /data/manifest.json -- echo started
is "an image with a bad byte refuses to start: 65" \
    "$? $(wc -c <"$T/bad.out")" "65 0"
has "and names the file" "$T/bad.err" 'train-labels-idx1-ubyte\.gz'
