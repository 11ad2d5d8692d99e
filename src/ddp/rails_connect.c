/* rails_connect: making the rails of rails.h. */
#include "ddp/double.h"
#include "ddp/layout.h"
#include "ddp/rails.h"
#include "ddp/small.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MEETINGS_MAX (2 * (1 + DDP_SOCKETS_MAX) + DDP_PAIRS_MAX)

/* Where a pod's memory is, as it travels between ranks of one machine. */
struct offer {
    uint32_t pid, fd; /* 0: there is none. */
};

struct rails {
    struct ddp_comm *c;
    const struct ddp_boot *b;
    struct ddp_layout layout;
    struct ddp_shm *shm;
    struct ddp_links links;
    struct ddp_meeting m[MEETINGS_MAX];
    unsigned n;
};

static int rank_of(const struct rails *r, unsigned pod)
{
    return (int)ddp_layout_rank(&r->layout, pod, r->layout.seat);
}

/* This pod's memory: made by its first rank, opened by the others. */
static int share(struct rails *r, struct ddp_error *err)
{
    const struct ddp_layout *l = &r->layout;
    struct offer *all = calloc((size_t)r->c->size, sizeof *all);
    const struct offer *first;
    struct ddp_request q = {.what = DDP_ALL_GATHER, .count = sizeof *all,
                            .width = 1, .type = DDP_U8, .recv = all};
    struct offer mine = {0, 0};
    int rc;

    if (!all)
        return ddp_comm_no_memory(r->c, err);
    if (l->seat == 0 && l->n_seats <= DDP_SHM_RANKS_MAX)
        r->shm = ddp_shm_create(l->n_seats, r->b->token);
    if (r->shm)
        mine = (struct offer){(uint32_t)getpid(), (uint32_t)r->shm->fd};
    all[r->c->rank] = mine;
    q.send = &all[r->c->rank];
    rc = ddp_ring_run(r->c, &q, err);
    first = &all[ddp_layout_rank(l, l->pod, 0)];
    if (!rc && l->seat > 0 && first->pid)
        r->shm = ddp_shm_open(l->seat, l->n_seats, first->pid, first->fd,
                              r->b->token);
    free(all);
    return rc;
}

/* The connections of a rail: to the next pod, and from the one before; of each
 * way the first one is for control. Then the pairs. */
static void plan(struct rails *r)
{
    const struct ddp_layout *l = &r->layout;
    unsigned n = 1 + r->b->n_sockets, me = (unsigned)r->c->rank;
    int next = rank_of(r, (l->pod + 1) % l->n_pods);
    int prev = rank_of(r, (l->pod + l->n_pods - 1) % l->n_pods);

    for (unsigned i = 0; i < n; i++)
        r->m[r->n++] = (struct ddp_meeting){
            .rank = next,
            .channel = ((int)me < next ? DDP_MEET_UP : DDP_MEET_DOWN) + i};
    for (unsigned i = 0; i < n; i++)
        r->m[r->n++] = (struct ddp_meeting){
            .rank = prev,
            .channel = (prev < (int)me ? DDP_MEET_UP : DDP_MEET_DOWN) + i};
    for (unsigned i = 0; i < r->links.n_pairs; i++) {
        r->links.pairs[i].rank = rank_of(r, (unsigned)r->links.pairs[i].rank);
        r->m[r->n++] = (struct ddp_meeting){.rank = r->links.pairs[i].rank,
                                            .channel = DDP_MEET_RAIL_PAIR};
    }
}

/* How many ranks may use the same processors as this one; 0: unknown. */
static unsigned sharers(const struct ddp_comm *c, const struct ddp_home *homes)
{
    static const uint8_t none[DDP_TOKEN];
    const uint8_t *mine = homes[c->rank].processors;
    unsigned n = 0;

    if (!memcmp(mine, none, DDP_TOKEN))
        return 0;
    for (int r = 0; r < c->size; r++)
        n += !memcmp(homes[r].processors, mine, DDP_TOKEN);
    return n;
}

/* All have all: the connections become links, the memory this pod's. */
static void install(struct rails *r, const struct ddp_home *homes)
{
    struct ddp_links *l = &r->links;
    const struct ddp_meeting *next = r->m, *prev = r->m + 1 + r->b->n_sockets;
    const struct ddp_meeting *pairs = prev + 1 + r->b->n_sockets;

    ddp_conn_open(&l->next, next->fd, next->rank);
    ddp_conn_open(&l->prev, prev->fd, prev->rank);
    l->n_data = r->b->n_sockets;
    for (unsigned i = 0; i < l->n_data; i++) {
        l->next_data[i] = next[1 + i].fd;
        l->prev_data[i] = prev[1 + i].fd;
        ddp_socket_keep_short(l->next_data[i]);
    }
    for (unsigned i = 0; i < l->n_pairs; i++)
        l->pairs[i].fd = pairs[i].fd;
    for (unsigned s = 0; s < r->shm->n; s++)
        r->shm->world[s] = (int)ddp_layout_rank(&r->layout, r->layout.pod, s);
    ddp_shm_crowd(r->shm, sharers(r->c, homes));
    ddp_socket_close(&r->shm->fd); /* All have it open. */
    r->c->rail = *l;
    r->c->shm = r->shm;
    r->shm = NULL;
}

static int connect_all(struct rails *r, const struct ddp_home *homes,
                       struct ddp_error *err)
{
    bool ok;
    int rc = share(r, err);

    if (rc)
        return rc;
    r->links.seat = r->layout.pod;
    r->links.seats = r->layout.n_pods;
    ok = ddp_pairs_make(&r->links) && r->shm;
    rc = ddp_meet_agree(r->c, ok, &ok, err);
    if (!rc && ok) {
        plan(r);
        rc = ddp_meet_all(r->c, r->b, homes, r->m, r->n, &ok, err);
    }
    if (!rc && ok)
        install(r, homes);
    else
        ddp_pairs_free(&r->links);
    return rc;
}

int ddp_rails_connect(struct ddp_comm *c, const struct ddp_boot *b,
                      const struct ddp_home *homes, struct ddp_error *err)
{
    struct rails *r = calloc(1, sizeof *r);
    unsigned *ranks = calloc((size_t)c->size, sizeof *ranks);
    int rc = 0;

    if (!r || !ranks) {
        rc = ddp_comm_no_memory(c, err);
    } else {
        r->c = c;
        r->b = b;
        r->layout.ranks = ranks;
        if (ddp_layout_find(&r->layout, homes->host, sizeof *homes,
                            (unsigned)c->rank, (unsigned)c->size))
            rc = connect_all(r, homes, err);
        ddp_shm_free(r->shm);
    }
    free(ranks);
    free(r);
    return rc;
}
