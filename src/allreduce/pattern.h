/* pattern: what the ranks give to an all_reduce, and what must come out.
 *
 * Pure. Element i of a buffer is element i mod PATTERN_PERIOD of the pattern,
 * a prime, so that a block that ends in another one's place is noticed. All
 * are small whole numbers of which every type holds every partial sum or
 * product exactly, for any number of ranks: the result does not depend on the
 * order of the additions. Averages of floats may be off in their last two
 * bits. */
#ifndef ALLREDUCE_PATTERN_H
#define ALLREDUCE_PATTERN_H

#include "ddp.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PATTERN_PERIOD 4093
#define PATTERN_WIDTH_MAX 8

struct pattern_type {
    const char *name; /* As nccl-tests call it. */
    enum ddp_type type;
    size_t width;
    double slack; /* Relative; of averages. */
};

struct pattern_op {
    const char *name;
    enum ddp_op op;
};

/* Row `i`, or NULL after the last one. */
const struct pattern_type *pattern_type(unsigned i);
const struct pattern_op *pattern_op(unsigned i);

struct pattern {
    const struct pattern_type *type;
    const struct pattern_op *op;
    uint8_t gives[PATTERN_PERIOD * PATTERN_WIDTH_MAX]; /* This rank. */
    uint8_t bytes[PATTERN_PERIOD * PATTERN_WIDTH_MAX]; /* The result. */
    double wants[PATTERN_PERIOD];                      /* The same. */
};

/* The first element that is wrong. */
struct pattern_wrong {
    size_t n, first; /* 0: none is. */
    double got, wanted;
};

void pattern_init(struct pattern *p, const struct pattern_type *type,
                  const struct pattern_op *op, int rank, int size);

/* What this rank gives. */
void pattern_fill(const struct pattern *p, void *buf, size_t count);

/* Compare a result. */
void pattern_check(const struct pattern *p, const void *buf, size_t count,
                   struct pattern_wrong *ret);

#endif
