#!/usr/bin/env bash
# A slow way between two pods: delay; delay and loss.
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/hosts.sh"
hosts 4
# shellcheck disable=SC2016 # for the worker's shell
twice='echo up $TORCHELASTIC_RESTART_COUNT
    [ $TORCHELASTIC_RESTART_COUNT = 2 ] || exit 3'

ok "150 ms each way" delay 2 150
pod far0 1 0 2 --mesh ring sh -c "$twice"
pod far1 2 1 2 --mesh ring sh -c "$twice"
ok "a far pod: tested, started, restarted twice" codes "0 0" far0 far1
hasnt "no bad pair" "$T/far0.err" "cannot reach"

# Each fifth packet is lost: not at random, so that it ends the same each time.
ok "30 ms each way" delay 4 30
on 3 iptables -A INPUT -i eth0 -m statistic --mode nth --every 5 --packet 0 -j DROP
on 4 iptables -A INPUT -i eth0 -m statistic --mode nth --every 5 --packet 0 -j DROP
pod bad0 3 0 2 sh -c "$twice"
pod bad1 4 1 2 sh -c "$twice"
ok "a bad line: two restarts" codes "0 0" bad0 bad1
has "in three rounds" "$T/bad1.out" "up 2"
