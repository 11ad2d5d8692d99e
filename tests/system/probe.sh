#!/usr/bin/env bash
# agent-probe, with libraries that stand for the real ones.
. "$(dirname "$0")/../lib/tap.sh"
probe=$O/agent-probe
mkdir "$T/lib" "$T/empty"
# With its name inside, as the real ones have it: the linker goes by that.
for l in libcuda.so.1 libnvidia-ml.so.1 libnccl.so.2 libibverbs.so.1; do
    gcc -shared -fPIC -w -o "$T/lib/$l" -Wl,-soname,"$l" \
        "$top/tests/lib/fake/probe_libraries.c"
done

# fake WHAT ARGS...: JSON in $T/out
fake()
{
    local what=$1
    shift
    FAKE=$what LD_LIBRARY_PATH=$T/lib timeout -k 5 60 "$probe" "$@" \
        >"$T/out" 2>"$T/err"
}
# get EXPRESSION: of the JSON, by python
get()
{
    python3 -c 'import json, sys
p = json.load(open(sys.argv[1]))
print(eval(sys.argv[2]))' "$T/out" "$1"
}

ok "it ends with 0" fake fine
is "two GPUs" "$(get '[g["name"] for g in p["gpu"]["gpus"]]')" \
    "['Fake H100 0', 'Fake H100 1']"
is "with what the driver says" \
    "$(get '[p["gpu"][k] for k in ("found", "driver", "driver_cuda")]')" \
    "[True, '550.1.2', '12.4']"
is "and of each" "$(get '[p["gpu"]["gpus"][1][k] for k in ("uuid", "pci",
    "memory_bytes", "compute_capability", "mig", "nvlinks", "nvlinks_active",
    "ecc_uncorrected")]')" \
    "['GPU-a1a1a1a1-a1a1-a1a1-a1a1-a1a1a1a1a1a1', '0000:02:00.0', 85899345920, '9.0', True, 4, 3, 1]"
is "peer to peer" "$(get 'p["gpu"]["p2p"], p["gpu"]["p2p_rank"]')" \
    "([[True, True], [True, True]], [[0, 1], [1, 0]])"
is "NCCL, and where" "$(get 'p["nccl"]["version"], p["nccl"]["library"]')" \
    "('2.27.3', '$T/lib/libnccl.so.2')"
is "an RDMA device" "$(get 'p["rdma"]["devices"]')" \
    "[{'name': 'mlx5_0', 'ports': [{'port': 1, 'state': 'active', 'link_layer': 'Ethernet', 'lid': 17, 'mtu': 4096}], 'register': {'bytes': 67108864, 'ok': True}}]"

fake "old nccl" --only nccl
is "versions before 2.9" "$(get 'list(p), p["nccl"]["version"]')" \
    "(['probe', 'host', 'nccl'], '2.7.8')"
fake "no version" --only nccl
is "a library that is broken is a fault" \
    "$(get 'p["nccl"]["found"], p["nccl"]["fault"]')" "(False, True)"
for v in 0 -5 1234 2147483647; do
    fake "code $v" --only nccl
    is "so is one that says it is $v" "$(get '(p["nccl"]["found"],
        p["nccl"]["fault"], p["nccl"]["why"], "version" in p["nccl"])')" \
        "(False, True, '$T/lib/libnccl.so.2 says $v, which is no version of NCCL', False)"
done
cp -r "$T/lib" "$T/"$'l\xff'
LD_LIBRARY_PATH=$T/$'l\xff' "$probe" --only nccl,rdma >"$T/out"
is "a path that is no UTF-8 is told as far as it is" \
    "$(get 'p["nccl"]["library"], p["rdma"]["library"]')" \
    "('$T/l?/libnccl.so.2', '$T/l?/libibverbs.so.1')"
fake nodevice --only gpu
is "no GPU is no fault" "$(get 'p["gpu"]["found"], p["gpu"]["fault"]')" \
    "(False, False)"
fake mismatch --only gpu
is "a driver that does not fit is one" \
    "$(get 'p["gpu"]["fault"], p["gpu"]["why"]')" \
    "(True, 'cuInit failed with 803: system has unsupported display driver / cuda driver combination')"
fake 'no count' --only gpu
is "so is one that cannot count" \
    "$(get 'p["gpu"]["fault"], p["gpu"]["why"].split(":")[0]')" \
    "(True, 'cuDeviceGetCount failed with 999')"
fake 'no nvml' --only gpu
is "an NVML that does not start is not found, and why" \
    "$(get 'p["gpu"]["found"], p["gpu"]["nvml"]')" \
    "(True, {'found': False, 'why': '$T/lib/libnvidia-ml.so.1: nvmlInit_v2 failed with 18'})"
fake hang --timeout 1
is "a driver that hangs" "$(get 'p["gpu"]["why"], p["gpu"]["hangs"]')" \
    "('no answer within 1000 ms: the driver or its library hangs', True)"
is "the rest is told all the same" "$(get 'p["nccl"]["found"]')" True
fake crash
is "a driver that crashes" "$(get 'p["gpu"]["why"]')" \
    'the library crashes: Segmentation fault'
FAKE=crash LD_LIBRARY_PATH=$T/lib python3 -c 'import os, signal, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
os.execv(sys.argv[1], sys.argv[1:])' "$probe" >"$T/out" 2>"$T/err"
is "also where SIGCHLD is ignored" "$(get 'p["gpu"]["why"]')" \
    'the library crashes: Segmentation fault'
# A process that the library has started has all that is open there.
export FAKE_PID=$T/left
fake leaves --only gpu --timeout 20
is "an answer is one, whoever else holds the pipe" \
    "$(get 'p["gpu"]["found"], len(p["gpu"]["gpus"])')" "(True, 2)"
ok "as it did" until_true 20 test -s "$T/left"
kill "$(cat "$T/left")"
fresh "$T/left"
fake 'leaves and crashes' --only gpu --timeout 20
is "and a crash is one" "$(get 'p["gpu"]["why"]')" \
    'the library crashes: Segmentation fault'
ok "there, too" until_true 20 test -s "$T/left"
kill "$(cat "$T/left")"
fake 'exit'
is "a driver that ends the process" "$(get 'p["gpu"]["why"]')" \
    'the library ended the process with 3'
fake "no kernel" --only rdma
is "a kernel without RDMA is no fault" \
    "$(get 'p["rdma"]["fault"], p["rdma"]["why"]')" \
    "(False, 'no RDMA here: Function not implemented')"
fake memlock --only rdma
has "memory that cannot be registered: why, and what to do" "$T/out" \
    'ibv_reg_mr: Cannot allocate memory; .*IPC_LOCK'

# Plug-ins of NCCL, by the names that NCCL tries.
cp "$T/lib/libnccl.so.2" "$T/lib/libnccl-net-here.so"
cp "$T/lib/libnccl.so.2" "$T/lib/libtuner.so"
NCCL_NET_PLUGIN=here,gone NCCL_TUNER_PLUGIN=libtuner.so \
    NCCL_PROFILER_PLUGIN=libgone.so fake fine --only nccl
is "plug-ins that are there" "$(get '[(x["variable"], x["name"], x["library"])
    for x in p["nccl"]["plugins"] if x["found"]]')" \
    "[('NCCL_NET_PLUGIN', 'here', '$T/lib/libnccl-net-here.so'), ('NCCL_TUNER_PLUGIN', 'libtuner.so', '$T/lib/libtuner.so')]"
is "and those that are not: the last name that was tried" "$(get \
    '[x["why"].split(":")[0] for x in p["nccl"]["plugins"] if not x["found"]]')" "['libnccl-net-gone.so', 'libgone.so']"
NCCL_NET_PLUGIN=None NCCL_TUNER_PLUGIN='' fake fine --only nccl
is "none is none" "$(get 'p["nccl"]["plugins"]')" "[]"

# pip's NCCL is found beside the python of PATH.
mkdir -p "$T/venv/bin" "$T/venv/lib/python3.9/site-packages/nvidia/nccl/lib"
ln -s "$(command -v python3)" "$T/venv/bin/python3"
wheel=$T/venv/lib/python3.9/site-packages/nvidia/nccl/lib
mv "$T/lib/libnccl.so.2" "$wheel"
PATH=$T/venv/bin:$PATH fake fine --only nccl
is "a wheel's NCCL is found" \
    "$(get 'p["nccl"]["wheel"]["library"] == p["nccl"]["library"]')" True
has "there" "$T/out" 'site-packages/nvidia/nccl/lib/libnccl'
cp "$wheel/libnccl.so.2" "$T/lib"
PATH=$T/venv/bin:$PATH fake fine --only nccl
is "the linker's comes first" "$(get 'p["nccl"]["library"]')" \
    "$T/lib/libnccl.so.2"
is "beside the wheel's" \
    "$(get 'p["nccl"]["wheel"]["library"].startswith("'"$T/venv"'")')" True
rm "$T/lib/libnccl.so.2"
FAKE=fine LD_LIBRARY_PATH=$T/lib PATH=$T/empty "$probe" --only nccl >"$T/out"
ok "nowhere: no fault" [ "$(get 'p["nccl"]["fault"]')" = False ]
: >"$T/lib/libnccl.so.2"
: >"$T/lib/libibverbs.so.1"
PATH=$T/venv/bin:$PATH fake fine --only nccl,rdma
is "one that cannot be loaded: a fault" "$(get '(p["nccl"]["fault"],
    p["rdma"]["fault"], p["nccl"]["wheel"]["found"])')" "(True, True, True)"
has "with what the linker says" "$T/out" \
    '"libnccl cannot be loaded: .*libnccl.so.2: file too short"'
: >"$wheel/libnccl.so.2"
rm "$T/lib/libnccl.so.2"
PATH=$T/venv/bin:$PATH fake fine --only nccl
is "the wheel's alike" "$(get '(p["nccl"]["fault"],
    p["nccl"]["wheel"]["fault"])')" "(True, True)"

if unshare -pf true 2>/dev/null; then
    FAKE=hang LD_LIBRARY_PATH=$T/lib timeout -k 5 60 unshare -pf --kill-child \
        "$probe" --only gpu --timeout 50 >"$T/out" 2>"$T/err" </dev/null &
    bg=$!
    ok "a driver hangs" until_true 20 grep -q talks "$T/err"
    kill "$(pgrep -P "$(child_of $bg)")"
    wait $bg
    is "TERM ends the probe where it is PID 1" $? 143
else
    skip "as PID 1" "unshare -pf is not permitted here"
fi

"$probe" --only gpus >"$T/out" 2>"$T/err"
is "a part that is none: 64" "$? $(wc -l <"$T/err")" '64 1'
"$probe" --timeout 0 >"$T/out" 2>"$T/err"
is "no time at all: 64" $? 64
"$probe" gpu >"$T/out" 2>"$T/err"
is "a word: 64" $? 64
"$probe" --none >"$T/out" 2>"$T/err"
is "an option that is none: 64, by the probe's name without its folder" \
    "$? $(grep -c '^agent-probe: ' "$T/err")" '64 1'
"$probe" >/dev/full 2>"$T/err"
is "a full disk: 202" $? 202
