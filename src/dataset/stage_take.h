/* stage_take: a finished stage that is there, or one that is made. */
#ifndef DATASET_STAGE_TAKE_H
#define DATASET_STAGE_TAKE_H

#include "dataset/stage_set.h"

#include <stdbool.h>

/* A finished folder that still looks as its marker says is taken at once,
 * without the lock and without a write, so that a read-only stage will do.
 * Else take the lock and the lease, look again (another stager may have made
 * it meanwhile), and build. Sets `reused` and `note` of `ret`. */
int stage_take(struct stage_set *s, bool reverify, struct stage_result *ret,
               struct err *e);

#endif
