#!/usr/bin/env bash
# Pod 0 is lost again and again: its losses are counted, as any other pod's.
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/pods.sh"
body='echo up $TORCHELASTIC_RESTART_COUNT
      while [ ! -e '"$T"'/go ]; do sleep .05; done'

# lose_zero N OPTIONS...: kill -9 pod 0, start it again, wait for round N.
lose_zero()
{
    local round=$1
    shift
    kill -9 "$(agent_of 0)"
    ended 0
    pod 0 3 "$@" -- sh -c "$body"
    for r in 0 1 2; do wait_for wrote "$r" "up $round"; done
}
begin()
{
    next_job
    for r in 0 1 2; do pod "$r" 3 "$@" -- sh -c "$body"; done
    for r in 0 1 2; do wait_for wrote "$r" 'up 0'; done
}
# The last one is too much: all end with 201 for that reason.
too_often()
{
    kill -9 "$(agent_of 0)"
    ended 0
    pod 0 3 "$@" -- sh -c "$body"
    ended 0 1 2
}

begin --max-restarts 2
lose_zero 1 --max-restarts 2
has "the first loss of pod 0 is free" "$T/pod1.err" \
    'round 1 starts; 0 of 2 restarts used'
# Pod 2 is re-created, and knows of no loss before.
kill -9 "$(agent_of 2)"
ended 2
pod 2 3 --max-restarts 2 -- sh -c "$body"
for r in 0 1 2; do wait_for wrote $r 'up 2'; done
lose_zero 3 --max-restarts 2
for r in 0 1 2; do
    has "the second one costs a restart, pod $r" "$T/pod$r.err" \
        'round 3 starts; 1 of 2 restarts used'
done
# Pod 1 goes with pod 0: pod 2 has heard of the losses since it came.
kill -9 "$(agent_of 1)"
kill -9 "$(agent_of 0)"
ended 0 1
for r in 0 1; do pod $r 3 --max-restarts 2 -- sh -c "$body"; done
for r in 0 1 2; do wait_for wrote $r 'up 4'; done
has "the third one, with another pod" "$T/pod2.err" \
    'round 4 starts; 2 of 2 restarts used'
too_often --max-restarts 2
is "without a restart left it ends all pods alike" "$codes" '201 201 201'
for r in 0 1 2; do
    has "its verdict on pod $r" "$T/pod$r.err" \
        'error: .*\(peer\): node rank 0 was lost for the 4th time, .* after'
done

# Restarts within a period: the next pod 0 knows when they were.
begin --max-restarts 1/1h
lose_zero 1 --max-restarts 1/1h
lose_zero 2 --max-restarts 1/1h
too_often --max-restarts 1/1h
is "restarts within a period: the same end" "$codes" '201 201 201'
has "and why" "$T/pod1.err" 'all 1 within 60 min are used'

# No restarts at all.
begin --restart-policy never
too_often --restart-policy never
is "with --restart-policy never the first loss ends all" "$codes" '201 201 201'

# Another pod is lost twice, and pod 0 in between.
again()
{
    kill -9 "$(agent_of "$1")"
    ended "$1"
    pod "$1" 3 -- sh -c "$body"
    for r in 0 1 2; do wait_for wrote $r "up $2"; done
}
begin
again 1 1
again 0 2
again 1 3
has "a new pod 0 knows the losses of others" "$T/pod2.err" \
    'round 3 starts; 1 of 3 restarts used'
touch "$T/go"
ended 0 1 2
rm -f "$T/go"

# What its own worker alone has used up is known to the other pods.
next_job
once='if [ -e '"$T"'/once ]; then '"$body"'; else touch '"$T"'/once; exit 3; fi'
scope=(--restart-scope worker --max-restarts 2)
pod 0 2 "${scope[@]}" -- sh -c "$once"
pod 1 2 "${scope[@]}" -- sh -c "$body"
wait_for wrote 0 'up 1' # It counts starts here.
wait_for wrote 1 'up 0'
kill -9 "$(agent_of 0)"
ended 0
pod 0 2 "${scope[@]}" -- sh -c "$body"
for r in 0 1; do wait_for wrote $r 'up 1'; done
for r in 0 1; do
    has "a restart of its worker alone survives pod 0, pod $r" "$T/pod$r.err" \
        'round 1 starts; 1 of 2 restarts used'
done
touch "$T/go"
ended 0 1
rm -f "$T/go"

# Told to stop, it is not lost.
begin --max-restarts 1
for i in 1 2 3; do
    kill -TERM "$(agent_of 0)"
    ended 0
    pod 0 3 --max-restarts 1 -- sh -c "$body"
    for r in 0 1 2; do wait_for wrote $r "up $i"; done
done
has "an announced stop of pod 0 is no loss" "$T/pod1.err" \
    'round 3 starts; 0 of 1 restarts used'
touch "$T/go"
ended 0 1 2
is "and the job goes on to its end" "$codes" '0 0 0'
