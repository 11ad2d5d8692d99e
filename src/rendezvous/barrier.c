/* barrier: see barrier.h. This file takes the events; what they mean for a
 * round or the job is decided in barrier_round.c. */
#include "rendezvous/barrier.h"

#include "base/text.h"
#include "rendezvous/barrier_door.h"
#include "rendezvous/barrier_round.h"

#include <stdio.h>
#include <string.h>

#define NOBODY UINT32_MAX

void barrier_init(struct barrier *b, const struct barrier_config *cfg,
                  const struct barrier_out *out, struct bar_peer *peers,
                  struct bar_conn *conns, uint32_t n_conns, uint64_t now_ms)
{
    memset(b, 0, sizeof *b);
    b->cfg = *cfg;
    b->out = *out;
    b->peers = peers;
    b->conns = conns;
    b->n_conns = n_conns;
    memset(peers, 0, cfg->nnodes * sizeof *peers);
    memset(conns, 0, n_conns * sizeof *conns);
    for (uint32_t i = 0; i < cfg->nnodes; i++) {
        peers[i].conn = BARRIER_NO_CONN;
        peers[i].challenger = BARRIER_NO_CONN;
    }
    for (uint32_t i = 0; i < n_conns; i++)
        conns[i].rank = conns[i].guest = conns[i].challenges = NOBODY;
    bar_guests_init(&b->guests, cfg->guests, cfg->n_guests);
    b->counts[PEER_UNSEEN] = cfg->nnodes;
    b->rng = cfg->seed | 1;
    b->gather_ms = now_ms;
    b->summary_ms = now_ms + BARRIER_SUMMARY_MS;
    b->ping_ms = now_ms + BARRIER_PING_MS;
    b->wake_ms = now_ms + BARRIER_PING_MS;
    conns[BARRIER_LOCAL].open_ms = now_ms ? now_ms : 1;
    (void)text_copy(conns[BARRIER_LOCAL].addr, BARRIER_ADDR_MAX, "here");
}

static bool is_lead_time(const struct barrier *b)
{
    return b->phase == BAR_GATHER && !b->started;
}

/* The round is over on a pod that was cut off: by a failure that could not be
 * told, and is told next, or by the end of the lease. That is a lost pod. */
static void interrupted(struct barrier *b, uint64_t now_ms, uint32_t rank)
{
    struct failure f = bar_fault(b, ERR_PEER, "node rank %u stopped its "
                                 "workers while it was cut off", rank);

    f.kind = FAILURE_LOST;
    f.node_rank = rank;
    bar_move(b, &b->peers[rank], PEER_STOPPING);
    bar_suspect(b, now_ms, &f);
}

/* After WELCOME: bring a pod that came back to where the job is. */
static void catch_up(struct barrier *b, uint64_t now_ms, uint32_t rank,
                     bool resumed)
{
    struct bar_peer *p = &b->peers[rank];
    struct failure f;
    bool runs = p->hello.running != WIRE_NO_ROUND;

    if (b->phase == BAR_ENDING) {
        if (!resumed || p->state == PEER_UNSEEN || p->state == PEER_LOST)
            bar_move(b, p, PEER_STAGING);
        bar_send(b, p, &b->end);
        return;
    }
    if (runs && !(b->phase == BAR_RUN && p->hello.running == b->round)) {
        f = bar_fault(b, ERR_PEER, "the round that ran here is over");
        f.kind = FAILURE_LOST;
        p->next_round = p->hello.running + 1;
        bar_move(b, p, PEER_STOPPING);
        bar_send_stop(b, p, p->hello.running, &f, 0);
    } else if (!resumed || p->state == PEER_LOST || p->state == PEER_LEFT) {
        bar_move(b, p, PEER_STAGING);
    } else if (!runs && b->phase == BAR_RUN && p->state == PEER_RUNNING) {
        if (p->hello.round <= b->round) {
            bar_send_start(b, rank); /* It was lost on its way. */
            return;
        }
        interrupted(b, now_ms, rank);
    }
}

void bar_welcome(struct barrier *b, uint64_t now_ms, uint32_t rank,
                 uint32_t conn, const struct bar_hello *hello)
{
    struct bar_peer *p = &b->peers[rank];
    struct wire_msg m = {.kind = WIRE_WELCOME};
    bool resumed = p->state != PEER_UNSEEN &&
                   p->hello.incarnation == hello->incarnation;

    if (!resumed && b->phase == BAR_RUN && p->member &&
        p->state != PEER_LOST)
        bar_lose(b, now_ms, rank, BAR_REPLACED);
    if (!resumed)
        p->next_round = 0;
    p->hello = *hello;
    p->conn = conn;
    p->heard_ms = now_ms;
    p->down_ms = 0;
    (void)text_copy(p->addr, sizeof p->addr, b->conns[conn].addr);
    b->conns[conn].rank = rank;
    bar_door_pass(b, conn);
    if (conn != BARRIER_LOCAL && b->out.admit)
        b->out.admit(b->out.ctx, conn);
    /* A new pod 0 goes on from the highest that any pod reports. */
    if (b->phase == BAR_GATHER) {
        uint32_t next = hello->running == WIRE_NO_ROUND ? hello->round
                                                        : hello->running + 1;
        if (next > b->round)
            b->round = next;
        if (hello->n_restarts > b->n_restarts)
            b->n_restarts = hello->n_restarts;
    }
    m.round = b->round;
    m.incarnation = b->cfg.incarnation;
    m.node_rank = rank;
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
                      "wrong job id: this pod says '%s', the job here is '%s'",
                      m->job_id, b->cfg.job_id);
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

/* A rank for a pod that takes any: its own again, one that nobody had, one
 * that was lost, one that may yet come back. NOBODY: all are held. */
static uint32_t choose_rank(const struct barrier *b, uint64_t incarnation)
{
    uint32_t lost = NOBODY, down = NOBODY, fresh = NOBODY;

    for (uint32_t i = b->cfg.nnodes; i-- > 1;) {
        const struct bar_peer *p = &b->peers[i];

        if (p->state == PEER_UNSEEN)
            fresh = i;
        else if (p->hello.incarnation == incarnation)
            return i;
        else if (p->state == PEER_LOST || p->state == PEER_LEFT)
            lost = i;
        else if (p->down_ms)
            down = i;
    }
    return fresh != NOBODY ? fresh : lost != NOBODY ? lost : down;
}

/* The rank that a HELLO is about; NOBODY where there is none left. */
static uint32_t rank_of(const struct barrier *b, const struct wire_msg *m)
{
    const struct bar_peer *p;

    if (!m->any_rank)
        return m->node_rank;
    if (m->node_rank < b->cfg.nnodes) {
        p = &b->peers[m->node_rank];
        if (p->hello.incarnation == m->incarnation || p->state == PEER_UNSEEN)
            return m->node_rank;
    }
    return choose_rank(b, m->incarnation);
}

static void hello(struct barrier *b, uint64_t now_ms, uint32_t conn,
                  const struct wire_msg *m)
{
    struct bar_hello h = {.incarnation = m->incarnation,
                          .command_hash = m->command_hash,
                          .nproc = m->nproc,
                          .round = m->round,
                          .running = m->running,
                          .n_restarts = m->n_restarts};
    uint32_t rank = rank_of(b, m);
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
    if (p->challenger != BARRIER_NO_CONN)
        bar_end_challenge(b, now_ms, rank, true);
}

static void digest_text(char out[2 * WIRE_DIGEST + 1], const uint8_t *digest)
{
    struct text t;

    text_init(&t, out, 2 * WIRE_DIGEST + 1);
    for (unsigned i = 0; i < WIRE_DIGEST; i++)
        text_add(&t, "%02x", digest[i]);
}

static void arrived(struct barrier *b, uint64_t now_ms, uint32_t rank,
                    const struct wire_msg *m)
{
    struct bar_peer *p = &b->peers[rank];
    char theirs[2 * WIRE_DIGEST + 1], ours[2 * WIRE_DIGEST + 1];
    struct failure f;

    bool joins = b->phase == BAR_RUN && !p->member;
    bool early;

    /* It came back with workers, and their lease was over. */
    if (b->phase == BAR_RUN && p->state == PEER_RUNNING &&
        m->round > b->round)
        interrupted(b, now_ms, rank);
    /* Its workers were gone before the round's failure is settled. */
    early = b->phase == BAR_RUN && p->state == PEER_STOPPING;
    mesh_arrived(b, rank, m);
    if ((b->phase != BAR_GATHER && !joins && !early) ||
        (p->state != PEER_STAGING && p->state != PEER_STOPPING) ||
        m->round < p->next_round)
        return;
    if (!b->has_digest) {
        b->has_digest = true;
        b->digest_rank = rank;
        memcpy(b->digest, m->digest, sizeof b->digest);
    } else if (memcmp(b->digest, m->digest, sizeof b->digest) != 0) {
        digest_text(theirs, m->digest);
        digest_text(ours, b->digest);
        f = bar_fault(b, ERR_MISMATCH,
                      "pods have different data sets: digest %s on node rank "
                      "%u (%s), %s on node rank %u (%s)",
                      theirs, rank, p->hello.host, ours, b->digest_rank,
                      b->peers[b->digest_rank].hello.host);
        bar_finish(b, now_ms, ERR_MISMATCH, &f);
        return;
    }
    bar_move(b, p, PEER_ARRIVED);
    if (b->cfg.nnodes > 1 && b->cfg.nnodes <= 64)
        bar_say(b, LOG_INFO, "node rank %u arrived (%s, %s): %u of %u", rank,
                p->hello.host, p->addr, b->counts[PEER_ARRIVED],
                b->cfg.nnodes);
    if (joins && !b->suspect_ms)
        bar_grow(b, now_ms, rank);
    bar_try_start(b, now_ms);
}

static void failed(struct barrier *b, uint64_t now_ms, uint32_t rank,
                   const struct wire_msg *m)
{
    struct bar_peer *p = &b->peers[rank];

    if (m->failure.kind == FAILURE_STOPPED) {
        if (b->phase == BAR_ENDING)
            bar_move(b, p, PEER_LEFT);
        else
            bar_left(b, now_ms, rank, &m->failure);
    } else if (b->phase == BAR_ENDING) {
        return;
    } else if (m->failure.kind == FAILURE_AGENT) {
        bar_finish(b, now_ms, m->failure.code, &m->failure);
    } else if (b->phase == BAR_RUN && m->round == b->round) {
        if (p->state == PEER_RUNNING)
            bar_move(b, p, PEER_STOPPING);
        bar_suspect(b, now_ms, &m->failure);
    }
}

static void done(struct barrier *b, uint64_t now_ms, uint32_t rank,
                 const struct wire_msg *m)
{
    struct bar_peer *p = &b->peers[rank];
    struct failure f;

    if (b->phase != BAR_RUN || m->round != b->round ||
        p->state != PEER_RUNNING)
        return;
    bar_move(b, p, PEER_DONE);
    bar_settle(b, now_ms);
    if (b->phase != BAR_RUN || b->counts[PEER_DONE] < b->n_members)
        return;
    if (b->cfg.restart_always) { /* As long as the budget lasts. */
        f = bar_fault(b, 0, "all workers ended with 0 and the policy is "
                            "'always'");
        f.kind = FAILURE_NONE;
        bar_worker_failed(b, now_ms, &f);
    } else {
        bar_finish(b, now_ms, 0, NULL);
    }
}

void barrier_message(struct barrier *b, uint64_t now_ms, uint32_t conn,
                     const struct wire_msg *m)
{
    uint32_t rank = b->conns[conn].rank;
    struct wire_msg first;
    struct bar_peer *p;

    if (!b->conns[conn].open_ms || b->phase == BAR_OVER)
        return;
    if (rank == NOBODY) {
        if (bar_door_message(b, now_ms, conn, m, &first))
            hello(b, now_ms, conn, &first);
        return;
    }
    p = &b->peers[rank];
    p->heard_ms = now_ms;
    p->answered = true;
    switch (m->kind) {
    case WIRE_PROGRESS:
        p->percent = m->percent;
        p->progress_ms = now_ms;
        break;
    case WIRE_ARRIVED:
        arrived(b, now_ms, rank, m);
        break;
    case WIRE_FAILED:
        failed(b, now_ms, rank, m);
        break;
    case WIRE_DONE:
        done(b, now_ms, rank, m);
        break;
    case WIRE_MESHED:
        mesh_answered(b, now_ms, rank, m);
        break;
    case WIRE_BYE:
        if (b->phase == BAR_ENDING && p->state != PEER_BYE) {
            bar_move(b, p, PEER_BYE);
            b->n_gone += conn == BARRIER_LOCAL;
        }
        break;
    case WIRE_HELLO:
    case WIRE_WELCOME:
    case WIRE_REFUSE:
    case WIRE_WAITING:
    case WIRE_START:
    case WIRE_STOP:
    case WIRE_END:
    case WIRE_PING:
    case WIRE_CHALLENGE:
    case WIRE_PROOF:
    case WIRE_MESH:
        break;
    }
    bar_try_over(b, now_ms, false);
}

void barrier_open(struct barrier *b, uint64_t now_ms, uint32_t conn,
                  const char *addr)
{
    b->conns[conn].rank = b->conns[conn].challenges = NOBODY;
    b->conns[conn].open_ms = now_ms ? now_ms : 1;
    (void)text_copy(b->conns[conn].addr, BARRIER_ADDR_MAX, addr);
    bar_door_enter(b, now_ms, conn);
}

void barrier_closed(struct barrier *b, uint64_t now_ms, uint32_t conn)
{
    uint32_t rank = b->conns[conn].rank;
    struct bar_peer *p;

    bar_door_leave(b, conn);
    if (rank == NOBODY)
        return;
    p = &b->peers[rank];
    if (p->conn != conn)
        return;
    p->conn = BARRIER_NO_CONN;
    if (p->state == PEER_BYE || p->state == PEER_LEFT) {
        b->n_gone += p->state == PEER_BYE;
        bar_try_over(b, now_ms, false);
        return;
    }
    p->down_ms = now_ms ? now_ms : 1;
    bar_wake(b, now_ms + BARRIER_RESUME_MS);
    if (p->challenger != BARRIER_NO_CONN && !bar_may_come_back(p))
        bar_end_challenge(b, now_ms, rank, false);
}

void barrier_garbage(struct barrier *b, uint64_t now_ms, uint32_t conn,
                     const char *why, unsigned version)
{
    char text[WIRE_TEXT_MAX];

    if (!b->conns[conn].open_ms)
        return;
    if (b->conns[conn].rank != NOBODY) {
        bar_say(b, LOG_WARNING, "bad bytes from node rank %u (%s): %s",
                b->conns[conn].rank, b->conns[conn].addr, why);
        b->out.close(b->out.ctx, conn, true);
        barrier_closed(b, now_ms, conn);
        return;
    }
    if (version != 0 && version != WIRE_VERSION) {
        (void)snprintf(text, sizeof text,
                       "protocol version %u, node rank 0 speaks %u: use the "
                       "same agent in all pods",
                       version, WIRE_VERSION);
        bar_refuse(b, conn, ERR_MISMATCH, text);
        return;
    }
    /* A port scanner, a probe, another program: not worth an answer. */
    bar_say(b, LOG_DEBUG, "closed %s: %s", b->conns[conn].addr, why);
    bar_door_leave(b, conn);
    b->out.close(b->out.ctx, conn, true);
}

uint64_t barrier_deadline(const struct barrier *b)
{
    return b->phase == BAR_OVER ? UINT64_MAX : b->wake_ms;
}
