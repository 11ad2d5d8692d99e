#!/usr/bin/env bash
# Tests find the same surroundings, whatever those of who starts them.
. "$(dirname "$0")/../lib/tap.sh"
cat >"$T/probe" <<P
#!/usr/bin/env bash
:
(
    env | sort
    umask
    ulimit -S -c
    ignored=\$(sed -n 's/^SigIgn:[[:space:]]*//p' /proc/self/status)
    printf 'ignored: %x\n' \$((16#\$ignored & ~(3 << 31))) # But for libc's own.
    for fd in /proc/\$\$/fd/*; do
        [ "\$fd" -ef "\$0" ] || [ ! -e "\$fd" ] || echo "fd \${fd##*/}"
    done
    declare -Fx
) >"$T/seen"
echo "ok 1 - seen"
P
chmod 755 "$T/probe"

# seen HOW COMMAND...: what the probe finds, plain and in odd surroundings.
seen()
{
    local how=$1
    shift
    rm -f "$T/seen"
    "$@" </dev/null >"$T/out" 2>&1
    mv "$T/seen" "$T/plain"
    # shellcheck disable=SC2030,SC2329 # for this one alone
    (
        umask 077
        trap '' HUP INT QUIT PIPE CHLD USR1
        odd() { :; }
        export -f odd
        export AGENT_NPROC=9 RANK=3 SLURM_PROCID=1 TORCHELASTIC_RUN_ID=x \
            CUDA_VISIBLE_DEVICES=5,6 NCCL_SOCKET_IFNAME=eth9 DDP_TIMEOUT=1s \
            NO_COLOR=1 MAKEFLAGS=-n CDPATH=/usr POSIXLY_CORRECT=1 \
            LANG=de_DE.UTF-8 LANGUAGE=de TZ=Asia/Kolkata GREP_COLORS=mt=1
        exec 3</dev/null 4<&3 9>"$T/other" 100>&9 255>&9
        exec "$@" </dev/null >"$T/out" 2>&1
    )
    mv "$T/seen" "$T/odd"
    ok "$how: the same in odd surroundings" diff "$T/plain" "$T/odd"
    hasnt "$how: no descriptor but the first three" "$T/odd" '^fd [3-9]|^fd [0-9]{2}'
    has "$how: no signal is ignored" "$T/odd" '^ignored: 0$'
}
# What runs them does so; each does it again, for who starts one by hand.
seen tests/run "$top/tests/run" -o "$T/results" group "$T/probe"
sed -i "2s,.*,. '$top/tests/lib/tap.sh'," "$T/probe"
seen tap.sh "$T/probe"
