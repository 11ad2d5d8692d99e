/* role: which pod coordinates where none was given a node rank: the one that
 * has an address of --master-addr on an interface, or whose host name is its
 * first label; of several such agents in one network namespace the first. */
#ifndef RENDEZVOUS_ROLE_H
#define RENDEZVOUS_ROLE_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

/* Sets *ret_coordinates. May wait for the name to resolve, until `timeout_ms`
 * (ERR_BARRIER); a signal to stop that comes meanwhile ends it with 128 + its
 * number as the code. Blocking; all signals must be blocked. */
int role_find(const char *host, unsigned barrier_port, uint64_t timeout_ms,
              bool *ret_coordinates, struct err *e);

/* Pure. Whether `name` is the first label of `host` or all of it. */
bool role_is_named(const char *host, const char *name);

#endif
