/* pool: threads that work through a numbered list, and stop at a fault.
 *
 * The fault that counts is the one with the lowest number, whatever the order
 * of the threads, so that a set's first bad file is always the same one. */
#ifndef DATASET_POOL_H
#define DATASET_POOL_H

#include "base/err.h"
#include "dataset/meter.h"

#include <stdbool.h>
#include <stddef.h>

#define POOL_THREADS_MAX 16
/* At least so many, as cold storage wants several reads in flight. */
#define POOL_THREADS_MIN 4

struct pool;

/* What a call of the work function may use. */
struct pool_turn {
    struct pool *pool;
    size_t i;      /* Number of the item. */
    void *scratch; /* This thread's own. */
};

/* Runs on several threads. Returns 0, or negative with `e` set. */
typedef int pool_fn(void *ctx, const struct pool_turn *turn, struct err *e);

/* Work through 0 .. n - 1 on as many threads as there are usable CPUs (by
 * affinity and the cgroup's quota), POOL_THREADS_MIN to _MAX, each with
 * `scratch_bytes` of its own. The caller's thread tells `meter` meanwhile, 10
 * times a second. */
int pool_run(size_t n, size_t scratch_bytes, pool_fn *fn, void *ctx,
             struct meter *meter, struct err *e);

/* True where there are more CPUs than threads with something to do: a large
 * item may use another thread. */
bool pool_has_idle_cpu(const struct pool_turn *turn);

/* True where a fault with a lower number is known: return, with anything. */
bool pool_stopped(const struct pool_turn *turn);

#endif
