/* barrier_policy: see barrier_policy.h. */
#include "rendezvous/barrier_policy.h"

#include "base/text.h"
#include "rendezvous/barrier_round.h"

#include <string.h>

void bar_note_failure(struct barrier *b, uint64_t now_ms,
                      const struct failure *f)
{
    bool early = f && f->kind == FAILURE_WORKER && f->ran_ms < BARRIER_SAME_MS;
    /* Servers are numbered by themselves. */
    uint32_t who = f ? f->rank ^ (uint32_t)f->role << 30 : 0;

    if (b->phase == BAR_RUN && now_ms - b->round_ms >= b->cfg.restart_reset_ms)
        b->n_failures_in_a_row = 0;
    if (!early) {
        b->same.n = 0;
    } else if (b->same.n > 0 && b->same.rank == who &&
               b->same.code == f->code) {
        b->same.n++;
    } else {
        b->same.rank = who;
        b->same.code = f->code;
        b->same.n = 1;
    }
}

bool bar_is_permanent(const struct barrier *b, const struct failure *cause,
                      uint32_t same, char *why, size_t cap)
{
    int code = cause->code;
    struct text t;

    text_init(&t, why, cap);
    if (cause->kind == FAILURE_AGENT)
        return true; /* The failure's own text says all. */
    if (b->cfg.restart_never)
        text_add(&t, "--restart-policy is never");
    else if (code == ERR_NOEXEC || code == ERR_NOTFOUND)
        text_add(&t, "%d is permanent: a command that cannot be run", code);
    else if (code >= 0 && code < 256 && b->cfg.no_restart_on[code])
        text_add(&t, "--no-restart-on has %d", code);
    else if (b->cfg.restart_by_code && code > 0 && code < 128)
        text_add(&t, "--restart-policy exit-code: below 128 is permanent");
    else if (b->cfg.same_limit > 0 && same >= b->cfg.same_limit &&
             cause->kind == FAILURE_PREPARE)
        text_add(&t, "--pre-start failed %u time%s in a row with %d within 10 "
                 "s (--same-failure-limit)", same, text_plural(same), code);
    else if (b->cfg.same_limit > 0 && same >= b->cfg.same_limit)
        text_add(&t, "%s %u failed %u time%s in a row with %d within 10 s of "
                 "its start (--same-failure-limit)",
                 cause->role == PROC_WORKER ? "rank" : "server", cause->rank,
                 same, text_plural(same), code);
    return t.len > 0;
}

static uint64_t restarts_in_period(const struct barrier *b, uint64_t now_ms)
{
    uint64_t used = 0;

    for (uint32_t i = 0; i < BARRIER_RESTARTS_MAX && i < b->n_restarts; i++)
        used += b->restarts_ms[i] > 0 &&
                now_ms - b->restarts_ms[i] < b->cfg.restart_period_ms;
    return used;
}

static void add_period(struct text *t, const struct barrier *b)
{
    text_add(t, " within ");
    text_add_duration(t, b->cfg.restart_period_ms);
}

bool bar_may_restart(const struct barrier *b, uint64_t now_ms, char *why,
                     size_t cap)
{
    struct text t;

    text_init(&t, why, cap);
    if (b->cfg.restart_period_ms == 0)
        return b->n_restarts < b->cfg.max_restarts;
    if (restarts_in_period(b, now_ms) < b->cfg.max_restarts)
        return true;
    text_add(&t, "all %u", b->cfg.max_restarts);
    add_period(&t, b);
    text_add(&t, " are used");
    return false;
}

/* Up to a quarter more, so that jobs do not march in step; up to a quarter
 * less where that would be above the maximum. Never below the minimum. */
static uint64_t jitter(struct barrier *b, uint64_t d)
{
    uint64_t max = b->cfg.backoff_max_ms, low = d, high = d + d / 4;

    if (high > max) {
        high = max;
        low = max - d / 4;
    }
    if (low < b->cfg.backoff_min_ms && b->cfg.backoff_min_ms <= max)
        low = b->cfg.backoff_min_ms;
    return low + (high - low) * (bar_random(b) % 1024) / 1024;
}

static uint64_t backoff_ms(struct barrier *b, uint32_t in_a_row)
{
    uint64_t d = b->cfg.backoff_min_ms;

    for (uint32_t i = 1; i < in_a_row; i++) {
        if (d >= b->cfg.backoff_max_ms / 2) {
            d = b->cfg.backoff_max_ms;
            break;
        }
        d *= 2;
    }
    if (d > b->cfg.backoff_max_ms)
        d = b->cfg.backoff_max_ms;
    return jitter(b, d);
}

uint64_t bar_count_restart(struct barrier *b, uint64_t now_ms,
                           uint32_t in_a_row, char *why, size_t cap)
{
    struct text t;

    b->restarts_ms[b->n_restarts % BARRIER_RESTARTS_MAX] =
        now_ms ? now_ms : 1;
    b->n_restarts++;
    text_init(&t, why, cap);
    if (b->cfg.restart_period_ms) {
        text_add(&t, "restart %u, at most %u", b->n_restarts,
                 b->cfg.max_restarts);
        add_period(&t, b);
    } else {
        text_add(&t, "restart %u of %u", b->n_restarts, b->cfg.max_restarts);
    }
    return backoff_ms(b, in_a_row);
}
