/* bucket: which gradients travel together. Pure.
 *
 * Buckets are filled from the last parameter to the first, as a backward pass
 * makes them ready in about that order; within a bucket they lie in ascending
 * order. A bucket has one type, and is closed once it has its size. */
#ifndef DDP_BUCKET_H
#define DDP_BUCKET_H

#include "ddp.h"

#include <stdbool.h>

#define DDP_BUCKET_MIB 25.0
#define DDP_FIRST_BUCKET_MIB 1.0
#define DDP_BUCKET_MIB_MAX 65536.0

struct ddp_bucket {
    size_t first, n;  /* Parameters first .. first + n - 1, */
    size_t count;     /* their elements in all, */
    enum ddp_type type;
    bool in_place;    /* which lie side by side in memory already. */
};

struct ddp_bucket_sizes {
    size_t first_bytes, bytes;
};

/* The sizes in bytes; NULL where they are fit, else what is wrong. */
const char *ddp_bucket_sizes(double first_mib, double mib,
                             struct ddp_bucket_sizes *ret);

/* Fill ret[0 .. n) (one for each parameter is enough); how many there are. */
size_t ddp_bucket_plan(const struct ddp_param *params, size_t n,
                       const struct ddp_bucket_sizes *sizes,
                       struct ddp_bucket *ret);

/* All that ranks must agree on, as one number. */
uint64_t ddp_bucket_hash(const struct ddp_param *params, size_t n,
                         const struct ddp_bucket_sizes *sizes, int wire,
                         int sum);

#endif
