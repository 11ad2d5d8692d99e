/* barrier_time: what pod 0 does because time has passed: heartbeats, silent
 * pods, newcomers, deadlines. */
#include "base/text.h"
#include "rendezvous/barrier.h"

#include "rendezvous/barrier_door.h"
#include "rendezvous/barrier_round.h"

#include <string.h>

static bool is_late(const struct bar_peer *p, uint64_t now_ms)
{
    if (p->state == PEER_ARRIVED)
        return false;
    return !(p->state == PEER_STAGING && p->conn != BARRIER_NO_CONN &&
             p->percent != WIRE_PREPARING && p->progress_ms > 0 &&
             now_ms - p->progress_ms < BARRIER_STAGING_MS);
}

static bool is_away(const struct bar_peer *p)
{
    return p->state == PEER_LOST || p->state == PEER_LEFT;
}

/* Too few would be left with those that are there and those that may come
 * back: true, and which one did not. */
static bool has_lost_too_many(const struct barrier *b, uint64_t now_ms,
                              uint32_t *which)
{
    uint32_t need = bar_is_elastic(b) ? b->cfg.min_nodes : b->cfg.nnodes;
    uint32_t n = b->cfg.nnodes - b->counts[PEER_UNSEEN];
    bool found = false;

    for (uint32_t i = b->cfg.nnodes; i-- > 0;)
        if (is_away(&b->peers[i]) &&
            now_ms - b->peers[i].lost_ms >= b->cfg.rejoin_timeout_ms) {
            n--;
            *which = i;
            found = true;
        }
    return found && n < need;
}

/* "--rejoin-timeout 10 min" */
static const char *option(char buf[64], const char *name, uint64_t ms)
{
    struct text t;

    text_init(&t, buf, 64);
    text_add(&t, "%s ", name);
    text_add_duration(&t, ms);
    return buf;
}

/* The end for want of pods, `which` before all: it was lost, or it was told to
 * stop and nobody has taken its place. */
static struct failure not_back(const struct barrier *b, uint64_t now_ms,
                               uint32_t which)
{
    const struct bar_peer *p = &b->peers[which];
    uint32_t n_away = b->counts[PEER_LOST] + b->counts[PEER_LEFT];
    char missing[WIRE_TEXT_MAX - 96], buf[64];
    const char *limit = option(buf, "--rejoin-timeout",
                               b->cfg.rejoin_timeout_ms);
    struct failure f;

    barrier_describe(b, now_ms, missing, sizeof missing);
    if (p->state == PEER_LEFT) {
        f = bar_fault(b, ERR_PEER, "did not come back in time (%s)%s%s", limit,
                      n_away > 1 ? "\nmissing: " : "",
                      n_away > 1 ? missing : "");
        f.kind = FAILURE_STOPPED;
        f.signo = p->signo;
        (void)text_copy(f.host, sizeof f.host, p->hello.host);
    } else {
        f = bar_fault(b, ERR_PEER, "a pod did not come back in time (%s): %s",
                      limit, missing);
        f.kind = FAILURE_LOST;
    }
    f.node_rank = which;
    return f;
}

/* When who has not arrived is late. */
static uint64_t gather_until(const struct barrier *b)
{
    uint64_t until = b->gather_ms + b->cfg.barrier_timeout_ms;

    return b->started ? until + b->cfg.grace_ms + BARRIER_HEAR_MS : until;
}

/* Somebody for whom only --barrier-timeout is waited. With enough pods the last
 * call decides, not who is missing; but no round starts while one still stops
 * its workers, or runs --pre-start after that. */
static bool is_one_late(const struct barrier *b, uint64_t now_ms)
{
    bool enough = bar_is_elastic(b) && b->peers[0].state == PEER_ARRIVED &&
                  b->counts[PEER_ARRIVED] >= b->cfg.min_nodes;

    /* Lost pods have their own time once the job has started. */
    for (uint32_t i = 0; i < b->cfg.nnodes; i++)
        if (is_late(&b->peers[i], now_ms) &&
            !(enough && b->peers[i].state != PEER_STOPPING) &&
            !(b->started && is_away(&b->peers[i])))
            return true;
    return false;
}

/* When too many will not have come back. */
static uint64_t lost_until(const struct barrier *b, uint64_t now_ms)
{
    uint64_t low = now_ms, high = now_ms + b->cfg.rejoin_timeout_ms;
    uint32_t which;

    if (!b->started || !has_lost_too_many(b, high, &which))
        return BARRIER_NEVER;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;

        if (has_lost_too_many(b, middle, &which))
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

enum wire_bound bar_bound(const struct barrier *b, uint64_t now_ms,
                          uint64_t *ret_ms)
{
    uint64_t late = is_one_late(b, now_ms) ? gather_until(b) : BARRIER_NEVER,
             lost = lost_until(b, now_ms), until = lost < late ? lost : late;

    *ret_ms = 0;
    if (until == BARRIER_NEVER)
        return WIRE_NO_BOUND;
    if (until > now_ms)
        *ret_ms = until - now_ms;
    return lost < late ? WIRE_REJOIN_TIMEOUT : WIRE_BARRIER_TIMEOUT;
}

/* A lost pod has --rejoin-timeout; the first gathering --barrier-timeout. */
static void check_gathering(struct barrier *b, uint64_t now_ms)
{
    char missing[WIRE_TEXT_MAX - 96], buf[64];
    struct failure f;
    uint32_t which = 0;

    if (b->started && has_lost_too_many(b, now_ms, &which)) {
        f = not_back(b, now_ms, which);
        bar_finish(b, now_ms, ERR_PEER, &f);
        return;
    }
    if (now_ms < gather_until(b) || !is_one_late(b, now_ms))
        return;
    barrier_describe(b, now_ms, missing, sizeof missing);
    f = bar_fault(b, ERR_BARRIER, "not all pods arrived in time (%s%s): %s",
                  option(buf, "--barrier-timeout", b->cfg.barrier_timeout_ms),
                  b->started ? ", the grace and 30 s" : "", missing);
    bar_finish(b, now_ms, ERR_BARRIER, &f);
}

/* How long the same incarnation may take to come back. */
static uint64_t resume_ms(const struct barrier *b)
{
    return b->phase == BAR_ENDING ? BARRIER_END_MS : BARRIER_RESUME_MS;
}

static void check_peer(struct barrier *b, uint64_t now_ms, uint32_t rank,
                       bool ping_due)
{
    static const struct wire_msg ping = {.kind = WIRE_PING};
    struct bar_peer *p = &b->peers[rank];
    uint32_t conn = p->conn;

    if (p->down_ms && now_ms - p->down_ms >= resume_ms(b)) {
        if (p->state == PEER_LEFT)
            p->down_ms = 0; /* Its agent is dead, and all that it ran. */
        else
            bar_lose(b, now_ms, rank, BAR_CLOSED);
    }
    if (conn == BARRIER_NO_CONN || rank == 0)
        return;
    if (now_ms - p->heard_ms >= BARRIER_SILENCE_MS) {
        if (p->state != PEER_BYE && p->state != PEER_LEFT) {
            bar_lose(b, now_ms, rank, BAR_SILENT);
            return;
        }
        bar_door_leave(b, conn);
        b->out.close(b->out.ctx, conn, true);
        p->conn = BARRIER_NO_CONN;
        if (p->state == PEER_LEFT) {
            bar_fence(b, now_ms + b->cfg.grace_ms); /* It stops by then. */
            bar_wake(b, now_ms + 1); /* Somebody may wait for its place. */
        }
        return;
    }
    if (ping_due)
        bar_send(b, p, &ping);
    bar_wake(b, p->heard_ms + BARRIER_SILENCE_MS);
}

/* When a gathering may next have to be given up. */
static void wake_for_gathering(struct barrier *b, uint64_t now_ms)
{
    uint64_t limit = gather_until(b);

    bar_wake(b, limit > now_ms ? limit : now_ms + 1000);
    bar_wake(b, b->summary_ms);
    if (b->not_before_ms > now_ms)
        bar_wake_often(b, now_ms, b->not_before_ms);
    for (uint32_t i = 0; i < b->cfg.nnodes; i++) {
        uint64_t until = b->peers[i].lost_ms + b->cfg.rejoin_timeout_ms;

        if (b->started && is_away(&b->peers[i]) && until > now_ms)
            bar_wake(b, until);
    }
}

void barrier_timeout(struct barrier *b, uint64_t now_ms)
{
    bool ping_due = now_ms >= b->ping_ms;

    bar_woken(b, now_ms);
    if (ping_due)
        b->ping_ms = bar_next_ping(b, now_ms);
    b->wake_ms = b->ping_ms;
    for (uint32_t i = 0; i < b->cfg.nnodes; i++) {
        struct bar_peer *p = &b->peers[i];

        barrier_check_challenge(b, now_ms, i);
        check_peer(b, now_ms, i, ping_due);
        if (p->down_ms)
            bar_wake_often(b, now_ms, p->down_ms + resume_ms(b));
    }
    bar_door_timeout(b, now_ms, ping_due);
    bar_settle(b, now_ms);
    if (b->phase == BAR_GATHER) {
        bar_try_start(b, now_ms);
        if (b->phase == BAR_GATHER)
            check_gathering(b, now_ms);
        if (b->phase == BAR_GATHER)
            bar_tell_waiting(b, now_ms);
        if (b->phase == BAR_GATHER)
            wake_for_gathering(b, now_ms);
    }
    bar_plan_news(b, now_ms);
    bar_try_over(b, now_ms, true);
}
