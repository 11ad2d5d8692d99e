/* barrier: see barrier.h. This file takes the events; what they mean for a
 * round or the job is decided in barrier_round.c. */
#include "rendezvous/barrier.h"

#include "base/text.h"
#include "rendezvous/barrier_door.h"
#include "rendezvous/barrier_round.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define NOBODY UINT32_MAX

void barrier_init(struct barrier *b, const struct barrier_config *cfg,
                  const struct barrier_out *out, struct bar_peer *peers,
                  struct bar_conn *conns, uint32_t n_conns, uint64_t now_ms)
{
    memset(b, 0, offsetof(struct barrier, mesh.bad));
    b->cfg = *cfg;
    if (cfg->restart_period_ms)
        memset(b->restarts_ms, 0, sizeof b->restarts_ms);
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
    b->begin_ms = b->gather_ms = now_ms;
    b->summary_ms = now_ms + BARRIER_SUMMARY_MS;
    b->ping_ms = b->wake_ms = bar_next_ping(b, now_ms);
    conns[BARRIER_LOCAL].open_ms = now_ms ? now_ms : 1;
    (void)text_copy(conns[BARRIER_LOCAL].addr, BARRIER_ADDR_MAX, "here");
}

#define DIGEST_TEXT (2 * WIRE_DIGEST + sizeof "digest ")

/* No digest is all 0; that is a pod that stages nothing. */
static void digest_text(char out[DIGEST_TEXT], const uint8_t *digest)
{
    static const uint8_t none[WIRE_DIGEST];
    struct text t;

    text_init(&t, out, DIGEST_TEXT);
    if (memcmp(digest, none, WIRE_DIGEST) == 0) {
        text_add(&t, "none (no --dataset)");
        return;
    }
    text_add(&t, "digest ");
    for (unsigned i = 0; i < WIRE_DIGEST; i++)
        text_add(&t, "%02x", digest[i]);
}

static void arrived(struct barrier *b, uint64_t now_ms, uint32_t rank,
                    const struct wire_msg *m)
{
    struct bar_peer *p = &b->peers[rank];
    char theirs[DIGEST_TEXT], ours[DIGEST_TEXT];
    struct failure f;

    bool joins = b->phase == BAR_RUN && !p->member;
    bool early;

    /* It came back with workers, and their lease was over. */
    if (b->phase == BAR_RUN && p->state == PEER_RUNNING &&
        m->round > b->round)
        bar_interrupted(b, now_ms, rank);
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
                      "pods have different data sets: %s on node rank "
                      "%u (%s), %s on node rank %u (%s): give all the same",
                      theirs, rank, p->hello.host, ours, b->digest_rank,
                      b->peers[b->digest_rank].hello.host);
        bar_finish(b, now_ms, ERR_MISMATCH, &f);
        return;
    }
    bar_move(b, p, PEER_ARRIVED);
    p->percent = 100;
    /* Early, the failure that ended the round is not told yet. */
    if (b->cfg.nnodes > 1 && b->cfg.nnodes <= BARRIER_SAY_MAX && !early)
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
    struct failure f = m->failure;

    f.node_rank = rank; /* Whatever it says. */
    if (f.kind == FAILURE_STOPPED) {
        if (b->phase == BAR_ENDING)
            bar_move(b, p, PEER_LEFT);
        else
            bar_left(b, now_ms, rank, &f);
    } else if (b->phase == BAR_ENDING) {
        return;
    } else if (f.kind == FAILURE_AGENT) {
        bar_finish(b, now_ms, f.code, &f);
    } else if (f.kind == FAILURE_PREPARE) {
        bar_again(b, now_ms, rank, m);
    } else if (f.kind == FAILURE_WORKER && b->phase == BAR_RUN &&
               m->round == b->round) {
        if (m->serial > 0 && b->cfg.scope_worker) {
            bar_again(b, now_ms, rank, m);
            return;
        }
        if (p->state == PEER_RUNNING || p->state == PEER_DONE)
            bar_move(b, p, PEER_STOPPING);
        bar_suspect(b, now_ms, &f);
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
        f = bar_fault(b, 0, "all workers ended with 0, and "
                            "--restart-policy is always");
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
    struct bar_peer *p;

    bar_woken(b, now_ms);
    if (!b->conns[conn].open_ms || b->phase == BAR_OVER)
        return;
    if (rank == NOBODY) {
        bar_door_message(b, now_ms, conn, m);
        bar_plan_news(b, now_ms);
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
        p->quiet = p->state == PEER_LEFT;
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
    case WIRE_AGAIN:
        break;
    }
    bar_plan_news(b, now_ms);
    bar_try_over(b, now_ms, false);
}

void barrier_open(struct barrier *b, uint64_t now_ms, uint32_t conn,
                  const char *addr)
{
    bar_woken(b, now_ms);
    b->conns[conn].rank = b->conns[conn].challenges = NOBODY;
    b->conns[conn].open_ms = now_ms ? now_ms : 1;
    (void)text_copy(b->conns[conn].addr, BARRIER_ADDR_MAX, addr);
    bar_door_enter(b, now_ms, conn);
}

void barrier_closed(struct barrier *b, uint64_t now_ms, uint32_t conn)
{
    uint32_t rank = b->conns[conn].rank;
    struct bar_peer *p;

    bar_woken(b, now_ms);
    bar_door_leave(b, conn);
    if (rank == NOBODY)
        return;
    p = &b->peers[rank];
    if (p->conn != conn)
        return;
    p->conn = BARRIER_NO_CONN;
    if (p->state == PEER_BYE || (p->state == PEER_LEFT && p->quiet)) {
        b->n_gone += p->state == PEER_BYE;
        bar_wake(b, now_ms); /* The others may wait for that. */
        if (p->challenger != BARRIER_NO_CONN)
            bar_end_challenge(b, now_ms, rank, false);
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
        bar_note_stray(b, &b->foreign, now_ms, conn, version);
        bar_plan_news(b, now_ms);
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
    return b->phase == BAR_OVER || b->wake_ms == BARRIER_NEVER ? UINT64_MAX
                                                               : b->wake_ms;
}
