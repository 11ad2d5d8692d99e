# tap.sh: sourced by the system tests. TAP on stdout; each check has a name.
# Gives $agent, a private folder $T that is removed at the end, and deadlines.
# shellcheck shell=bash
set -u
# shellcheck source=tests/lib/clean.sh
. "$(dirname "${BASH_SOURCE[0]}")/clean.sh"
O=${O:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/build}
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck disable=SC2034 # used by the tests
agent=$O/agent
T=$(mktemp -d) || exit 1
tap_n=0 tap_failed=0
# So many workers as GPUs are the default: tests start as many everywhere.
export NVIDIA_VISIBLE_DEVICES=none

tap_end()
{
    local status=$? # Of the script, where it ended early.

    rm -rf "$T"
    echo "1..$tap_n"
    [ $tap_failed -eq 0 ] || status=1
    exit $status
}
trap tap_end EXIT

# ok NAME COMMAND...: one test; passes where the command ends with 0.
ok()
{
    local name=$1
    shift
    tap_n=$((tap_n + 1))
    if "$@" >"$T/.ok" 2>&1; then
        echo "ok $tap_n - $name"
    else
        tap_failed=1
        echo "not ok $tap_n - $name"
        sed 's/^/# /' "$T/.ok"
    fi
}

# is NAME GOT WANTED
is()
{
    tap_n=$((tap_n + 1))
    if [ "$2" = "$3" ]; then
        echo "ok $tap_n - $1"
    else
        tap_failed=1
        echo "not ok $tap_n - $1"
        printf '# got:    %s\n# wanted: %s\n' "$2" "$3"
    fi
}

# has NAME FILE REGEX / hasnt NAME FILE REGEX
has()
{
    tap_n=$((tap_n + 1))
    if grep -qE -- "$3" "$2"; then
        echo "ok $tap_n - $1"
    else
        tap_failed=1
        echo "not ok $tap_n - $1"
        echo "# no line matches: $3"
        tail -n 25 "$2" | sed 's/^/#   /'
    fi
}
hasnt()
{
    tap_n=$((tap_n + 1))
    if ! grep -qE -- "$3" "$2"; then
        echo "ok $tap_n - $1"
    else
        tap_failed=1
        echo "not ok $tap_n - $1"
        grep -E -- "$3" "$2" | head -n 5 | sed 's/^/# unwanted: /'
    fi
}

skip()
{
    tap_n=$((tap_n + 1))
    echo "ok $tap_n - $1 # SKIP $2"
}

# fresh FILE...: empty, and nobody else's. What is started in the background
# empties its files when it gets to it: until then they have an older one's words.
fresh()
{
    rm -f "$@"
    touch "$@"
}

# until_true SECONDS COMMAND...: poll for an event, with a deadline.
until_true()
{
    local end=$((SECONDS + $1))
    shift
    until "$@" >/dev/null 2>&1; do
        [ $SECONDS -lt $end ] || return 1
        command sleep 0.02
    done
}

# gone PID: no such process, or a zombie that its parent has yet to reap.
gone()
{
    local s
    s=$(ps -o stat= -p "$1") || return 0
    case $s in Z*) return 0 ;; *) return 1 ;; esac
}

# child_of PID: pgrep may miss one while other processes come and go.
child_of()
{
    local end=$((SECONDS + 20))
    until pgrep -P "$1"; do
        [ $SECONDS -lt $end ] || return 1
        command sleep 0.02
    done
}

# A TCP port that is free, and this test's until it ends.
free_port() { python3 "$top/tests/lib/free_port.py" $$; }
