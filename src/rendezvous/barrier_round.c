/* barrier_round: see barrier_round.h. */
#include "rendezvous/barrier_round.h"

#include "base/text.h"

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

/* xorshift64. */
uint64_t bar_random(struct barrier *b)
{
    b->rng ^= b->rng << 13;
    b->rng ^= b->rng >> 7;
    b->rng ^= b->rng << 17;
    return b->rng;
}

void bar_wake(struct barrier *b, uint64_t at_ms)
{
    if (at_ms < b->wake_ms)
        b->wake_ms = at_ms;
}

void bar_move(struct barrier *b, struct bar_peer *p, enum bar_state to)
{
    b->counts[p->state]--;
    b->counts[to]++;
    p->state = to;
}

void bar_send(const struct barrier *b, const struct bar_peer *p,
              const struct wire_msg *m)
{
    if (p->conn != BARRIER_NO_CONN)
        b->out.send(b->out.ctx, p->conn, m);
}

void bar_send_start(const struct barrier *b, uint32_t rank)
{
    struct wire_msg m = {.kind = WIRE_START, .round = b->round};

    for (uint32_t i = 0; i < rank; i++)
        if (b->peers[i].member) {
            m.rank_base += b->peers[i].hello.nproc;
            m.group_rank++;
        }
    m.group_size = b->n_members;
    m.world_size = b->world_size;
    m.master_port = b->cfg.master_port;
    m.n_restarts = b->n_restarts;
    bar_send(b, &b->peers[rank], &m);
}

void bar_send_stop(const struct barrier *b, const struct bar_peer *p,
                   uint32_t round, const struct failure *cause,
                   uint64_t delay_ms)
{
    struct wire_msg m = {.kind = WIRE_STOP,
                         .round = round,
                         .delay_ms = delay_ms,
                         .failure = *cause};

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

/* Differing command lines are worth one warning, no more. */
static void warn_commands(const struct barrier *b)
{
    for (uint32_t i = 1; i < b->cfg.nnodes; i++)
        if (b->peers[i].member && b->peers[i].hello.command_hash !=
                                      b->peers[0].hello.command_hash) {
            bar_say(b, LOG_WARNING,
                    "node rank %u runs another command line than node rank 0, "
                    "going on",
                    i);
            return;
        }
}

bool bar_is_elastic(const struct barrier *b)
{
    return b->cfg.min_nodes > 0 && b->cfg.min_nodes < b->cfg.nnodes;
}

/* Pod 0 must be one of them, and nobody may still be stopping or be in the
 * time in which it may come back. */
bool bar_has_enough(const struct barrier *b)
{
    if (b->counts[PEER_ARRIVED] == b->cfg.nnodes)
        return true;
    if (!bar_is_elastic(b) || b->counts[PEER_ARRIVED] < b->cfg.min_nodes ||
        b->peers[0].state != PEER_ARRIVED || b->counts[PEER_STOPPING] > 0)
        return false;
    for (uint32_t i = 0; i < b->cfg.nnodes; i++)
        if (b->peers[i].down_ms)
            return false;
    return true;
}

/* With less than all, the last call must be over. */
static bool is_last_call_over(struct barrier *b, uint64_t now_ms)
{
    if (b->counts[PEER_ARRIVED] == b->cfg.nnodes)
        return true;
    if (b->enough_ms == 0)
        b->enough_ms = now_ms ? now_ms : 1;
    if (now_ms - b->enough_ms >= b->cfg.last_call_ms)
        return true;
    bar_wake(b, b->enough_ms + b->cfg.last_call_ms);
    return false;
}

/* Those that have arrived are the members. */
static void form_group(struct barrier *b)
{
    b->world_size = 0;
    b->n_members = 0;
    for (uint32_t i = 0; i < b->cfg.nnodes; i++) {
        struct bar_peer *p = &b->peers[i];

        p->member = p->state == PEER_ARRIVED;
        if (!p->member)
            continue;
        b->world_size += p->hello.nproc;
        b->n_members++;
    }
}

void bar_try_start(struct barrier *b, uint64_t now_ms)
{
    struct wire_msg m = {.kind = WIRE_START};

    if (b->phase != BAR_GATHER)
        return;
    if (!bar_has_enough(b)) {
        b->enough_ms = 0;
        return;
    }
    if (!is_last_call_over(b, now_ms) || !mesh_is_over(b, now_ms))
        return;
    if (now_ms < b->not_before_ms) {
        bar_wake(b, b->not_before_ms);
        return;
    }
    form_group(b);
    if (!b->started)
        warn_commands(b);
    b->phase = BAR_RUN;
    b->started = true;
    b->round_ms = now_ms;
    b->enough_ms = 0;
    if (b->n_members < b->cfg.nnodes)
        bar_say(b, LOG_INFO, "starting with %u of %u pods", b->n_members,
                b->cfg.nnodes);
    m.round = b->round;
    m.world_size = b->world_size;
    m.master_port = b->cfg.master_port;
    m.n_restarts = b->n_restarts;
    /* Pod 0's own side last: it forks at once, and the others should not
     * wait for that. */
    m.rank_base = b->world_size;
    m.group_rank = m.group_size = b->n_members;
    for (uint32_t i = b->cfg.nnodes; i-- > 0;) {
        if (!b->peers[i].member)
            continue;
        m.group_rank--;
        m.rank_base -= b->peers[i].hello.nproc;
        b->peers[i].next_round = b->round + 1;
        bar_move(b, &b->peers[i], PEER_RUNNING);
        bar_send(b, &b->peers[i], &m);
    }
}

static uint64_t backoff_ms(struct barrier *b)
{
    uint64_t d = b->cfg.backoff_min_ms;

    for (uint32_t i = 1; i < b->n_failures_in_a_row; i++) {
        if (d >= b->cfg.backoff_max_ms / 2) {
            d = b->cfg.backoff_max_ms;
            break;
        }
        d *= 2;
    }
    if (d > b->cfg.backoff_max_ms)
        d = b->cfg.backoff_max_ms;
    /* Up to a quarter less, so that jobs do not march in step. */
    return d - d / 4 * (bar_random(b) % 1024) / 1024;
}

/* Every pod stops its workers; then the next round is gathered. */
static void next_round(struct barrier *b, uint64_t now_ms,
                       const struct failure *cause, uint64_t delay_ms)
{
    uint32_t old = b->round;

    b->phase = BAR_GATHER;
    b->suspect_ms = 0;
    b->round++;
    b->gather_ms = now_ms;
    if (now_ms + delay_ms > b->not_before_ms)
        b->not_before_ms = now_ms + delay_ms;
    b->enough_ms = 0;
    b->summary_ms = now_ms + BARRIER_SUMMARY_MS;
    bar_wake(b, now_ms + delay_ms);
    bar_wake(b, b->summary_ms);
    for (uint32_t i = 0; i < b->cfg.nnodes; i++) {
        struct bar_peer *p = &b->peers[i];

        if (p->state == PEER_RUNNING || p->state == PEER_DONE)
            bar_move(b, p, PEER_STOPPING);
        if (p->state == PEER_STOPPING ||
            (p->state == PEER_ARRIVED && p->member))
            bar_send_stop(b, p, old, cause, delay_ms);
    }
}

static bool is_permanent(const struct barrier *b, const struct failure *cause)
{
    int code = cause->code;

    if (b->cfg.restart_never || cause->kind == FAILURE_AGENT)
        return true;
    if (code == ERR_NOEXEC || code == ERR_NOTFOUND)
        return true;
    if (code >= 0 && code < 256 && b->cfg.no_restart_on[code])
        return true;
    return b->cfg.restart_by_code && code > 0 && code < 128;
}

/* Whether one more restart is within the budget. */
static bool may_restart(const struct barrier *b, uint64_t now_ms)
{
    uint32_t used = 0;

    if (b->cfg.restart_period_ms == 0)
        return b->n_restarts < b->cfg.max_restarts;
    for (uint32_t i = 0; i < BARRIER_RESTARTS_MAX && i < b->n_restarts; i++)
        used += b->restarts_ms[i] > 0 &&
                now_ms - b->restarts_ms[i] < b->cfg.restart_period_ms;
    return used < b->cfg.max_restarts;
}

/* Count one restart and open the next round, or end the job with `code`. */
static void restart_or_finish(struct barrier *b, uint64_t now_ms, int code,
                              const struct failure *cause)
{
    uint64_t delay;

    if (!may_restart(b, now_ms)) {
        bar_finish(b, now_ms, code, code ? cause : NULL);
        return;
    }
    if (now_ms - b->round_ms >= b->cfg.restart_reset_ms)
        b->n_failures_in_a_row = 0;
    b->restarts_ms[b->n_restarts % BARRIER_RESTARTS_MAX] =
        now_ms ? now_ms : 1;
    b->n_restarts++;
    b->n_failures_in_a_row++;
    delay = backoff_ms(b);
    next_round(b, now_ms, cause, delay);
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
    if (b->cfg.restart_never)
        bar_finish(b, now_ms, ERR_PEER, f);
    else if (again)
        restart_or_finish(b, now_ms, ERR_PEER, f);
    else
        next_round(b, now_ms, f, 0);
}

void bar_suspect(struct barrier *b, uint64_t now_ms, const struct failure *f)
{
    if (!b->suspect_ms || failure_beats(f, &b->suspect))
        b->suspect = *f;
    if (!b->suspect_ms)
        b->suspect_ms = now_ms ? now_ms : 1;
    bar_wake(b, b->suspect_ms + BARRIER_SETTLE_MS);
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
        now_ms < b->suspect_ms + BARRIER_SETTLE_MS) {
        bar_wake(b, b->suspect_ms + BARRIER_SETTLE_MS);
        return;
    }
    settle_now(b, now_ms);
}

void bar_worker_failed(struct barrier *b, uint64_t now_ms,
                       const struct failure *cause)
{
    if (is_permanent(b, cause))
        bar_finish(b, now_ms, cause->code, cause);
    else
        restart_or_finish(b, now_ms, cause->code, cause);
}

void bar_left(struct barrier *b, uint64_t now_ms, uint32_t rank,
              const struct failure *cause)
{
    struct bar_peer *p = &b->peers[rank];

    bar_say(b, LOG_WARNING, "node rank %u (%s) was told to stop (%s)", rank,
            p->addr, cause->text);
    bar_move(b, p, PEER_LEFT);
    p->lost_ms = now_ms;
    bar_wake(b, now_ms + b->cfg.rejoin_timeout_ms);
    if (b->phase != BAR_RUN || !p->member)
        return;
    if (b->suspect_ms)
        settle_now(b, now_ms);
    else
        next_round(b, now_ms, cause, 0);
}

void bar_grow(struct barrier *b, uint64_t now_ms, uint32_t rank)
{
    struct failure f = {.kind = FAILURE_NONE};

    (void)snprintf(f.text, sizeof f.text, "node rank %u (%s, %s) joins", rank,
                   b->peers[rank].hello.host, b->peers[rank].addr);
    next_round(b, now_ms, &f, 0);
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
    p->conn = BARRIER_NO_CONN;
    bar_wake(b, now_ms + b->cfg.rejoin_timeout_ms);
    if (b->phase == BAR_ENDING || b->phase == BAR_OVER)
        return;
    bar_say(b, LOG_WARNING, "%s", f.text);
    /* What ran there may run on until its own lease and grace are over. */
    if (silent && b->started &&
        now_ms + BARRIER_SILENCE_MS + b->cfg.grace_ms > b->not_before_ms)
        b->not_before_ms = now_ms + BARRIER_SILENCE_MS + b->cfg.grace_ms;
    if (b->phase != BAR_RUN || !p->member)
        return;
    if (b->suspect_ms) { /* A worker failed before the pod was lost. */
        settle_now(b, now_ms);
        return;
    }
    count_loss(b, now_ms, &f);
}

void bar_finish(struct barrier *b, uint64_t now_ms, int code,
                const struct failure *cause)
{
    if (b->phase == BAR_ENDING || b->phase == BAR_OVER)
        return;
    b->phase = BAR_ENDING;
    b->suspect_ms = 0;
    b->end_ms = now_ms;
    b->end_waits = !b->started && cause && cause->kind == FAILURE_AGENT &&
                   code != ERR_BARRIER;
    memset(&b->end, 0, sizeof b->end);
    b->end.kind = WIRE_END;
    b->end.round = b->round;
    b->end.code = (uint8_t)code;
    b->end.world_size = b->world_size;
    b->end.n_restarts = b->n_restarts;
    if (cause)
        b->end.failure = *cause;
    for (uint32_t i = 0; i < b->cfg.nnodes; i++)
        bar_send(b, &b->peers[i], &b->end);
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

void bar_try_over(struct barrier *b, uint64_t now_ms, bool look_at_all)
{
    uint32_t heard = b->n_gone + b->counts[PEER_LEFT];

    if (!b->end_waits)
        heard += b->counts[PEER_UNSEEN] + b->counts[PEER_LOST];

    if (b->phase != BAR_ENDING)
        return;
    if (heard == b->cfg.nnodes) {
        b->phase = BAR_OVER;
        return;
    }
    bar_wake(b, now_ms + 1000);
    if (!look_at_all)
        return;
    for (uint32_t i = 0; i < b->cfg.nnodes; i++)
        if (must_hear(b, &b->peers[i], now_ms))
            return;
    b->phase = BAR_OVER;
}
