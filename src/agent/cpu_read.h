/* cpu_read: the CPUs that this process may use, how they are arranged, and
 * near which of them the GPUs are: from sysfs and the drivers' own files.
 *
 * `root` stands before /sys, /proc and /dev; "" but in tests. */
#ifndef AGENT_CPU_READ_H
#define AGENT_CPU_READ_H

#include "agent/cpu_plan.h"

#define CPU_GPUS_MAX 64

/* What this thread may use: its affinity, which lies within its cgroup's
 * cpuset. Fails where the kernel does not say. */
int cpu_allowed(struct cpu_mask *ret);

/* Of `allowed` alone. Fails with ERR_RESOURCE where sysfs says nothing. */
int cpu_read(const char *root, const struct cpu_mask *allowed,
             struct cpu_machine *ret, struct err *e);

/* The nodes of the `n` GPUs that a worker sees, in CUDA's order, where
 * `visible` is CUDA_VISIBLE_DEVICES or NULL, and `order` CUDA_DEVICE_ORDER.
 * Fails with ERR_RESOURCE where that of one is not known. */
int cpu_gpu_nodes(const char *root, const char *visible, const char *order,
                  unsigned n, uint16_t *ret, struct err *e);

#endif
