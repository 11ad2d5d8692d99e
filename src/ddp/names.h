/* names: which variables hold a rank's place, by launcher. Pure. */
#ifndef DDP_NAMES_H
#define DDP_NAMES_H

#include <stddef.h>
#include <stdint.h>

struct ddp_names {
    const char *launcher;
    const char *rank, *size, *local_rank, *local_size;
    const char *job;
    /* Of Slurm alone, else NULL: the step within the job, its nodes as
     * "n[01-03],m7", its tasks on each node as "2(x3),1", this node. */
    const char *step, *nodes, *tasks, *node;
};

#define DDP_N_NAMES 3
#define DDP_NAMES_TORCHRUN 0 /* Also agent's. */

extern const struct ddp_names ddp_names[DDP_N_NAMES];

/* The first host of a list of Slurm's. 0, or -1 where it is none or too long
 * for `cap` bytes. */
int ddp_names_first_host(const char *list, char *ret, size_t cap);

/* The tasks on node number `node`, of "2(x3),1". 0, or -1 where it is none. */
int ddp_names_tasks(const char *list, unsigned node, int *ret);

/* A port for a job without MASTER_PORT, below the range of outgoing
 * connections: the same for all that know its name. */
uint16_t ddp_names_port(const char *job);

#endif
