/* world_stranger: somebody without the token at pod 0's port, who has heard
 * what a pod once said there. It must change nothing. */
#include "world.h"

#include <string.h>

void world_make_token(struct world *w, struct auth *ret)
{
    uint8_t seed[AUTH_SEED] = {0};

    for (unsigned i = 0; w->has_token && i < 8; i++)
        seed[i] = (uint8_t)world_draw(w, 256);
    if (w->has_token)
        auth_init(ret, "token", 5, seed);
}

void world_overhear(struct world *w, uint32_t link, const struct wire_msg *m)
{
    if (m->kind == WIRE_HELLO)
        w->heard_hello = *m;
    if (m->kind != WIRE_PROOF)
        return;
    w->heard_proof = *m;
    w->links[link].proved = true;
}

void world_conn_admit(void *c, uint32_t conn)
{
    struct sim_ctx *x = c;
    uint32_t link = x->w->zeros[x->w->pods[x->i].zero].link_of[conn];

    const struct sim_pod *p = &x->w->pods[x->w->links[link].place];

    if (p->told_zero && p->told_zero != x->w->pods[x->i].life)
        x->w->history.heard_life = x->w->pods[x->i].life;
    if (x->w->has_token && !x->w->links[link].proved)
        world_fail(x->w, "somebody is admitted who has proved nothing");
}

/* A HELLO, told again or made up. */
static struct wire_msg some_hello(struct world *w)
{
    struct wire_msg m = w->heard_hello;

    if (m.kind == WIRE_HELLO && world_draw(w, 2))
        return m;
    memset(&m, 0, sizeof m);
    m.kind = WIRE_HELLO;
    m.incarnation = world_draw(w, 1000);
    m.node_rank = (uint32_t)world_draw(w, w->n_ranks);
    m.nnodes = (uint32_t)(w->n_ranks + (world_draw(w, 4) == 0));
    m.nproc = 1;
    m.running = WIRE_NO_ROUND;
    memcpy(m.job_id, "sim", 4);
    m.has_token = (uint8_t)world_draw(w, 2);
    return m;
}

void world_stranger(struct world *w)
{
    struct wire_msg hello = some_hello(w), proof = w->heard_proof;
    struct wire_msg done = {.kind = WIRE_DONE};
    uint32_t link = world_link(w, WORLD_STRANGER);

    if (!link)
        return;
    w->history.n[FAULT_STRANGER]++;
    proof.kind = WIRE_PROOF;
    if (world_draw(w, 4) != 0)
        world_say_zero(w, link, EV_TO_ZERO, &hello);
    if (world_draw(w, 2) != 0)
        world_say_zero(w, link, EV_TO_ZERO, &proof);
    if (world_draw(w, 8) == 0)
        world_say_zero(w, link, EV_TO_ZERO, &done);
    if (world_draw(w, 2) != 0)
        world_say_zero(w, link, EV_FIN_ZERO, NULL);
}
