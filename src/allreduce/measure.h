/* measure: the calls of agent-allreduce, timed and compared. */
#ifndef ALLREDUCE_MEASURE_H
#define ALLREDUCE_MEASURE_H

#include "allreduce/opts.h"
#include "ddp.h"

#include <stdio.h>

/* All that was asked for; the results go to `out` on rank 0. Returns 0 where
 * all is right and fast enough, 1 where it is not: the same on all ranks.
 * Fails with a class of base/err.h. */
int measure_all(struct ddp_comm *c, const struct opts *o, FILE *out,
                struct err *e);

/* The class of libddp's error, and its text. */
int measure_fault(const struct ddp_error *d, struct err *e);

#endif
