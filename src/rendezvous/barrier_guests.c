/* barrier_guests: see barrier_guests.h. */
#include "rendezvous/barrier_guests.h"

#include <string.h>

void bar_guests_init(struct bar_guests *g, struct bar_guest *at, uint32_t n)
{
    g->at = at;
    g->n_max = n;
    g->share = n / 4;
    g->free = BAR_NO_GUEST;
    g->n_fresh = 0;
    g->all = (struct bar_queue){BAR_NO_GUEST, BAR_NO_GUEST, 0};
    for (unsigned i = 0; n > 0 && i < BAR_BUCKETS; i++)
        g->of[i] = g->all; /* Without guests nobody looks. */
}

/* Of "10.0.0.1:29400" the host, of "[2001:db8::1]:29400" the network: who has
 * one address of a /64 has them all. */
static uint16_t bucket_of(const char *addr)
{
    bool six = addr[0] == '[';
    const char *end = strrchr(addr, ':');
    uint32_t h = 0x811c9dc5u;
    unsigned n_colons = 0;

    for (const char *s = addr; *s && s != end; s++) {
        n_colons += *s == ':';
        if (six && *s == ':' && (n_colons == 4 || s[1] == ':'))
            break;
        h = (h ^ (unsigned char)*s) * 0x01000193u;
    }
    return (uint16_t)((h ^ h >> 16 ^ h >> 8) % BAR_BUCKETS);
}

uint32_t bar_guests_surplus(const struct bar_guests *g, const char *addr)
{
    const struct bar_queue *here = &g->of[bucket_of(addr)];

    if (here->n > 0 && here->n >= g->share)
        return here->oldest;
    return g->all.n >= g->n_max ? g->all.oldest : BAR_NO_GUEST;
}

uint32_t bar_guests_add(struct bar_guests *g, uint64_t now_ms, uint32_t conn,
                        const char *addr)
{
    uint32_t i = g->free != BAR_NO_GUEST ? g->free : g->n_fresh++;
    struct bar_guest *x = &g->at[i];
    struct bar_queue *here;

    if (g->free != BAR_NO_GUEST)
        g->free = x->newer;
    x->came_ms = now_ms;
    x->conn = conn;
    x->bucket = bucket_of(addr);
    x->hello_len = 0;
    here = &g->of[x->bucket];
    x->older = g->all.newest;
    x->older_here = here->newest;
    x->newer = x->newer_here = BAR_NO_GUEST;
    if (x->older != BAR_NO_GUEST)
        g->at[x->older].newer = i;
    else
        g->all.oldest = i;
    if (x->older_here != BAR_NO_GUEST)
        g->at[x->older_here].newer_here = i;
    else
        here->oldest = i;
    g->all.newest = here->newest = i;
    g->all.n++;
    here->n++;
    return i;
}

void bar_guests_remove(struct bar_guests *g, uint32_t guest)
{
    struct bar_guest *x = &g->at[guest];
    struct bar_queue *here = &g->of[x->bucket];

    if (x->older != BAR_NO_GUEST)
        g->at[x->older].newer = x->newer;
    else
        g->all.oldest = x->newer;
    if (x->newer != BAR_NO_GUEST)
        g->at[x->newer].older = x->older;
    else
        g->all.newest = x->older;
    if (x->older_here != BAR_NO_GUEST)
        g->at[x->older_here].newer_here = x->newer_here;
    else
        here->oldest = x->newer_here;
    if (x->newer_here != BAR_NO_GUEST)
        g->at[x->newer_here].older_here = x->older_here;
    else
        here->newest = x->older_here;
    g->all.n--;
    here->n--;
    x->newer = g->free;
    g->free = guest;
}
