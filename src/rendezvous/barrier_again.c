/* barrier_again: what may be tried again in one pod alone: a worker of
 * --restart-scope worker, a --pre-start. The pod asks with FAILED and a
 * serial number, and is answered with AGAIN; each counts one restart, of
 * which all others hear: they tell a next pod 0. */
#include "rendezvous/barrier_round.h"

#include "base/text.h"
#include "rendezvous/barrier_policy.h"
#include "supervise/verdict.h"

#include <string.h>

static void answer(struct barrier *b, struct bar_peer *p, uint32_t serial,
                   const char *why)
{
    struct wire_msg m = {.kind = WIRE_AGAIN,
                         .round = b->round,
                         .serial = serial,
                         .go = p->again_go,
                         .n_restarts = b->n_restarts,
                         .delay_ms = p->again_ms};

    p->serial = serial;
    (void)text_copy(m.text, sizeof m.text, why);
    bar_send(b, p, &m);
}

static uint64_t count(struct barrier *b, uint64_t now_ms,
                      const struct bar_peer *asks, uint32_t in_a_row, char *why,
                      size_t cap)
{
    uint64_t delay = bar_count_restart(b, now_ms, in_a_row, why, cap);
    struct wire_msg m = {.kind = WIRE_AGAIN, .round = b->round,
                         .n_restarts = b->n_restarts};

    for (uint32_t i = 0; i < b->cfg.nnodes; i++)
        if (&b->peers[i] != asks)
            bar_send(b, &b->peers[i], &m);
    return delay;
}

static void say(const struct barrier *b, const struct failure *f,
                uint64_t delay_ms, const char *why)
{
    char buf[2 * WIRE_TEXT_MAX];
    struct text t;

    text_init(&t, buf, sizeof buf);
    verdict_cause_line(&t, f);
    text_add(&t, "; it is tried again in ");
    text_add_duration(&t, delay_ms);
    text_add(&t, " (%s)", why);
    bar_say(b, LOG_WARNING, "%s", buf);
}

/* Ended with 0, and the policy is `always`: without a budget it is done. */
static void ended(struct barrier *b, uint64_t now_ms, struct bar_peer *p,
                  const struct wire_msg *m)
{
    char why[BARRIER_WHY_MAX] = "";

    p->again_go = b->cfg.restart_always &&
                  bar_may_restart(b, now_ms, why, sizeof why);
    p->again_ms = p->again_go
                      ? count(b, now_ms, p, m->in_a_row, why, sizeof why)
                      : 0;
    answer(b, p, m->serial, why);
}

void bar_again(struct barrier *b, uint64_t now_ms, uint32_t rank,
               const struct wire_msg *m)
{
    struct bar_peer *p = &b->peers[rank];
    const struct failure *f = &m->failure;
    char why[BARRIER_WHY_MAX];

    if (m->serial == p->serial) { /* The answer was lost. */
        answer(b, p, m->serial, "");
        return;
    }
    if (f->code == 0) {
        ended(b, now_ms, p, m);
        return;
    }
    if (bar_is_permanent(b, f, m->same, why, sizeof why) ||
        !bar_may_restart(b, now_ms, why, sizeof why)) {
        bar_finish_because(b, now_ms, f->code, f, why);
        return;
    }
    p->again_go = 1;
    p->again_ms = count(b, now_ms, p, m->in_a_row, why, sizeof why);
    if (rank != 0)
        say(b, f, p->again_ms, why);
    answer(b, p, m->serial, why);
}
