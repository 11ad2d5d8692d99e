/* hostlist: Slurm's lists of hosts, "rack[1-2]n[08-10,12],login".
 *
 * Pure. Commas outside of brackets separate elements; an element may have
 * several brackets, of which the last counts fastest; a number that is padded
 * with zeros stays so wide. */
#ifndef AGENT_HOSTLIST_H
#define AGENT_HOSTLIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HOSTLIST_MAX 65536u     /* Hosts of one list. */
#define HOSTLIST_BRACKETS_MAX 8 /* In one element. */
#define HOSTLIST_NAME_MAX 256   /* Bytes of a name, NUL included. */

/* How many hosts; 0 where it is no such list, or has more than the maximum. */
uint32_t hostlist_count(const char *list);

/* The i-th, from 0. False where there is none, or its name is too long. */
bool hostlist_at(const char *list, uint32_t i, char out[HOSTLIST_NAME_MAX]);

#endif
