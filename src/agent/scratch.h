/* scratch: the folder that an agent has for itself in memory, or in /tmp, with
 * the error files of its workers.
 *
 * A living agent holds a lock on its folder. So what a killed one left can be
 * told from that of a living one, and an agent can see that others use this
 * /dev/shm, in whatever container they are. */
#ifndef AGENT_SCRATCH_H
#define AGENT_SCRATCH_H

#include <stdbool.h>
#include <stdint.h>

#define SCRATCH_PATH_MAX 64
#define SCRATCH_AGE_S 60 /* A younger folder may have no lock yet. */

struct scratch {
    uint64_t id;  /* Random; of this agent. */
    uint32_t job; /* The same for all agents of the job. */
    int lock_fd;  /* -1: none. */
    char path[SCRATCH_PATH_MAX]; /* ""; or the folder. */
};

/* Which job this is: pods of one job at one pod 0 have one number. `id` where
 * the pod is the job. */
uint32_t scratch_job(const char *job_id, const char *zero, uint32_t nnodes,
                     uint64_t id);

/* Make it, once; path stays "" where it cannot be made. The lock costs a
 * little and may come later. */
void scratch_make(struct scratch *s);
void scratch_lock(struct scratch *s);

/* In the folder `root` of such folders: remove those of this user whose agents
 * are dead. True where a living agent of another job has one there. */
bool scratch_sweep(const struct scratch *own, const char *root, int age_s);

/* At the end: remove it, with what workers put there. */
void scratch_end(struct scratch *s);
/* After this agent's death, in its guard: remove it with all that is in it. */
void scratch_forget(const struct scratch *s);

#endif
