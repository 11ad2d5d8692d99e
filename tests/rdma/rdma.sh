#!/usr/bin/env bash
# agent-probe and preflight with real soft RDMA (rdma_rxe), in a guest of qemu
# with Debian's kernel: no KVM is needed. `make check-rdma`.
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/guest.sh"

guest_or_skip
guest_new "$top/tests/rdma/guest.sh" veth crc32_generic rdma_rxe ib_uverbs
verbs=$(ldconfig -p | awk '/libibverbs.so.1 /{print $NF; exit}')
# Where libibverbs looks for what /etc/libibverbs.d names.
drivers=/usr/lib/$(basename "$(dirname "$verbs")")/libibverbs
guest_put "$(command -v ip)" "$(command -v rdma)" "$(command -v setpriv)" \
    "$verbs" "$drivers"/librxe-rdmav*.so /etc/libibverbs.d/rxe.driver \
    "$O/agent-probe"
cp "$O/agent-probe" "$guest/"
guest_pack
guest_run rdma
has "the guest came to its end" "$T/rdma/.all" '^@end$'

# get FILE EXPRESSION: of the JSON that begins there
get()
{
    python3 -c 'import json, sys
text = open(sys.argv[1]).read()
p, _ = json.JSONDecoder().raw_decode(text[text.index("{"):])
print(eval(sys.argv[2]))' "$T/rdma/$1" "$2" 2>&1
}
devices='[(d["name"], d["ports"][0]["state"], d["ports"][0]["link_layer"],
    d["register"]["bytes"], d["register"]["ok"]) for d in p["rdma"]["devices"]]'
is "modules, and no device: no RDMA here, no fault" \
    "$(get none '[p["rdma"][k] for k in ("found", "fault", "devices")]')" \
    "[False, False, []]"
has "preflight that was asked for it says so" "$T/rdma/none-preflight" '^code 30$'
has "and the default does not" "$T/rdma/none-all" '^preflight: pass'
is "a device: its port, and 64 MiB are registered" "$(get up "$devices")" \
    "[('rxe0', 'active', 'Ethernet', 67108864, True)]"
has "preflight passes it" "$T/rdma/up-preflight" '^pass +rdma +1 RDMA device$'
has "with its code" "$T/rdma/up-preflight" '^code 0$'
is "as JSON, too" "$(get up-json 'p["result"], p["code"], [c["check"]
    for c in p["checks"]]')" "('pass', 0, ['memlock', 'rdma'])"
is "1 MiB of locked memory and no capability: it cannot be registered" \
    "$(get user "$devices")" "[('rxe0', 'active', 'Ethernet', 67108864, False)]"
has "preflight says why" "$T/rdma/user-preflight" '^fatal +(memlock|rdma) .*'
has "with its code" "$T/rdma/user-preflight" '^code 30$'
is "the link is gone: the port is down" "$(get down "$devices")" \
    "[('rxe0', 'down', 'Ethernet', 67108864, True)]"
has "preflight says so" "$T/rdma/down-preflight" \
    '^retryable rdma +port 1 of rxe0 is down$'
has "with its code" "$T/rdma/down-preflight" '^code 20$'
