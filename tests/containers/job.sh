#!/usr/bin/env bash
# Training jobs of two and of eight pods, each a container with a network of its
# own.
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/containers.sh"
. "$(dirname "$0")/../lib/hosts.sh"
containers_end_also=hosts_end
hosts 8
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

in_image=(digits:test --dataset /data/manifest.json)
container a0 1 0 2 "${in_image[@]}" -- train --epochs 40
container a1 2 1 2 "${in_image[@]}" -- train --epochs 40
is "two pods train" "$(code_of a0) $(code_of a1)" "0 0"
ok "with a result" says a0 'accuracy'

# One is cut off for longer than the lease, and comes back.
container b0 3 0 2 "${in_image[@]}" -- sh -c "$second_round"
container b1 4 1 2 "${in_image[@]}" -- sh -c "$second_round"
ok "a job runs" wait_for says b1 'up 0'
part 4
ok "cut off, pod 0 misses it" wait_for says b0 'was silent for 15 s'
ok "and it stops its workers" wait_for says b1 'not heard for 15 s'
heal 4
is "healed, they go on" "$(code_of b0) $(code_of b1)" "0 0"
ok "in a second round" says b1 'up 1'

# Eight pods; the last one is killed and comes back.
for h in 1 2 3 4 5 6 7 8; do
    echo "10.99.0.1 zero" >"/etc/netns/$net-$h/hosts"
    container "c$h" $h $((h - 1)) 8 "${in_image[@]}" -- sh -c "$second_round"
done
ok "eight pods run" wait_for says c8 'up 0'
podman kill -s KILL "c8-$$" >"$T/log"
container d8 8 7 8 "${in_image[@]}" -- sh -c "$second_round"
is "one is killed and created anew" "$(for n in c1 c2 c3 c4 c5 c6 c7 c8 d8; do
    code_of $n; done | paste -s -d ' ')" "0 0 0 0 0 0 0 137 0"
for h in 1 2 3 4 5 6 7 8; do
    container "e$h" $h $((h - 1)) 8 "${in_image[@]}" -- train --epochs 5
done
is "eight pods train" "$(for h in 1 2 3 4 5 6 7 8; do code_of e$h
    done | paste -s -d ' ')" "0 0 0 0 0 0 0 0"

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
