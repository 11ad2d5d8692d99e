/* barrier_hello: who may join, as which rank, and how a pod that comes back is
 * brought to where the job is. */
#include "base/text.h"
#include "rendezvous/barrier_door.h"
#include "rendezvous/barrier_round.h"

#include <string.h>

#define NOBODY UINT32_MAX

static bool is_lead_time(const struct barrier *b)
{
    return b->phase == BAR_GATHER && !b->started;
}

/* The round is over on a pod that was cut off: by a failure that could not be
 * told, and is told next, or by the end of the lease. That is a lost pod. */
void bar_interrupted(struct barrier *b, uint64_t now_ms, uint32_t rank)
{
    struct failure f = bar_fault(b, ERR_PEER, "node rank %u stopped its "
                                 "workers while it was cut off", rank);

    f.kind = FAILURE_LOST;
    f.node_rank = rank;
    bar_move(b, &b->peers[rank], PEER_STOPPING);
    bar_suspect(b, now_ms, &f);
}

/* Its workers are of a round that is over. */
static void stop_old_round(const struct barrier *b, uint64_t now_ms,
                           const struct bar_peer *p)
{
    bool lost = bar_has_lost_zero(b, &p->hello);
    bool zero = lost && b->zero.text[0]; /* Else one before it has counted. */
    struct failure f = bar_fault(b, ERR_PEER, "%s",
                                 zero   ? b->zero.text
                                 : lost ? "node rank 0 was lost"
                                        : "the round that ran here is over");
    uint64_t until = b->not_before_ms;

    f.kind = FAILURE_LOST;
    bar_send_stop(b, now_ms, p, p->hello.running, &f,
                  zero && until > now_ms ? until - now_ms : 0,
                  zero ? b->zero.why : "");
}

/* After WELCOME: bring a pod that came back to where the job is. */
static void catch_up(struct barrier *b, uint64_t now_ms, uint32_t rank,
                     bool resumed)
{
    struct bar_peer *p = &b->peers[rank];
    bool runs = p->hello.running != WIRE_NO_ROUND;

    if (!resumed)
        p->progress_ms = 0; /* Another stager's. */
    if (b->phase == BAR_ENDING) {
        if (!resumed || p->state == PEER_UNSEEN || p->state == PEER_LOST)
            bar_move(b, p, PEER_STAGING);
        bar_send(b, p, &b->end);
        return;
    }
    if (resumed && p->state == PEER_LEFT)
        return; /* It is still stopping, and says so again. */
    if (runs && !(b->phase == BAR_RUN && p->hello.running == b->round)) {
        p->next_round = p->hello.running + 1;
        bar_move(b, p, PEER_STOPPING);
        stop_old_round(b, now_ms, p);
    } else if (!resumed || p->state == PEER_LOST || p->state == PEER_LEFT) {
        bar_move(b, p, PEER_STAGING);
    } else if (!runs && b->phase == BAR_RUN && p->state == PEER_RUNNING) {
        if (p->hello.round <= b->round) {
            bar_send_start(b, now_ms, rank); /* It was lost on its way. */
            return;
        }
        bar_interrupted(b, now_ms, rank);
    }
}

/* The last pod 0 may be alive where a pod no longer hears it: its workers stop
 * within its lease and grace, for it does not hear that pod either. */
static void note_last_zero(struct barrier *b, uint64_t now_ms,
                           const struct bar_peer *p)
{
    uint64_t until = now_ms + bar_lease_ms(b);
    char buf[64];
    struct text t;

    if (p->hello.last_zero == 0 || p->hello.last_zero == b->cfg.incarnation)
        return;
    if (p->hello.last_end == WIRE_END_SILENT && until > b->not_before_ms) {
        text_init(&t, buf, sizeof buf);
        text_add_duration(&t, until - now_ms);
        if (b->fence_ms <= now_ms)
            bar_say(b, LOG_WARNING, "%s (%s) did not hear the last node rank "
                    "0 any more: its workers may still run; no round starts "
                    "within %s", p->hello.host, p->addr, buf);
        bar_fence(b, until);
    }
    b->last_zero = p->hello.last_zero;
}

void bar_welcome(struct barrier *b, uint64_t now_ms, uint32_t rank,
                 uint32_t conn, const struct bar_hello *hello)
{
    struct bar_peer *p = &b->peers[rank];
    struct wire_msg m;
    bool resumed = p->state != PEER_UNSEEN &&
                   p->hello.incarnation == hello->incarnation;

    if (!resumed && b->phase == BAR_RUN && p->member &&
        p->state != PEER_LOST)
        bar_lose(b, now_ms, rank, BAR_REPLACED);
    if (p->state == PEER_BYE && p->conn == BARRIER_NO_CONN)
        b->n_gone--; /* It, or another of this rank, is there again. */
    if (!resumed) {
        p->next_round = p->serial = 0;
        p->is_fresh = hello->any_rank &&
                      (hello->last_zero == 0 || hello->claims != rank);
    }
    bar_take_past(b, now_ms, hello);
    p->hello = *hello;
    p->conn = conn;
    p->heard_ms = now_ms;
    p->down_ms = 0;
    p->refused = BAR_NOT_REFUSED;
    (void)text_copy(p->addr, sizeof p->addr, b->conns[conn].addr);
    b->conns[conn].rank = rank;
    bar_door_pass(b, conn);
    if (conn != BARRIER_LOCAL && b->out.admit)
        b->out.admit(b->out.ctx, conn);
    note_last_zero(b, now_ms, p);
    wire_begin(&m, WIRE_WELCOME, b->round);
    m.incarnation = b->cfg.incarnation;
    m.node_rank = rank;
    m.max_restarts = b->cfg.max_restarts;
    m.restart_period_ms = b->cfg.restart_period_ms;
    bar_send(b, p, &m);
    catch_up(b, now_ms, rank, resumed);
}

/* A pod that is refused and the reason of the job's end has heard of it. */
static void told(struct barrier *b, uint32_t rank)
{
    if (rank < b->cfg.nnodes && b->peers[rank].state == PEER_UNSEEN) {
        bar_move(b, &b->peers[rank], PEER_BYE);
        b->n_gone++;
    }
}

/* Checks of a HELLO that need no look at the rank. True where it may go on. */
static bool fits(struct barrier *b, uint64_t now_ms, uint32_t conn,
                 const struct wire_msg *m, uint32_t rank)
{
    struct failure f;

    if (strcmp(m->job_id, b->cfg.job_id) != 0) {
        f = bar_fault(b, ERR_AUTH,
                      "wrong job id: this pod says '%s', the job here is "
                      "'%s': give all pods of a job the same --job-id",
                      m->job_id, b->cfg.job_id);
        bar_note_refused(b, now_ms, conn, m->node_rank, BAR_WRONG_JOB);
    } else if (m->nnodes != b->cfg.nnodes) {
        f = bar_fault(b, ERR_MISMATCH,
                      "pods disagree about the number of pods: node rank %u "
                      "(%s, %s) says --nnodes %u, node rank 0 says %u",
                      m->node_rank, m->host, b->conns[conn].addr, m->nnodes,
                      b->cfg.nnodes);
        if (is_lead_time(b)) {
            told(b, m->node_rank);
            bar_finish(b, now_ms, ERR_MISMATCH, &f);
        }
        bar_note_refused(b, now_ms, conn, m->node_rank, BAR_WRONG_NNODES);
    } else if (rank == NOBODY) {
        f = bar_fault(b, ERR_MISMATCH, "all %u node ranks are held by live "
                      "pods", b->cfg.nnodes);
    } else if (rank >= b->cfg.nnodes) {
        f = bar_fault(b, ERR_MISMATCH, "node rank %u is not below --nnodes %u",
                      m->node_rank, b->cfg.nnodes);
    } else {
        return true;
    }
    bar_refuse(b, conn, f.code, f.text);
    return false;
}

void bar_hello(struct barrier *b, uint64_t now_ms, uint32_t conn,
               const struct wire_msg *m)
{
    struct bar_hello h = {.incarnation = m->incarnation,
                          .command_hash = m->command_hash,
                          .nproc = m->nproc,
                          .round = m->round,
                          .running = m->running,
                          .n_restarts = m->n_restarts,
                          .in_a_row = m->in_a_row,
                          .zero_lost = m->zero_lost,
                          .lost_age_ms = m->lost_age_ms,
                          .past = m->past,
                          .came_ms = now_ms,
                          .any_rank = m->any_rank,
                          .claims = m->node_rank,
                          .last_zero = m->last_zero,
                          .last_end = m->last_end};
    uint32_t rank = bar_rank_of(b, now_ms, m);
    struct bar_peer *p;

    if (!fits(b, now_ms, conn, m, rank))
        return;
    (void)text_copy(h.host, sizeof h.host, m->host);
    p = &b->peers[rank];
    if (p->hello.incarnation != h.incarnation &&
        (p->conn != BARRIER_NO_CONN || bar_may_come_back(p))) {
        bar_challenge(b, now_ms, rank, conn, &h);
        return;
    }
    if (p->conn != BARRIER_NO_CONN) {
        /* The same agent on a new connection: the old one is dead. */
        bar_door_leave(b, p->conn);
        b->out.close(b->out.ctx, p->conn, true);
    }
    bar_welcome(b, now_ms, rank, conn, &h);
    if (p->challenger != BARRIER_NO_CONN && p->state != PEER_LEFT)
        bar_end_challenge(b, now_ms, rank, true);
}
