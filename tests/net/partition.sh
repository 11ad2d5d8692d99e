#!/usr/bin/env bash
# Cut off for a while, for long, for good, and in one direction.
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/hosts.sh"
hosts 8
both()
{
    local name=$1 h=$2
    shift 2
    pod "${name}0" "$h" 0 2 "$@" sh -c "$(until_file "$name")"
    pod "${name}1" $((h + 1)) 1 2 "$@" sh -c "$(until_file "$name")"
}
run() { wait_for wrote "${1}0" "up $2" && wait_for wrote "${1}1" "up $2"; }

within() { [ "$1" -ge "$2" ] && [ "$1" -le "$3" ]; }

both short 1
both long 3
both gone 5 --rejoin-timeout 3s
both way 7
for j in short long gone way; do
    ok "job '$j' runs" run $j 0
done
part 2
part 4
part 6
# What pod 1 says gets lost; what it hears is fine.
on 8 iptables -A OUTPUT -d 10.99.0.7 -j DROP
start=$SECONDS
sleep 4 # The partition's length.
heal 2

ok "silence: pod 0 stops its workers" wait_for said long0 \
    "was silent for 15 s.*stopping all workers"
ok "the lease: so does pod 1" wait_for said long1 \
    "not heard for 15 s; stopping the workers"
took=$((SECONDS - start))
ok "after 15 s, not much later" within $took 10 30
heal 4
on 8 iptables -F

touch "$T/short"
ok "a short partition is no loss" codes "0 0" short0 short1
hasnt "no second round" "$T/short0.out" "up 1"
ok "for good: 201" codes "201 201" gone0 gone1
ok "pod 0 of the one-way job stops its workers" wait_for said way0 \
    "(silent|stopped its workers).*stopping all workers"
ok "long, then healed: round 1" run long 1
touch "$T/long"
ok "the job succeeds" codes "0 0" long0 long1
has "the loss cost no restart" "$T/long0.err" "0 of 3 restarts used"
ok "one way, then healed: round 1" run way 1
touch "$T/way"
ok "the job succeeds" codes "0 0" way0 way1
