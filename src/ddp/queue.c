/* queue: calls of device memory that return once they are on their stream;
 * ddp_queued and ddp_wait of ddp.h. */
#include "ddp.h"
#include "ddp/comm.h"
#include "ddp/fault.h"
#include "ddp/nccl.h"

/* All that is queued, by the thread that is in the call. */
static int drain(struct ddp_comm *c, const char *name, struct ddp_error *e)
{
    struct ddp_error own;

    if (!c->broken.code && atomic_load(&c->is_aborted)) {
        (void)ddp_fault(&own, DDP_EABORTED, c->rank, c->rank,
                        "%s: aborted by ddp_abort", name);
        ddp_comm_break(c, &own);
    }
    if (!c->broken.code)
        (void)ddp_nccl_drain(c, &c->broken);
    if (c->broken.code)
        *e = c->broken;
    return c->broken.code;
}

static int call(struct ddp_comm *c, const char *name, struct ddp_error *err)
{
    struct ddp_error own;
    struct ddp_error *e = err ? err : &own;
    int rc;

    if (!c)
        return ddp_fault(e, DDP_EINVAL, -1, -1, "%s: the communicator is NULL",
                         name);
    if (atomic_flag_test_and_set(&c->busy))
        return ddp_fault(e, DDP_EINVAL, c->rank, -1, "%s: another thread is "
                         "in a call of this communicator", name);
    rc = drain(c, name, e);
    atomic_flag_clear(&c->busy);
    return rc;
}

int ddp_queued(struct ddp_comm *c, int on, struct ddp_error *err)
{
    int rc = call(c, "ddp_queued", err);

    if (!rc && on)
        (void)atomic_fetch_or(&c->queues, DDP_QUEUES_CALLER);
    else if (!rc)
        (void)atomic_fetch_and(&c->queues, ~(unsigned)DDP_QUEUES_CALLER);
    return rc;
}

int ddp_wait(struct ddp_comm *c, struct ddp_error *err)
{
    return call(c, "ddp_wait", err);
}
