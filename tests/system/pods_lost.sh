#!/usr/bin/env bash
# Pods that are lost, come back, are told to stop; strangers; data faults.
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/pods.sh"
body='echo up $TORCHELASTIC_RESTART_COUNT
      while [ ! -e '"$T"'/go$TORCHELASTIC_RESTART_COUNT ]; do sleep .05; done'

# A pod is killed and re-created: the others restart with it.
for r in 0 1 2; do pod $r 3 -- sh -c "$body"; done
for r in 0 1 2; do wait_for wrote $r 'up 0'; done
kill -9 "$(agent_of 1)"
wait_for said 0 'node rank 1 .*(closed its connection|went away)'
pod 1 3 -- sh -c "$body"
for r in 0 1 2; do wait_for wrote $r 'up 1'; done
touch "$T/go1"
ended 0 1 2
is "a re-created pod takes its place" "$codes" '0 0 0'
hasnt "its loss did not use up the budget" "$T/pod0.err" '1 restart used'

# Pod 0 is killed and re-created: the round goes on from the others'.
next_job
for r in 0 1; do pod $r 2 -- sh -c "$body"; done
for r in 0 1; do wait_for wrote $r 'up 0'; done
kill -9 "$(agent_of 0)"
wait_for said 1 'node rank 0 at .*(closed|refused|reset)'
pod 0 2 -- sh -c "$body"
for r in 0 1; do wait_for wrote $r 'up 1'; done
touch "$T/go1"
ended 0 1
is "a new pod 0 goes on with the next round" "$codes" '0 0'

# An agent stands still while the job ends: what was sent to it meanwhile is
# read before it takes the others for lost. It has told the end of its worker
# once it sleeps again behind its line.
next_job
sleeps() { grep -q '^State:.S' "/proc/$1/status"; }
rm -f "$T"/go*
pod 0 2 -- sh -c "until [ -e $T/go ]; do sleep .05; done"
pod 1 2 -v --rejoin-timeout 1s -- true
wait_for said 1 'RUNNING -> FINISHED'
frozen=$(agent_of 1)
until_true 10 sleeps "$frozen"
kill -STOP "$frozen"
touch "$T/go"
ended 0
is "pod 0 does not wait for a pod that stands still for ever" "$codes" 0
kill -CONT "$frozen"
ended 1
is "the other one hears that all was well" "$codes" 0
has "and says that it stood still" "$T/pod1.err" \
    'warning: agent stood still for [0-9.]+ s or more'

# A pod that does not come back.
next_job
for r in 0 1; do pod $r 2 --rejoin-timeout 1s -- sh -c "$body"; done
for r in 0 1; do wait_for wrote $r 'up 0'; done
rm -f "$T"/go*
kill -9 "$(agent_of 1)"
ended 0
is "a lost pod that does not come back is 201" "$codes" 201
has "the verdict names it" "$T/pod0.err" 'error: .*node rank 1'
is "its loss is told once" "$(grep -c 'closed its conn' "$T/pod0.err")" 1
has "and the option that was too short" "$T/pod0.err" \
    'in time \(--rejoin-timeout 1 s\): node rank 1 seen and lost'

# TERM on one pod: 143 there; the others stop, wait, and say who.
next_job
for r in 0 1; do pod $r 2 --rejoin-timeout 1s -- sh -c "$body"; done
for r in 0 1; do wait_for wrote $r 'up 0'; done
kill -TERM "$(agent_of 1)"
ended 1 0
is "TERM on pod 1" "$codes" '143 201'
has "pod 0 says who was stopped" "$T/pod0.err" 'node rank 1 .*told to stop'
is "... once" "$(grep -c 'warning: node rank 1 .*told' "$T/pod0.err")" 1
end='told to stop from outside \(SIGTERM\) and did not come back in time'
end="$end \\(--rejoin-timeout 1 s\\)"
has "its verdict, too" "$T/pod0.err" "error: .*node rank 1 .*$end"
hasnt "and does not guess" "$T/pod0.err" 'hint: '
next_job
for r in 0 1; do pod $r 2 --rejoin-timeout 1s -- sh -c "$body"; done
for r in 0 1; do wait_for wrote $r 'up 0'; done
kill -TERM "$(agent_of 0)"
ended 0 1
is "TERM on pod 0" "$codes" '143 201'
has "pod 1 says who was stopped" "$T/pod1.err" 'node rank 0.*SIGTERM'
has "its verdict, too" "$T/pod1.err" "error: .*node rank 0 .*$end"
hasnt "and does not guess" "$T/pod1.err" 'hint: '

# Pod 0 while the others wait for the last one: they hear why it is gone.
next_job
for r in 0 1; do pod $r 3 --rejoin-timeout 1s -- true; done
wait_for said 0 'node rank 1 arrived'
kill -TERM "$(agent_of 0)"
ended 0 1
is "TERM on pod 0 before the start" "$codes" '143 201'
has "and who was stopped" "$T/pod1.err" "error: .*node rank 0 .*$end"

# Its replacement is there while it is still stopping: it waits, and the job
# goes on with it.
next_job
slow='trap "until [ -e '"$T"'/die ]; do sleep .05; done; exit 0" TERM
      echo up $TORCHELASTIC_RESTART_COUNT
      while [ ! -e '"$T"'/go$TORCHELASTIC_RESTART_COUNT ]; do sleep .05; done'
rm -f "$T"/go* "$T/die"
for r in 0 1; do pod $r 2 -- sh -c "$slow"; done
for r in 0 1; do wait_for wrote $r 'up 0'; done
old=${pod_pid[1]}
kill -TERM "$(agent_of 1)"
wait_for said 0 'node rank 1 .*told to stop'
mv "$T/pod1.err" "$T/old.err"
pod 1 2 -- sh -c "$slow"
wait_for said 1 'was told to stop and is still stopping'
touch "$T/die"
for r in 0 1; do wait_for wrote $r 'up 1'; done
touch "$T/go1"
ended 0 1
is "a new pod waits for the one that is stopping" "$codes" '0 0'
wait "$old"
is "which ends with 143" $? 143

# Strangers on the port do not hold up the barrier.
next_job
pod 0 2 -- true
wait_for said 0 . || true
until_true 10 bash -c "exec 3<>/dev/tcp/127.0.0.1/$barrier_port"
exec 3<>"/dev/tcp/127.0.0.1/$barrier_port"
printf 'GET / HTTP/1.0\r\n\r\n' >&3
exec 4<>"/dev/tcp/127.0.0.1/$barrier_port"
head -c 100000 /dev/zero >&4 2>/dev/null
exec 5<>"/dev/tcp/127.0.0.1/$barrier_port"
printf 'AGN' >&5
exec 6<>"/dev/tcp/127.0.0.1/$barrier_port"
printf 'AGNT\7\1\0\0\0\0\0\0' >&6
pod 1 2 -- true
ended 0 1
is "strangers on the barrier port are no matter" "$codes" '0 0'
exec 3<&- 4<&- 5<&- 6<&-

# Data: pods with different sets, and bad data on one pod.
mkdir -p "$T/a" "$T/b"
echo one >"$T/a/x"
echo two >"$T/b/x"
"$agent" manifest "$T/a" --name set -o "$T/a.json"
"$agent" manifest "$T/b" --name set -o "$T/b.json"
next_job
pod 0 2 --dataset "$T/a.json" --source "$T/a" -- echo ran
pod 1 2 --dataset "$T/b.json" --source "$T/b" -- echo ran
ended 0 1
is "different data sets: 78 on both" "$codes" '78 78'
for r in 0 1; do
    is "both digests on pod $r" "$(grep -oE '[0-9a-f]{64}' "$T/pod$r.err" |
        sort -u | wc -l)" 2
    has "... and what to do" "$T/pod$r.err" 'set.*: give all the same'
done
is "no worker ran" "$(cat "$T"/pod?.out)" ''
next_job
pod 0 2 --dataset "$T/a.json" --source "$T/a" -- echo ran
pod 1 2 -- echo ran
ended 0 1
is "a data set on one pod only: 78 on both" "$codes" '78 78'
for r in 0 1; do
    has "pod $r says which has none" "$T/pod$r.err" \
        'digest [0-9a-f]{64} on node rank 0'
    has "and the other's" "$T/pod$r.err" 'none \(no --dataset\) on node rank 1'
done
next_job
echo onf >"$T/b/x"
pod 0 2 --dataset "$T/a.json" --source "$T/a" -- echo ran
pod 1 2 --dataset "$T/a.json" --source "$T/b" -- echo ran
ended 0 1
is "bad data on one pod: its code on all" "$codes" '65 65'
has "pod 0 knows the file" "$T/pod0.err" "error: .*node rank 1.*x"
has "pod 1 too" "$T/pod1.err" "error: .*x"
is "no worker ran" "$(cat "$T"/pod?.out)" ''
next_job
pod 0 2 --dataset "$T/a.json" --source "$T/nowhere" -- echo ran
pod 1 2 --dataset "$T/a.json" --source "$T/a" -- echo ran
ended 0 1
is "no data on pod 0: 66 on all" "$codes" '66 66'

# The workers find the staged set.
next_job
for r in 0 1; do
    pod $r 2 --dataset "$T/a.json" --source "$T/a" --stage "$T/stage" -- \
        sh -c 'cat "$AGENT_DATASET_DIR/x"'
done
ended 0 1
is "workers read the staged set" "$codes $(cat "$T"/pod?.out | cut -d' ' -f2 |
    tr '\n' ' ')" '0 0 one one '

# Ports.
next_job
python3 -c 'import socket, sys, time
s = socket.socket(); s.bind(("0.0.0.0", int(sys.argv[1]))); s.listen()
print("held", flush=True); time.sleep(60)' "$barrier_port" >"$T/held" &
holder=$!
until_true 10 grep -q held "$T/held"
pod 0 2 -- true
ended 0
is "a barrier port that is taken is 202" "$codes" 202
has "its holder is named" "$T/pod0.err" "taken by pid $holder .python"
timeout 20 "$agent" --master-port "$barrier_port" -- true 2>"$T/err"
is "a --master-port that is taken is 202" "$?" 202
has "its holder is named, too" "$T/err" "pid $holder .python"
kill $holder
