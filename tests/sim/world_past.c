/* world_past: how often pod 0 was lost, and what that has cost. Seen from
 * outside: a pod is in a round that no pod 0 has ended, and greets another. */
#include "world.h"

#define RESET_MS 600000 /* As world_boot() gives it. */

static void note_loss(struct world *w, const struct sim_pod *p)
{
    struct history *h = &w->history;
    uint32_t n = p->told_losses + 1;

    if (n <= h->n_losses)
        return;
    h->n_losses = n;
    if (n < WORLD_LOSSES)
        h->loss_floor_ms[n] = p->spawn_ms; /* It was not earlier. */
}

void world_note_hello(struct world *w, uint32_t place, uint64_t zero_life)
{
    const struct sim_pod *p = &w->pods[place];

    if (p->zero_lost || (p->open_zero && p->open_zero != zero_life))
        note_loss(w, p);
}

void world_note_heard(struct world *w, uint32_t place, uint64_t zero_life,
                      const struct wire_msg *m)
{
    struct sim_pod *p = &w->pods[place];

    if (m->kind == WIRE_WELCOME && p->open_zero &&
        m->incarnation != p->open_zero) {
        p->zero_lost = true;
        p->open_zero = 0;
    } else if (m->kind == WIRE_END ||
               (zero_life == p->open_zero &&
                ((m->kind == WIRE_WELCOME && m->round > p->last_round) ||
                 (m->kind == WIRE_STOP && m->round == p->last_round)))) {
        p->open_zero = 0; /* It was ended in order. */
    }
}

/* The second loss of pod 0, and each that follows soon enough, costs one. */
static void check_charge(struct world *w, uint32_t place, uint32_t n)
{
    const struct sim_pod *p = &w->pods[place];
    const struct history *h = &w->history;
    bool alone = world_is_elastic(w) || w->has_new_zero;

    if (w->never && !alone)
        world_fail(w, "pod %u starts after pod 0 was lost, and the policy is "
                   "never", place);
    if (n < 2 || n >= WORLD_LOSSES || h->n[FAULT_JUMP] || h->n[FAULT_SUSPEND] ||
        w->now - h->loss_floor_ms[n - 1] >= RESET_MS)
        return;
    w->history.n[FAULT_ZERO_AGAIN]++;
    /* To those that were in no such round it may be told when they run. */
    if (p->told_restarts == w->max_restarts && alone)
        return;
    if (p->pod.n_restarts <= p->told_restarts)
        world_fail(w, "pod %u: pod 0 was lost %u times, and %u restarts are "
                   "used as before", place, n, p->pod.n_restarts);
}

void world_check_past(struct world *w, uint32_t place)
{
    struct sim_pod *p = &w->pods[place];
    uint32_t n = p->pod.past.past.zero_losses;
    uint32_t own = p->told_losses + p->zero_lost;

    if (n < own || n > w->history.n_losses)
        world_fail(w, "pod %u hears of %u losses of pod 0; it knows of %u, all "
                   "together of %u", place, n, own, w->history.n_losses);
    if (p->pod.n_restarts < p->told_restarts)
        world_fail(w, "pod %u hears of %u restarts after %u", place,
                   p->pod.n_restarts, p->told_restarts);
    if (p->zero_lost)
        check_charge(w, place, n);
    p->told_losses = n;
    p->told_restarts = p->pod.n_restarts;
    p->zero_lost = false;
    p->open_zero = p->pod.zero_incarnation;
    p->spawn_ms = w->now;
}

/* A new pod 0 counts one restart at most before its first round. */
void world_check_budget(struct world *w)
{
    const struct barrier *b = world_barrier(w);
    struct history *h = &w->history;

    if (!world_zero(w)->exists)
        return;
    if (h->budget_life != world_zero(w)->life) {
        h->budget_life = world_zero(w)->life;
        h->restarts_before = h->restarts;
    }
    if (b->n_restarts > h->restarts)
        h->restarts = b->n_restarts;
    if (!b->started && !w->has_pre && !w->scope_worker && !w->has_new_zero &&
        b->n_restarts > h->restarts_before + 1)
        world_fail(w, "a new pod 0 counts %u restarts after %u",
                   b->n_restarts, h->restarts_before);
}

bool world_ends_by_zero(struct world *w)
{
    const struct barrier *b = world_barrier(w);
    const struct failure *f = &b->end.failure;

    if (f->kind != FAILURE_LOST || f->node_rank != 0)
        return false;
    w->history.n[FAULT_ZERO_END]++;
    if (w->history.n_losses < (w->never ? 1 : 2) ||
        (!w->never && b->n_restarts < w->max_restarts))
        world_fail(w, "the job ends since pod 0 was lost, %u times, after %u "
                   "of %u restarts", w->history.n_losses, b->n_restarts,
                   w->max_restarts);
    return true;
}
