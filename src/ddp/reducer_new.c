/* reducer_new: the making of a reducer, for reducer.h. */
#include "ddp/reducer.h"
#include "ddp/fault.h"
#include "ddp/reduce.h"
#include "ddp/reducer_device.h"

#include <stdlib.h>
#include <string.h>

static int take_options(const struct ddp_reducer_options *opt,
                        struct ddp_reducer_options *ret, int rank,
                        struct ddp_error *e)
{
    const unsigned char *at = (const unsigned char *)opt;

    memset(ret, 0, sizeof *ret);
    if (!opt)
        return 0;
    if (opt->size < sizeof opt->size || opt->size > 4096)
        return ddp_fault(e, DDP_EINVAL, rank, -1, "ddp_reducer_options.size "
                         "is %zu: set it to sizeof(struct "
                         "ddp_reducer_options)", opt->size);
    for (size_t i = sizeof *ret; i < opt->size; i++)
        if (at[i])
            return ddp_fault(e, DDP_EINVAL, rank, -1, "ddp_reducer_options "
                             "has a field that this libddp does not know: the "
                             "program was built for a newer one");
    memcpy(ret, opt, opt->size < sizeof *ret ? opt->size : sizeof *ret);
    if (ret->wire && ret->wire != DDP_F16 && ret->wire != DDP_BF16)
        return ddp_fault(e, DDP_EINVAL, rank, -1, "ddp_reducer_options.wire "
                         "is %d: DDP_F16, DDP_BF16 or 0", (int)ret->wire);
    return 0;
}

static const char *fault_of(const struct ddp_param *p)
{
    size_t width = ddp_type_width((int)p->type);

    if (p->type != DDP_F16 && p->type != DDP_BF16 && p->type != DDP_F32 &&
        p->type != DDP_F64)
        return "its type is no float";
    if (p->count > (size_t)PTRDIFF_MAX / 16)
        return "its count is too large";
    if (p->count > 0 && !p->grad)
        return "its gradient is NULL";
    return (uintptr_t)p->grad % width ? "its gradient is not aligned for its "
                                        "type" : NULL;
}

static int check_params(const struct ddp_param *params, size_t n, int rank,
                        struct ddp_error *e)
{
    size_t sum = 0;

    if (n > 0 && !params)
        return ddp_fault(e, DDP_EINVAL, rank, -1, "ddp_reducer_new: params is "
                         "NULL");
    for (size_t i = 0; i < n; i++) {
        const char *fault = fault_of(&params[i]);

        if (!fault && params[i].count > (size_t)PTRDIFF_MAX / 16 - sum)
            fault = "all counts together are too large";
        if (fault)
            return ddp_fault(e, DDP_EINVAL, rank, -1, "ddp_reducer_new: "
                             "parameter %zu: %s", i, fault);
        sum += params[i].count;
    }
    return 0;
}

bool ddp_bucket_is_narrowed(const struct ddp_reducer *r,
                            const struct ddp_bucket_state *b)
{
    return r->wire && b->plan.type == DDP_F32;
}

/* Where a bucket's gradients are gathered, and each one's place there. */
static int place(struct ddp_reducer *r, size_t k)
{
    struct ddp_bucket_state *b = &r->buckets[k];
    size_t at = 0, width = ddp_type_width((int)b->plan.type);

    if (ddp_bucket_is_narrowed(r, b)) {
        b->plan.in_place = false;
        width = 2;
    }
    for (size_t i = b->plan.first; i < b->plan.first + b->plan.n; i++) {
        r->bucket_of[i] = k;
        r->offset[i] = at;
        at += r->params[i].count;
    }
    b->n_missing = b->plan.n;
    b->buf = b->plan.in_place ? r->params[b->plan.first].grad
             : r->dev ? ddp_reducer_device_alloc(r->dev,
                                                 b->plan.count * width + 1)
                      : malloc(b->plan.count * width + 1);
    return b->buf || b->plan.in_place ? 0 : -1;
}

static int place_all(struct ddp_reducer *r,
                     const struct ddp_bucket_sizes *sizes)
{
    struct ddp_bucket *plan = calloc(r->n + 1, sizeof *plan);
    int rc = 0;

    if (!plan)
        return -1;
    r->n_buckets = ddp_bucket_plan(r->params, r->n, sizes, plan);
    /* One more: n_done may be the number of all. */
    r->buckets = calloc(r->n_buckets + 1, sizeof *r->buckets);
    for (size_t k = 0; r->buckets && k < r->n_buckets; k++) {
        r->buckets[k].plan = plan[k];
        if (place(r, k))
            rc = -1;
    }
    free(plan);
    return r->buckets ? rc : -1;
}

struct ddp_reducer *ddp_reducer_make(struct ddp_comm *c,
                                     struct ddp_reducer_device *dev,
                                     const struct ddp_param *params, size_t n,
                                     const struct ddp_bucket_sizes *sizes,
                                     const struct ddp_reducer_options *opt)
{
    struct ddp_reducer *r = calloc(1, sizeof *r);

    if (!r) {
        ddp_reducer_device_free(dev);
        return NULL;
    }
    r->c = c;
    r->dev = dev;
    r->n = n;
    r->wire = (int)opt->wire;
    r->sum = opt->sum != 0;
    (void)pthread_mutex_init(&r->lock, NULL);
    (void)pthread_cond_init(&r->go, NULL);
    (void)pthread_cond_init(&r->done, NULL);
    r->params = calloc(n + 1, sizeof *r->params);
    r->bucket_of = calloc(n + 1, sizeof *r->bucket_of);
    r->offset = calloc(n + 1, sizeof *r->offset);
    r->is_ready = calloc(n + 1, sizeof *r->is_ready);
    if (r->params && n)
        memcpy(r->params, params, n * sizeof *params);
    if (!r->params || !r->bucket_of || !r->offset || !r->is_ready ||
        place_all(r, sizes)) {
        ddp_reducer_free(r);
        return NULL;
    }
    return r;
}

int ddp_reducer_check(const struct ddp_param *params, size_t n,
                      const struct ddp_reducer_options *opt, int rank,
                      struct ddp_reducer_options *ret, struct ddp_error *e)
{
    int rc = take_options(opt, ret, rank, e);

    return rc ? rc : check_params(params, n, rank, e);
}
