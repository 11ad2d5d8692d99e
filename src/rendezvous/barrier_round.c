/* barrier_round: see barrier_round.h. */
#include "rendezvous/barrier_round.h"

#include "base/text.h"
#include "rendezvous/barrier_door.h"
#include "rendezvous/barrier_policy.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void bar_say(const struct barrier *b, enum log_level level, const char *fmt,
             ...)
{
    char text[WIRE_TEXT_MAX + FAILURE_TEXT_MAX];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    /* Parts of it may be a stranger's: it stays one line. */
    for (char *s = text; *s; s++)
        if (*s == '\n' || *s == '\t')
            *s = ' ';
    b->out.log(b->out.ctx, level, text);
}

void bar_phase(struct barrier *b, enum barrier_phase to)
{
    static const char *const names[] = {"GATHER", "RUN", "ENDING", "OVER"};

    bar_say(b, LOG_DEBUG, "barrier: %s -> %s, round %u", names[b->phase],
            names[to], b->round);
    b->phase = to;
}

/* xorshift64. */
uint64_t bar_random(struct barrier *b)
{
    b->rng ^= b->rng << 13;
    b->rng ^= b->rng >> 7;
    b->rng ^= b->rng << 17;
    return b->rng;
}

uint64_t bar_next_ping(const struct barrier *b, uint64_t now_ms)
{
    return b->cfg.nnodes > 1 ? now_ms + BARRIER_PING_MS : BARRIER_NEVER;
}

void bar_wake(struct barrier *b, uint64_t at_ms)
{
    if (at_ms < b->wake_ms)
        b->wake_ms = at_ms;
}

void bar_wake_often(struct barrier *b, uint64_t now_ms, uint64_t at_ms)
{
    bar_wake(b, at_ms < now_ms + BARRIER_STILL_MS ? at_ms
                                                  : now_ms + BARRIER_STILL_MS);
}

void bar_move(struct barrier *b, struct bar_peer *p, enum bar_state to)
{
    b->counts[p->state]--;
    b->counts[to]++;
    p->state = to;
    b->has_news = true;
    if (b->counts[PEER_ARRIVED] < b->cfg.min_nodes)
        b->enough_ms = 0; /* The last call begins anew. */
}

void bar_send(const struct barrier *b, const struct bar_peer *p,
              const struct wire_msg *m)
{
    if (p->conn != BARRIER_NO_CONN)
        b->out.send(b->out.ctx, p->conn, m);
}

void bar_send_stop(const struct barrier *b, uint64_t now_ms,
                   const struct bar_peer *p, uint32_t round,
                   const struct failure *cause, uint64_t delay_ms,
                   const char *why)
{
    struct wire_msg m = {.kind = WIRE_STOP,
                         .round = round,
                         .delay_ms = delay_ms,
                         .failure = *cause};

    (void)text_copy(m.text, sizeof m.text, why);
    bar_tell_past(b, now_ms, &m);
    bar_send(b, p, &m);
}

struct failure bar_fault(const struct barrier *b, int code, const char *fmt,
                         ...)
{
    struct failure f = {.kind = FAILURE_AGENT, .code = code};
    va_list ap;

    f.round = b->round;
    (void)text_copy(f.host, sizeof f.host, b->peers[0].hello.host);
    va_start(ap, fmt);
    (void)vsnprintf(f.text, sizeof f.text, fmt, ap);
    va_end(ap);
    return f;
}

/* Every pod stops its workers; then the next round is gathered. */
static void next_round(struct barrier *b, uint64_t now_ms,
                       const struct failure *cause, uint64_t delay_ms,
                       const char *why)
{
    uint32_t old = b->round;

    bar_phase(b, BAR_GATHER);
    b->suspect_ms = 0;
    b->round++;
    if (b->round < b->next_round)
        b->round = b->next_round;
    b->gather_ms = now_ms;
    if (now_ms + delay_ms > b->not_before_ms)
        b->not_before_ms = now_ms + delay_ms;
    b->enough_ms = 0;
    b->summary_ms = now_ms + BARRIER_SUMMARY_MS;
    b->twin.at_ms = b->foreign.at_ms = b->unranked.at_ms = 0;
    bar_forget_news(b);
    bar_wake(b, now_ms + delay_ms);
    bar_wake(b, b->summary_ms);
    for (uint32_t i = 0; i < b->cfg.nnodes; i++) {
        struct bar_peer *p = &b->peers[i];

        if (p->state == PEER_RUNNING || p->state == PEER_DONE)
            bar_move(b, p, PEER_STOPPING);
        if (p->state == PEER_STOPPING ||
            (p->state == PEER_ARRIVED && p->member))
            bar_send_stop(b, now_ms, p, old, cause, delay_ms, why);
    }
}

/* Count one restart and open the next round, or end the job with `code`. */
static void restart_or_finish(struct barrier *b, uint64_t now_ms, int code,
                              const struct failure *cause)
{
    char why[BARRIER_WHY_MAX];
    uint64_t delay;

    if (!bar_may_restart(b, now_ms, why, sizeof why)) {
        bar_finish_because(b, now_ms, code, code ? cause : NULL, why);
        return;
    }
    delay = bar_count_restart(b, now_ms, ++b->n_failures_in_a_row, why,
                              sizeof why);
    next_round(b, now_ms, cause, delay, why);
}

/* The first loss of a pod costs no restart. */
static void count_loss(struct barrier *b, uint64_t now_ms,
                       const struct failure *f)
{
    struct bar_peer *p = &b->peers[f->node_rank];
    bool again = p->n_losses > 0 &&
                 now_ms - p->last_loss_ms < b->cfg.restart_reset_ms;

    p->n_losses++;
    p->last_loss_ms = now_ms;
    bar_note_lost(b, now_ms, f->node_rank, 0);
    bar_note_failure(b, now_ms, NULL);
    if (b->cfg.restart_never)
        bar_finish_because(b, now_ms, ERR_PEER, f,
                           "--restart-policy is never");
    else if (again)
        restart_or_finish(b, now_ms, ERR_PEER, f);
    else
        next_round(b, now_ms, f, 0, "the first loss of a pod costs no "
                                    "restart");
}

static uint64_t settled_at(const struct barrier *b)
{
    return b->suspect_ms + (failure_follows(&b->suspect) ? BARRIER_PEER_MS
                                                         : BARRIER_SETTLE_MS);
}

void bar_suspect(struct barrier *b, uint64_t now_ms, const struct failure *f)
{
    if (!b->suspect_ms || failure_beats(f, &b->suspect)) {
        /* One in the place of who only followed may have a cause, too. */
        if (!b->suspect_ms || failure_follows(&b->suspect))
            b->suspect_ms = now_ms ? now_ms : 1;
        b->suspect = *f;
    }
    bar_settle(b, now_ms);
}

static void settle_now(struct barrier *b, uint64_t now_ms)
{
    struct failure f = b->suspect;

    b->suspect_ms = 0;
    if (f.kind == FAILURE_LOST)
        count_loss(b, now_ms, &f);
    else
        bar_worker_failed(b, now_ms, &f);
}

void bar_settle(struct barrier *b, uint64_t now_ms)
{
    if (!b->suspect_ms || b->phase != BAR_RUN)
        return;
    if (b->cfg.nnodes > 1 && b->counts[PEER_RUNNING] > 0 &&
        now_ms < settled_at(b)) {
        bar_wake(b, settled_at(b));
        return;
    }
    settle_now(b, now_ms);
}

void bar_worker_failed(struct barrier *b, uint64_t now_ms,
                       const struct failure *cause)
{
    char why[BARRIER_WHY_MAX];

    bar_note_failure(b, now_ms, cause);
    if (bar_is_permanent(b, cause, b->same.n, why, sizeof why))
        bar_finish_because(b, now_ms, cause->code, cause, why);
    else
        restart_or_finish(b, now_ms, cause->code, cause);
}

/* The STOP or END that follows tells pod 0's own side, too. */
static bool ends_round(const struct barrier *b, const struct bar_peer *p)
{
    return b->phase == BAR_RUN && p->member && !b->suspect_ms;
}

void bar_left(struct barrier *b, uint64_t now_ms, uint32_t rank,
              const struct failure *cause)
{
    struct bar_peer *p = &b->peers[rank];

    if (p->state == PEER_LEFT)
        return; /* It says it again, on a new connection. */
    p->quiet = false;
    /* This pod has said so itself. */
    if (p->conn != BARRIER_LOCAL && !ends_round(b, p))
        bar_say(b, LOG_WARNING, "node rank %u (%s) was told to stop (%s)",
                rank, p->addr, cause->text);
    bar_move(b, p, PEER_LEFT);
    p->lost_ms = now_ms;
    p->signo = (uint8_t)cause->signo;
    bar_wake(b, now_ms + b->cfg.rejoin_timeout_ms);
    /* Who gathers hears of the others in WAITING; of pod 0, now or never. */
    for (uint32_t i = 1; rank == 0 && b->phase == BAR_GATHER &&
                         i < b->cfg.nnodes; i++)
        bar_send_stop(b, now_ms, &b->peers[i], b->round, cause, 0, "");
    if (b->phase != BAR_RUN || !p->member)
        return;
    if (b->suspect_ms) {
        settle_now(b, now_ms);
        return;
    }
    bar_note_failure(b, now_ms, NULL);
    next_round(b, now_ms, cause, 0, "an announced stop costs no restart");
}

void bar_grow(struct barrier *b, uint64_t now_ms, uint32_t rank)
{
    struct failure f = {.kind = FAILURE_NONE};

    (void)snprintf(f.text, sizeof f.text,
                   "node rank %u (%s, %s) joins; stopping all workers", rank,
                   b->peers[rank].hello.host, b->peers[rank].addr);
    bar_note_failure(b, now_ms, NULL);
    next_round(b, now_ms, &f, 0, "costs no restart");
}

/* It may hear pod 0, and then it must know that pod 0 lives. */
static void dismiss(struct barrier *b, uint64_t now_ms, struct bar_peer *p,
                    const struct failure *why)
{
    uint32_t conn = p->conn;

    if (conn == BARRIER_NO_CONN)
        return;
    if (b->phase < BAR_ENDING)
        bar_send_stop(b, now_ms, p, b->round, why, 0, "");
    bar_door_leave(b, conn);
    b->out.close(b->out.ctx, conn, false);
    p->conn = BARRIER_NO_CONN;
}

void bar_lose(struct barrier *b, uint64_t now_ms, uint32_t rank,
              enum bar_loss how)
{
    static const char *const words[] = {
        [BAR_CLOSED] = "closed its connection and did not come back within 2 s",
        [BAR_SILENT] = "was silent for 15 s",
        [BAR_REPLACED] = "went away, and a new pod has taken its place",
        [BAR_REPLACED_SILENT] = "is silent, and a new pod has taken its place",
    };
    bool silent = how == BAR_SILENT || how == BAR_REPLACED_SILENT;
    struct bar_peer *p = &b->peers[rank];
    struct failure f = {.kind = FAILURE_LOST, .code = ERR_PEER};

    f.node_rank = rank;
    f.round = b->round;
    (void)text_copy(f.host, sizeof f.host, p->hello.host);
    (void)snprintf(f.text, sizeof f.text, "node rank %u (%s, %s) %s", rank,
                   p->hello.host, p->addr, words[how]);
    bar_move(b, p, PEER_LOST);
    p->down_ms = 0;
    p->lost_ms = now_ms;
    dismiss(b, now_ms, p, &f);
    bar_wake(b, now_ms + b->cfg.rejoin_timeout_ms);
    if (b->phase == BAR_ENDING || b->phase == BAR_OVER)
        return;
    if (!ends_round(b, p))
        bar_say(b, LOG_WARNING, "%s", f.text);
    /* What ran there may run on until its own lease and grace are over. */
    if (silent && (b->started || b->last_zero))
        bar_fence(b, now_ms + bar_lease_ms(b));
    if (b->phase != BAR_RUN || !p->member)
        return;
    if (b->suspect_ms) { /* A worker failed before the pod was lost. */
        settle_now(b, now_ms);
        return;
    }
    count_loss(b, now_ms, &f);
}
