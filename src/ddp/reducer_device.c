/* reducer_device: see reducer_device.h. */
#include "ddp/reducer_device.h"
#include "ddp/fault.h"
#include "ddp/nccl.h"
#include "ddp/reduce.h"

#include <stdlib.h>

static int fail(const struct ddp_comm *c, const char *doing, int error,
                struct ddp_error *e)
{
    return error ? ddp_fault(e, DDP_ESYSTEM, c->rank, c->rank, "reducer: rank "
                             "%d: %s: %s", c->rank, doing,
                             c->cuda.text(error))
                 : 0;
}

int ddp_reducer_where(struct ddp_comm *c, const struct ddp_param *params,
                      size_t n, const struct ddp_reducer_options *opt,
                      bool *ret_device, struct ddp_error *e)
{
    char why[DDP_CUDA_WHY];
    size_t n_device = 0, n_used = 0;

    *ret_device = false;
    if (!c->cuda.handle && !opt->stream)
        return 0;
    if (!c->cuda.handle && !ddp_cuda_open(&c->cuda, true, why))
        return ddp_fault(e, DDP_ENOTSUP, c->rank, -1, "ddp_reducer_new: a "
                         "stream is given, and there is no CUDA runtime: %s",
                         why);
    for (size_t i = 0; i < n; i++) {
        bool is_device = false;

        if (params[i].count == 0)
            continue;
        if (ddp_nccl_is_device(c, "ddp_reducer_new", params[i].grad,
                               &is_device, e))
            return e->code;
        n_used++;
        n_device += is_device;
    }
    if (n_device != 0 && n_device != n_used)
        return ddp_fault(e, DDP_EINVAL, c->rank, -1, "ddp_reducer_new: %zu of "
                         "%zu gradients are in device memory: all must be, or "
                         "none", n_device, n_used);
    if (n_device == 0 && opt->stream && n_used > 0)
        return ddp_fault(e, DDP_EINVAL, c->rank, -1, "ddp_reducer_new: a "
                         "stream is given and the gradients are in host "
                         "memory: it must be NULL");
    if (n_device > 0 && opt->wire)
        return ddp_fault(e, DDP_ENOTSUP, c->rank, -1, "ddp_reducer_new: wire "
                         "is for gradients in host memory");
    *ret_device = n_device > 0;
    return 0;
}

struct ddp_reducer_device *ddp_reducer_device_new(struct ddp_comm *c,
                                                  void *stream,
                                                  struct ddp_error *e)
{
    struct ddp_reducer_device *d = calloc(1, sizeof *d);
    int r;

    if (!d) {
        (void)ddp_fault(e, DDP_ENOMEM, c->rank, -1, "out of memory");
        return NULL;
    }
    d->cuda = &c->cuda;
    d->stream = stream;
    r = c->cuda.get_device(&d->device);
    if (r == 0)
        r = c->cuda.stream_new(&d->own, DDP_CUDA_STREAM_PLAIN,
                               DDP_CUDA_STREAM_FIRST);
    if (r == 0)
        r = c->cuda.event_new(&d->joined, DDP_CUDA_EVENT_PLAIN);
    if (fail(c, "a stream cannot be made", r, e) == 0)
        return d;
    ddp_reducer_device_free(d);
    return NULL;
}

int ddp_reducer_device_events(struct ddp_reducer *r, struct ddp_error *e)
{
    struct ddp_reducer_device *d = r->dev;

    d->whole = calloc(r->n_buckets + 1, sizeof *d->whole);
    if (!d->whole)
        return ddp_fault(e, DDP_ENOMEM, r->c->rank, -1, "out of memory");
    for (; d->n_whole < r->n_buckets; d->n_whole++) {
        int error = d->cuda->event_new(&d->whole[d->n_whole],
                                       DDP_CUDA_EVENT_PLAIN);

        if (error)
            return fail(r->c, "an event cannot be made", error, e);
    }
    return 0;
}

void ddp_reducer_device_free(struct ddp_reducer_device *d)
{
    if (!d)
        return;
    for (size_t k = 0; k < d->n_whole; k++)
        (void)d->cuda->event_free(d->whole[k]);
    if (d->joined)
        (void)d->cuda->event_free(d->joined);
    if (d->own)
        (void)d->cuda->stream_free(d->own);
    free(d->whole);
    free(d);
}

void *ddp_reducer_device_alloc(const struct ddp_reducer_device *d, size_t n)
{
    void *p = NULL;

    return d->cuda->malloc(&p, n) == 0 ? p : NULL;
}

/* Between a gradient and its place in the bucket, where that is another. */
static int copy(struct ddp_reducer *r, size_t i, bool to_bucket)
{
    const struct ddp_param *p = &r->params[i];
    const struct ddp_bucket_state *b = &r->buckets[r->bucket_of[i]];
    size_t width = ddp_type_width((int)p->type);
    uint8_t *at = (uint8_t *)b->buf + r->offset[i] * width;

    if (p->count == 0 || b->plan.in_place)
        return 0;
    return r->dev->cuda->copy(to_bucket ? (void *)at : p->grad,
                              to_bucket ? p->grad : (void *)at,
                              p->count * width, DDP_CUDA_COPY_DEFAULT,
                              to_bucket ? r->dev->stream : r->dev->own);
}

int ddp_reducer_device_pack(struct ddp_reducer *r, size_t param,
                            struct ddp_error *e)
{
    return fail(r->c, "a gradient cannot be copied", copy(r, param, true), e);
}

int ddp_reducer_device_whole(struct ddp_reducer *r, size_t bucket,
                             struct ddp_error *e)
{
    struct ddp_reducer_device *d = r->dev;

    return fail(r->c, "cudaEventRecord",
                d->cuda->event_record(d->whole[bucket], d->stream), e);
}

int ddp_reducer_device_join(struct ddp_reducer *r, struct ddp_error *e)
{
    struct ddp_reducer_device *d = r->dev;
    int error = d->cuda->event_record(d->joined, d->own);

    if (error == 0)
        error = d->cuda->stream_wait(d->stream, d->joined, 0);
    return fail(r->c, "the streams cannot be joined", error, e);
}

void ddp_reducer_device_enter(const struct ddp_reducer *r)
{
    (void)r->dev->cuda->set_device(r->dev->device); /* Of each thread. */
}

int ddp_reducer_device_begin(struct ddp_reducer *r, size_t bucket,
                             struct ddp_error *e)
{
    struct ddp_reducer_device *d = r->dev;

    return fail(r->c, "cudaStreamWaitEvent",
                d->cuda->stream_wait(d->own, d->whole[bucket], 0), e);
}

int ddp_reducer_device_unpack(struct ddp_reducer *r, size_t bucket,
                              struct ddp_error *e)
{
    const struct ddp_bucket *plan = &r->buckets[bucket].plan;
    int error = 0;

    for (size_t i = plan->first; i < plan->first + plan->n && !error; i++)
        error = copy(r, i, false);
    return fail(r->c, "an average cannot be copied", error, e);
}
