/* facts: what this machine knows about deaths: the cgroup's count of OOM
 * kills, and how full /dev/shm is. */
#ifndef SUPERVISE_FACTS_H
#define SUPERVISE_FACTS_H

#include <stdint.h>

/* OOM kills in this container's memory cgroup so far (v2 memory.events, v1
 * memory.oom_control), or 0 where it cannot be read. */
uint64_t facts_oom_kills(void);

/* Size and used bytes of /dev/shm; 0, 0 where there is none. */
void facts_shm(uint64_t *ret_bytes, uint64_t *ret_used);

#endif
