/* reducer: the calls, and the thread; see reducer.h. */
#include "ddp/reducer.h"
#include "ddp/fault.h"
#include "ddp/reduce.h"
#include "ddp/reducer_device.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define SCALE 1024 /* Elements that are scaled at a time. */

/* --- gradients into buckets and back ------------------------------------- */

/* To 16 bits: scaled before, as a sum of many may be too large for f16. */
static void narrow(const struct ddp_reducer *r, const float *from,
                   uint16_t *to, size_t n)
{
    float scale = r->sum ? 1.0f : 1.0f / (float)r->c->size, part[SCALE];

    for (size_t m; n > 0; n -= m, from += m, to += m) {
        m = n < SCALE ? n : SCALE;
        for (size_t i = 0; i < m; i++)
            part[i] = from[i] * scale;
        ddp_narrow(r->wire, to, part, m);
    }
}

static void pack(const struct ddp_reducer *r, size_t i)
{
    const struct ddp_param *p = &r->params[i];
    const struct ddp_bucket_state *b = &r->buckets[r->bucket_of[i]];
    size_t width = ddp_type_width((int)p->type);

    if (p->count == 0)
        return;
    if (ddp_bucket_is_narrowed(r, b))
        narrow(r, p->grad, (uint16_t *)b->buf + r->offset[i], p->count);
    else if (!b->plan.in_place)
        memcpy((uint8_t *)b->buf + r->offset[i] * width, p->grad,
               p->count * width);
}

static void unpack(const struct ddp_reducer *r,
                   const struct ddp_bucket_state *b)
{
    for (size_t i = b->plan.first; i < b->plan.first + b->plan.n; i++) {
        const struct ddp_param *p = &r->params[i];
        size_t width = ddp_type_width((int)p->type);

        if (p->count == 0)
            continue;
        if (ddp_bucket_is_narrowed(r, b))
            ddp_widen(r->wire, p->grad, (uint16_t *)b->buf + r->offset[i],
                      p->count);
        else if (!b->plan.in_place)
            memcpy(p->grad, (uint8_t *)b->buf + r->offset[i] * width,
                   p->count * width);
    }
}

/* --- the thread ---------------------------------------------------------- */

/* Buckets are queued one after the other, so that the GPU does not wait for
 * this thread between two of them; who calls ddp_reducer_wait() waits. */
static int reduce_on_device(struct ddp_reducer *r, size_t k,
                            struct ddp_error *e)
{
    const struct ddp_bucket_state *b = &r->buckets[k];
    int rc = ddp_reducer_device_begin(r, k, e);

    (void)atomic_fetch_or(&r->c->queues, DDP_QUEUES_REDUCER);
    if (!rc)
        rc = ddp_all_reduce(r->c, b->buf, b->buf, b->plan.count, b->plan.type,
                            r->sum ? DDP_SUM : DDP_AVG, r->dev->own, e);
    (void)atomic_fetch_and(&r->c->queues, ~(unsigned)DDP_QUEUES_REDUCER);
    if (!rc)
        rc = ddp_reducer_device_unpack(r, k, e);
    if (rc)
        ddp_comm_break(r->c, e); /* Unless the call has told already. */
    return rc;
}

static int reduce(const struct ddp_reducer *r, const struct ddp_bucket_state *b,
                  struct ddp_error *e)
{
    bool narrowed = ddp_bucket_is_narrowed(r, b);
    enum ddp_type type = narrowed ? (enum ddp_type)r->wire : b->plan.type;
    enum ddp_op op = narrowed || r->sum ? DDP_SUM : DDP_AVG;
    int rc = ddp_all_reduce(r->c, b->buf, b->buf, b->plan.count, type, op,
                            NULL, e);

    if (!rc)
        unpack(r, b);
    return rc;
}

static void *run(void *arg)
{
    struct ddp_reducer *r = arg;
    struct ddp_error e;

    if (r->dev)
        ddp_reducer_device_enter(r);
    (void)pthread_mutex_lock(&r->lock);
    while (!r->is_ending) {
        const struct ddp_bucket_state *b = &r->buckets[r->n_done];
        int rc;

        if (r->broken.code || r->n_done == r->n_buckets || b->n_missing > 0) {
            (void)pthread_cond_wait(&r->go, &r->lock);
            continue;
        }
        r->is_calling = true;
        (void)pthread_mutex_unlock(&r->lock);
        rc = r->dev ? reduce_on_device(r, r->n_done, &e) : reduce(r, b, &e);
        (void)pthread_mutex_lock(&r->lock);
        r->is_calling = false;
        r->n_done++;
        if (rc)
            r->broken = e;
        (void)pthread_cond_signal(&r->done);
    }
    (void)pthread_mutex_unlock(&r->lock);
    return NULL;
}

/* It takes none of the program's signals. */
static int start(struct ddp_reducer *r)
{
    sigset_t all, was;
    int status;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_BLOCK, &all, &was);
    status = pthread_create(&r->thread, NULL, run, r);
    (void)pthread_sigmask(SIG_SETMASK, &was, NULL);
    r->has_thread = status == 0;
    return status;
}

/* --- the calls ----------------------------------------------------------- */

/* All ranks must have the same gradients and options. Made by all. */
static int compare(struct ddp_comm *c, uint64_t hash, struct ddp_error *e)
{
    uint64_t *all = calloc((size_t)c->size, sizeof *all);
    int rc;

    if (!all)
        return ddp_fault(e, DDP_ENOMEM, c->rank, -1, "out of memory");
    rc = ddp_all_gather(c, &hash, all, 1, DDP_U64, NULL, e);
    for (int i = 0; i < c->size && !rc; i++)
        if (all[i] != all[0]) /* The same words on all ranks. */
            rc = ddp_fault(e, DDP_EMISMATCH, c->rank, i, "ddp_reducer_new: "
                           "parameters (their number, counts, types) or "
                           "options of rank %d differ from those of rank 0", i);
    free(all);
    return rc;
}

int ddp_reducer_new(struct ddp_reducer **ret, struct ddp_comm *c,
                    const struct ddp_param *params, size_t n,
                    const struct ddp_reducer_options *opt,
                    struct ddp_error *err)
{
    struct ddp_error own;
    struct ddp_error *e = err ? err : &own;
    struct ddp_reducer_options o;
    struct ddp_bucket_sizes sizes;
    struct ddp_reducer *r;
    struct ddp_reducer_device *dev = NULL;
    const char *fault;
    bool is_device;

    if (!ret || !c)
        return ddp_fault(e, DDP_EINVAL, -1, -1, "ddp_reducer_new: %s is NULL",
                         ret ? "the communicator" : "ret");
    if (ddp_reducer_check(params, n, opt, c->rank, &o, e))
        return DDP_EINVAL;
    if (ddp_reducer_where(c, params, n, &o, &is_device, e))
        return e->code;
    fault = ddp_bucket_sizes(o.first_bucket_mib, o.bucket_mib, &sizes);
    if (fault)
        return ddp_fault(e, DDP_EINVAL, c->rank, -1, "ddp_reducer_options.%s",
                         fault);
    if (compare(c, ddp_bucket_hash(params, n, &sizes, (int)o.wire, o.sum != 0),
                e))
        return e->code;
    if (is_device) {
        dev = ddp_reducer_device_new(c, o.stream, e);
        if (!dev)
            return e->code;
    }
    r = ddp_reducer_make(c, dev, params, n, &sizes, &o);
    if (!r)
        return ddp_fault(e, DDP_ENOMEM, c->rank, -1, "ddp_reducer_new: out of "
                         "memory for %zu parameters", n);
    if (dev && ddp_reducer_device_events(r, e)) {
        ddp_reducer_free(r);
        return e->code;
    }
    if (start(r)) {
        ddp_reducer_free(r);
        return ddp_fault(e, DDP_ESYSTEM, c->rank, -1, "ddp_reducer_new: no "
                         "thread can be started");
    }
    *ret = r;
    return 0;
}

int ddp_reducer_no_sync(struct ddp_reducer *r, int on, struct ddp_error *err)
{
    struct ddp_error own;
    struct ddp_error *e = err ? err : &own;
    bool is_midway;

    if (!r)
        return ddp_fault(e, DDP_EINVAL, -1, -1, "ddp_reducer_no_sync: the "
                         "reducer is NULL");
    (void)pthread_mutex_lock(&r->lock);
    is_midway = r->n_ready > 0;
    if (!is_midway)
        r->no_sync = on != 0;
    (void)pthread_mutex_unlock(&r->lock);
    return is_midway ? ddp_fault(e, DDP_EINVAL, r->c->rank, -1,
                                 "ddp_reducer_no_sync: in the midst of a step: "
                                 "call ddp_reducer_wait before") : 0;
}

/* The error of before, if there was one. */
static int failed(struct ddp_reducer *r, struct ddp_error *e)
{
    int rc;

    (void)pthread_mutex_lock(&r->lock);
    rc = r->broken.code;
    if (rc)
        *e = r->broken;
    (void)pthread_mutex_unlock(&r->lock);
    return rc;
}

/* A gradient of device memory goes its way. CUDA's errors stay, so one ends
 * it here and on all other ranks. */
static int put(struct ddp_reducer *r, size_t param, struct ddp_error *e)
{
    size_t k = r->bucket_of[param];
    int rc = ddp_reducer_device_pack(r, param, e);

    if (!rc && r->buckets[k].n_missing == 1) /* This one: read by this
                                              * thread, and set by it alone. */
        rc = ddp_reducer_device_whole(r, k, e);
    if (!rc)
        return 0;
    (void)pthread_mutex_lock(&r->lock);
    if (!r->broken.code)
        r->broken = *e;
    (void)pthread_mutex_unlock(&r->lock);
    (void)ddp_abort(r->c);
    return rc;
}

int ddp_reducer_ready(struct ddp_reducer *r, size_t param,
                      struct ddp_error *err)
{
    struct ddp_error own;
    struct ddp_error *e = err ? err : &own;
    struct ddp_bucket_state *b;

    if (!r)
        return ddp_fault(e, DDP_EINVAL, -1, -1, "ddp_reducer_ready: the "
                         "reducer is NULL");
    if (param >= r->n)
        return ddp_fault(e, DDP_EINVAL, r->c->rank, -1, "ddp_reducer_ready: "
                         "parameter %zu is none of 0 to %zu", param,
                         r->n - (r->n > 0));
    if (r->no_sync)
        return 0;
    if (failed(r, e))
        return e->code;
    if (r->is_ready[param])
        return ddp_fault(e, DDP_EINVAL, r->c->rank, -1, "ddp_reducer_ready: "
                         "parameter %zu was ready before in this step", param);
    b = &r->buckets[r->bucket_of[param]];
    if (r->dev && put(r, param, e))
        return e->code;
    if (!r->dev)
        pack(r, param);
    (void)pthread_mutex_lock(&r->lock);
    r->is_ready[param] = true;
    r->n_ready++;
    if (--b->n_missing == 0)
        (void)pthread_cond_signal(&r->go);
    (void)pthread_mutex_unlock(&r->lock);
    return 0;
}

/* A gradient was not ready: an error here and on all other ranks. Under the
 * lock, while the thread is in no call. */
static void fail_unused(struct ddp_reducer *r)
{
    size_t i = 0;

    while (r->is_ready[i])
        i++;
    (void)ddp_fault(&r->broken, DDP_EUNUSED, r->c->rank, r->c->rank,
                    "ddp_reducer_wait: parameter %zu of 0 to %zu was not ready "
                    "in this step (%zu were not): a parameter that the step "
                    "does not use needs a gradient of zeros that is ready", i,
                    r->n - 1, r->n - r->n_ready);
    ddp_comm_break(r->c, &r->broken);
}

int ddp_reducer_wait(struct ddp_reducer *r, struct ddp_error *err)
{
    struct ddp_error own;
    struct ddp_error *e = err ? err : &own;
    int rc;

    if (!r)
        return ddp_fault(e, DDP_EINVAL, -1, -1, "ddp_reducer_wait: the "
                         "reducer is NULL");
    if (r->no_sync)
        return 0;
    (void)pthread_mutex_lock(&r->lock);
    while (!r->broken.code && r->n_done < r->n_buckets &&
           (r->is_calling || r->buckets[r->n_done].n_missing == 0))
        (void)pthread_cond_wait(&r->done, &r->lock);
    if (!r->broken.code && r->n_ready < r->n)
        fail_unused(r);
    if (!r->broken.code && r->dev) /* The thread has nothing left to do. */
        (void)ddp_wait(r->c, &r->broken);
    if (!r->broken.code) { /* The next step. */
        r->n_ready = r->n_done = 0;
        memset(r->is_ready, 0, r->n * sizeof *r->is_ready);
        for (size_t k = 0; k < r->n_buckets; k++)
            r->buckets[k].n_missing = r->buckets[k].plan.n;
    } else {
        *e = r->broken;
    }
    rc = r->broken.code;
    (void)pthread_mutex_unlock(&r->lock);
    return !rc && r->dev ? ddp_reducer_device_join(r, e) : rc;
}

void ddp_reducer_free(struct ddp_reducer *r)
{
    bool is_queued;

    if (!r)
        return;
    if (r->has_thread) {
        (void)pthread_mutex_lock(&r->lock);
        r->is_ending = true;
        is_queued = r->dev && r->n_done > 0;
        if (r->is_calling || is_queued) /* A step that nobody waits for. */
            (void)ddp_abort(r->c);
        (void)pthread_cond_signal(&r->go);
        (void)pthread_mutex_unlock(&r->lock);
        (void)pthread_join(r->thread, NULL);
        if (is_queued) /* Else to free memory would wait for it. */
            (void)ddp_wait(r->c, NULL);
    }
    (void)pthread_cond_destroy(&r->go);
    (void)pthread_cond_destroy(&r->done);
    (void)pthread_mutex_destroy(&r->lock);
    for (size_t k = 0; r->buckets && k < r->n_buckets; k++)
        if (!r->buckets[k].plan.in_place && r->dev)
            (void)r->dev->cuda->free(r->buckets[k].buf);
        else if (!r->buckets[k].plan.in_place)
            free(r->buckets[k].buf);
    ddp_reducer_device_free(r->dev);
    free(r->buckets);
    free(r->params);
    free(r->bucket_of);
    free(r->offset);
    free(r->is_ready);
    free(r);
}
