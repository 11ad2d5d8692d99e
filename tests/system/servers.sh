#!/usr/bin/env bash
# --servers: mxnet's scheduler, servers and workers in one job.
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/pods.sh"
ps=$(dirname "$0")/../lib/ps.py
run() { timeout -k 5 60 "$agent" "$@" >"$T/out" 2>"$T/err" </dev/null; rc=$?; }
sorted() { sort "$1" | tr '\n' ';'; }

run --contract mxnet --servers 2 --nproc 3 --log-dir "$T/logs" -- python3 "$ps"
is "workers, servers and a scheduler" "$rc" 0
is "each line says whose it is" "$(sorted "$T/out")" \
    "[scheduler0] scheduler: all are done;\
[server0] server 0: the sum is 3;[server1] server 1: the sum is 3;\
[worker0] worker 0 of 3, 2 servers;[worker1] worker 1 of 3, 2 servers;\
[worker2] worker 2 of 3, 2 servers;"
has "the workers are counted" "$T/err" 'all 3 workers of 1 pod ended with 0'
is "files of each" "$(ls "$T/logs/attempt_0" | tr '\n' ' ')" \
    'rank_0 rank_1 rank_2 scheduler_0 server_0 server_1 '

STAY=1 run --contract mxnet --servers 1 --grace 10s --log-format json \
    -- python3 "$ps"
is "servers that stay are stopped, and that is success" "$rc" 0
has "JSON tells them, too" "$T/out" '"rank":null.*"role":"server0".*sum is 1'
# shellcheck disable=SC2016 # the worker expands it
run --contract mxnet --servers 1 --grace 2s -- sh -c \
    'trap "" TERM; [ $DMLC_ROLE = worker ] || while :; do sleep 1; done'
is "those that ignore TERM are killed, and that is success" "$rc" 0

FAIL=server1 run --contract mxnet --servers 2 --nproc 2 --max-restarts 1 \
    --restart-backoff 1ms:1ms --report "$T/report" -- python3 "$ps"
is "a server that fails is a failure" "$rc" 7
has "with its name" "$T/err" 'server 1 \(node rank 0,.*exited with 7'
has "and all start anew" "$T/err" 'round 1 starts'
is "the report has it" "$(python3 -c 'import json, sys
c = json.load(open(sys.argv[1]))["cause"]
print(c["role"], c["index"], "rank" in c)' "$T/report")" 'server 1 False'
run --contract mxnet --servers 1 --max-restarts 0 -- sh -c \
    '[ $DMLC_ROLE = worker ] && exit 3; sleep 100'
is "a worker that fails stops them" "$rc" 3
has "and is the cause" "$T/err" 'rank 0 .*exited with 3'
run --contract mxnet --servers 1 --expand --pass-local-rank --role w -- \
    echo '{role}{rank}'
is "macros of a server; the local rank is a worker's" "$(sorted "$T/out")" \
    '[scheduler0] scheduler0;[server0] server0;[w0] w0 --local-rank=0;'

# Asked while it runs, and in the report.
"$agent" --socket "$T/s" --contract mxnet --servers 2 --grace 5s \
    --report "$T/report" -- sh -c 'echo "$DMLC_ROLE here"
    until [ -e "$1" ]; do sleep .05; done; [ "$DMLC_ROLE" = worker ] ||
        exec sleep 60' sh "$T/end" >"$T/out" 2>"$T/err" </dev/null &
bg=$!
asked() { timeout 30 "$agent" status --json --socket "$T/s" | python3 -c '
import json, sys
j = json.load(sys.stdin)
print(len(j["workers"]), *[(s["role"], s["index"], s["state"], s["last_line"])
                           for s in j["servers"]])'; }
all_here() { [ "$(asked | grep -o here | wc -l)" = 3 ]; }
until_true 30 all_here
is "agent status has the servers" "$(asked)" "1 ('server', 0, 'running', \
'server here') ('server', 1, 'running', 'server here') ('scheduler', 0, \
'running', 'scheduler here')"
"$agent" status --socket "$T/s" >"$T/table"
has "and so has its table" "$T/table" '^scheduler +0 +[0-9]+ running .*r here'
touch "$T/end"
wait $bg
is "the report has how they ended" "$(python3 -c 'import json, sys
for s in json.load(open(sys.argv[1]))["servers"]:
    print(s["role"], s["index"], s["exit_code"], s["signal"], s["lines"],
          end=";")' "$T/report")" \
    'server 0 143 SIGTERM 1;server 1 143 SIGTERM 1;scheduler 0 143 SIGTERM 1;'

# Two pods: servers in both, one scheduler.
for r in 0 1; do
    pod $r 2 --contract mxnet --servers 1 --nproc 2 \
        -- env DMLC_NODE_HOST=127.0.0.1 python3 "$ps"
done
ended 0 1
is "two pods" "$codes" '0 0'
is "of both" "$(sort "$T/pod0.out" "$T/pod1.out" | tr '\n' ';')" \
    "[scheduler0] scheduler: all are done;\
[server0] server 0: the sum is 4;[server1] server 1: the sum is 4;\
[worker0] worker 0 of 4, 2 servers;[worker1] worker 1 of 4, 2 servers;\
[worker2] worker 2 of 4, 2 servers;[worker3] worker 3 of 4, 2 servers;"
# One pod's workers are done long before: its server serves on.
next_job
for r in 0 1; do
    # shellcheck disable=SC2016 # the worker expands it
    pod $r 2 -v --contract mxnet --servers 1 --grace 20s -- sh -c '
        case $DMLC_ROLE$DMLC_WORKER_ID in
        worker0) until [ -e "$1/go" ]; do sleep .05; done ;;
        worker1) : ;;
        *) trap "touch $1/stopped; exit" TERM
            while :; do sleep .05; done ;;
        esac' sh "$T"
done
wait_for said 1 'RUNNING -> FINISHED'
ok "the server of a pod that is done serves on" test ! -e "$T/stopped"
touch "$T/go"
ended 0 1
is "until all are done" "$codes" '0 0'
ok "then it was" test -e "$T/stopped"

# The platform names the roles: one process in each pod.
next_job
port=$(free_port) rank=0
for role in scheduler server worker worker; do
    DMLC_ROLE=$role DMLC_NUM_WORKER=2 DMLC_NUM_SERVER=1 DMLC_SERVER_ID=0 \
        DMLC_PS_ROOT_URI=127.0.0.1 DMLC_PS_ROOT_PORT=$port \
        DMLC_NODE_HOST=127.0.0.1 pod $rank 4 --contract mxnet \
        --nproc 1 -- python3 "$ps"
    rank=$((rank + 1))
done
ended 0 1 2 3
is "four pods with roles" "$codes" '0 0 0 0'
is "each its own" "$(sort "$T"/pod*.out | tr '\n' ';')" \
    "[scheduler0] scheduler: all are done;[server0] server 0: the sum is 2;\
[worker0] worker 0 of 2, 1 servers;[worker1] worker 1 of 2, 1 servers;"
# Alone, too, as an MXJob without anything else has them.
for role in scheduler server worker; do
    DMLC_ROLE=$role DMLC_NUM_WORKER=1 DMLC_NUM_SERVER=1 DMLC_WORKER_ID=0 \
        DMLC_PS_ROOT_URI=127.0.0.1 DMLC_PS_ROOT_PORT=$port \
        DMLC_NODE_HOST=127.0.0.1 timeout 60 "$agent" --contract mxnet \
        -- python3 "$ps" >"$T/$role" 2>&1 </dev/null &
done
until_true 30 grep -q 'finished' "$T/server"
wait
has "three agents that know nothing of each other" "$T/server" 'sum is 1'
has "finish" "$T/worker" 'finished'

for args in '--servers 1' '--contract torch --servers 1' \
    '--contract mxnet --servers x' '--contract mxnet --servers 1 --nproc 1023'
do
    IFS=' ' read -ra words <<<"$args"
    run "${words[@]}" -- true
    is "$args is 64" "$rc" 64
done
DMLC_ROLE=server run --contract mxnet --servers 1 -- true
is "so are two who name the roles" "$rc" 64
DMLC_ROLE=chief run --contract mxnet -- true
is "and another role" "$rc" 64
