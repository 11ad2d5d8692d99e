#!/usr/bin/env bash
# A lone worker has the terminal itself: Ctrl-C, Ctrl-Z, its size, and back.
. "$(dirname "$0")/../lib/tap.sh"
fast=(--restart-backoff 10ms:50ms)

# on_tty STEP... -- COMMAND...: what the terminal showed lies in $T/tty.
on_tty() { timeout -k 5 60 python3 "$top/tests/lib/terminal.py" "$@" \
    >"$T/tty" 2>&1 </dev/null; rc=$?; }
# The same typed into an interactive shell.
in_shell() # STEP...
{
    on_tty 'expect \$ ' "$@" 'send exit 0\n' -- \
        env TERM=dumb PS1='$ ' HISTFILE= bash --norc --noprofile -i
}

cat >"$T/watch.py" <<'EOF'
import os, signal, sys
got = []
for s in set(signal.valid_signals()) - {2, 3, 9, 17, 19, 20}:
    signal.signal(s, lambda n, f: got.append(signal.Signals(n).name))
fore = os.tcgetpgrp(0) == os.getpgrp() == os.getpid()
print(f"foreground {fore} terminals {[os.isatty(i) for i in range(3)]}")
sys.stdin.readline()
print(" ".join(["signals"] + got + ["size", *map(str, os.get_terminal_size())]))
EOF
watch=(python3 "$T/watch.py")
on_tty 'expect foreground' 'send \n' -- "$agent" "${watch[@]}"
is "a worker on a terminal ends with 0" "$rc" 0
has "it is the foreground group, on the terminal itself" "$T/tty" \
    'foreground True terminals .True, True, True'
has "no stray HUP, CONT or TTOU" "$T/tty" '^signals size 80 24'
hasnt "there is no prefix" "$T/tty" '^\[rank0\]'
on_tty 'expect foreground' 'size 50 132' 'send \n' -- "$agent" "${watch[@]}"
has "a new size reaches the worker, with one WINCH" "$T/tty" \
    '^signals SIGWINCH size 132 50'
script -qec "$agent -- $(printf '%q ' "${watch[@]}")" /dev/null \
    </dev/null >"$T/tty" 2>&1
is "under script(1) with stdin at its end" "$?" 0
has "no stray signal, either" "$T/tty" '^signals size'
on_tty 'expect up' -- "$agent" --nproc 2 -- sh -c '[ -t 0 ] || [ -t 1 ] ||
    echo up'
has "two workers have none" "$T/tty" 'rank0.*up'
"$agent" -- sh -c '[ -t 1 ] || echo none' >"$T/out" 2>"$T/err" </dev/null
has "nor one without a terminal" "$T/out" '^\[rank0\] none'

# Ctrl-C, Ctrl-\.
on_tty 'expect up' 'send \x03' -- "$agent" "${fast[@]}" -- \
    sh -c 'echo up; exec sleep 60'
is "Ctrl-C ends the worker and agent: 130" "$rc" 130
hasnt "without a restart" "$T/tty" 'round 1'
on_tty 'expect up' 'send \x1c' -- "$agent" "${fast[@]}" -- \
    sh -c 'ulimit -c 0; echo up; exec sleep 60'
is "Ctrl-\\ likewise: 131" "$rc" 131
# Short sleeps: Python runs no handler for what came just before a system call.
on_tty 'expect up' 'send \x03' -- "$agent" -- python3 -c '
import time
try:
    print("up", flush=True)
    while True:
        time.sleep(0.02)
except KeyboardInterrupt:
    print("caught")'
is "a worker that catches Ctrl-C decides itself" "$rc" 0
on_tty 'expect restart 1 of' 'send \x03' -- "$agent" \
    --restart-backoff 50s:50s -- sh -c 'exit 3'
is "Ctrl-C between two rounds is for agent" "$rc" 130
on_tty 'expect up 2' 'send \x03' -- "$agent" "${fast[@]}" -- \
    sh -c 'echo up $TORCHELASTIC_RESTART_COUNT
        [ $TORCHELASTIC_RESTART_COUNT = 2 ] || exit 3; exec sleep 60'
is "after restarts the worker has the terminal again" "$rc" 130
on_tty 'expect hint|0 of 0' -- "$agent" --max-restarts 0 -- \
    sh -c 'echo words >&2; exit 3'
is "a worker that fails on it" "$rc" 3
hasnt "is not said to have written nothing: nobody knows" "$T/tty" 'wrote noth'

# The terminal is given back, with its modes.
on_tty 'expect after' 'send line\n' -- sh -c "'$agent' -- true
    echo after; read -r x; echo got \$x"
has "what comes after agent can read" "$T/tty" '^got line'
on_tty 'expect after' -- sh -c "
    '$agent' --max-restarts 0 -- sh -c 'stty raw -echo; kill -9 \$\$'
    stty -a; echo after"
has "the modes are what they were after a KILL" "$T/tty" ' icanon .* echo '
on_tty 'expect after' -- sh -c "'$agent' -- stty -echo
    stty -a; echo after"
has "but a worker may set them" "$T/tty" ' -echo '

# Ctrl-Z and job control, under a shell.
echo 'echo up; read -r x; echo "got $x"' >"$T/ask"
ask="sh '$T/ask'"
# No sh that forks: dash uses vfork, and a child that is stopped before its exec
# leaves the parent neither stopped nor running.
cat >"$T/job" <<'EOF'
import signal, time
signal.signal(signal.SIGCONT, lambda *a: print("woken", flush=True))
signal.signal(signal.SIGINT, signal.SIG_DFL)
print("up", flush=True)
while True:
    time.sleep(0.02)
EOF
stopped=('send until [[ $(jobs) == *Stopped* ]]; do sleep .1; done; echo now\n'
    'expect \nnow')
in_shell "send '$agent' -- $ask\n" 'expect up' 'send \x1a' 'expect Stopped' \
    'expect \$ ' 'send echo shell\n' 'expect \nshell' 'send fg\n' \
    'expect sh .*ask' 'send hello\n' 'expect got hello' 'expect \$ '
is "Ctrl-Z stops it, fg goes on with the terminal" "$rc" 0
in_shell "send '$agent' -- $ask\n" 'expect up' 'send \x1a' 'expect Stopped' \
    'send bg\n' "${stopped[@]}" 'send fg\n' \
    'expect sh .*ask' 'send bye\n' 'expect got bye' 'expect \$ '
is "in the background it stops where it reads" "$rc" 0
in_shell "send '$agent' -- $ask &\n" 'expect up' "${stopped[@]}" \
    'send fg\n' 'expect sh .*ask' 'send ciao\n' 'expect got ciao' 'expect \$ '
is "started in the background it leaves the terminal alone" "$rc" 0
on_tty 'expect after' -- sh -c "timeout 1 '$agent' -- cat; echo after \$?"
has "timeout(1), which is in the background, ends it where it reads" "$T/tty" \
    'after 124'
in_shell "send '$agent' -- env PS1=inner: bash --norc --noprofile -i\n" \
    'expect \ninner:' "send python3 '$T/job'\n" 'expect \nup' \
    'send \x1a' 'expect Stopped.*job' 'expect inner:' \
    'send fg\n' 'expect woken' 'send \x03' 'expect inner:' \
    'send exit 0\n' 'expect finished' 'expect \$ '
is "a shell as the worker has job control" "$rc" 0

# tostop: whoever writes in the background is stopped.
on_tty 'expect after' -- sh -c "stty tostop
    '$agent' --nproc 2 -- sh -c 'echo both'
    '$agent' -- sh -c 'echo one'
    echo after"
is "P15: with tostop nobody is stopped" "$rc" 0
has "P15: and the worker writes" "$T/tty" '^one'

on_tty -n 'expect foreground' 'send \n' -- "$agent" -- "${watch[@]}"
has "a terminal that is nobody's becomes the worker's" "$T/tty" \
    'foreground True'

# It asks while it runs: itself, in a session that is not its own, and its child.
on_tty -- "$agent" --socket "$T/s" -- sh -c "
    until '$agent' status --json --socket '$T/s' >'$T/j'; do sleep .05; done"
is "agent status knows what it uses" "$(python3 -c 'import json, sys
w = json.load(open(sys.argv[1]))["workers"][0]
print(w["processes"], w["cpu_ms"] >= 0, w["rss_bytes"] > 0)' "$T/j")" '2 True True'

# The terminal goes away.
m="mark-$$-hup"
on_tty 'expect up' 'hangup' -- "$agent" -- sh -c "echo up; sleep 60; : $m"
is "a closed terminal is a stop: 129" "$rc" 129
ok "and nothing is left" until_true 10 eval "! pgrep -f '$m' >/dev/null"

if ! unshare -pf --mount-proc true 2>/dev/null; then
    skip "PID 1 on a terminal" "unshare -pf is not permitted here"
    exit
fi
as_init=(unshare -pf --mount-proc)
on_tty 'expect foreground' 'send \n' -- "${as_init[@]}" "$agent" -- \
    "${watch[@]}"
has "PID 1: its worker is in the foreground" "$T/tty" 'foreground True'
has "PID 1: without a stray signal" "$T/tty" '^signals size 80 24'
# In a loop, where python looks for signals: one that comes while readline puts
# up its prompt is lost. From 3.13 on, python colours what is typed, but for the
# variable.
on_tty 'expect >>> ' 'send print("no" "w"); exec("while 1: pass")\n' \
    'expect now' 'send \x03' \
    'expect KeyboardInterrupt' 'send print("still here")\n' \
    'expect \nstill' 'send exit(5)\n' -- \
    "${as_init[@]}" "$agent" --max-restarts 0 -- \
    env PYTHON_BASIC_REPL=1 python3 -i
is "PID 1: an interactive python" "$rc" 5
on_tty 'expect up' 'send \x1a' 'send still\n' -- "${as_init[@]}" "$agent" -- \
    sh -c 'echo up; read -r x; echo got $x'
has "PID 1: Ctrl-Z does not stop what nobody could wake" "$T/tty" '^got still'
on_tty 'expect up' 'send \x03' -- "${as_init[@]}" "$agent" -- \
    sh -c 'echo up; exec sleep 60'
is "PID 1: Ctrl-C" "$rc" 130
on_tty 'expect restart 1 of' 'send \x03' -- "${as_init[@]}" "$agent" \
    --restart-backoff 50s:50s -- sh -c 'exit 3'
is "PID 1: Ctrl-C between two rounds" "$rc" 130
