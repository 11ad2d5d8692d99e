#!/usr/bin/env bash
# Dockerfile.pytorch and Dockerfile.cuda, whose bases are in registries alone, on
# bases that are made here: Debian with pip's PyTorch, and with NVIDIA's own
# libraries of pip. The first time pip fetches these, 0.5 GB.
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/containers.sh"
containers_begin
ok "a base from Debian's packages" base_image
ok "docker/Dockerfile" image agent:test Dockerfile
wheels=$O/wheels
# fetched DIR PACKAGE...: wheels for the Python of Debian 12
fetched()
{
    local dir=$wheels/$1
    shift
    [ -e "$dir/all" ] && return
    rm -rf "$dir"
    python3 -m pip download -q -d "$dir" --python-version 3.11 \
        --only-binary :all: "$@" && touch "$dir/all"
}
# As the real ones: an entrypoint, a command and a version of their own, which
# must go.
stand_in() # NAME FOLDER: its Dockerfile is on stdin
{
    mkdir -p "$T/$1" && cat >"$T/$1/Dockerfile" &&
        podman build -q --pull=never --network=host --format docker -t "$1" \
            -v "$2:/wheels:ro" "$T/$1"
}

ok "PyTorch's wheels" fetched torch torch==2.13.0
ok "a stand-in for pytorch/pytorch" stand_in localhost/pytorch:test \
    "$wheels/torch" <<E
FROM $base
RUN apt-get update && apt-get install -y --no-install-recommends \
    python-is-python3 python3-pip && rm -rf /var/lib/apt/lists/*
RUN pip install -q --break-system-packages --no-index --no-cache-dir \
    --find-links /wheels torch
WORKDIR /workspace
LABEL org.opencontainers.image.version="22.04"
ENTRYPOINT ["/bin/false"]
CMD ["/bin/bash"]
E
ok "Dockerfile.pytorch" image agent-pytorch:test Dockerfile.pytorch \
    --build-arg AGENT=agent:test --build-arg PYTORCH=localhost/pytorch:test
is_described "Dockerfile.pytorch" agent-pytorch:test agent-pytorch \
    localhost/pytorch:test "" "$asked"
run torch-help agent-pytorch:test
is "by itself it says how it is used" \
    "$? $(head -c 12 "$T/torch-help.out")" "0 usage: agent"
for user in 0 12345; do
    run "train-$user" --user $user -v "$top/examples:/examples:ro" \
        -e OMP_NUM_THREADS=1 agent-pytorch:test --nproc 2 \
        --dataset /examples/digits/manifest.json --stage /tmp/stage -- \
        python /examples/pytorch/train.py --checkpoint /tmp/digits.pt
    is "uid $user: two workers train the digits" $? 0
    has "uid $user: with gloo" "$T/train-$user.out" '2 ranks, gloo on cpu'
    has "uid $user: with a result" "$T/train-$user.out" \
        'test accuracy 9[0-9.]+ %'
done

ok "CUDA's and NCCL's wheels" fetched cuda --no-deps nvidia-cuda-runtime \
    nvidia-nccl-cu13
ok "a stand-in for nvidia/cuda" stand_in localhost/cuda:test \
    "$wheels/cuda" <<E
FROM $base
RUN apt-get update && apt-get install -y --no-install-recommends unzip && \
    rm -rf /var/lib/apt/lists/*
RUN mkdir -p /usr/local/cuda/lib64 /tmp/w && cd /tmp/w && \
    for w in /wheels/*.whl; do unzip -q \$w; done && \
    find . -name 'lib*.so*' -exec mv {} /usr/local/cuda/lib64 ';' && \
    rm -r /tmp/w && echo /usr/local/cuda/lib64 >/etc/ld.so.conf.d/cuda.conf
LABEL org.opencontainers.image.version="22.04"
ENTRYPOINT ["/bin/false"]
CMD ["/bin/bash"]
E
ok "Dockerfile.cuda" image agent-cuda:test Dockerfile.cuda \
    --build-arg AGENT=agent:test --build-arg CUDA=localhost/cuda:test
is_described "Dockerfile.cuda" agent-cuda:test agent-cuda \
    localhost/cuda:test "" "$asked"
run cuda-help agent-cuda:test
is "by itself it says how it is used, too" \
    "$? $(head -c 12 "$T/cuda-help.out")" "0 usage: agent"
run cached --entrypoint ldconfig agent-cuda:test -p
for l in libddp.so.1 libcudart.so libnccl.so.2; do
    has "the loader finds $l" "$T/cached.out" "$l"
done
run nccl --entrypoint agent-probe agent-cuda:test --only nccl
is "agent-probe opens the real NCCL, which has a version" "$(python3 -c '
import json, sys
n = json.load(open(sys.argv[1]))["nccl"]
print(n["found"], n["version"][:2])' "$T/nccl.out" 2>&1)" "True 2."
run reduce agent-cuda:test --nproc 2 -- agent-allreduce -b 8 -e 64K -n 1 -w 0
is "libddp's numbers are right" $? 0
# Of the oldest image that it is for: Ubuntu 22.04 has glibc 2.35.
id=$(podman create agent-cuda:test)
podman cp "$id:/usr/local" "$T/local" && podman rm "$id" >"$T/log"
newest=$(objdump -T "$T"/local/bin/* "$T"/local/lib/libddp.so.1 2>"$T/log" |
    grep -oE 'GLIBC_[0-9.]+' | sort -uV | tail -n 1)
is "what is dynamic needs no more than glibc 2.34" "$newest" GLIBC_2.34
