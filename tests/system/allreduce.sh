#!/usr/bin/env bash
# agent-allreduce as the workers of agent: in one pod, in two, and what it says
# of wrong elements, slow networks, dead ranks and bad options.
. "$(dirname "$0")/../lib/tap.sh"
. "$top/tests/lib/pods.sh"
once=(--max-restarts 0 --log-prefix none)

# all N ARGS...: N ranks; $T/out, $T/err, $rc
all()
{
    local n=$1
    shift
    timeout -k 5 100 "$agent" "${once[@]}" --nproc "$n" -- \
        "${tool[@]}" "$@" >"$T/out" 2>"$T/err" </dev/null
    rc=$?
}
tool=(agent-allreduce) # Beside agent, and not in PATH.

# --- the table
all 4
is "agent --nproc 4 -- agent-allreduce" $rc 0
row='( +[0-9.]+ +[0-9]+\.[0-9]{2} +[0-9]+\.[0-9]{2} +0){2}'
has "32 MiB of floats, summed" "$T/out" \
    "^ +33554432 +8388608 +float +sum +-1$row$"
has "the columns of nccl-tests" "$T/out" \
    "^# +size +count +type +redop +root( +time +algbw +busbw +#wrong){2}$"
has "each rank and its process" "$T/out" "^#  Rank  3 Pid +[0-9]+ on +[^ ]+ "
has "no element is wrong" "$T/out" '^# Out of bounds values : 0 OK$'
has "the mean bandwidth" "$T/out" '^# Avg bus bandwidth    : [0-9.]+ $'
is "rank 0 alone prints" "$(grep -c '^# Avg' "$T/out")" 1

all 2 -b 8 -e 64K -f 2 -n 3 -w 0 -c 2 -g 1 -t 1
is "a row of sizes" "$(awk '/^ /{printf "%s ", $1}' "$T/out")" \
    "8 16 32 64 128 256 512 1024 2048 4096 8192 16384 32768 65536 "
all 3 -b 100 -e 400 -i 100 -n 1 -d double -o max
is "in steps, of whole elements" \
    "$(awk '/^ /{printf "%s:%s:%s:%s ", $1, $2, $3, $4}' "$T/out")" \
    "96:12:double:max 200:25:double:max 296:37:double:max 400:50:double:max "
all 3 -b 1K -e 1K -n 1 -d all -o all
is "all types and ops" "$rc $(grep -cE "^ .*$row$" "$T/out")" "0 50"
DDP_TRANSPORT=tcp all 3 -b 1 -e 1M -f 100 -n 2 -d all -o all
is "over TCP, too" "$rc $(grep -cE "^ .*$row$" "$T/out")" "0 200"
all 1 -b 1M -e 1M -n 2
is "one rank alone: no bus bandwidth" "$rc $(awk '/^ /{print $8, $12}' \
    "$T/out")" "0 0.00 0.00"
all 2 -b 1M -e 1M -c 0
has "-c 0 compares nothing" "$T/out" '^ .* N/A .* N/A$'

# --- JSON
all 2 -b 1K -e 4K -f 2 --json --min-busbw 0.0000001
is "--json" "$rc $(python3 -c 'import json, sys
j = json.load(open(sys.argv[1]))
r = j["results"]
print(j["ranks"], j["ok"], j["wrong"], j["min_busbw"],
      [(x["bytes"], x["count"], x["type"], x["op"]) for x in r],
      all(x[h]["time_us"] > 0 and x[h]["wrong"] == 0 and
          abs(x[h]["busbw"] - x["bytes"] / x[h]["time_us"] / 1e3)
          <= .01 * x[h]["busbw"] + .0001
          for x in r for h in ("out_of_place", "in_place")))' "$T/out")" \
    "0 2 True 0 1e-07 [(1024, 256, 'float', 'sum'), (2048, 512, 'float', 'sum'), (4096, 1024, 'float', 'sum')] True"

# --- too slow, wrong
all 2 -b 1M -e 1M -n 2 --min-busbw 100000
is "below --min-busbw: 1" $rc 1
has "and FAILED" "$T/out" '^# Avg bus bandwidth    : [0-9.]+ FAILED$'
all 2 -b 1M -e 1M -n 2 --min-busbw 0.0001
is "above it: 0" $rc 0
has "and OK" "$T/out" '^# Avg bus bandwidth    : [0-9.]+ OK$'

tool=("$O/tests/wrong_allreduce")
WRONG_RANK=1 WRONG_COUNT=2048 all 2 -b 4K -e 16K -f 2
is "a wrong element on rank 1: 1" $rc 1
is "is counted where it is" "$(awk '/^ /{printf "%s:%s:%s ", $1, $9, $13}' \
    "$T/out")" "4096:0:0 8192:1:1 16384:1:1 "
has "and in the footer" "$T/out" '^# Out of bounds values : 4 FAILED$'
has "and the rank names it" "$T/err" \
    '^agent-allreduce: rank 1: 1 of 2048 x float are wrong, sum out of place; the first is element 1024: '
WRONG_RANK=1 WRONG_COUNT=2048 all 2 -b 8K -e 8K -c 0
is "-c 0 does not see it" $rc 0
WRONG_RANK=0 WRONG_COUNT=2048 all 2 -b 8K -e 8K --json
is "JSON says it, too" "$rc $(python3 -c 'import json, sys
j = json.load(open(sys.argv[1]))
print(j["ok"], j["wrong"])' "$T/out")" "1 False 2"
tool=(agent-allreduce)

# --- what does not go
all 2 -g 8
is "-g 8: 64" $rc 64
has "and how it is done here" "$T/err" \
    '^agent-allreduce: --ngpus=8: only 1 is possible: .* agent --nproc N starts N$'
all 2 -b 1M -e 512T
is "more than the memory: 202" $rc 202
has "and why" "$T/err" \
    '^agent-allreduce: rank [01]: two buffers of 562949953421312 bytes .*--maxbytes$'
"$O/agent-allreduce" --bogus >"$T/out" 2>"$T/err"
is "no such option: 64" $? 64
"$O/agent-allreduce" -b 8 -e 8 -n 1 >/dev/full 2>"$T/err"
is "a full disk: 202" $? 202
has "which is said" "$T/err" 'write to stdout: No space left'
RANK=0 "$O/agent-allreduce" 2>"$T/err" >"$T/out"
is "half an environment: 64" $? 64

# --- agent allreduce, help
"$agent" allreduce --version >"$T/out"
has "agent allreduce runs it" "$T/out" '^agent-allreduce [0-9]'
"$O/agent-allreduce" --help >"$T/out"
for o in -b -e -i -f -n -w -c -o -d -T -g; do
    has "--help has $o" "$T/out" "^  --[a-z-]+ [A-Z]+, $o "
done
"$O/agent-allreduce" --help=man >"$T/man"
is "the manual page is clean" "$(mandoc -Tlint -Wwarning 2>&1 <"$T/man")" ""

# --- two pods
for r in 1 0; do
    pod $r 2 "${once[@]}" --nproc 2 -- agent-allreduce -b 1K -e 1M -f 32 -n 3
done
ended 0 1
is "two pods of two ranks" "$codes" "0 0"
has "are four ranks" "$T/pod0.out" '^#  Rank  3 '
is "rank 0's pod prints" "$(grep -cE "^ .*$row$" "$T/pod0.out")" 3
is "the other one does not" "$(cat "$T/pod1.out")" ""

next_job
pod 1 2 "${once[@]}" --nproc 1 -- agent-allreduce -b 1K -e 1K -n 7
pod 0 2 "${once[@]}" --nproc 1 -- agent-allreduce -b 1K -e 1K -n 8
ended 0 1
is "pods with different options: 78" "$codes" "78 78"

next_job
for r in 1 0; do
    pod $r 2 "${once[@]}" --nproc 2 -- agent-allreduce -n 1000000
done
wait_for wrote 0 '^#.*#wrong' # All have joined.
kill -9 "$(pgrep -P "$(agent_of 1)" -f "^agent-allreduce" | head -n 1)"
ended 0 1
is "a rank is killed: both pods end with 137" "$codes" "137 137"
