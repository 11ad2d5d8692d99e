# clean.sh: sourced first by tests/run and tap.sh. A test finds the same
# surroundings whoever starts it: a terminal, another program, a job, CI. What a
# test wants of a variable, descriptor, signal or mask, it makes itself.
# shellcheck shell=bash

# Signals that the launcher ignores (nohup, a background job) bash cannot reset.
# 32 and 33 are the C library's own: its posix_spawn(3), which make(1) uses, has
# them ignored, and nobody can reset them.
clean_ignored=$(sed -n 's/^SigIgn:[[:space:]]*//p' /proc/$$/status 2>/dev/null)
if [ $((16#${clean_ignored:-0} & ~(3 << 31))) -ne 0 ] &&
    [ -z "${TEST_SIGNALS_RESET:-}" ]; then
    export TEST_SIGNALS_RESET=1
    exec env --default-signal bash "$0" "$@"
fi
unset TEST_SIGNALS_RESET clean_ignored

# Kept is what finds programs and a place for files, what tests and their tools
# are told on purpose, and how to reach the network for those that fetch.
for v in $(compgen -e); do
    case $v in
    PATH | HOME | TMPDIR | TERM | USER | LOGNAME | PWD | LD_LIBRARY_PATH) ;;
    O | CC | CXX | KEEP | TEST_* | *SAN_OPTIONS | GCOV_* | LLVM_*) ;;
    CMOCKA_* | ARM64_* | CONTAINER_RELEASE | CONTAINER_STORE | MUTANT_* | NCCL_HOME) ;;
    CCACHE_* | PYENV_* | PIP_* | SOURCE_DATE_EPOCH | DEBIAN_FRONTEND) ;;
    *_proxy | *_PROXY | SSL_CERT_* | *_CA_BUNDLE | *_CAINFO) ;;
    SHELLOPTS | BASHOPTS) export -n "${v?}" ;;
    *) unset "$v" ;;
    esac
done
# Functions that the launcher exports (environment modules, for one).
for v in $(declare -Fx | sed 's/.* //'); do unset -f "$v"; done
unset v
export LC_ALL=C
# Not every path will do: those of sockets have 107 bytes, an id of NCCL has 128,
# a space means something to a shell and to a table of mounts, and tests mount
# over /dev/shm.
case ${TMPDIR:-} in
/dev/shm*) unset TMPDIR ;;
*[!A-Za-z0-9_./+-]* | ?????????????????????????????????????????*) unset TMPDIR ;;
esac
umask 022
# A worker that is killed on purpose leaves no file.
ulimit -S -c 0
# Descriptors, but for the one that bash reads the script from.
for fd in /proc/$$/fd/*; do
    case ${fd##*/} in 0 | 1 | 2 | '*') continue ;; esac
    [ "$fd" -ef "$0" ] || eval "exec ${fd##*/}>&-"
done
unset fd
