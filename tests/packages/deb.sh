#!/usr/bin/env bash
# The packages of Debian: `make deb` has made them. They are installed into a
# root of their own, used, and removed again. Root.
. "$(dirname "$0")/../lib/tap.sh"
[ "$(id -u)" -eq 0 ] || { skip "packages" "not root"; exit; }
O=$(cd "$O" && pwd)
version=$(dpkg-parsechangelog -l "$top/debian/changelog" -S Version)
arch=$(dpkg --print-architecture)
deb() { echo "$O/deb/$1_${version}_$arch.deb"; }
all=(agent agent-tools libddp1 libddp-dev)
root=$T/root
# Of Debian only the names: the libraries that they need are not unpacked here.
mkdir -p "$root"/var/lib/dpkg/{info,updates} "$root/bin"
: >"$root/var/lib/dpkg/status"
in_root()
{
    dpkg --root="$root" --force-not-root --force-depends "$@" 2>"$T/dpkg" ||
        { cat "$T/dpkg"; return 1; }
}
is "nothing else is called agent in this Debian" \
    "$(apt-cache policy agent agent-tools libddp1 libddp-dev | grep Candidate)" ""
# shellcheck disable=SC2016 # dpkg's own
is "agent needs no other package" \
    "$(dpkg-deb -W --showformat '${Depends}${Pre-Depends}' "$(deb agent)")" ""
ok "agent is installed" in_root -i "$(deb agent)"
is "and runs, where nothing else is" \
    "$(chroot "$root" /usr/bin/agent --version)" "agent $version"
ok "it is the one of its SPDX document" grep -q "build ID $(readelf -n \
    "$root/usr/bin/agent" | sed -n 's/.*Build ID: //p')" \
    "$root/usr/share/doc/agent/agent.spdx.json"
in_root --purge agent
ok "in an image without documents" in_root \
    --path-exclude='/usr/share/doc/*' --path-exclude='/usr/share/man/*' \
    -i "$(deb agent)"
is "notices, licences and the SPDX document are there" \
    "$(cd "$root" && ls usr/share/agent; [ ! -e usr/share/doc/agent ] ||
        ls usr/share/doc/agent)" "$(printf 'NOTICE\nagent.spdx.json\nlicenses')"
in_root --purge agent
in_root -i "$(deb agent)"
for p in agent-tools libddp1 libddp-dev; do
    ok "$p is installed" in_root -i "$(deb $p)"
done
is "all programs have a manual page" "$(for f in "$root"/usr/bin/*; do
    [ -f "$root/usr/share/man/man1/${f##*/}.1.gz" ] || echo "$f"; done)" ""
for f in man/man1/agent.1.gz man/man3/ddp.3.gz; do
    zcat "$root/usr/share/$f" >"$T/page"
    ok "$f can be read" mandoc -Tlint -Werror "$T/page"
done
c=$root/usr/share/bash-completion/completions/agent
is "bash completes" "$(bash -uc '. "$1"; COMP_WORDS=(agent --max-r) COMP_CWORD=1
    _agent; echo "${COMPREPLY[*]}"' sh "$c")" --max-restarts
ok "zsh's is where Debian's zsh looks" \
    test -s "$root/usr/share/zsh/vendor-completions/_agent"
for t in agent-fetch agent-probe agent-allreduce; do
    ok "$t runs" "$root/usr/bin/$t" --version
done
"$root/usr/bin/agent" --nproc 2 -- agent-allreduce -b 8 -e 8 -n 1 -w 0 \
    >"$T/out" 2>"$T/err"
is "agent finds agent-allreduce beside itself" $? 0
lib=$(dirname "$(find "$root/usr/lib" -name libddp.so.1)")
cat >"$T/user.c" <<'C'
#include <ddp.h>
int main(void)
{
    struct ddp_comm *c;
    return ddp_init(&c, 0, 0) ? 1 : ddp_size(c) == 2 ? 0 : 2;
}
C
export PKG_CONFIG_SYSROOT_DIR=$root PKG_CONFIG_ALLOW_SYSTEM_CFLAGS=1 \
    PKG_CONFIG_ALLOW_SYSTEM_LIBS=1 PKG_CONFIG_PATH=$lib/pkgconfig
# shellcheck disable=SC2046 # words
ok "a program is built with libddp-dev" cc -o "$T/user" "$T/user.c" \
    $(pkg-config --cflags --libs ddp)
ok "and runs with libddp1" env LD_LIBRARY_PATH="$lib" \
    "$root/usr/bin/agent" --nproc 2 --max-restarts 0 -- "$T/user"
# shellcheck disable=SC2016 # dpkg's own
is "what is linked in is known to dpkg" "$(dpkg-deb -W \
    --showformat '${Built-Using}' "$(deb agent)" | tr ',' '\n' | grep -c =)" 9

ok "all are removed" in_root --purge "${all[@]}"
is "to the last file" \
    "$(find "$root" -path "$root/var" -prune -o ! -type d -print)" ""
