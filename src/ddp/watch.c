/* watch: see watch.h. */
#include "ddp/watch.h"
#include "ddp/blame.h"
#include "ddp/clock.h"

/* For one that had its result first, and left: ours is then near. */
#define LOST_MS 1000

void ddp_watch_begin(struct ddp_watch *w, struct ddp_comm *c,
                     const struct ddp_request *q, struct ddp_error *err)
{
    *w = (struct ddp_watch){.c = c, .q = q, .err = err,
                            .deadline = ddp_now() + c->timeout_ms};
}

/* What a neighbour says meanwhile: it may have come to the next call. */
static int take(struct ddp_watch *w, struct ddp_ahead *ahead, int from,
                const struct ddp_frame *f)
{
    if (f->kind == DDP_FAULT)
        return ddp_blame_by_frame(w->c, w->q, f, from, w->err);
    if (f->kind == DDP_BYE)
        ahead->said_bye = true;
    if (f->kind == DDP_CALL) {
        ahead->has_call = true;
        ahead->call = *f;
    }
    return 0;
}

static int hear(struct ddp_watch *w, struct ddp_conn *conn,
                struct ddp_ahead *ahead, uint64_t now)
{
    struct ddp_frame f;
    enum ddp_got got = DDP_GOT_NONE;
    int rc;

    while (conn->fd >= 0 && (got = ddp_conn_get(conn, &f)) == DDP_GOT_FRAME) {
        rc = take(w, ahead, conn->rank, &f);
        if (rc)
            return rc;
    }
    if (got == DDP_GOT_NONE && !ahead->said_bye)
        return 0;
    if (!w->lost_until) {
        w->lost = conn;
        w->lost_until = now + LOST_MS;
    }
    return 0;
}

int ddp_watch_look(struct ddp_watch *w, uint64_t now)
{
    struct ddp_comm *c = w->c;
    struct ddp_frame f;
    int rc;

    if (atomic_load(&c->is_aborted))
        return ddp_blame_aborted(c, w->q, w->err);
    if (c->size == 1)
        return 0;
    if (c->shm && ddp_shm_failed(c->shm, &f))
        return ddp_blame_by_frame(c, w->q, &f, -1, w->err);
    rc = hear(w, &c->links.prev, &c->links.prev_ahead, now);
    if (!rc)
        rc = hear(w, &c->links.next, &c->links.next_ahead, now);
    if (!rc && w->lost_until && now >= w->lost_until)
        rc = ddp_blame_lost(c, w->q, w->err, w->lost->rank,
                            w->lost == &c->links.prev
                                ? c->links.prev_ahead.said_bye
                                : c->links.next_ahead.said_bye, w->lost->error);
    return rc;
}
