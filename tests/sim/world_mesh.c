/* world_mesh: the mesh test of the world: who reaches whom, and what the
 * pods say of it. */
#include "world.h"

#include <string.h>

#define PORT 4000 /* Of place 0. */

static struct wire_addr address(uint32_t place)
{
    return (struct wire_addr){
        .ip = {[10] = 0xff, [11] = 0xff, [12] = 10,
               [15] = (uint8_t)(place + 1)},
        .port = (uint16_t)(PORT + place)};
}

/* How the others reach pod 0 is seen on its connections. */
struct wire_addr world_mesh_here(uint32_t zero)
{
    return address(zero);
}

int world_mesh_open(void *c, uint32_t node_rank, struct wire_addr *ret,
                    struct err *e)
{
    struct sim_ctx *x = c;
    struct sim_pod *p = &x->w->pods[x->i];

    (void)e;
    if (node_rank != p->rank && p->rank != WIRE_ANY_RANK)
        world_fail(x->w, "pod %u takes itself for rank %u", x->i, node_rank);
    *ret = address(x->i);
    if (node_rank == 0)
        memset(ret->ip, 0, sizeof ret->ip);
    p->mesh_open = true;
    return 0;
}

void world_mesh_close(void *c)
{
    struct sim_ctx *x = c;

    x->w->pods[x->i].mesh_open = false;
}

static bool is_cut_off(const struct world *w, const struct sim_pod *p)
{
    return p->out_until > w->now || p->in_until > w->now;
}

static bool reaches(const struct world *w, const struct sim_pod *from,
                    const struct sim_pod *to)
{
    return to->exists && to->mesh_open && to->frozen_until <= w->now &&
           !is_cut_off(w, from) && !is_cut_off(w, to) &&
           !w->blocked[world_rank(from)][world_rank(to)];
}

void world_mesh_test(void *c, const struct wire_msg *m)
{
    struct sim_ctx *x = c;
    struct world *w = x->w;
    struct sim_pod *p = &w->pods[x->i];
    struct wire_msg done = {.kind = WIRE_MESHED, .mesh_nonce = m->mesh_nonce};
    struct event *e;

    p->n_mesh += p->mesh_nonce != m->mesh_nonce;
    p->mesh_nonce = m->mesh_nonce;
    world_check_mesh(w, x->i, m);
    done.n_total = m->n_total;
    for (uint32_t i = 0; i < m->n_partners; i++) {
        uint32_t to = (uint32_t)m->partners[i].at.port - PORT;

        if (to < w->n_places && reaches(w, p, &w->pods[to]))
            continue;
        done.partners[done.n_partners] = m->partners[i];
        done.partners[done.n_partners].reason = 1;
        done.n_bad = ++done.n_partners;
    }
    w->history.n[FAULT_BLOCKED] += done.n_bad > 0;
    e = world_plan(w, w->now + (done.n_bad ? MESH_TEST_MS
                                           : world_draw(w, 30)),
                   EV_MESHED, x->i);
    e->life = p->life;
    e->len = (uint16_t)wire_encode(&done, e->frame);
}

void world_mesh_event(struct world *w, const struct event *e)
{
    struct sim_pod *p = &w->pods[e->place];
    struct wire_msg m;
    const char *why;
    unsigned version;

    if (!p->exists || p->life != e->life)
        return;
    if (wire_decode(e->frame, e->len, &m, &why, &version) != (int)e->len)
        world_fail(w, "a frame does not decode: %s", why);
    else if (m.mesh_nonce == p->mesh_nonce)
        pod_meshed(&p->pod, world_clock(w, e->place), &m);
}

/* Half of the jobs have a mesh test, some of them with a pair in which one
 * pod or both cannot reach the other. */
void world_plan_mesh(struct world *w)
{
    uint32_t a = (uint32_t)world_draw(w, w->n_ranks), b;

    if (world_chance(w, 50))
        return;
    w->mesh_reach = world_chance(w, 60) ? MESH_RING : MESH_FULL;
    w->mesh_strict = w->kind != JOB_GENTLE && world_chance(w, 40);
    /* Who is missing from a group has no pair that could be bad. */
    if (w->n_ranks < 2 || world_is_elastic(w) || world_chance(w, 70))
        return;
    b = (a + 1 + (uint32_t)world_draw(w, w->n_ranks - 1)) % w->n_ranks;
    w->blocked[a][b] = true;
    w->blocked[b][a] = world_chance(w, 50);
}

/* Whether the test is to have `from` connect to `to`. */
static bool is_pair(const struct world *w, uint32_t from, uint32_t to)
{
    uint32_t d = (to + w->n_ranks - from) % w->n_ranks;

    return from != to && (w->mesh_reach > 1 || d == 1 || d == w->n_ranks - 1);
}

bool world_mesh_refuses(const struct world *w)
{
    for (uint32_t i = 0; w->mesh_reach && w->mesh_strict && i < w->n_ranks;
         i++)
        for (uint32_t k = 0; k < w->n_ranks; k++)
            if (w->blocked[i][k] && is_pair(w, i, k))
                return true;
    return false;
}

void world_check_mesh(struct world *w, uint32_t place,
                      const struct wire_msg *m)
{
    const struct sim_pod *p = &w->pods[place];
    bool seen[WORLD_RANKS] = {false};

    if (m->first != 0 || m->n_total != m->n_partners || m->n_total == 0)
        world_fail(w, "pod %u gets %u partners of %u from %u on", place,
                   m->n_partners, m->n_total, m->first);
    for (uint32_t i = 0; i < m->n_partners; i++) {
        uint32_t to = m->partners[i].rank;
        uint32_t at = (uint32_t)m->partners[i].at.port - PORT;
        struct wire_addr want = address(at);

        if (to >= w->n_ranks || seen[to] ||
            (!world_is_elastic(w) && !is_pair(w, world_rank(p), to))) {
            world_fail(w, "pod %u is to test rank %u", place, to);
            return;
        }
        seen[to] = true;
        /* By arrival it may have got another rank since. */
        if (at >= w->n_places ||
            (!w->is_auto && world_rank(&w->pods[at]) != to) ||
            memcmp(&want, &m->partners[i].at, sizeof want) != 0)
            world_fail(w, "pod %u gets the address of place %u as that of "
                       "rank %u", place, at, to);
    }
    if (w->kind != JOB_QUIET || world_is_elastic(w))
        return;
    if (p->n_mesh > 1)
        world_fail(w, "pod %u is to test again", place);
    for (uint32_t i = 0; i < w->n_ranks; i++)
        if (is_pair(w, world_rank(p), i) && !seen[i])
            world_fail(w, "pod %u does not test rank %u", place, i);
}
