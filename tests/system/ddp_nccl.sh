#!/usr/bin/env bash
# libddp with device memory: a libcudart and a libnccl that stand for the real
# ones, with their errors; and the real libnccl and its header where they are.
. "$(dirname "$0")/../lib/tap.sh"
dev=$O/tests/ddp_device
port=$(free_port)
mkdir "$T/lib" "$T/cuda"
gcc -shared -fPIC -w -o "$T/lib/libcudart.so.13" \
    "$top/tests/lib/fake/device_libraries.c" || exit 1
ln -s libcudart.so.13 "$T/lib/libnccl.so.2"
ln -s ../lib/libcudart.so.13 "$T/cuda/"

# ranks N WHAT WORDS: N ranks; WHAT goes wrong; all that they say is in
# $T/out; $rc: 0 where all ended so, else a status of one that did not.
ranks()
{
    local n=$1 what=$2 r
    shift 2
    rm -f "$T"/nccl.* "$T"/log "$T"/out.*
    rc=0
    pids=()
    for ((r = n - 1; r >= 0; r--)); do
        FAKE_DIR=$T FAKE=$what LD_LIBRARY_PATH=${libs:-$T/lib} \
            MASTER_ADDR=127.0.0.1 MASTER_PORT=$port RANK=$r WORLD_SIZE=$n \
            LOCAL_RANK=$r LOCAL_WORLD_SIZE=$n timeout -k 5 100 "$dev" "$@" \
            >"$T/out.$r" 2>&1 </dev/null &
        pids+=($!)
    done
    for r in "${pids[@]}"; do wait "$r" || rc=$?; done
    cat "$T"/out.* >"$T/out"
}
each() # NAME REGEX: on each of three ranks
{
    local n
    n=$(grep -cE "$2" "$T/out")
    is "$1" "$n" 3
    [ "$n" = 3 ] || sed 's/^/# /' "$T/out"
}

# How the communicators ended: that of calls, and that of the start.
ended() { sort "$T/log" | awk 'w != $1 { w = $1; printf "%s ", w }
    { sub(/^[a-z]* /, ""); printf "%s, ", $0 }'; }

for via in auto tcp; do
    export DDP_TRANSPORT=$via
    ranks 3 fine sums
    is "$via: all calls, on a stream and without" "$rc $(cat "$T/out")" \
        "0 all sums are right"
    ranks 3 fine reducer
    is "$via: a reducer of gradients in device memory" "$rc $(cat "$T/out")" \
        "0 all averages are right"
    is "$via: NCCL is left in order" "$(ended)" \
        "destroy 0, 1, 2, start of 0, start of 1, start of 2, "
    ranks 3 fine queue 150
    is "$via: queued calls" "$rc $(cat "$T/out")" \
        "0 all that was queued is right"
    ranks 3 fine queue-die 150
    is "$via: who queues is told who died" \
        "$(grep -c 'rank 2 died or failed' "$T/out")" 2
    ranks 3 fine die 3
    is "$via: who lives is told who died, and in which call" \
        "$(grep -c '(call 3): rank 2 died or failed' "$T/out")" 2
done
unset DDP_TRANSPORT
FAKE_RANK=1 ranks 3 'no wait' reducer
is "a reducer whose stream fails: all are told" "$rc $(
    grep -c 'cudaStreamWaitEvent: an illegal memory' "$T/out")" "3 3"
ranks 3 'does not block' sums
is "where NCCL_COMM_BLOCKING=0 is set, too" "$rc $(cat "$T/out")" \
    "0 all sums are right"
ranks 3 blocks sums
is "and where it is 1" "$rc $(cat "$T/out")" "0 all sums are right"
ranks 1 fine queue 150
is "one rank queues" "$rc $(cat "$T/out")" "0 all that was queued is right"
ranks 3 fine leave
each "a reducer that is freed while buckets are queued" 'code -8 .*aborted by'
ranks 1 fine sums
is "one rank" "$rc $(cat "$T/out")" "0 all sums are right"
libs=$T/cuda ranks 1 fine sums
is "one rank needs no NCCL" "$rc $(cat "$T/out")" "0 all sums are right"
ranks 2 fine wrong
is "buffers of two kinds, a stream for host memory: refused, no harm" \
    "$rc $(grep -c 'code -1 .*in device memory and the other in host' "$T/out"
    ) $(grep -c 'code -1 .*it must be NULL' "$T/out")" "0 2 2"
is "a reducer of both kinds, or with wire" "$(
    grep -c 'code -1 .*1 of 2 gradients are in device memory' "$T/out") $(
    grep -c 'code -2 .*wire is for gradients in host memory' "$T/out")" "2 2"

# What goes wrong is an error on all ranks, with the cause, in time.
export DDP_TIMEOUT=30s
libs=$T/cuda ranks 3 fine loop 1
each "no NCCL: code and why" \
    'code -4 peer 0: .*rank 0: NCCL cannot be opened: libnccl.so.2'
ranks 3 2.17 loop 1
each "too old: said with the path" 'is NCCL 2.17.1: 2.18 or a later 2.x'
ranks 3 'below 0' loop 1
each "none at all" 'libcudart.so.13 does not tell its version|libnccl.so.2 does'
ranks 3 3.0 loop 1
each "another NCCL altogether" 'is NCCL 3.0.0: 2.18 or'
for v in 2.18 2.30; do
    ranks 3 "$v" sums
    is "NCCL $v does" "$rc" 0
done
FAKE_RANK=2 ranks 3 2.30 loop 1
each "ranks with two versions" \
    'code -7 peer 2: .*rank 0 has NCCL 2.27.3, and rank 2 2.30.1'
FAKE_RANK=0 ranks 3 'no id' loop 1
each "rank 0 makes no id" \
    'rank 0: ncclGetUniqueId: unhandled system error: Call to socket failed'
FAKE_RANK=0 NCCL_SOCKET_IFNAME=eth99 ranks 3 'no interface' loop 1
each "as its interface is not there" \
    'ncclGetUniqueId: invalid usage: Bootstrap : no socket interface found; likely: NCCL_SOCKET_IFNAME=eth99 names no interface'
FAKE_RANK=1 ranks 3 'init fails' loop 1
each "the start fails on one rank" \
    'rank 1: NCCL connects the ranks: unhandled system error \(2\): Call to socket failed: No route to host; likely: '
FAKE_RANK=1 NCCL_SOCKET_IFNAME=eth99 ranks 3 'init fails' loop 1
each "with the likely cause" \
    'likely: NCCL_SOCKET_IFNAME=eth99 names no interface'
FAKE_RANK=1 NCCL_SOCKET_IFNAME==l,eth99 ranks 3 'init fails' loop 1
each "a list of whole names of which none is there" \
    'likely: NCCL_SOCKET_IFNAME==l,eth99 names no interface'
FAKE_RANK=1 NCCL_SOCKET_IFNAME=eth99,l ranks 3 'init fails' loop 1
each "one in a list that is there is no cause" 'likely: [^N]|likely: NCCL_DEBUG'
is "what had begun is aborted" "$(ended)" "abort start of 0, start of 2, "
FAKE_RANK=1 ranks 3 'async init error' loop 1
each "the start fails later" 'rank 1: NCCL connects the ranks: unhandled system'
is "and is aborted on all" "$(ended)" \
    "abort start of 0, start of 1, start of 2, "
FAKE_RANK=1 ranks 3 'split init fails' loop 1
each "its second part fails" \
    'rank 1: NCCL connects the ranks: unhandled system error'
FAKE_RANK=1 ranks 3 'split async init error' loop 1
each "and later" 'rank 1: NCCL connects the ranks: unhandled system'
FAKE_RANK=2 ranks 3 'async error' loop 3
each "an error that NCCL tells of while it works" \
    'code -6 .*rank 2: NCCL: remote process error'
FAKE_RANK=0 ranks 3 'call fails' loop 1
each "a call that NCCL refuses" 'rank 0: NCCL: internal error'
FAKE_RANK=1 ranks 3 'illegal access' loop 3
each "CUDA's own errors" \
    'rank 1: NCCL: an illegal memory access was encountered'
is "NCCL is aborted on all" "$(ended)" \
    "abort 0, 1, 2, start of 0, start of 1, start of 2, "
FAKE_RANK=1 ranks 3 broken loop 3
each "and those of a kernel before the call: no memory is the host's then" \
    'rank 1: CUDA has failed before: an illegal memory access .*\(700\)'
FAKE_RANK=1 ranks 3 broken reducer
each "nor a reducer's" \
    'ddp_reducer_new: rank 1: CUDA has failed before: an illegal memory'
FAKE_RANK=1 ranks 3 'illegal access' queue 10
each "the same of queued calls" \
    'rank 1: NCCL: an illegal memory access was encountered'
ranks 3 'stream hangs' abort
each "ddp_abort ends a wait, on all ranks" 'code -8 peer 0: .*aborted by'
ranks 3 fine aborted 0
each "and the next call, be it ever so short" 'code -8 peer 0: .*aborted by'
ranks 3 fine aborted 1
each "a wait for nothing, too" 'code -8 peer 0: .*ddp_wait: aborted by'
export DDP_TIMEOUT=3s
FAKE_RANK=0 ranks 3 'id hangs' loop 1
each "an id that rank 0 waits for in vain ends with the deadline" \
    'code -5 .*(rank 0 has not made|NCCL is opened and makes its id: not done)'
FAKE_RANK=2 ranks 3 'init hangs' loop 1
each "a start that hangs ends with the deadline" \
    'code -5 .*NCCL connects the ranks: not done within 3.0 s'
is "and is aborted" "$(ended)" "abort start of 0, start of 1, start of 2, "
FAKE_RANK=2 ranks 3 'split init hangs' loop 1
each "its second part, too" \
    'code -5 .*NCCL connects the ranks: not done within 3.0 s'
is "and is aborted alike" "$(ended)" \
    "abort start of 0, start of 1, start of 2, "
FAKE_RANK=2 ranks 3 'blocks+init hangs' loop 1
each "where NCCL_COMM_BLOCKING=1 is set, too" \
    'code -5 .*NCCL connects the ranks: not done within 3.0 s'
is "then it is left behind" "$(ended)" "abort start of 0, start of 1, "
FAKE_RANK=2 ranks 3 'call hangs' loop 1
each "a call that hangs in NCCL, too" \
    'code -5 .*NCCL: not done within 3.0 s'
FAKE_RANK=0 ranks 3 'never arrives' queue 2
each "queued calls that hang" \
    'code -5 .*NCCL: not done within 3.0 s: a rank has not made'
FAKE_RANK=0 ranks 3 'never arrives' loop 2
each "a collective that hangs, too" \
    'code -5 .*NCCL: not done within 3.0 s: a rank has not made'
is "and nobody is left" "$(ended)" \
    "abort 0, 1, 2, start of 0, start of 1, start of 2, "
ranks 3 fine unwaited 5
is "what nobody waits for is done before the end" "$rc $(ended)" \
    "0 destroy 0, 1, 2, start of 0, start of 1, start of 2, "
FAKE_RANK=0 ranks 3 'never arrives' unwaited 5
is "or aborted, where it hangs" "$rc $(ended)" \
    "0 abort 0, 1, 2, start of 0, start of 1, start of 2, "
ranks 1 fine drop 5
is "or where it was aborted: nothing is waited for" "$rc $(ended)" \
    "0 abort 0, start of 0, "
ranks 1 'abort hangs' loop 1
is "an abort that hangs is left behind" \
    "$rc $(grep -c 'rank 0: NCCL: internal error' "$T/out")" "3 1"
unset DDP_TIMEOUT

# A new communicator has a new id.
is "an id is used once" "$(
    for i in 1 2; do ranks 2 fine loop 1; ls "$T"/nccl.*; done |
        grep -v split | sort -u | wc -l)" 2

# LD_PRELOAD of another libnccl goes before the one that is found.
mkdir "$T/other"
rm -f "$T/log"
gcc -shared -fPIC -w -DNCCL_ONLY -o "$T/other/libother.so" \
    "$top/tests/lib/fake/device_libraries.c"
FAKE_DIR=$T FAKE=2.17 LD_LIBRARY_PATH=$T/cuda LD_PRELOAD=$T/other/libother.so \
    DDP_TIMEOUT=30s timeout 60 "$dev" loop 1 >"$T/out" 2>&1
is "one rank goes on without an old NCCL" "$?" 0
FAKE_DIR=$T FAKE=fine LD_LIBRARY_PATH=$T/cuda LD_PRELOAD=$T/other/libother.so \
    timeout 60 "$dev" loop 1 >"$T/out" 2>&1
is "LD_PRELOAD is honoured" "$? $(ended)" "0 destroy 0, start of 0, "

# The real ones: of pip's wheel (make check-nccl gets it) or the system.
header=$(ls "$O"/nccl/nvidia/nccl/include/nccl.h "${NCCL_HOME:-/usr}"/include/nccl.h \
    "$O"/torch-venv/lib/python3*/site-packages/nvidia/nccl/include/nccl.h \
    2>/dev/null | head -n 1)
if [ -n "$header" ]; then
    ok "what is declared fits $header" gcc -std=gnu11 -fsyntax-only -w \
        -I "$top/tests/lib/fake/cuda" -I "${header%/*}" -I "$top/src" \
        -I "$top/include" \
        "$top/tests/lib/fake/nccl_header.c"
else
    skip "what is declared fits an official nccl.h" "there is none here"
fi
real=$(ls "$O"/nccl/nvidia/nccl/lib/libnccl.so.2 \
    "$O"/torch-venv/lib/python3*/site-packages/nvidia/nccl/lib/libnccl.so.2 \
    2>/dev/null | head -n 1)
if [ -n "$real" ]; then
    LD_LIBRARY_PATH=${real%/*} "$O/tests/ddp_nccl_open" >"$T/out" 2>&1
    is "the real libnccl has all calls, and a version" \
        "$? $(grep -cE '^2\.[0-9]+\.[0-9]+ .*libnccl.so.2$' "$T/out")" "0 1"
else
    skip "the real libnccl" "there is none here"
fi
