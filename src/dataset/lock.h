/* lock: one stager of a set at a time. The kernel frees the lock when its
 * holder dies, however it dies. */
#ifndef DATASET_LOCK_H
#define DATASET_LOCK_H

#include "base/err.h"
#include "dataset/meter.h"
#include "dataset/space.h"

#include <stdbool.h>

/* Give up waiting after this time; the holder does not move then. */
#define LOCK_WAIT_MAX_S (24 * 60 * 60)

/* Take the lock `name` in the folder `s->fd`, and wait while another has it:
 * `meter` is told of waiting 10 times a second, with what the holder has put
 * into the file. `*ret_fd` holds it until it is closed; -1: the file system
 * has no locks, where those are optional. Fails as space_fault(). */
int lock_take(const struct space *s, const char *name, bool is_optional,
              struct meter *meter, int *ret_fd, struct err *e);

/* Take it only where nobody has it and it can be had at once. -1: no. */
int lock_try(const struct space *s, const char *name);

#endif
