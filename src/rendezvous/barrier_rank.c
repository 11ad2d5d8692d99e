/* barrier_rank: which node rank a pod gets that takes any. */
#include "rendezvous/barrier_door.h"
#include "rendezvous/barrier_round.h"

#define NOBODY UINT32_MAX

/* Its own again, one that nobody had, one that was lost, one that may yet come
 * back, one that did not answer the last heartbeat. NOBODY: all are held. */
static uint32_t choose_rank(const struct barrier *b, uint64_t now_ms,
                            uint64_t incarnation)
{
    uint32_t lost = NOBODY, down = NOBODY, fresh = NOBODY, mute = NOBODY;

    for (uint32_t i = b->cfg.nnodes; i-- > 1;) {
        const struct bar_peer *p = &b->peers[i];
        bool waits = p->challenger != BARRIER_NO_CONN;

        if (p->state == PEER_UNSEEN)
            fresh = i;
        else if (p->hello.incarnation == incarnation ||
                 (waits && p->challenge.incarnation == incarnation))
            return i;
        else if (waits)
            continue; /* Another newcomer will have it, or nobody. */
        else if (p->conn == BARRIER_NO_CONN && !p->down_ms)
            lost = i; /* Or it was told to stop, and is gone. */
        else if (p->down_ms || p->state == PEER_LEFT)
            down = i; /* It may be back, or is still stopping. */
        else if (now_ms - p->heard_ms > BARRIER_PING_MS + BARRIER_PROBE_MS)
            mute = i;
    }
    return fresh != NOBODY  ? fresh
           : lost != NOBODY ? lost
           : down != NOBODY ? down
                            : mute;
}

/* A new pod 0 may have given a rank away before the pod came that had it from
 * an older one. Until the first START the other one takes another. */
static bool gives_way(const struct barrier *b, const struct bar_peer *p,
                      const struct wire_msg *m)
{
    return !b->started && p->is_fresh && p->state != PEER_UNSEEN &&
           m->last_zero != 0 && m->last_zero != b->cfg.incarnation;
}

static void displace(struct barrier *b, struct bar_peer *p)
{
    uint32_t conn = p->conn;

    if (p->state == PEER_BYE && conn == BARRIER_NO_CONN)
        b->n_gone--; /* The other one is still to hear the end. */
    bar_move(b, p, PEER_UNSEEN);
    p->hello.incarnation = 0;
    p->down_ms = 0;
    p->conn = BARRIER_NO_CONN;
    if (conn == BARRIER_NO_CONN)
        return;
    bar_door_leave(b, conn);
    b->out.close(b->out.ctx, conn, true);
}

uint32_t bar_rank_of(struct barrier *b, uint64_t now_ms,
                     const struct wire_msg *m)
{
    struct bar_peer *p;

    if (!m->any_rank)
        return m->node_rank;
    if (m->node_rank < b->cfg.nnodes) {
        p = &b->peers[m->node_rank];
        if (gives_way(b, p, m))
            displace(b, p);
        if (p->hello.incarnation == m->incarnation || p->state == PEER_UNSEEN)
            return m->node_rank;
    }
    return choose_rank(b, now_ms, m->incarnation);
}
