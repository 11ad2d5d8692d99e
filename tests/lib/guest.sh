# guest.sh: a guest of qemu with Debian's kernel, which tests/lib/guest_kernel
# has put into $O/guest; no KVM is needed. Sourced after tap.sh.
# shellcheck shell=bash disable=SC2154
guest=$T/guest kernel=$O/guest/kernel

guest_or_skip()
{
    [ ! -e "$kernel" ] || return
    skip "guests" "they are made for amd64 alone"
    exit
}
# guest_new SCRIPT [MODULE...]: a root of busybox, agent and these modules.
guest_new()
{
    local script=$1 a d f n m
    shift
    release=$(basename "$kernel"/lib/modules/*)
    mkdir -p "$guest"/{busy,proc,sys,dev,tmp,ko} \
        "$guest"/usr/{bin,sbin,lib,lib64}
    for d in bin sbin lib lib64; do ln -s "usr/$d" "$guest/$d"; done
    cp "$(command -v busybox)" "$guest/busy/"
    for a in $(busybox --list); do
        [ "$a" = busybox ] || ln -s busybox "$guest/busy/$a"
    done
    [ -e "$kernel/lib/modules/$release/modules.dep" ] ||
        depmod -b "$kernel" "$release"
    for m; do
        modprobe -d "$kernel" -S "$release" --show-depends "$m" |
            awk '$1 == "insmod" {print $2}'
    done | awk '!seen[$0]++' | nl -nrz -w3 | while read -r n f; do
        cp "$f" "$guest/ko/$n-${f##*/}"
    done
    cp "$agent" "$guest/"
    cp "$script" "$guest/guest.sh"
    cat >"$guest/init" <<'I'
#!/busy/busybox sh
export PATH=/busy:/usr/bin:/usr/sbin
mount -t proc p /proc
mount -t sysfs s /sys
mount -t devtmpfs d /dev
mkdir -p /dev/shm
mount -t tmpfs t /dev/shm
for m in /ko/*.ko; do [ ! -e "$m" ] || insmod "$m"; done
. /guest.sh
poweroff -f
I
    chmod +x "$guest/init"
}
# guest_put FILE...: and the libraries that they need, at their places
guest_put()
{
    local f
    for f in "$@" $(ldd "$@" 2>/dev/null | grep -oE '/[^ :]+( |$)' | sort -u)
    do
        mkdir -p "$guest${f%/*}"
        cp -L "$f" "$guest$f"
    done
}
# guest_pack: after the last guest_put
guest_pack()
{
    (cd "$guest" && find . | cpio -o -H newc --quiet | gzip -1) >"$T/initrd"
}
# guest_run NAME [WORD]: to its end; a line `@PART` of its console begins what
# is kept in NAME/PART. WORD is in /proc/cmdline.
guest_run()
{
    mkdir -p "$T/$1"
    timeout -k 5 200 qemu-system-x86_64 -accel tcg,thread=multi -smp 2 \
        -cpu max -m 768 -nographic -no-reboot -nodefaults -serial stdio \
        -kernel "$kernel/boot/vmlinuz-$release" -initrd "$T/initrd" \
        -append "console=ttyS0 quiet panic=-1 ${2-}" </dev/null \
        2>"$T/$1/.qemu" | tr -d '\r' >"$T/$1/.all"
    awk -v d="$T/$1/" '/^@[a-z0-9-]+$/ {f = d substr($0, 2); printf "" >f; next}
        f {print >f}' "$T/$1/.all"
}
