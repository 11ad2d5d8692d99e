#!/usr/bin/env bash
# The mesh test on loopback, where all pods reach each other; tests/net/mesh.sh
# has pods that do not.
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/pods.sh"

# On loopback, without hosts.
pod 0 3 -v --mesh full -- true
pod 1 3 --mesh full -- true
pod 2 3 --mesh off -- true
ended 0 1 2
is "on loopback, one pod without" "$codes" '0 0 0'
has "pod 0 says who took part" "$T/pod0.err" 'debug: 2 pods reach each other'
next_job
python3 -c 'import socket, sys, time
s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen()
print(s.getsockname()[1], flush=True); time.sleep(60)' >"$T/port" &
holder=$!
until_true 10 test -s "$T/port"
pod 0 2 -- true
pod 1 2 --mesh-port "$(cat "$T/port")" -- true
ended 0 1
is "a --mesh-port that is taken is everyone's 202" "$codes" '202 202'
has "its holder is named" "$T/pod1.err" \
    "mesh-port [0-9]+ is taken by pid $holder \(python3\)"
kill $holder
next_job
pod 0 1 -v --mesh ring -- true
ended 0
is "one pod has nobody to test" "$codes" 0
hasnt "and says nothing" "$T/pod0.err" 'reach'
for bad in --mesh=star --mesh-port=0; do
    "$agent" "$bad" -- true 2>"$T/usage.err"
    is "$bad is refused" $? 64
done

# A stranger, and a restart.
next_job
port=$(free_port)
pod 0 2 -v --mesh ring -- true
pod 1 2 --mesh-port "$port" -- sh -c '[ $TORCHELASTIC_RESTART_COUNT = 1 ]'
ended 0 1
is "a job that restarts once" "$codes" '0 0'
is "the same agents are tested once" "$(grep -c "reach each other" "$T/pod0.err")" 1
next_job
pod 0 3 --mesh ring -- true
pod 1 3 --mesh ring --mesh-port "$port" -- true
wait_for said 0 'node rank 1 arrived'
cat >"$T/stranger.py" <<'P'
import socket, sys
s = socket.create_connection(("127.0.0.1", int(sys.argv[1])), 10)
s.settimeout(60)
s.sendall(b"x" * int(sys.argv[2]))
print("ready", flush=True)
try:
    print(len(s.recv(1)))
except ConnectionError:
    print(0)
P
for n in 3 24 9000; do
    python3 "$T/stranger.py" "$port" $n >"$T/stranger.$n" &
    strangers+=($!)
    until_true 10 grep -q ready "$T/stranger.$n"
done
pod 2 3 --mesh ring -- true
ended 0 1 2
is "strangers do not disturb it" "$codes" '0 0 0'
wait "${strangers[@]}"
is "and get no byte" "$(cat "$T"/stranger.[0-9]* | tr '\n' ' ')" \
    'ready 0 ready 0 ready 0 '
