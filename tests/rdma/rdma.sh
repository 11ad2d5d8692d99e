#!/usr/bin/env bash
# agent-probe and preflight with real soft RDMA (rdma_rxe), in a guest of qemu
# with Debian's kernel: no KVM is needed. `make check-rdma`.
. "$(dirname "$0")/../lib/tap.sh"
guest=$T/guest k=$O/rdma/kernel
kv=$(basename "$k"/lib/modules/*)

mkdir -p "$guest"/{busy,proc,sys,dev,tmp,ko} "$guest"/usr/{bin,sbin,lib,lib64}
for d in bin sbin lib lib64; do ln -s "usr/$d" "$guest/$d"; done
cp "$(command -v busybox)" "$guest/busy/"
for a in $(busybox --list); do
    [ "$a" = busybox ] || ln -s busybox "$guest/busy/$a"
done
[ -e "$k/lib/modules/$kv/modules.dep" ] || depmod -b "$k" "$kv"
for m in veth crc32_generic rdma_rxe ib_uverbs; do
    modprobe -d "$k" -S "$kv" --show-depends "$m" | awk '$1 == "insmod" {print $2}'
done | awk '!seen[$0]++' | nl -nrz -w3 | while read -r n f; do
    cp "$f" "$guest/ko/$n-${f##*/}"
done
put() # FILE: and the libraries it needs, at their places
{
    local f
    for f in "$1" $(ldd "$1" 2>/dev/null | grep -oE '/[^ ]+'); do
        mkdir -p "$guest${f%/*}"
        cp -L "$f" "$guest$f"
    done
}
verbs=$(ldconfig -p | awk '/libibverbs.so.1 /{print $NF; exit}')
# Where libibverbs looks for what /etc/libibverbs.d names.
drivers=/usr/lib/$(basename "$(dirname "$verbs")")/libibverbs
for f in "$(command -v ip)" "$(command -v rdma)" "$(command -v setpriv)" \
    "$verbs" "$drivers"/librxe-rdmav*.so /etc/libibverbs.d/rxe.driver \
    "$O/agent-probe"; do
    put "$f"
done
cp "$O/agent" "$O/agent-probe" "$guest/"
cp "$top/tests/rdma/guest.sh" "$guest/guest.sh"
cat >"$guest/init" <<'I'
#!/busy/busybox sh
export PATH=/busy:/usr/bin:/usr/sbin
mount -t proc p /proc
mount -t sysfs s /sys
mount -t devtmpfs d /dev
mkdir -p /dev/shm
mount -t tmpfs t /dev/shm
for m in /ko/*.ko; do insmod "$m"; done
sh /guest.sh
poweroff -f
I
chmod +x "$guest/init"
(cd "$guest" && find . | cpio -o -H newc --quiet | gzip -1) >"$T/initrd"
timeout -k 5 120 qemu-system-x86_64 -accel tcg,thread=multi -smp 2 -cpu max \
    -m 768 -nographic -no-reboot -nodefaults -serial stdio \
    -kernel "$k/boot/vmlinuz-$kv" -initrd "$T/initrd" \
    -append "console=ttyS0 quiet panic=-1" </dev/null 2>"$T/qemu" |
    tr -d '\r' >"$T/all"
awk -v d="$T" '/^@[a-z-]+$/ {f = d "/" substr($0, 2); next} f {print >f}' \
    "$T/all"
has "the guest came to its end" "$T/all" '^@end$'

# get FILE EXPRESSION: of the JSON that begins there
get()
{
    python3 -c 'import json, sys
text = open(sys.argv[1]).read()
p, _ = json.JSONDecoder().raw_decode(text[text.index("{"):])
print(eval(sys.argv[2]))' "$T/$1" "$2" 2>&1
}
devices='[(d["name"], d["ports"][0]["state"], d["ports"][0]["link_layer"],
    d["register"]["bytes"], d["register"]["ok"]) for d in p["rdma"]["devices"]]'
is "modules, and no device: no RDMA here, no fault" \
    "$(get none '[p["rdma"][k] for k in ("found", "fault", "devices")]')" \
    "[False, False, []]"
has "preflight that was asked for it says so" "$T/none-preflight" '^code 30$'
has "and the default does not" "$T/none-all" '^preflight: pass'
is "a device: its port, and 64 MiB are registered" "$(get up "$devices")" \
    "[('rxe0', 'active', 'Ethernet', 67108864, True)]"
has "preflight passes it" "$T/up-preflight" '^pass +rdma +1 RDMA device$'
has "with its code" "$T/up-preflight" '^code 0$'
is "as JSON, too" "$(get up-json 'p["result"], p["code"], [c["check"]
    for c in p["checks"]]')" "('pass', 0, ['memlock', 'rdma'])"
is "1 MiB of locked memory and no capability: it cannot be registered" \
    "$(get user "$devices")" "[('rxe0', 'active', 'Ethernet', 67108864, False)]"
has "preflight says why" "$T/user-preflight" '^fatal +(memlock|rdma) .*'
has "with its code" "$T/user-preflight" '^code 30$'
is "the link is gone: the port is down" "$(get down "$devices")" \
    "[('rxe0', 'down', 'Ethernet', 67108864, True)]"
has "preflight says so" "$T/down-preflight" \
    '^retryable rdma +port 1 of rxe0 is down$'
has "with its code" "$T/down-preflight" '^code 20$'
