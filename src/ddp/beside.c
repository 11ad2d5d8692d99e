/* beside: see beside.h. */
#include "ddp/beside.h"
#include "ddp/blame.h"

static struct ddp_conn *conn_of(const struct ddp_beside *b, unsigned side)
{
    return side ? &b->l->next : &b->l->prev;
}

static struct ddp_ahead *ahead_of(const struct ddp_beside *b, unsigned side)
{
    return side ? &b->l->next_ahead : &b->l->prev_ahead;
}

static int stray(const struct ddp_beside *b, int rank)
{
    return ddp_blame(b->c, b->q, b->err, DDP_EPEER, rank, "a frame that has "
                     "no place here came from another rank");
}

/* A CALL frame of this very call came where none of it goes: its rank takes it
 * for another kind of call, so it must be another. */
static int take_call(const struct ddp_beside *b, unsigned side,
                     const struct ddp_frame *f)
{
    struct ddp_ahead *ahead = ahead_of(b, side);
    int rank = conn_of(b, side)->rank, rc = 0;

    if (f->seq == b->mine->seq || ahead->has_call)
        rc = ddp_blame_difference(b->c, b->q, b->err, rank, b->mine, f);
    if (rc)
        return rc;
    if (ahead->has_call || (f->seq == b->mine->seq && !b->has_part))
        return stray(b, rank);
    ahead->has_call = true;
    ahead->call = *f;
    return 0;
}

int ddp_beside_hear(struct ddp_beside *b, unsigned side)
{
    struct ddp_conn *conn = conn_of(b, side);
    struct ddp_frame f;
    enum ddp_got got = DDP_GOT_NONE;
    int rc = 0;

    while (!rc && conn->fd >= 0 && !b->is_gone[side] &&
           (got = ddp_conn_get(conn, &f)) == DDP_GOT_FRAME) {
        if (f.kind == DDP_FAULT)
            return ddp_blame_by_frame(b->c, b->q, &f, conn->rank, b->err);
        if (f.kind == DDP_BYE)
            ahead_of(b, side)->said_bye = true;
        else if (f.kind == DDP_CALL)
            rc = take_call(b, side, &f);
        else if (f.kind != DDP_PING)
            rc = stray(b, conn->rank);
    }
    if (!rc && got == DDP_GOT_BAD)
        rc = stray(b, conn->rank);
    if (got == DDP_GOT_EOF)
        b->is_gone[side] = true; /* Its elements may be here all the same. */
    return rc;
}

int ddp_beside_begin(struct ddp_beside *b)
{
    int rc = 0;

    for (unsigned i = 0; b->l && i < 2 && !rc; i++) {
        struct ddp_ahead *ahead = ahead_of(b, i);

        if (!ahead->has_call)
            continue;
        ahead->has_call = false;
        rc = take_call(b, i, &ahead->call);
    }
    for (unsigned i = 0; b->l && i < 2 && !rc; i++)
        rc = ddp_beside_hear(b, i); /* A failure, say. */
    return rc;
}

void ddp_beside_ping(struct ddp_beside *b, int waits_for)
{
    const struct ddp_frame f = {.kind = DDP_PING, .peer = (uint32_t)waits_for};

    for (unsigned i = 0; b->l && i < b->l->n_pairs; i++)
        if (b->l->pairs[i].out_len == 0)
            (void)ddp_pair_put(&b->l->pairs[i], &f, NULL, 0);
    for (unsigned i = 0; b->l && i < 2; i++)
        if (!b->is_gone[i] && conn_of(b, i)->out_len == 0)
            (void)ddp_conn_put(conn_of(b, i), &f);
}

int ddp_beside_tick(struct ddp_beside *b, int waits_for)
{
    struct ddp_frame f;

    if (!b->l)
        return 0;
    ddp_shm_beat(b->c->shm, waits_for);
    if (ddp_shm_failed(b->c->shm, &f))
        return ddp_blame_by_frame(b->c, b->q, &f, -1, b->err);
    ddp_beside_ping(b, waits_for);
    return 0;
}

void ddp_beside_poll(const struct ddp_beside *b, struct pollfd p[2])
{
    for (unsigned i = 0; i < 2; i++) {
        p[i] = (struct pollfd){.fd = -1};
        if (b->l && !b->is_gone[i])
            p[i] = (struct pollfd){.fd = conn_of(b, i)->fd,
                                   .events = ddp_conn_events(conn_of(b, i))};
    }
}

int ddp_beside_turn(struct ddp_beside *b, const struct pollfd p[2])
{
    int rc = 0;

    for (unsigned i = 0; i < 2 && !rc; i++)
        if (p[i].revents)
            rc = ddp_beside_hear(b, i);
    return rc;
}
