/* barrier_past: what a job has gone through under other pods 0. The pods keep
 * it: pod 0 tells them with START and STOP, and they tell the next one.
 *
 * The number of losses of node rank 0 is like the number of a round: it only
 * goes up. Each pod that was in the round that a loss ended reports one more
 * than that pod 0 has told it, so all of them report the same loss by the same
 * number, and the highest number has it counted once. */
#include "rendezvous/barrier_round.h"

#include "base/text.h"
#include "rendezvous/barrier_policy.h"

#include <string.h>

static void tell_restarts(const struct barrier *b, uint64_t now_ms,
                          struct past *ret)
{
    uint32_t n = b->n_restarts;

    if (b->cfg.restart_period_ms == 0)
        return;
    if (n > BARRIER_RESTARTS_MAX)
        n = BARRIER_RESTARTS_MAX;
    for (uint32_t i = 1; i <= n; i++) { /* From the last one back. */
        uint64_t at = b->restarts_ms[(b->n_restarts - i) %
                                     BARRIER_RESTARTS_MAX];

        if (at == 0 || now_ms - at >= b->cfg.restart_period_ms)
            break;
        past_add(ret, now_ms - at, 1);
    }
}

void bar_note_lost(struct barrier *b, uint64_t now_ms, uint32_t rank,
                   uint64_t age_ms)
{
    past_age(&b->lost.past, now_ms - b->lost.at_ms);
    b->lost.at_ms = now_ms;
    (void)past_lose(&b->lost.past, rank, age_ms);
}

/* Those whose next loss costs a restart. */
static void tell_lost(const struct barrier *b, uint64_t now_ms,
                      struct past *ret)
{
    uint64_t since = now_ms - b->lost.at_ms;

    for (uint32_t i = 0; i < b->lost.past.n_lost; i++) {
        const struct past_lost *l = &b->lost.past.lost[i];

        if (l->age_ms + since < b->cfg.restart_reset_ms)
            (void)past_lose(ret, l->rank, l->age_ms + since);
    }
}

/* The youngest word holds. */
static void take_lost(struct barrier *b, uint64_t now_ms,
                      const struct bar_hello *h)
{
    for (uint32_t i = 0; i < h->past.n_lost; i++) {
        const struct past_lost *l = &h->past.lost[i];
        uint64_t age = l->age_ms + (now_ms - h->came_ms);
        struct bar_peer *p;

        if (l->rank == 0 || l->rank >= b->cfg.nnodes)
            continue;
        p = &b->peers[l->rank];
        if (p->n_losses > 0 && now_ms - p->last_loss_ms <= age)
            continue;
        p->n_losses = p->n_losses > 0 ? p->n_losses : 1;
        p->last_loss_ms = now_ms - age;
        bar_note_lost(b, now_ms, l->rank, age);
    }
}

void bar_tell_past(const struct barrier *b, uint64_t now_ms,
                   struct wire_msg *m)
{
    m->n_restarts = b->n_restarts;
    m->in_a_row = b->n_failures_in_a_row;
    m->past.zero_losses = b->zero.n;
    m->past.zero_age_ms = b->zero.n > 0 ? now_ms - b->zero.last_ms : 0;
    m->past.n_runs = 0;
    tell_lost(b, now_ms, &m->past);
    tell_restarts(b, now_ms, &m->past);
}

/* Ages may be more than this clock has counted: differences stay right. */
static void take_restarts(struct barrier *b, const struct bar_hello *h)
{
    uint32_t at = h->n_restarts, left = BARRIER_RESTARTS_MAX;

    b->n_restarts = h->n_restarts;
    b->n_failures_in_a_row = h->in_a_row;
    if (b->cfg.restart_period_ms == 0)
        return;
    memset(b->restarts_ms, 0, sizeof b->restarts_ms);
    for (uint32_t i = 0; i < h->past.n_runs; i++)
        for (uint32_t n = h->past.runs[i].n; n > 0 && at > 0 && left > 0;
             n--, left--) {
            uint64_t ms = h->came_ms - h->past.runs[i].age_ms;

            b->restarts_ms[--at % BARRIER_RESTARTS_MAX] = ms ? ms : 1;
        }
}

bool bar_has_lost_zero(const struct barrier *b, const struct bar_hello *h)
{
    return (h->zero_lost & WIRE_LOST_OLDER) ||
           ((h->zero_lost & WIRE_LOST_LAST) && h->last_zero != 0 &&
            h->last_zero != b->cfg.incarnation);
}

static const char *ordinal(uint32_t n)
{
    bool teen = n / 10 % 10 == 1;

    return n % 10 == 1 && !teen   ? "st"
           : n % 10 == 2 && !teen ? "nd"
           : n % 10 == 3 && !teen ? "rd"
                                  : "th";
}

/* `gap_ms`: since the loss before that, if there was one. */
static void describe_loss(struct barrier *b, const struct bar_hello *h,
                          uint64_t gap_ms)
{
    struct text t;

    text_init(&t, b->zero.text, sizeof b->zero.text);
    text_add(&t, "node rank 0 was lost");
    if (b->zero.n > 1) {
        text_add(&t, " for the %u%s time, ", b->zero.n, ordinal(b->zero.n));
        text_add_duration(&t, gap_ms);
        text_add(&t, " after the time before");
    }
    text_add(&t, ": %s", h->last_end == WIRE_END_SILENT
                             ? "it was not heard any more"
                             : "its agent is gone");
}

/* As any other pod's loss; but the one that runs here is another pod 0, which
 * has workers in a round only if it did not know of the lost one. */
static void charge(struct barrier *b, uint64_t now_ms, uint64_t gap_ms)
{
    struct bar_zero *z = &b->zero;
    struct failure f = bar_fault(b, ERR_PEER, "%s", z->text);
    bool free = z->n < 2 || gap_ms >= b->cfg.restart_reset_ms;
    char why[BARRIER_WHY_MAX] = "--restart-policy is never";
    uint64_t delay = 0;

    f.kind = FAILURE_LOST;
    f.host[0] = '\0'; /* It may have run elsewhere. */
    bar_note_failure(b, now_ms, NULL);
    if (b->cfg.restart_never ||
        (!free && !bar_may_restart(b, now_ms, why, sizeof why))) {
        if (b->phase == BAR_GATHER)
            bar_finish_because(b, now_ms, ERR_PEER, &f, why);
        return;
    }
    if (free)
        (void)text_copy(z->why, sizeof z->why, z->n < 2
                        ? "the first loss of a pod costs no restart"
                        : "a loss after --restart-reset costs no restart");
    else
        delay = bar_count_restart(b, now_ms, ++b->n_failures_in_a_row, z->why,
                                  sizeof z->why);
    if (now_ms + delay > b->not_before_ms)
        b->not_before_ms = now_ms + delay;
    bar_wake(b, b->not_before_ms);
    bar_say(b, LOG_WARNING, "%s (%s)", z->text, z->why);
}

static void take_losses(struct barrier *b, uint64_t now_ms,
                        const struct bar_hello *h)
{
    bool lost = bar_has_lost_zero(b, h);
    uint32_t n = h->past.zero_losses;
    uint64_t age = lost ? h->lost_age_ms : h->past.zero_age_ms;
    uint64_t before = h->past.zero_age_ms, last_ms = h->came_ms - age;

    if (lost && n < UINT32_MAX)
        n++;
    if (n == 0)
        return;
    if (n == b->zero.n && now_ms - last_ms < now_ms - b->zero.last_ms)
        b->zero.last_ms = last_ms; /* The youngest word holds. */
    if (n <= b->zero.n)
        return;
    b->zero.n = n;
    b->zero.last_ms = last_ms;
    if (!lost)
        return;
    describe_loss(b, h, before > age ? before - age : 0);
    charge(b, now_ms, before > age ? before - age : 0);
}

void bar_take_past(struct barrier *b, uint64_t now_ms,
                   const struct bar_hello *hello)
{
    uint32_t next = hello->running == WIRE_NO_ROUND ? hello->round
                                                    : hello->running + 1;

    if (next > b->next_round)
        b->next_round = next;
    if (b->phase == BAR_GATHER && next > b->round)
        b->round = next;
    if (hello->n_restarts > b->n_restarts)
        take_restarts(b, hello);
    take_lost(b, now_ms, hello);
    if (b->phase < BAR_ENDING)
        take_losses(b, now_ms, hello);
}
