/* world_group: the group of a round: who is in it, and with which ranks; how
 * pod 0 came to start it. */
#include "world.h"

#include <string.h>

/* Two pods of the group, the first one with the lower group rank. */
static void check_order(struct world *w, const struct sim_group *g, uint32_t a,
                        uint32_t b)
{
    uint32_t end = g->base[a] + g->n[a];

    if (g->node_rank[a] >= g->node_rank[b] || end > g->base[b] ||
        (a + 1 == b && end != g->base[b]))
        world_fail(w, "group rank %u is node rank %u, ranks %u to %u; group "
                   "rank %u is node rank %u, ranks from %u", a,
                   g->node_rank[a], g->base[a], end - 1, b, g->node_rank[b],
                   g->base[b]);
}

static void check_place(struct world *w, const struct sim_group *g, uint32_t i)
{
    bool first = i == 0, last = i + 1 == g->size;

    if ((g->node_rank[i] == 0) != first || (g->base[i] == 0) != first)
        world_fail(w, "node rank %u has group rank %u and ranks from %u",
                   g->node_rank[i], i, g->base[i]);
    if (!g->is_in[0] && world_zero(w)->life == g->zero_life &&
        world_zero(w)->exists)
        world_fail(w, "node rank %u starts, and pod 0 has not",
                   g->node_rank[i]);
    if ((g->base[i] + g->n[i] == g->world_size) != last)
        world_fail(w, "group rank %u of %u has the ranks %u to %u of %u", i,
                   g->size, g->base[i], g->base[i] + g->n[i] - 1,
                   g->world_size);
    for (uint32_t k = 0; k < g->size; k++)
        if (g->is_in[k] && k != i)
            check_order(w, g, k < i ? k : i, k < i ? i : k);
}

/* Another pod got the rank of one that was away. It must not be a new one of
 * the first round of a new pod 0, to which the other one came at once. */
static bool may_have(const struct world *w, const struct sim_pod *p,
                     const struct sim_pod *other)
{
    const struct sim_group *g = &w->history.group;
    bool is_new = !other->has_rank || (other->first_zero == g->zero_life &&
                                       other->first_round == g->round);

    return other->exists && world_rank(other) == p->last_rank &&
           (!is_new || p->last_zero == g->zero_life ||
            p->claim != p->last_rank || other->claim == p->last_rank ||
            p->again_zero == g->zero_life || w->history.n_started > 1);
}

static void check_rank_stays(struct world *w, uint32_t place)
{
    struct sim_pod *p = &w->pods[place];
    uint32_t rank = world_rank(p);
    uint32_t at = w->history.ran_at[p->last_rank];
    bool given = !p->has_rank || rank == p->last_rank;

    /* In an older round of this pod 0 another one had it, which may have left
     * since. */
    given = given || (w->history.n_started > 1 && at > 0 && at != place + 1);
    for (uint32_t i = 0; !given && i < w->n_places; i++)
        given = i != place && may_have(w, p, &w->pods[i]);
    if (!given)
        world_fail(w, "pod %u was node rank %u and is %u now", place,
                   p->last_rank, rank);
    if (!p->has_rank) {
        p->first_zero = w->history.group.zero_life;
        p->first_round = w->history.group.round;
    }
    p->has_rank = true;
    p->last_rank = rank;
    p->last_zero = w->history.group.zero_life;
}

void world_check_group(struct world *w, uint32_t place,
                       const struct pod_round *r)
{
    const struct sim_pod *p = &w->pods[place];
    struct sim_group *g = &w->history.group;
    uint32_t i = r->group_rank;

    if (g->size == 0 || g->zero_life != p->pod.zero_incarnation ||
        g->round != r->round)
        *g = (struct sim_group){.zero_life = p->pod.zero_incarnation,
                                .round = r->round,
                                .size = r->group_size,
                                .world_size = r->world_size};
    if (g->size > w->n_ranks || g->size < w->min_nodes ||
        r->group_size != g->size || r->world_size != g->world_size ||
        i >= g->size || g->is_in[i] || world_rank(p) >= w->n_ranks) {
        world_fail(w, "pod %u, node rank %u, has group rank %u of %u and "
                   "world size %u; the group has %u and %u, at least %u",
                   place, world_rank(p), i, r->group_size, r->world_size,
                   g->size, g->world_size, w->min_nodes);
        return;
    }
    g->is_in[i] = true;
    g->node_rank[i] = world_rank(p);
    g->base[i] = r->rank_base;
    g->n[i] = p->n_workers;
    check_place(w, g, i);
    check_rank_stays(w, place);
    if (w->history.zero_life == p->pod.zero_incarnation)
        w->history.ran_at[world_rank(p)] = place + 1;
    w->pods[place].last_round = r->round;
    w->history.n[FAULT_AUTO] += p->rank == WIRE_ANY_RANK;
}

bool world_is_member(const struct world *w, uint32_t place)
{
    const struct barrier *b = world_barrier(w);
    uint32_t rank = world_rank(&w->pods[place]);

    return rank < w->n_ranks && b->peers[rank].member &&
           b->peers[rank].hello.incarnation == w->pods[place].life;
}

/* It may then still have to wait for others. */
static bool has_enough(const struct world *w, const struct barrier *b)
{
    return b->counts[PEER_ARRIVED] >= w->min_nodes &&
           b->peers[0].state == PEER_ARRIVED;
}

static void check_start(struct world *w, const struct barrier *b)
{
    struct history *h = &w->history;

    h->n[FAULT_SMALLER] += b->n_members < w->n_ranks;
    h->n[FAULT_BIGGER] += b->n_members > h->n_members && h->n_members > 0;
    if (b->n_members < w->n_ranks && w->last_call_ms > 0 &&
        (h->enough_ms == 0 || world_clock(w, w->zero) - h->enough_ms <
                                  w->last_call_ms))
        world_fail(w, "%u of %u pods start before the last call is over",
                   b->n_members, w->n_ranks);
    h->n_members = b->n_members;
    h->n_started++;
}

void world_check_gathering(struct world *w)
{
    const struct barrier *b = world_barrier(w);
    struct history *h = &w->history;

    if (!world_zero(w)->exists || h->zero_life != world_zero(w)->life) {
        h->zero_life = world_zero(w)->life;
        h->enough_ms = 0;
        h->phase = BAR_GATHER;
        h->n_members = h->n_started = 0;
        memset(h->ran_at, 0, sizeof h->ran_at);
    }
    if (!world_zero(w)->exists)
        return;
    if (b->phase == BAR_RUN && h->phase == BAR_GATHER)
        check_start(w, b);
    for (uint32_t i = 0; b->phase == BAR_RUN && i < b->cfg.nnodes; i++)
        if (b->peers[i].state == PEER_ARRIVED && !b->suspect_ms)
            world_fail(w, "node rank %u is there, and the others run without "
                       "it", i);
    if (b->phase != BAR_GATHER || !has_enough(w, b))
        h->enough_ms = 0;
    else if (h->enough_ms == 0)
        h->enough_ms = world_clock(w, w->zero);
    h->phase = b->phase;
}
