/* meet: see meet.h. */
#include "ddp/meet.h"
#include "ddp/clock.h"
#include "ddp/guests.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#define CONNECT_MS 3000

struct meet {
    struct ddp_comm *c;
    const struct ddp_boot *b;
    const struct ddp_home *homes;
    struct ddp_meeting *m;
    unsigned n;
    uint64_t until;
    struct ddp_guests guests;
    bool has_failed;
    struct pollfd fds[]; /* Listener, guests, m. */
};

int ddp_meet_homes(struct ddp_comm *c, const struct ddp_boot *b,
                    struct ddp_home *ret, struct ddp_error *err)
{
    struct ddp_home *mine = &ret[c->rank];
    struct ddp_addr at;
    const struct ddp_request q = {.what = DDP_ALL_GATHER, .send = mine,
                                  .recv = ret, .count = sizeof *mine,
                                  .width = 1, .type = DDP_U8};

    memset(mine, 0, sizeof *mine);
    memcpy(mine->host, b->host, sizeof mine->host);
    ddp_shm_processors(mine->processors);
    if (ddp_addr_local(b->ring_fd, &at)) {
        memcpy(mine->ip, at.ip, sizeof mine->ip);
        mine->port[0] = (uint8_t)(at.port >> 8);
        mine->port[1] = (uint8_t)at.port;
    }
    return ddp_ring_run(c, &q, err);
}

int ddp_meet_agree(struct ddp_comm *c, bool mine, bool *ret,
                   struct ddp_error *err)
{
    uint8_t all[2] = {mine, mine};
    const struct ddp_request q = {.what = DDP_ALL_REDUCE, .send = all,
                                  .recv = all, .count = 2, .width = 1,
                                  .type = DDP_U8, .op = DDP_MIN};
    int rc = ddp_ring_run(c, &q, err);

    *ret = all[0];
    return rc;
}

static bool connects(const struct meet *g, const struct ddp_meeting *m)
{
    return g->c->rank < m->rank;
}

static void start(struct meet *g, struct ddp_meeting *m)
{
    const struct ddp_home *p = &g->homes[m->rank];
    struct ddp_addr to = {.port = (uint16_t)(p->port[0] << 8 | p->port[1])};
    struct ddp_addr local;

    m->fd = -1;
    m->is_connected = false;
    if (!connects(g, m))
        return;
    memcpy(to.ip, p->ip, sizeof to.ip);
    if (ddp_addr_is_link_local(&to) &&
        ddp_addr_local(g->c->links.next.fd, &local))
        to.scope = local.scope;
    m->fd = to.port ? ddp_socket_connect(&to) : -EADDRNOTAVAIL;
    if (m->fd < 0)
        g->has_failed = true;
}

/* The connection stands, or has failed: introduce it. */
static void step_out(struct meet *g, struct ddp_meeting *m)
{
    struct ddp_frame f = {.kind = DDP_RING, .rank = (uint32_t)g->c->rank,
                          .to = (uint32_t)m->rank, .channel = m->channel};
    struct ddp_conn c;

    memcpy(f.token, g->b->token, sizeof f.token);
    ddp_conn_open(&c, m->fd, m->rank);
    m->is_connected = ddp_socket_connected(m->fd) == 0 &&
                      ddp_conn_put(&c, &f) == 0 && c.out_len == 0;
    if (!m->is_connected)
        g->has_failed = true;
}

/* The meeting that a frame introduces, or NULL. */
static struct ddp_meeting *introduced(const struct meet *g,
                                      const struct ddp_frame *f)
{
    if (f->kind != DDP_RING || f->to != (uint32_t)g->c->rank ||
        memcmp(f->token, g->b->token, sizeof f->token))
        return NULL;
    for (unsigned i = 0; i < g->n; i++)
        if (g->m[i].rank == (int)f->rank && g->m[i].channel == f->channel &&
            !connects(g, &g->m[i]) && !g->m[i].is_connected)
            return &g->m[i];
    return NULL;
}

static void step_in(struct meet *g)
{
    for (unsigned i = g->guests.n; i-- > 0;) {
        struct ddp_conn *c = &g->guests.at[i];
        struct ddp_frame f;
        struct ddp_meeting *m;
        enum ddp_got got = ddp_conn_get(c, &f);

        if (got == DDP_GOT_NONE)
            continue;
        m = got == DDP_GOT_FRAME ? introduced(g, &f) : NULL;
        if (m) {
            m->fd = c->fd;
            m->is_connected = true;
            c->fd = -1;
        }
        ddp_guests_drop(&g->guests, i);
    }
    ddp_guests_accept(&g->guests, g->b->ring_fd, ddp_now());
}

static bool is_complete(const struct meet *g)
{
    for (unsigned i = 0; i < g->n; i++)
        if (!g->m[i].is_connected)
            return false;
    return true;
}

static void turn(struct meet *g)
{
    struct pollfd *p = g->fds;
    uint64_t now = ddp_now();
    int ms = ddp_until(now, g->until, CONNECT_MS);
    unsigned n = 0;

    for (unsigned i = 0; i < g->n; i++)
        p[n++] = (struct pollfd){.fd = g->m[i].is_connected ? -1 : g->m[i].fd,
                                 .events = POLLOUT};
    n += ddp_guests_poll(&g->guests, g->b->ring_fd, p + n, now, &ms);
    if (poll(p, n, ms) < 0)
        return;
    for (unsigned i = 0; i < g->n; i++)
        if (p[i].revents)
            step_out(g, &g->m[i]);
    step_in(g);
}

int ddp_meet_all(struct ddp_comm *c, const struct ddp_boot *b,
                 const struct ddp_home *homes, struct ddp_meeting *m,
                 unsigned n, bool *ret, struct ddp_error *err)
{
    size_t n_fds = 1 + DDP_GUESTS_MAX + n;
    struct meet *g = calloc(1, sizeof *g + n_fds * sizeof g->fds[0]);
    uint64_t now = ddp_now();
    uint64_t left = b->deadline > now ? (b->deadline - now) / 4 : 0;
    bool has_all = false;
    int rc;

    for (unsigned i = 0; i < n; i++)
        m[i].fd = -1;
    if (g) {
        g->c = c;
        g->b = b;
        g->homes = homes;
        g->m = m;
        g->n = n;
        g->until = now + (left < CONNECT_MS ? left : CONNECT_MS);
        ddp_guests_init(&g->guests, DDP_GUESTS_MAX);
        for (unsigned i = 0; i < n && !g->has_failed; i++)
            start(g, &m[i]);
        while (!g->has_failed && !is_complete(g) && ddp_now() < g->until)
            turn(g);
        has_all = !g->has_failed && is_complete(g);
        ddp_guests_end(&g->guests);
    }
    free(g);
    rc = ddp_meet_agree(c, has_all, ret, err);
    *ret = *ret && !rc;
    for (unsigned i = 0; i < n && !*ret; i++)
        ddp_socket_close(&m[i].fd);
    return rc;
}
