/* rails: the course of a call; see rails.h. */
#include "ddp/rails.h"
#include "ddp/clock.h"
#include "ddp/reduce.h"
#include "ddp/share.h"
#include "ddp/small.h"

#include <string.h>

bool ddp_rails_fits(const struct ddp_comm *c, const struct ddp_request *q)
{
    return c->rail.seats > 0 &&
           (q->what == DDP_ALL_REDUCE || q->what == DDP_BARRIER);
}

/* A part of *q; what is averaged is only summed. */
static struct ddp_request part(const struct ddp_request *q,
                               enum ddp_what what, uint64_t deadline)
{
    struct ddp_request p = *q;

    p.what = what;
    p.whole = q;
    p.deadline = deadline;
    if (p.op == DDP_AVG)
        p.op = DDP_SUM;
    return p;
}

static void divide(const struct ddp_comm *c, const struct ddp_request *q,
                   void *at, size_t n)
{
    if (q->op == DDP_AVG && n > 0)
        ddp_divide(q->type, at, at, n, (unsigned)c->size);
}

static int run_small(struct ddp_comm *c, const struct ddp_request *q,
                     uint64_t deadline, struct ddp_error *err)
{
    struct ddp_request p = part(q, q->what, deadline);
    int rc = ddp_share_run(c, &p, err);

    p.send = p.recv;
    if (!rc)
        rc = ddp_small_run(c, &c->rail, &p, err);
    if (!rc)
        divide(c, q, q->recv, q->count);
    return rc;
}

/* Elements of a rank's share: whole lines of memory. */
static size_t share_of(const struct ddp_request *q, unsigned n)
{
    size_t line = DDP_LINE / q->width, lines = (q->count + line - 1) / line;

    return (lines + n - 1) / n * line;
}

static int run_large(struct ddp_comm *c, const struct ddp_request *q,
                     uint64_t deadline, struct ddp_error *err)
{
    struct ddp_request p = part(q, DDP_REDUCE_SCATTER, deadline);
    size_t each = share_of(q, c->shm->n), from = c->shm->rank * each, n = 0;
    uint8_t *mine = (uint8_t *)q->recv;
    int rc;

    if (from < q->count) {
        mine += from * q->width;
        n = q->count - from < each ? q->count - from : each;
    }
    p.recv = mine;
    p.count = each;
    p.total = q->count;
    rc = ddp_share_run(c, &p, err);
    if (rc)
        return rc;
    p = part(q, DDP_ALL_REDUCE, deadline);
    p.send = p.recv = mine;
    p.count = n;
    rc = ddp_ring_run_on(c, &c->rail, &p, err);
    if (rc)
        return rc;
    divide(c, q, mine, n);
    p = part(q, DDP_ALL_GATHER, deadline);
    p.send = mine;
    p.count = each;
    p.total = q->count;
    return ddp_share_run(c, &p, err);
}

int ddp_rails_run(struct ddp_comm *c, const struct ddp_request *q,
                  struct ddp_error *err)
{
    uint64_t deadline = ddp_now() + c->timeout_ms;

    c->n_calls++;
    return ddp_small_fits(&c->rail, q) ? run_small(c, q, deadline, err)
                                       : run_large(c, q, deadline, err);
}
