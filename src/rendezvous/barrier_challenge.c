/* barrier_challenge: two pods with one rank. The newcomer waits until it is
 * clear whether the other one lives. */
#include "rendezvous/barrier_door.h"
#include "rendezvous/barrier_round.h"

#include <stdio.h>

#define NOBODY UINT32_MAX

/* Its connection is gone, but it may yet come back with its workers. */
bool bar_may_come_back(const struct bar_peer *p)
{
    return p->down_ms &&
           (p->state == PEER_RUNNING || p->state == PEER_STOPPING ||
            p->state == PEER_LEFT);
}

/* Its place will be free soon. */
static void tell_to_wait(const struct barrier *b, uint32_t rank)
{
    const struct bar_peer *p = &b->peers[rank];
    struct wire_msg m = {.kind = WIRE_WAITING, .round = b->round};

    (void)snprintf(m.text, sizeof m.text,
                   "node rank %u at %s was told to stop and is still stopping; "
                   "this pod takes its place then", rank, p->addr);
    b->out.send(b->out.ctx, p->challenger, &m);
}

static void refuse_twin(struct barrier *b, uint64_t now_ms, uint32_t rank,
                        uint32_t conn)
{
    char text[WIRE_TEXT_MAX];

    (void)snprintf(text, sizeof text,
                   "node rank %u is held by a live pod at %s; this one is at "
                   "%s: give each pod its own --node-rank",
                   rank, b->peers[rank].addr, b->conns[conn].addr);
    bar_note_stray(b, &b->twin, now_ms, conn, rank);
    bar_refuse(b, conn, ERR_MISMATCH, text);
}

/* The same rank, another incarnation, and the old one may be alive. */
void bar_challenge(struct barrier *b, uint64_t now_ms, uint32_t rank,
                   uint32_t conn, const struct bar_hello *hello)
{
    struct wire_msg ping = {.kind = WIRE_PING, .round = 1};
    struct bar_peer *p = &b->peers[rank];

    if (p->challenger != BARRIER_NO_CONN &&
        p->challenge.incarnation == hello->incarnation) {
        /* The newcomer lost its connection and is here again. */
        uint32_t before = p->challenger;

        bar_door_leave(b, before);
        b->out.close(b->out.ctx, before, true);
        bar_door_pass(b, conn);
        b->conns[conn].challenges = rank;
        p->challenger = conn;
        return;
    }
    if (rank == 0 || p->challenger != BARRIER_NO_CONN) {
        refuse_twin(b, now_ms, rank, conn);
        return;
    }
    bar_door_pass(b, conn);
    p->challenger = conn;
    b->conns[conn].challenges = rank;
    p->challenge_ms = now_ms;
    p->answered = false;
    p->challenge = *hello;
    if (p->state == PEER_LEFT)
        tell_to_wait(b, rank);
    bar_send(b, p, &ping);
    bar_wake(b, now_ms + BARRIER_PROBE_MS);
}

void bar_end_challenge(struct barrier *b, uint64_t now_ms, uint32_t rank,
                       bool old_lives)
{
    struct bar_peer *p = &b->peers[rank];
    uint32_t conn = p->challenger, old = p->conn;

    p->challenger = BARRIER_NO_CONN;
    b->conns[conn].challenges = NOBODY;
    if (!b->conns[conn].open_ms)
        return; /* The newcomer was dropped meanwhile. */
    if (old_lives && p->challenge.any_rank) {
        /* It comes again, and another rank may be free by then. */
        bar_door_leave(b, conn);
        b->out.close(b->out.ctx, conn, true);
        return;
    }
    if (old_lives) {
        refuse_twin(b, now_ms, rank, conn);
        return;
    }
    if (old != BARRIER_NO_CONN)
        bar_lose(b, now_ms, rank, BAR_REPLACED_SILENT);
    bar_welcome(b, now_ms, rank, conn, &p->challenge);
}

void barrier_check_challenge(struct barrier *b, uint64_t now_ms, uint32_t rank)
{
    struct bar_peer *p = &b->peers[rank];

    if (p->challenger == BARRIER_NO_CONN)
        return;
    if (p->down_ms && now_ms - p->down_ms < BARRIER_RESUME_MS)
        bar_wake(b, p->down_ms + BARRIER_RESUME_MS);
    else if (p->conn == BARRIER_NO_CONN)
        bar_end_challenge(b, now_ms, rank, false);
    else if (p->state == PEER_LEFT)
        return; /* Until it closes, or is silent for too long. */
    else if (now_ms - p->challenge_ms < BARRIER_PROBE_MS)
        bar_wake(b, p->challenge_ms + BARRIER_PROBE_MS);
    else /* What was on its way from a dead pod is followed by its FIN. */
        bar_end_challenge(b, now_ms, rank, p->answered);
}
