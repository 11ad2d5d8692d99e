/* cpu_bind: --cpu-bind and torchrun's --numa-binding at the start: the CPUs of
 * each worker of this pod. */
#ifndef AGENT_CPU_BIND_H
#define AGENT_CPU_BIND_H

#include "agent/cpu_plan.h"

struct cpu_ask {
    enum cpu_bind how;
    bool is_torchrun; /* Worker L belongs to GPU L, and the GPUs share nodes. */
    unsigned nproc, n_gpus, procs_per_gpu;
    const char *visible, *order; /* As of cpu_gpu_nodes(). */
    const char *root;            /* As of cpu_read.h. */
};

struct cpu_binding {
    struct cpu_mask *masks; /* One for each worker; NULL: they are not bound. */
    char why[ERR_TEXT_MAX]; /* Why not, where they should be; or "". */
};

/* Never a wrong binding: where something is not known the workers are not
 * bound. With torchrun that fails, with ERR_USAGE, as it does there. */
int cpu_bind_make(const struct cpu_ask *ask, struct cpu_binding *ret,
                  struct err *e);

#endif
