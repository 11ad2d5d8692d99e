#!/usr/bin/env bash
# libddp and its example: N processes on loopback, placed by the environment.
. "$(dirname "$0")/../lib/tap.sh"
check=$O/tests/ddp_check
digits=$O/examples/digits
export MASTER_ADDR=127.0.0.1 MASTER_PORT
. "$top/tests/lib/ddp.sh"
# --- results
for n in 1 2 3 5; do
    for DDP_TRANSPORT in auto tcp; do
        export DDP_TRANSPORT
        start $n "$check" sums
        # shellcheck disable=SC2046
        ok "$n ranks, $DDP_TRANSPORT: all types, ops, calls and odd counts" \
            ended 0 120 $(seq 0 $((n - 1)))
        ok "$n ranks, $DDP_TRANSPORT: each has compared its results" \
            said "rank [0-9] of $n: [0-9]{4} results are right" \
            $(seq 0 $((n - 1)))
    done
done
unset DDP_TRANSPORT

# --- a rank leaves, differs, aborts; ddp_fault.sh has the others
start 3 "$check" leave
ok "rank 2 leaves: it ends well" ended 0 10 2
ok "the others fail" ended 3 10 0 1
ok "each says that it left" said "code -6 peer 2 .*rank 2 has left" 0 1

for what in count type op root call; do
    start 3 "$check" differ $what
    ok "a differing $what is an error on all ranks" ended 3 10 0 1 2
    ok "both values are named" said \
        "code -7 .*(on rank [01], but|1.:) .*rank 2( is in barrier .*)?$" 0 1
done

start 3 "$check" abort
ok "ddp_abort in another thread ends a blocked call, on all ranks" \
    ended 3 10 0 1 2
ok "each names rank 0" said "code -8 peer 0 .*aborted by ddp_abort" 0 1 2

# --- gathering
n=3 MASTER_PORT=$(free_port)
rank 0 "$check" sums
n=4
rank 1 "$check" sums
n=3
rank 2 "$check" sums
ok "a wrong world size is refused" ended 3 10 0 1 2
ok "both values are named" \
    said "code -7 peer 1 .*WORLD_SIZE is 3 on rank 0 but 4 on rank 1" 0 1 2

listening()
{
    (exec 3<>"/dev/tcp/127.0.0.1/$MASTER_PORT")
}
n=2 MASTER_PORT=$(free_port)
rank 0 "$check" sums
ok "rank 0 listens" until_true 10 listening
exec 7<>"/dev/tcp/127.0.0.1/$MASTER_PORT" # Says nothing.
exec 8<>"/dev/tcp/127.0.0.1/$MASTER_PORT"
(printf 'GET / HTTP/1.1\r\nHost: x\r\n\r\n' >&8) 2>/dev/null # May be cut off.
exec 9<>"/dev/tcp/127.0.0.1/$MASTER_PORT"
(head -c 4096 /dev/urandom >&9) 2>/dev/null
rank 1 "$check" sums
ok "strangers on the port disturb nobody" ended 0 60 0 1
exec 7>&- 8>&- 9>&-

# A rank that an earlier attempt left behind.
n=2 MASTER_PORT=$(free_port)
TORCHELASTIC_RESTART_COUNT=1 rank 0 "$check" sums
until_true 10 listening
TORCHELASTIC_RESTART_COUNT=0 DDP_TIMEOUT=1s rank 1 "$check" sums
ok "a rank of an older attempt is refused" ended 3 10 1
ok "with both attempts" said \
    "the attempt is 1 on rank 0 but 0 on rank 1" 1
TORCHELASTIC_RESTART_COUNT=1 rank 1 "$check" sums
ok "the new attempt's is welcome" ended 0 60 0 1

# torchrun's own store holds MASTER_PORT, and a stranger the port above it.
hold()
{
    exec python3 -c 'import socket, sys, time
while True:
    a = socket.create_server(("127.0.0.1", 0))
    port = a.getsockname()[1]
    try:
        b = socket.create_server(("127.0.0.1", port + 1))
        break
    except OSError:
        a.close()
print(port, flush=True)
time.sleep(600)'
}
hold >"$T/port" &
holder=$!
until_true 10 test -s "$T/port"
n=3 MASTER_PORT=$(cat "$T/port")
export TORCHELASTIC_USE_AGENT_STORE=True
for r in 2 1 0; do rank $r "$check" sums; done
ok "with torchrun's store on MASTER_PORT a port above it is found" \
    ended 0 90 0 1 2
unset TORCHELASTIC_USE_AGENT_STORE
n=2
DDP_TIMEOUT=300ms rank 0 "$check" sums
ok "a port that stays in use is an error" ended 3 10 0
ok "which names it" said \
    "code -4 .*cannot listen on 127.0.0.1 port $MASTER_PORT: another" 0
kill "$holder"
wait "$holder" 2>/dev/null

n=2 MASTER_PORT=$(free_port)
MASTER_ADDR=no-such-host.invalid DDP_TIMEOUT=500ms rank 1 "$check" sums
ok "a name that never resolves is an error" ended 3 20 1
ok "which names it" said "'no-such-host.invalid' does not resolve" 1
RANK=0 WORLD_SIZE=2 MASTER_PORT=tcp://10.0.0.1:80 "$check" sums >"$T/link"
has "a service link in MASTER_PORT is explained" "$T/link" \
    "code -1 .*Kubernetes service link"

# --- what is installed
nm -D --defined-only "$O/libddp.so" | awk '$2 == "T" {print $3}' |
    sed 's/@.*//' | sort >"$T/exported"
grep -oE '^DDP_API .*\bddp_[a-z_]+\(' "$top/include/ddp.h" |
    sed 's/.* //; s/(//' | sort >"$T/declared"
is "libddp.so exports the calls of ddp.h and nothing else" \
    "$(cat "$T/exported")" "$(cat "$T/declared")"
is "all names of libddp.a begin with ddp_" \
    "$(nm -g --defined-only "$O/libddp.a" | awk 'NF == 3 && $3 !~ /^ddp_/')" ""
is "libddp.so needs libc only" "$(readelf -d "$O/libddp.so" |
    sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' | grep -vE '^(libc|ld-linux)')" ""

# As a user of an installed libddp: out of the tree, by pkg-config.
inst=$T/inst
# What is there, as it is: the flags that it was built with are not known here.
make -s -o all -C "$top" O="$O" DESTDIR="$inst" install >"$T/install" 2>&1
is "make install" $? 0
pc()
{
    PKG_CONFIG_LIBDIR=$inst/usr/local/lib/pkgconfig \
        PKG_CONFIG_SYSROOT_DIR=$inst pkg-config "$@" ddp
}
is "ddp.pc has the version" "$(pc --modversion)" \
    "$(sed -n 's/^VERSION := //p' "$top/Makefile")"
sed -n '/^```c$/,/^```$/p' "$top/docs/ddp.md" | sed '1d;$d' >"$T/line.c"
ok "the program of docs/ddp.md has at most 40 lines" \
    test "$(grep -c . "$T/line.c")" -le 40
# shellcheck disable=SC2046
ok "the program of docs/ddp.md compiles" ${CC:-cc} -Wall -Wextra -Werror \
    -o "$T/line" "$T/line.c" $(pc --cflags --libs)
# shellcheck disable=SC2046
ok "and with libddp.a" ${CC:-cc} -static -o "$T/line.static" "$T/line.c" \
    $(pc --static --cflags --libs)
export LD_LIBRARY_PATH=$inst/usr/local/lib
start 4 "$T/line"
ok "and runs" ended 0 20 0 1 2 3
is "with the right result" "$(cat "$T/out.0")" \
    "4 ranks agree on 2.00 x + 1.00"
start 3 "$T/line.static"
ok "and runs, static" ended 0 20 0 1 2
is "with the right result, static" "$(cat "$T/out.0")" \
    "3 ranks agree on 2.00 x + 1.00"

cat >"$T/cxx.cc" <<'END'
#include <ddp.h>
int main()
{
    ddp_comm *comm = nullptr;
    ddp_options opt{};
    ddp_error err;
    long long n = 1;

    opt.size = sizeof opt;
    if (ddp_init(&comm, &opt, &err) ||
        ddp_all_reduce(comm, &n, &n, 1, DDP_I64, DDP_SUM, nullptr, &err))
        return 1;
    bool good = n == ddp_size(comm);
    ddp_free(comm);
    return good ? 0 : 1;
}
END
# shellcheck disable=SC2046
ok "a C++ program compiles" ${CXX:-c++} -Wall -Wextra -Werror -o "$T/cxx" \
    "$T/cxx.cc" $(pc --cflags --libs)
start 2 "$T/cxx"
ok "and runs" ended 0 20 0 1

start 3 python3 "$top/examples/python/mean.py"
ok "the example for Python runs, through ctypes" ended 0 20 0 1 2
is "with the right result, in Python" "$(cat "$T/out.0")" \
    "3 ranks agree on 2.000"
n=2 MASTER_PORT=$(free_port)
DDP_TIMEOUT=300ms rank 0 python3 "$top/examples/python/mean.py"
ok "and fails where it is alone" ended 1 20 0
ok "with the reason" said "^libddp: 1 of 2 ranks have not come to .*: 1$" 0

# The names of other launchers: nothing of torchrun's is set.
other()
{
    local r
    n=4 pids=()
    rm -f "$T"/out.*
    for r in 3 2 1 0; do
        env -u MASTER_ADDR -u MASTER_PORT "$1_$2=$r" "$1_$3=$r" "${@:4}" \
            "$T/line" >"$T/out.$r" 2>&1 </dev/null &
        pids[r]=$!
    done
}
other OMPI_COMM_WORLD RANK LOCAL_RANK OMPI_COMM_WORLD_SIZE=4 \
    OMPI_COMM_WORLD_LOCAL_SIZE=4 PMIX_NAMESPACE=test-$$
ok "mpirun's variables are enough" ended 0 20 0 1 2 3
is "for the right result" "$(cat "$T/out.0")" \
    "4 ranks agree on 2.00 x + 1.00"
other SLURM PROCID LOCALID SLURM_STEP_NUM_TASKS=4 SLURM_NODEID=0 \
    SLURM_STEP_TASKS_PER_NODE=4 SLURM_STEP_NODELIST=none-such \
    SLURM_JOB_ID=$$ SLURM_STEP_ID=0
ok "srun's variables are enough" ended 0 20 0 1 2 3
is "for the right result, too" "$(cat "$T/out.0")" \
    "4 ranks agree on 2.00 x + 1.00"
unset LD_LIBRARY_PATH

# --- the example
data=$T/data
mkdir -p "$data/MNIST/raw"
for f in "$top"/examples/digits/MNIST/raw/*.gz; do
    gzip -dc "$f" >"$data/MNIST/raw/$(basename "$f" .gz)"
done
accuracy()
{
    sed -n 's,^epoch 60/60 .*accuracy \([0-9]*\)\.\([0-9]\) %,\1\2,p' "$T/out.0"
}
AGENT_DATASET_DIR=$data "$digits" >"$T/out.0" 2>&1
is "digits: one process without any variable" $? 0
alone=$(accuracy)
ok "reaches 90 %" test "${alone:-0}" -ge 900
start 4 "$digits" --data "$data"
ok "digits: 4 ranks" ended 0 60 0 1 2 3
four=$(accuracy)
ok "reach what one does, up to rounding" \
    test $((four - alone)) -ge -10 -a $((four - alone)) -le 10
ok "end with equal parameters" \
    said "^parameters bit-equal on all 4 ranks$" 0
final=$(grep -h fnv64 "$T"/out.? | sed 's/.* //' | sort -u)
is "and each prints the same sum" "$(echo "$final" | wc -l)" 1

start 4 "$digits" --data "$data" --checkpoint "$T/ck" --epoch-ms 20
ok "digits: in the midst of a training" until_true 30 said "^epoch 10/60" 0
kill -9 "${pids[2]}"
ok "a rank is killed: the others end with 1" ended 1 10 0 1 3
ok "and one line that names it" said "^digits: rank [013]: .*rank 2 " 0 1 3
is "the checkpoint is whole" "$(ls "$T"/ck*)" "$T/ck"
start 4 "$digits" --data "$data" --checkpoint "$T/ck"
ok "a new start" ended 0 60 0 1 2 3
ok "goes on from the checkpoint" \
    said "^resumed from epoch [1-5]?[05] \(checkpoint $T/ck\)$" 0
ok "and ends with the very parameters of an unbroken run" \
    said "parameters fnv64 $final$" 0 1 2 3

bad()
{
    local name=$1 re=$2
    shift 2
    "$digits" "$@" >"$T/bad" 2>&1
    is "digits: $name: status 2" $? 2
    is "digits: $name: one line" "$(grep -cE "^digits: rank 0: $re" "$T/bad")$(
        wc -l <"$T/bad")" 11
}
raw=$data/MNIST/raw
bad "no data" "/nowhere/MNIST/raw/train-images-idx3-ubyte: No such" \
    --data /nowhere
bad "damaged checkpoint" "checkpoint $T/ck2: is cut short" --data "$data" \
    --checkpoint "$(head -c 5000 "$T/ck" >"$T/ck2"; echo "$T/ck2")"
bad "another seed's checkpoint" "checkpoint $T/ck: belongs to" --data "$data" \
    --checkpoint "$T/ck" --seed 2
cp "$raw/t10k-labels-idx1-ubyte" "$T/labels"
printf 'x' >>"$raw/t10k-labels-idx1-ubyte"
bad "a file too long" ".*t10k-labels-idx1-ubyte: longer than" --data "$data"
head -c 100 "$T/labels" >"$raw/t10k-labels-idx1-ubyte"
bad "a file too short" ".*t10k-labels-idx1-ubyte: ends after 92 of 360" \
    --data "$data"
cp "$raw/t10k-images-idx3-ubyte" "$raw/t10k-labels-idx1-ubyte"
bad "a wrong magic" ".*labels-idx1-ubyte: starts with 00000803, but" \
    --data "$data"
