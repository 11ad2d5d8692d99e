/* barrier_end: the end of the job: tell all, and leave last. */
#include "rendezvous/barrier_round.h"

#include "base/text.h"

#include <string.h>

void bar_finish(struct barrier *b, uint64_t now_ms, int code,
                const struct failure *cause)
{
    bar_finish_because(b, now_ms, code, cause, "");
}

/* It is found out by the first pod that comes; the others must hear, too. */
static bool is_of_old_zero(const struct failure *cause)
{
    return cause->kind == FAILURE_LOST && cause->node_rank == 0;
}

void bar_finish_because(struct barrier *b, uint64_t now_ms, int code,
                        const struct failure *cause, const char *why)
{
    if (b->phase == BAR_ENDING || b->phase == BAR_OVER)
        return;
    bar_phase(b, BAR_ENDING);
    b->suspect_ms = 0;
    b->end_ms = now_ms;
    b->end_waits = cause && code != ERR_BARRIER &&
                   (is_of_old_zero(cause) ||
                    (!b->started && (cause->kind == FAILURE_AGENT ||
                                     cause->kind == FAILURE_PREPARE)));
    wire_begin(&b->end, WIRE_END, b->round);
    b->end.code = (uint8_t)code;
    b->end.world_size = b->world_size;
    b->end.n_restarts = b->n_restarts;
    if (cause)
        b->end.failure = *cause;
    (void)text_copy(b->end.text, sizeof b->end.text, why);
    for (uint32_t i = 0; i < b->cfg.nnodes; i++)
        bar_send(b, &b->peers[i], &b->end);
    for (uint32_t i = 0; i < b->cfg.nnodes; i++)
        if (b->peers[i].down_ms && b->peers[i].state != PEER_LEFT)
            bar_say(b, LOG_INFO, "the job is over; node rank %u (%s, %s) is "
                    "cut off and has at most %d s to come back and hear of "
                    "it", i, b->peers[i].hello.host, b->peers[i].addr,
                    BARRIER_END_MS / 1000);
    bar_wake(b, now_ms);
}

/* Whether pod 0 must still stay for this pod. */
static bool must_hear(const struct barrier *b, const struct bar_peer *p,
                      uint64_t now_ms)
{
    uint64_t since = now_ms - b->end_ms;

    if (p->state == PEER_LEFT || (p->state == PEER_BYE && since > 1000))
        return false;
    if (p->state == PEER_BYE && p->conn == BARRIER_LOCAL)
        return false;
    if (p->conn != BARRIER_NO_CONN)
        return since < b->cfg.grace_ms + BARRIER_HEAR_MS;
    if (p->down_ms)
        return true; /* Until its time is over and it is lost. */
    return b->end_waits && since < BARRIER_HEAR_MS;
}

struct awaited {
    const struct barrier *b;
    uint64_t now_ms;
};

static bool is_awaited(const void *ctx, unsigned i)
{
    const struct awaited *a = ctx;

    return must_hear(a->b, &a->b->peers[i], a->now_ms);
}

uint64_t barrier_stays(const struct barrier *b, uint64_t now_ms,
                       struct text *t)
{
    struct awaited a = {.b = b, .now_ms = now_ms};
    uint64_t until = 0;
    unsigned n = 0;

    for (uint32_t i = 0; b->phase == BAR_ENDING && i < b->cfg.nnodes; i++) {
        const struct bar_peer *p = &b->peers[i];
        uint64_t at = p->conn != BARRIER_NO_CONN
                          ? b->end_ms + b->cfg.grace_ms + BARRIER_HEAR_MS
                      : p->down_ms ? p->down_ms + BARRIER_END_MS
                                   : b->end_ms + BARRIER_HEAR_MS;

        if (!is_awaited(&a, i))
            continue;
        n++;
        until = at > until ? at : until;
    }
    if (n == 0 || until <= now_ms)
        return 0;
    text_add(t, "node rank%s ", text_plural(n));
    text_add_ranges(t, b->cfg.nnodes, is_awaited, &a, 120);
    return until - now_ms;
}

void bar_try_over(struct barrier *b, uint64_t now_ms, bool look_at_all)
{
    uint32_t heard = b->n_gone + b->counts[PEER_LEFT];

    if (!b->end_waits)
        heard += b->counts[PEER_UNSEEN] + b->counts[PEER_LOST];

    if (b->phase != BAR_ENDING)
        return;
    if (heard == b->cfg.nnodes) {
        bar_phase(b, BAR_OVER);
        return;
    }
    bar_wake(b, now_ms + 1000);
    if (!look_at_all)
        return;
    for (uint32_t i = 0; i < b->cfg.nnodes; i++)
        if (must_hear(b, &b->peers[i], now_ms))
            return;
    bar_phase(b, BAR_OVER);
}
