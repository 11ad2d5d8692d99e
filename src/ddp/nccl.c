/* nccl: see nccl.h. */
#include "ddp/nccl.h"
#include "ddp/blame.h"
#include "ddp/clock.h"
#include "ddp/fault.h"
#include "ddp/nccl_parts.h"
#include "ddp/reduce.h"

void ddp_nccl_look(struct ddp_comm *c)
{
    char why[DDP_CUDA_WHY];

    (void)ddp_cuda_open(&c->cuda, false, why);
}

int ddp_nccl_is_device(struct ddp_comm *c, const char *name, const void *p,
                       bool *ret, struct ddp_error *err)
{
    int kind = ddp_cuda_is_device(&c->cuda, p);

    *ret = kind > 0;
    if (kind >= 0)
        return 0;
    (void)ddp_fault(err, DDP_ESYSTEM, c->rank, c->rank, "%s: rank %d: CUDA has "
                    "failed before: %s (%d); CUDA_LAUNCH_BLOCKING=1 shows "
                    "where", name, c->rank, c->cuda.text(-kind), -kind);
    ddp_comm_break(c, err);
    return err->code;
}

int ddp_nccl_wants(struct ddp_comm *c, const struct ddp_request *q,
                   const void *stream, bool *ret, struct ddp_error *err)
{
    const char *name = ddp_what_name(q->what);
    char why[DDP_CUDA_WHY];
    bool send = false, recv = false;
    int rc;

    *ret = false;
    if (q->what == DDP_BARRIER || c->broken.code)
        return 0;
    if (!c->cuda.handle && !stream)
        return 0;
    if (!c->cuda.handle && !ddp_cuda_open(&c->cuda, true, why))
        return ddp_fault(err, DDP_ENOTSUP, c->rank, -1, "%s: a stream is "
                         "given, and there is no CUDA runtime: %s", name, why);
    if (q->count == 0) {
        *ret = stream != NULL;
        return 0;
    }
    rc = ddp_nccl_is_device(c, name, q->send, &send, err);
    if (!rc)
        rc = ddp_nccl_is_device(c, name, q->recv, &recv, err);
    if (rc)
        return rc;
    if (send != recv)
        return ddp_fault(err, DDP_EINVAL, c->rank, -1, "%s: one buffer is in "
                         "device memory and the other in host memory", name);
    if (stream && !send)
        return ddp_fault(err, DDP_EINVAL, c->rank, -1, "%s: a stream is given "
                         "and the buffers are in host memory: it must be NULL",
                         name);
    *ret = send;
    return 0;
}

/* --- what is on streams --------------------------------------------------*/

/* The oldest call that may be under way. */
static int is_over(struct ddp_nccl *n, int *ret)
{
    int done = ddp_cuda_is_done(n->cuda,
                                n->events[n->n_over % DDP_NCCL_QUEUE]);

    if (done < 0) {
        *ret = DDP_NCCL_CUDA_ERROR;
        n->cuda_error = -done;
    }
    return done;
}

static const char *name_of(const struct ddp_nccl *n)
{
    return n->comm ? "NCCL" : "copy";
}

/* Until no more than `left` calls are under way. */
static int drain(struct ddp_nccl *n, struct ddp_watch *w, uint64_t left)
{
    int rc = 0;

    while (!rc && n->n_put - n->n_over > left) {
        rc = ddp_nccl_wait(n, w, name_of(n), is_over);
        n->n_over += !rc;
    }
    return rc;
}

/* --- calls ----------------------------------------------------------------*/

static int enqueue(struct ddp_nccl_job *j)
{
    const struct ddp_request *q = &j->q;

    switch (q->what) {
    case DDP_ALL_REDUCE:
        return j->lib.all_reduce(q->send, q->recv, q->count, q->type, q->op,
                                 j->comm, j->stream);
    case DDP_REDUCE_SCATTER:
        return j->lib.reduce_scatter(q->send, q->recv, q->count, q->type,
                                     q->op, j->comm, j->stream);
    case DDP_ALL_GATHER:
        return j->lib.all_gather(q->send, q->recv, q->count, q->type, j->comm,
                                 j->stream);
    case DDP_BROADCAST:
        return j->lib.broadcast(q->send, q->recv, q->count, q->type,
                                (int)q->root, j->comm, j->stream);
    case DDP_BARRIER:
        break;
    }
    return DDP_NCCL_INVALID_USAGE;
}

/* One rank alone: the result is its own part. */
static int copy(struct ddp_nccl *n, const struct ddp_request *q, void *stream)
{
    if (q->send == q->recv || q->count == 0)
        return DDP_NCCL_SUCCESS;
    n->cuda_error = n->cuda->copy(q->recv, q->send, q->count * q->width,
                                  DDP_CUDA_COPY_DEFAULT, stream);
    return n->cuda_error ? DDP_NCCL_CUDA_ERROR : DDP_NCCL_SUCCESS;
}

/* Put the call on the stream. */
static int put(struct ddp_nccl *n, struct ddp_watch *w, void *stream)
{
    struct ddp_nccl_job j = {.run = enqueue, .comm = n->comm, .q = *w->q,
                             .stream = stream};
    int rc = 0;

    if (!n->comm) {
        j.result = copy(n, w->q, stream);
    } else if (!ddp_nccl_knows(n, w->q)) {
        rc = ddp_nccl_apart(n, w, name_of(n), &j);
    } else {
        j.lib = n->lib;
        j.result = enqueue(&j);
    }
    if (rc)
        return rc;
    if (j.result == DDP_NCCL_IN_PROGRESS)
        return ddp_nccl_wait(n, w, name_of(n), ddp_nccl_is_settled);
    return j.result == DDP_NCCL_SUCCESS
               ? 0
               : ddp_nccl_fail(n, w, name_of(n), j.result);
}

/* An event after it says when it is done. */
static int mark(struct ddp_nccl *n, struct ddp_watch *w, void *stream)
{
    void **event = &n->events[n->n_put % DDP_NCCL_QUEUE];

    if (!*event)
        n->cuda_error = n->cuda->event_new(event, DDP_CUDA_EVENT_PLAIN);
    if (!n->cuda_error)
        n->cuda_error = n->cuda->event_record(*event, stream);
    if (n->cuda_error)
        return ddp_nccl_fail(n, w, name_of(n), DDP_NCCL_CUDA_ERROR);
    n->n_put++;
    n->last = *w->q;
    return 0;
}

/* What is wrong meanwhile ends a queued call, too. */
static int look(struct ddp_nccl *n, struct ddp_watch *w)
{
    uint64_t now_ns = ddp_now_ns();

    if (now_ns - n->looked_ns < DDP_NCCL_LOOK_NS)
        return 0;
    n->looked_ns = now_ns;
    return ddp_watch_look(w, ddp_now());
}

static int carry_out(struct ddp_nccl *n, struct ddp_watch *w, void *stream)
{
    int rc = drain(n, w, DDP_NCCL_QUEUE - 1); /* Its event is free then. */

    if (!rc)
        rc = put(n, w, stream);
    if (!rc)
        rc = mark(n, w, stream);
    if (!rc)
        rc = atomic_load(&w->c->queues) ? look(n, w) : drain(n, w, 0);
    return rc;
}

/* A communicator of NCCL's that has failed is of no more use. */
static int settle(struct ddp_comm *c, int rc)
{
    if (rc) {
        ddp_nccl_free(c->nccl, true);
        c->nccl = NULL;
    }
    return rc;
}

int ddp_nccl_run(struct ddp_comm *c, const struct ddp_request *q, void *stream,
                 struct ddp_error *err)
{
    struct ddp_watch w;
    int rc = 0;

    ddp_watch_begin(&w, c, q, err);
    c->n_calls++;
    /* One that is over soon would not look. */
    if (atomic_load(&c->is_aborted))
        rc = ddp_blame_aborted(c, q, err);
    else if (!c->nccl)
        rc = ddp_nccl_make(&w);
    if (!rc)
        rc = carry_out(c->nccl, &w, stream);
    return settle(c, rc);
}

int ddp_nccl_drain(struct ddp_comm *c, struct ddp_error *err)
{
    struct ddp_watch w;

    if (!c->nccl)
        return 0;
    ddp_watch_begin(&w, c, &c->nccl->last, err);
    return settle(c, drain(c->nccl, &w, 0));
}
