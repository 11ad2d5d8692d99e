/* meter: how far the work on a set is. Threads add, one thread tells. */
#ifndef DATASET_METER_H
#define DATASET_METER_H

#include "dataset/stage.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct meter {
    stage_progress_fn *fn; /* May be NULL. */
    void *ctx;
    uint64_t total;
    atomic_uint_fast64_t done;
};

static inline void meter_add(struct meter *m, uint64_t n)
{
    (void)atomic_fetch_add_explicit(&m->done, n, memory_order_relaxed);
}

/* Called by the thread that called stage_run() only. */
static inline void meter_tell(struct meter *m, bool waiting)
{
    uint64_t done = atomic_load_explicit(&m->done, memory_order_relaxed);

    if (m->fn)
        m->fn(m->ctx, done < m->total ? done : m->total, m->total, waiting);
}

#endif
