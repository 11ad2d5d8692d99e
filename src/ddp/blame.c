/* blame: see blame.h. */
#include "ddp/blame.h"
#include "ddp/fault.h"
#include "ddp/reduce.h"

#include <stdio.h>
#include <string.h>

int ddp_blame(struct ddp_comm *c, const struct ddp_request *q,
              struct ddp_error *err, int code, int peer, const char *why)
{
    if (q->whole)
        q = q->whole;
    (void)ddp_fault(err, code, c->rank, peer, "%s (call %llu): %s",
                    ddp_what_name(q->what), (unsigned long long)c->n_calls,
                    why);
    ddp_comm_tell(c, err);
    return code;
}

int ddp_blame_aborted(struct ddp_comm *c, const struct ddp_request *q,
                      struct ddp_error *err)
{
    return ddp_blame(c, q, err, DDP_EABORTED, c->rank, "aborted by ddp_abort");
}

/* A rank's last word. Frames of calls are dropped meanwhile: whoever asks is
 * about to end the job. */
enum word { NONE, LEFT, FAULT };

static void has_told(struct ddp_comm *c, int rank)
{
    if (rank >= 0 && rank < c->size && c->lives.is_known)
        c->lives.is_known[rank] |= DDP_LIFE_TOLD;
}

static enum word keep(struct ddp_comm *c, int rank, const struct ddp_frame *f)
{
    has_told(c, rank);
    if (!c->has_fault)
        c->fault = *f;
    c->has_fault = true;
    return FAULT;
}

static enum word conn_word(struct ddp_comm *c, struct ddp_conn *conn,
                           struct ddp_ahead *ahead)
{
    struct ddp_frame f;

    while (conn->fd >= 0 && ddp_conn_get(conn, &f) == DDP_GOT_FRAME) {
        if (f.kind == DDP_FAULT)
            return keep(c, conn->rank, &f);
        if (f.kind == DDP_BYE)
            ahead->said_bye = true;
    }
    return ahead->said_bye ? LEFT : NONE;
}

/* Behind a CALL frame its elements are passed over. */
static enum word pair_word(struct ddp_comm *c, struct ddp_pair *p)
{
    for (;;) {
        struct ddp_frame f;
        int n = p->fd < 0 ? -1 : ddp_pair_peek(p, &f);
        size_t len = n > 0 ? (size_t)n : 0;

        if (n > 0 && f.kind == DDP_CALL && f.count <= DDP_SMALL_MAX)
            len += (size_t)f.count * ddp_type_width((int)f.type);
        if (n == 0 || (n > 0 && len > p->in_len)) {
            if (ddp_pair_read(p) && !p->is_gone)
                continue;
            n = -1;
        }
        if (n < 0)
            return p->said_bye ? LEFT : NONE;
        if (f.kind == DDP_FAULT)
            return keep(c, p->rank, &f);
        if (f.kind == DDP_BYE)
            p->said_bye = true;
        ddp_pair_take(p, len);
    }
}

/* Whether a rank has left, or has no part any more in a call that goes over
 * the shared memory. */
static bool is_through(const struct ddp_comm *c, int rank)
{
    int seat = c->shm ? ddp_shm_seat(c->shm, rank) : -1;
    const struct ddp_shm_rank *k = seat < 0 ? NULL : &c->shm->ranks[seat];

    return k && (atomic_load(&k->has_left) ||
                 (c->is_sharing && ddp_shm_is_at(&k->done, c->shm->chunk)));
}

/* The last word that came by the connections of a ring: of a rank, or of any
 * (-1), where all are asked. */
static enum word links_word(struct ddp_comm *c, struct ddp_links *l, int rank)
{
    enum word w = NONE;

    if (rank < 0 || l->prev.rank == rank)
        w = conn_word(c, &l->prev, &l->prev_ahead);
    if (rank < 0 || (w == NONE && l->next.rank == rank))
        w = conn_word(c, &l->next, &l->next_ahead);
    for (unsigned i = 0; i < l->n_pairs; i++)
        if (rank < 0 || (w == NONE && l->pairs[i].rank == rank))
            w = pair_word(c, &l->pairs[i]);
    return w;
}

/* The last word of a rank, on whatever connects it to this one. */
static enum word last_word(struct ddp_comm *c, int rank)
{
    enum word w = (c->lives.is_known[rank] & DDP_LIFE_TOLD) ? FAULT
                  : is_through(c, rank)                     ? LEFT
                                                            : NONE;

    if (w == NONE)
        w = links_word(c, &c->links, rank);
    return w == NONE ? links_word(c, &c->rail, rank) : w;
}

/* A rank of another pod, where this one waits for those of its own: it may be
 * through with the call. */
static bool is_elsewhere(const struct ddp_comm *c, int rank)
{
    return c->shm && c->is_sharing && ddp_shm_seat(c->shm, rank) < 0;
}

/* The first rank that ended and said nothing, among those that ended before
 * `peer` did, or among all where that one has not: then *ret_peer is false.
 * With -1 for a peer, of those that this part of the call needs. -1: there is
 * none. */
static int find_dead(struct ddp_comm *c, int peer, bool *ret_peer)
{
    unsigned n = ddp_lives_look(&c->lives);
    int dead = -1;

    *ret_peer = false;
    for (unsigned i = 0; i < n && !*ret_peer; i++) {
        *ret_peer = c->lives.ended[i] == peer;
        if (dead < 0 && !*ret_peer &&
            !(peer < 0 && is_elsewhere(c, c->lives.ended[i])) &&
            last_word(c, c->lives.ended[i]) == NONE)
            dead = c->lives.ended[i];
    }
    return dead;
}

/* A FAULT that has come from any rank by now. */
static bool find_fault(struct ddp_comm *c, struct ddp_frame *ret)
{
    if (c->shm && ddp_shm_failed(c->shm, ret))
        return true;
    (void)links_word(c, &c->links, -1);
    (void)links_word(c, &c->rail, -1);
    *ret = c->fault;
    return c->has_fault;
}

static int lost(struct ddp_comm *c, const struct ddp_request *q,
                struct ddp_error *err, int peer, bool has_left, int error)
{
    char why[DDP_WHY];

    if (has_left)
        (void)snprintf(why, sizeof why, "rank %d has left the job", peer);
    else
        (void)snprintf(why, sizeof why, "rank %d died or failed: its "
                       "connection %s%s", peer,
                       error ? "broke: " : "was closed",
                       error ? strerror(error) : "");
    return ddp_blame(c, q, err, DDP_EPEER, peer, why);
}

int ddp_blame_by_frame(struct ddp_comm *c, const struct ddp_request *q,
                       const struct ddp_frame *f, int from,
                       struct ddp_error *err)
{
    bool has_ended = false;
    int dead = -1, code;

    has_told(c, from);
    has_told(c, (int)f->rank);
    /* It may be about a rank that was lost later than one that is known here,
     * and because of that. */
    if (f->code == (uint32_t)-DDP_EPEER)
        dead = find_dead(c, (int)f->peer, &has_ended);
    if (dead >= 0 && has_ended)
        return lost(c, q, err, dead, false, 0);
    code = ddp_fault_take(err, c->rank, f);
    if (c->shm) {
        struct ddp_error first = {.code = code, .rank = (int)f->rank,
                                  .peer = (int)f->peer};

        strncat(first.text, f->text, sizeof first.text - 1);
        ddp_shm_fail(c->shm, &first);
    }
    ddp_comm_end(c, f);
    return code;
}

int ddp_blame_lost(struct ddp_comm *c, const struct ddp_request *q,
                   struct ddp_error *err, int peer, bool has_left, int error)
{
    struct ddp_frame f;
    bool has_ended;
    int dead = find_dead(c, peer, &has_ended);

    if (find_fault(c, &f))
        return ddp_blame_by_frame(c, q, &f, -1, err);
    if (dead >= 0)
        return lost(c, q, err, dead, false, 0);
    return lost(c, q, err, peer, has_left, error);
}

int ddp_blame_dead(struct ddp_comm *c, const struct ddp_request *q,
                   struct ddp_error *err)
{
    bool has_ended;
    int dead = find_dead(c, -1, &has_ended);

    if (c->has_fault)
        return ddp_blame_by_frame(c, q, &c->fault, -1, err);
    return dead < 0 ? 0 : ddp_blame_lost(c, q, err, dead, false, 0);
}

bool ddp_blame_knows(struct ddp_comm *c)
{
    return ddp_lives_knows_all(&c->lives) || ddp_lives_look(&c->lives) > 1;
}

int ddp_blame_late(struct ddp_comm *c, const struct ddp_request *q,
                   struct ddp_error *err, int peer, bool has_call)
{
    double sec = (double)c->timeout_ms / 1000;
    char why[DDP_WHY], gone[40] = "";
    bool has_ended;
    int dead = find_dead(c, c->rank, &has_ended); /* Any other one. */

    /* Nobody needed it any more, or it would have been blamed before. */
    if (dead >= 0 && dead != peer)
        (void)snprintf(gone, sizeof gone, "; rank %d is gone", dead);
    if (peer < 0)
        (void)snprintf(why, sizeof why, "timed out after %.1f s%s: too slow%s",
                       sec, *gone ? "" : ", though all ranks are there", gone);
    else
        (void)snprintf(why, sizeof why, "timed out after %.1f s: rank %d %s%s",
                       sec, peer, has_call ? "is silent"
                                           : "has not made this call", gone);
    return ddp_blame(c, q, err, DDP_ETIMEDOUT, peer, why);
}

void ddp_call_frame(const struct ddp_comm *c, const struct ddp_request *q,
                    struct ddp_frame *ret)
{
    memset(ret, 0, sizeof *ret);
    if (q->whole)
        q = q->whole;
    ret->kind = DDP_CALL;
    ret->what = q->what;
    ret->type = (uint32_t)q->type;
    ret->op = (uint32_t)q->op;
    ret->root = q->root;
    ret->count = q->count;
    ret->seq = c->n_calls;
}

int ddp_blame_difference(struct ddp_comm *c, const struct ddp_request *q,
                         struct ddp_error *err, int peer,
                         const struct ddp_frame *m, const struct ddp_frame *f)
{
    char why[DDP_WHY];

    if (f->what == m->what && f->count == m->count && f->type == m->type &&
        f->op == m->op && f->root == m->root && f->seq == m->seq)
        return 0;
    if (f->what != m->what || f->seq != m->seq)
        (void)snprintf(why, sizeof why, "rank %d is in %s (call %llu)", peer,
                       ddp_what_name(f->what), (unsigned long long)f->seq);
    else
        (void)snprintf(why, sizeof why, "%llu x %s, %s, root %u on rank %d, "
                       "but %llu x %s, %s, root %u on rank %d",
                       (unsigned long long)m->count, ddp_type_name(m->type),
                       ddp_op_name(m->op), (unsigned)m->root, c->rank,
                       (unsigned long long)f->count, ddp_type_name(f->type),
                       ddp_op_name(f->op), (unsigned)f->root, peer);
    return ddp_blame(c, q, err, DDP_EMISMATCH, peer, why);
}
