/* reducer: gradients in buckets, reduced by a thread while the backward pass
 * goes on; which ones travel together is bucket.h's.
 *
 * The thread reduces the buckets in their order, each once all its gradients
 * are ready: so all ranks make the same calls, in whatever order gradients
 * come. Its waits are bounded: each bucket is one call with a deadline. */
#ifndef DDP_REDUCER_H
#define DDP_REDUCER_H

#include "ddp/bucket.h"
#include "ddp/comm.h"

#include <pthread.h>

struct ddp_bucket_state {
    struct ddp_bucket plan;
    void *buf;         /* Elements as they travel; the gradients themselves
                        * where they lie side by side and need no change. */
    size_t n_missing;  /* Gradients that are not ready. */
};

struct ddp_reducer_device;

struct ddp_reducer {
    struct ddp_comm *c;
    struct ddp_reducer_device *dev; /* NULL: host memory. */
    struct ddp_param *params;
    size_t n, n_buckets;
    struct ddp_bucket_state *buckets;
    size_t *bucket_of;  /* Of each parameter, */
    size_t *offset;     /* its first element there, */
    bool *is_ready;     /* and whether it is, in this step. */
    int wire, sum;
    bool no_sync;       /* The caller's thread alone reads and writes. */
    pthread_t thread;
    bool has_thread;
    pthread_mutex_t lock;
    pthread_cond_t go, done; /* For the thread; for the caller. */
    /* Under the lock: */
    size_t n_ready, n_done;  /* Gradients; buckets of this step. */
    bool is_calling, is_ending;
    struct ddp_error broken; /* The first error; its code is 0 before. */
};

/* A reducer without thread, from arguments that are fit; NULL: no memory.
 * Takes `dev`, which may be NULL. */
struct ddp_reducer *ddp_reducer_make(struct ddp_comm *c,
                                     struct ddp_reducer_device *dev,
                                     const struct ddp_param *params, size_t n,
                                     const struct ddp_bucket_sizes *sizes,
                                     const struct ddp_reducer_options *opt);

/* 0, or DDP_EINVAL; the options are copied to *ret, of whichever version. */
int ddp_reducer_check(const struct ddp_param *params, size_t n,
                      const struct ddp_reducer_options *opt, int rank,
                      struct ddp_reducer_options *ret, struct ddp_error *e);

/* Whether the bucket's elements travel in fewer bits than they have. */
bool ddp_bucket_is_narrowed(const struct ddp_reducer *r,
                            const struct ddp_bucket_state *b);

#endif
