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
    const char *name; /* Of the set; borrowed. */
    atomic_uint_fast64_t total, n_files; /* Bytes, and what is counted. */
    atomic_uint_fast64_t done, n_done;
    atomic_uint n_syncing; /* Threads. */
};

/* Start to count a piece of work. */
static inline void meter_begin(struct meter *m, uint64_t total,
                               uint64_t n_files)
{
    atomic_store(&m->done, 0);
    atomic_store(&m->n_done, 0);
    atomic_store(&m->total, total);
    atomic_store(&m->n_files, n_files);
}

static inline void meter_add(struct meter *m, uint64_t n)
{
    (void)atomic_fetch_add_explicit(&m->done, n, memory_order_relaxed);
}

static inline void meter_add_file(struct meter *m)
{
    (void)atomic_fetch_add_explicit(&m->n_done, 1, memory_order_relaxed);
}

/* `sync` is fsync(2) or syncfs(2), whose errno stays. */
static inline int meter_sync(struct meter *m, int (*sync)(int fd), int fd)
{
    int rc;

    (void)atomic_fetch_add_explicit(&m->n_syncing, 1, memory_order_relaxed);
    rc = sync(fd);
    (void)atomic_fetch_sub_explicit(&m->n_syncing, 1, memory_order_relaxed);
    return rc;
}

static inline void meter_get(struct meter *m, struct stage_progress *ret)
{
    ret->name = m->name;
    ret->total = atomic_load_explicit(&m->total, memory_order_relaxed);
    ret->done = atomic_load_explicit(&m->done, memory_order_relaxed);
    ret->n_files = atomic_load_explicit(&m->n_files, memory_order_relaxed);
    ret->n_done = atomic_load_explicit(&m->n_done, memory_order_relaxed);
    ret->waiting = false;
    ret->syncing = atomic_load_explicit(&m->n_syncing, memory_order_relaxed);
    /* A file is read again where the first read was of no use. */
    if (ret->done > ret->total)
        ret->done = ret->total;
    if (ret->n_done > ret->n_files)
        ret->n_done = ret->n_files;
}

/* Called by the thread that began the work only. */
static inline void meter_tell(struct meter *m)
{
    struct stage_progress p;

    if (!m->fn)
        return;
    meter_get(m, &p);
    m->fn(m->ctx, &p);
}

/* What the process that is waited for has told. */
static inline void meter_tell_waiting(struct meter *m,
                                      const struct stage_progress *at)
{
    struct stage_progress p = *at;

    p.name = m->name;
    p.waiting = true;
    if (m->fn)
        m->fn(m->ctx, &p);
}

#endif
