/* nccl: see nccl.h. */
#include "ddp/nccl.h"
#include "ddp/blame.h"
#include "ddp/clock.h"
#include "ddp/fault.h"
#include "ddp/nccl_parts.h"
#include "ddp/reduce.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define SPIN_NS 10000000  /* Then it sleeps between two looks: a nap costs */
#define NAP_MIN_NS 50000  /* a large call some percent of its time.        */
#define NAP_MAX_NS 500000
#define LOOK_NS 1000000   /* Between two looks at what may go wrong. */

void ddp_nccl_look(struct ddp_comm *c)
{
    char why[DDP_CUDA_WHY];

    (void)ddp_cuda_open(&c->cuda, false, why);
}

int ddp_nccl_wants(struct ddp_comm *c, const struct ddp_request *q,
                   const void *stream, bool *ret, struct ddp_error *err)
{
    const char *name = ddp_what_name(q->what);
    char why[DDP_CUDA_WHY];
    bool send, recv;

    *ret = false;
    if (q->what == DDP_BARRIER)
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
    send = ddp_cuda_is_device(&c->cuda, q->send);
    recv = ddp_cuda_is_device(&c->cuda, q->recv);
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

/* --- waiting --------------------------------------------------------------*/

int ddp_nccl_fail(struct ddp_nccl *n, struct ddp_watch *w, const char *doing,
                  int result)
{
    const char *last = n->comm ? n->lib.last_error(n->comm) : "";
    const char *text = n->cuda_error ? n->cuda->text(n->cuda_error)
                                     : n->lib.text(result);
    char why[DDP_WHY + 128], hint[160];

    ddp_nccl_hint(result, last ? last : "", hint, sizeof hint);
    (void)snprintf(why, sizeof why, "rank %d: %s: %.60s (%d)%s%.120s%s%s",
                   w->c->rank, doing, text, result,
                   last && *last ? ": " : "", last ? last : "",
                   hint[0] ? "; likely: " : "", hint);
    return ddp_blame(w->c, w->q, w->err,
                     result == DDP_NCCL_REMOTE_ERROR ? DDP_EPEER : DDP_ESYSTEM,
                     result == DDP_NCCL_REMOTE_ERROR ? -1 : w->c->rank, why);
}

static int fail_late(struct ddp_watch *w, const char *doing)
{
    char why[DDP_WHY];

    (void)snprintf(why, sizeof why, "%s: not done within %.1f s: a rank has "
                   "not made this call, made another one, or NCCL cannot get "
                   "through (NCCL_DEBUG=INFO tells which interface it takes)",
                   doing, (double)w->c->timeout_ms / 1000);
    return ddp_blame(w->c, w->q, w->err, DDP_ETIMEDOUT, -1, why);
}

static void nap(uint64_t since_ns, uint64_t now_ns)
{
    uint64_t ns = (now_ns - since_ns) / 16;
    struct timespec t = {0};

    if (now_ns - since_ns < SPIN_NS)
        return;
    ns = ns < NAP_MIN_NS ? NAP_MIN_NS : ns > NAP_MAX_NS ? NAP_MAX_NS : ns;
    t.tv_nsec = (long)ns;
    (void)nanosleep(&t, NULL);
}

/* NCCL tells of a failure that came while work was on the stream. */
static bool has_failed(struct ddp_nccl *n, int *ret)
{
    int r = n->comm ? n->lib.async_error(n->comm, ret) : DDP_NCCL_SUCCESS;

    if (!n->comm)
        return false;
    if (r != DDP_NCCL_SUCCESS)
        *ret = r;
    return *ret != DDP_NCCL_SUCCESS && *ret != DDP_NCCL_IN_PROGRESS;
}

int ddp_nccl_wait(struct ddp_nccl *n, struct ddp_watch *w, const char *doing,
                  int (*is_done)(struct ddp_nccl *n, int *ret_error))
{
    uint64_t since = ddp_now_ns(), looked = since;

    for (;;) {
        uint64_t now_ns = ddp_now_ns();
        int result = DDP_NCCL_SUCCESS;
        int done = is_done(n, &result), rc;

        if (done < 0)
            return ddp_nccl_fail(n, w, doing, result);
        if (done)
            return 0;
        if (now_ns - looked >= LOOK_NS) {
            looked = now_ns;
            rc = ddp_watch_look(w, ddp_now());
            if (!rc && has_failed(n, &result))
                rc = ddp_nccl_fail(n, w, doing, result);
            if (!rc && ddp_now() >= w->deadline)
                rc = fail_late(w, doing);
            if (rc)
                return rc;
        }
        nap(since, now_ns);
    }
}

int ddp_nccl_is_settled(struct ddp_nccl *n, int *ret)
{
    int r = n->lib.async_error(n->comm, ret);

    if (r != DDP_NCCL_SUCCESS)
        *ret = r;
    return *ret == DDP_NCCL_IN_PROGRESS ? 0 : *ret == DDP_NCCL_SUCCESS ? 1 : -1;
}

static int is_over(struct ddp_nccl *n, int *ret)
{
    int done = ddp_cuda_is_done(n->cuda, n->event);

    if (done < 0) {
        *ret = DDP_NCCL_CUDA_ERROR;
        n->cuda_error = -done;
    }
    return done;
}

/* --- calls ----------------------------------------------------------------*/

static int enqueue(struct ddp_nccl *n, const struct ddp_request *q,
                   void *stream)
{
    switch (q->what) {
    case DDP_ALL_REDUCE:
        return n->lib.all_reduce(q->send, q->recv, q->count, q->type, q->op,
                                 n->comm, stream);
    case DDP_REDUCE_SCATTER:
        return n->lib.reduce_scatter(q->send, q->recv, q->count, q->type,
                                     q->op, n->comm, stream);
    case DDP_ALL_GATHER:
        return n->lib.all_gather(q->send, q->recv, q->count, q->type, n->comm,
                                 stream);
    case DDP_BROADCAST:
        return n->lib.broadcast(q->send, q->recv, q->count, q->type,
                                (int)q->root, n->comm, stream);
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

static int carry_out(struct ddp_nccl *n, struct ddp_watch *w, void *stream)
{
    const char *name = n->comm ? "NCCL" : "copy";
    int r = n->comm ? enqueue(n, w->q, stream) : copy(n, w->q, stream), rc = 0;

    if (r == DDP_NCCL_IN_PROGRESS)
        rc = ddp_nccl_wait(n, w, name, ddp_nccl_is_settled);
    else if (r != DDP_NCCL_SUCCESS)
        rc = ddp_nccl_fail(n, w, name, r);
    if (!rc) {
        n->cuda_error = n->cuda->event_record(n->event, stream);
        if (n->cuda_error)
            rc = ddp_nccl_fail(n, w, name, DDP_NCCL_CUDA_ERROR);
    }
    return rc ? rc : ddp_nccl_wait(n, w, name, is_over);
}

int ddp_nccl_run(struct ddp_comm *c, const struct ddp_request *q, void *stream,
                 struct ddp_error *err)
{
    struct ddp_watch w;
    int rc = 0;

    ddp_watch_begin(&w, c, q, err);
    if (!c->nccl)
        rc = ddp_nccl_make(&w);
    if (!rc)
        rc = carry_out(c->nccl, &w, stream);
    if (rc) {
        ddp_nccl_free(c->nccl, true);
        c->nccl = NULL;
    }
    return rc;
}
