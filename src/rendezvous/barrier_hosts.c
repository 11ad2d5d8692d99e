/* barrier_hosts: the names and addresses of a round's pods, for START. */
#include "rendezvous/barrier_round.h"

#include "base/text.h"
#include "rendezvous/mesh_talk.h"

#include <string.h>

static void add(struct text *t, const char *s)
{
    if (*s)
        text_add(t, "%s%s", t->len ? "," : "", s);
}

/* With the number of workers there. */
static void add_place(struct text *t, const struct barrier *b, const char *s,
                      uint32_t nproc)
{
    add(t, s);
    if (*s && b->cfg.tell_nproc)
        text_add(t, "*%u", nproc);
}

/* "10.0.0.1:29400" and "[fd00::1]:29400" without port and brackets. */
static const char *bare(char *s)
{
    char *colon = strrchr(s, ':');

    if (colon)
        *colon = '\0';
    if (*s != '[')
        return s;
    s[strcspn(s, "]")] = '\0';
    return s + 1;
}

/* Where a pod reaches pod 0. */
static void add_here(struct text *t, const struct barrier *b, uint32_t conn,
                     char last[BARRIER_ADDR_MAX])
{
    char buf[BARRIER_ADDR_MAX];
    struct text addr;

    if (conn == BARRIER_NO_CONN || conn == BARRIER_LOCAL)
        return;
    text_init(&addr, buf, sizeof buf);
    mesh_add_addr(&addr, &b->conns[conn].here);
    if (strcmp(buf, last) == 0)
        return;
    (void)text_copy(last, BARRIER_ADDR_MAX, buf);
    add(t, bare(buf));
}

bool bar_list_hosts(const struct barrier *b, char out[WIRE_HOSTS_MAX])
{
    char addr[BARRIER_ADDR_MAX], last[BARRIER_ADDR_MAX] = "";
    struct text t;

    text_init(&t, out, WIRE_HOSTS_MAX);
    if (!b->cfg.tell_hosts && !b->cfg.tell_nproc)
        return true;
    for (uint32_t i = 0; i < b->cfg.nnodes; i++) {
        const struct bar_peer *p = &b->peers[i];

        if (!p->member)
            continue;
        if (i == 0) { /* Its own connection has no address. */
            add_place(&t, b, p->hello.host, p->hello.nproc);
            continue;
        }
        if (b->cfg.tell_hosts)
            add(&t, p->hello.host);
        (void)text_copy(addr, sizeof addr, p->addr);
        add_place(&t, b, bare(addr), p->hello.nproc);
        if (b->cfg.tell_hosts)
            add_here(&t, b, p->conn, last);
    }
    if (t.cut)
        out[0] = '\0'; /* Half a list helps half of the pods. */
    return !t.cut;
}
