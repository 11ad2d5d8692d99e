/* pod_past: what a pod keeps for a next pod 0: the restarts so far, and how
 * often pod 0 was lost. A pod has it from pod 0; that this one is lost itself,
 * in the midst of a round, it has seen. */
#include "agent/pod.h"

#include "agent/pod_parts.h"

/* Failures, of the job, as they are for the next pod 0. Nobody else knows how
 * long the last one's round has run. */
static uint32_t in_a_row(const struct pod *p)
{
    bool healthy = p->past.round_open && p->lost_ms - p->past.open_ms >=
                                             p->cfg.restart_reset_ms;

    return healthy ? 0 : p->past.in_a_row;
}

void pod_past_tell(const struct pod *p, uint64_t now_ms, struct wire_msg *m)
{
    const struct pod_past *x = &p->past;

    m->n_restarts = p->n_restarts;
    m->in_a_row = in_a_row(p);
    m->past = x->past;
    past_age(&m->past, now_ms - x->told_ms);
    if (x->zero_lost) {
        m->zero_lost = WIRE_LOST_OLDER;
        m->lost_age_ms = now_ms - x->zero_lost_ms;
    } else if (x->round_open) { /* Whoever hears it knows whether it is he. */
        m->zero_lost = WIRE_LOST_LAST;
        m->lost_age_ms = now_ms - p->lost_ms;
    }
}

void pod_past_take(struct pod *p, uint64_t now_ms, const struct wire_msg *m)
{
    p->n_restarts = m->n_restarts;
    p->past.in_a_row = m->in_a_row;
    p->past.past = m->past;
    p->past.told_ms = now_ms;
    p->past.zero_lost = false;
}

void pod_past_welcome(struct pod *p, const struct wire_msg *m)
{
    struct pod_past *x = &p->past;

    if (p->zero_incarnation == m->incarnation) {
        /* STOP was lost, but pod 0 has gone on. */
        if (m->round > p->at.round)
            x->round_open = false;
        return;
    }
    if (x->round_open) {
        x->in_a_row = in_a_row(p);
        x->zero_lost = true;
        x->zero_lost_ms = p->lost_ms;
    }
    x->round_open = false;
}

void pod_past_again(struct pod *p, uint64_t now_ms, const struct wire_msg *m)
{
    struct pod_past *x = &p->past;

    if (m->n_restarts > p->n_restarts && p->cfg.restart_period_ms > 0) {
        past_age(&x->past, now_ms - x->told_ms);
        x->told_ms = now_ms;
        past_count(&x->past, m->n_restarts - p->n_restarts);
    }
    p->n_restarts = m->n_restarts;
}
