/* small_connect: the pairs of small.h, once the ring stands.
 *
 * Each rank tells by the ring where it listens, connects to the pairs above
 * it, waits for those below it, and all agree by the ring whether all have
 * all. What may fail: a rank that its ring neighbours reach, but not others
 * (a firewall, rank 0 by a loopback address): then nobody has pairs. */
#include "ddp/clock.h"
#include "ddp/double.h"
#include "ddp/fault.h"
#include "ddp/guests.h"
#include "ddp/small.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#define CONNECT_MS 3000
#define GUESTS_MAX (DDP_PAIRS_MAX + 4)
#define CHANNEL 2 /* Of the RING frame; 0 and 1 are the ring's. */

/* Where a rank listens, as it travels. */
struct place {
    uint8_t ip[16], port[2];
};

struct pairing {
    struct ddp_comm *c;
    const struct ddp_boot *b;
    uint64_t until;
    struct ddp_conn out[DDP_PAIRS_MAX]; /* To pair i, where it is above. */
    struct ddp_guests guests;
    bool has_failed;
};

static int gather_places(const struct pairing *g, struct place *all,
                         struct ddp_error *err)
{
    struct ddp_comm *c = g->c;
    struct place *mine = &all[c->rank];
    struct ddp_addr at;
    const struct ddp_request q = {.what = DDP_ALL_GATHER, .send = mine,
                                  .recv = all, .count = sizeof *mine,
                                  .width = 1, .type = DDP_U8};

    if (ddp_addr_local(g->b->ring_fd, &at)) {
        memcpy(mine->ip, at.ip, sizeof mine->ip);
        mine->port[0] = (uint8_t)(at.port >> 8);
        mine->port[1] = (uint8_t)at.port;
    }
    return ddp_ring_run(c, &q, err);
}

static bool is_above(const struct pairing *g, unsigned i)
{
    return g->c->links.pairs[i].rank > g->c->rank;
}

static void start_out(struct pairing *g, const struct place *all)
{
    for (unsigned i = 0; i < g->c->links.n_pairs; i++) {
        const struct place *p = &all[g->c->links.pairs[i].rank];
        struct ddp_addr to = {.port = (uint16_t)(p->port[0] << 8 |
                                                 p->port[1])}, local;
        int fd;

        if (!is_above(g, i))
            continue;
        memcpy(to.ip, p->ip, sizeof to.ip);
        if (ddp_addr_is_link_local(&to) &&
            ddp_addr_local(g->c->links.next.fd, &local))
            to.scope = local.scope;
        fd = to.port ? ddp_socket_connect(&to) : -EADDRNOTAVAIL;
        if (fd < 0)
            g->has_failed = true;
        else
            ddp_conn_open(&g->out[i], fd, g->c->links.pairs[i].rank);
    }
}

static void step_out(struct pairing *g, unsigned i)
{
    struct ddp_frame f = {.kind = DDP_RING, .rank = (uint32_t)g->c->rank,
                          .to = (uint32_t)g->c->links.pairs[i].rank,
                          .channel = CHANNEL};

    memcpy(f.token, g->b->token, sizeof f.token);
    if (ddp_socket_connected(g->out[i].fd) || ddp_conn_put(&g->out[i], &f) ||
        g->out[i].out_len > 0) {
        g->has_failed = true;
        return;
    }
    g->c->links.pairs[i].fd = g->out[i].fd;
    g->out[i].fd = -1;
}

/* The pair that a frame introduces, or NULL. */
static struct ddp_pair *introduced(struct pairing *g,
                                   const struct ddp_frame *f)
{
    struct ddp_links *l = &g->c->links;

    if (f->kind != DDP_RING || f->channel != CHANNEL ||
        f->to != (uint32_t)g->c->rank ||
        memcmp(f->token, g->b->token, sizeof f->token))
        return NULL;
    for (unsigned i = 0; i < l->n_pairs; i++)
        if (l->pairs[i].rank == (int)f->rank && !is_above(g, i) &&
            l->pairs[i].fd < 0)
            return &l->pairs[i];
    return NULL;
}

static void step_in(struct pairing *g)
{
    for (unsigned i = g->guests.n; i-- > 0;) {
        struct ddp_conn *c = &g->guests.at[i];
        struct ddp_frame f;
        struct ddp_pair *p;
        enum ddp_got got = ddp_conn_get(c, &f);

        if (got == DDP_GOT_NONE)
            continue;
        p = got == DDP_GOT_FRAME ? introduced(g, &f) : NULL;
        if (p) {
            p->fd = c->fd;
            c->fd = -1;
        }
        ddp_guests_drop(&g->guests, i);
    }
    ddp_guests_accept(&g->guests, g->b->ring_fd, ddp_now());
}

static bool is_complete(const struct pairing *g)
{
    for (unsigned i = 0; i < g->c->links.n_pairs; i++)
        if (g->c->links.pairs[i].fd < 0)
            return false;
    return true;
}

static void turn(struct pairing *g)
{
    struct pollfd p[DDP_PAIRS_MAX + 1 + GUESTS_MAX];
    unsigned n = g->c->links.n_pairs, m = n;
    uint64_t now = ddp_now();
    int ms = ddp_until(now, g->until, CONNECT_MS);

    for (unsigned i = 0; i < n; i++)
        p[i] = (struct pollfd){.fd = g->out[i].fd, .events = POLLOUT};
    m += ddp_guests_poll(&g->guests, g->b->ring_fd, p + m, now, &ms);
    if (poll(p, m, ms) < 0)
        return;
    for (unsigned i = 0; i < n; i++)
        if (p[i].revents)
            step_out(g, i);
    step_in(g);
}

/* Whether all ranks have all; 0, or the ring's error. */
static int agree(struct pairing *g, bool *ret, struct ddp_error *err)
{
    uint8_t all[2] = {is_complete(g) && !g->has_failed, 0};
    const struct ddp_request q = {.what = DDP_ALL_REDUCE, .send = all,
                                  .recv = all, .count = 2, .width = 1,
                                  .type = DDP_U8, .op = DDP_MIN};
    int rc;

    all[1] = all[0];
    rc = ddp_ring_run(g->c, &q, err);
    *ret = all[0];
    return rc;
}

static void drop_pairs(struct ddp_links *l)
{
    for (unsigned i = 0; i < l->n_pairs; i++)
        ddp_pair_free(&l->pairs[i]);
    l->n_pairs = 0;
}

static int connect_pairs(struct pairing *g, struct place *all,
                         struct ddp_error *err)
{
    uint64_t now, left;
    bool all_have = false;
    int rc = gather_places(g, all, err);

    if (rc)
        return rc;
    start_out(g, all);
    now = ddp_now();
    left = g->b->deadline > now ? (g->b->deadline - now) / 4 : 0;
    g->until = now + (left < CONNECT_MS ? left : CONNECT_MS);
    while (!g->has_failed && !is_complete(g) && ddp_now() < g->until)
        turn(g);
    rc = agree(g, &all_have, err);
    if (!rc && !all_have)
        drop_pairs(&g->c->links);
    for (unsigned i = 0; i < DDP_PAIRS_MAX; i++)
        ddp_conn_close(&g->out[i]);
    ddp_guests_end(&g->guests);
    return rc;
}

/* Pairs without connections; false: no memory. */
static bool make_pairs(struct ddp_comm *c)
{
    unsigned ranks[DDP_PAIRS_MAX];
    unsigned n = ddp_double_pairs((unsigned)c->rank, (unsigned)c->size, ranks);
    bool ok = true;

    c->links.pairs = calloc(n, sizeof *c->links.pairs);
    for (unsigned i = 0; c->links.pairs && i < n; i++, c->links.n_pairs++)
        ok = ddp_pair_new(&c->links.pairs[i], (int)ranks[i]) == 0 && ok;
    return c->links.pairs && ok;
}

int ddp_small_connect(struct ddp_comm *c, const struct ddp_boot *b,
                      struct ddp_error *err)
{
    struct place *all = calloc((size_t)c->size, sizeof *all);
    struct pairing *g = calloc(1, sizeof *g);
    uint64_t now = ddp_now(), timeout_ms = c->timeout_ms;
    int rc;

    /* For the calls over the ring: what is left of ddp_init's time. */
    c->timeout_ms = b->deadline > now ? b->deadline - now : 1;
    if (all && g && make_pairs(c)) {
        g->c = c;
        g->b = b;
        ddp_guests_init(&g->guests, GUESTS_MAX);
        for (unsigned i = 0; i < DDP_PAIRS_MAX; i++)
            g->out[i].fd = -1;
        rc = connect_pairs(g, all, err);
    } else {
        rc = ddp_fault(err, DDP_ENOMEM, c->rank, -1, "out of memory");
        ddp_comm_tell(c, err);
    }
    c->timeout_ms = timeout_ms;
    c->n_calls = 0; /* Those above are not the caller's. */
    free(all);
    free(g);
    return rc;
}
