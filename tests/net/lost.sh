#!/usr/bin/env bash
# Pod 0 killed and restarted, two pods with one rank, a pod that stands still.
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/hosts.sh"
hosts 7
both()
{
    local name=$1 h=$2
    pod "${name}0" "$h" 0 2 sh -c "$(until_file "$name")"
    pod "${name}1" $((h + 1)) 1 2 sh -c "$(until_file "$name")"
}
run() { wait_for wrote "${1}0" "up $2" && wait_for wrote "${1}1" "up $2"; }

both ice 1
both kill 3
both twice 5
for j in ice kill twice; do
    ok "job '$j' runs" run $j 0
done
frozen=$(agent_of ice1)
kill -STOP "$frozen"
start=$SECONDS

kill -KILL "$(agent_of kill0)"
ok "pod 0 is dead" until_true 10 gone "${pod_pid[kill0]}"
wait "${pod_pid[kill0]}"
mv "$T/kill0.out" "$T/kill0.out.1"
pod kill0 3 0 2 sh -c "$(until_file kill)"
ok "a new pod 0 goes on with round 1" run kill 1
touch "$T/kill"
ok "the job succeeds" codes "0 0" kill0 kill1

# Host 7 is told that rank 1 is its own, too.
echo "10.99.0.5 zero" >"/etc/netns/$net-7/hosts"
pod other 7 1 2 sh -c "$(until_file twice)"
ok "a second pod with rank 1 is refused" codes 78 other
has "with both addresses" "$T/other.err" \
    "held by a live pod at 10\.99\.0\.6:.* 10\.99\.0\.7:"
touch "$T/twice"
ok "it alone" codes "0 0" twice0 twice1
hasnt "the job has not noticed" "$T/twice0.out" "up 1"

ok "a pod stands still: pod 0 stops its workers" wait_for said ice0 \
    "was silent for 15 s.*stopping all workers"
# Its length; longer than the silence that pod 0 suffers.
until [ $((SECONDS - start)) -ge 20 ]; do sleep 0.1; done
kill -CONT "$frozen"
ok "it comes back: round 1" run ice 1
touch "$T/ice"
ok "the job succeeds" codes "0 0" ice0 ice1
