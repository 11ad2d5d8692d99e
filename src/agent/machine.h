/* machine: what this pod's machine offers: CPUs, GPUs, a name, random bits. */
#ifndef AGENT_MACHINE_H
#define AGENT_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* CPUs that this process may use: affinity and the cgroup's quota (v1 and v2,
 * rounded up), at least 1. The quota is not looked at where there are at most
 * `few` without it: for who counts no further down. */
unsigned machine_cpus(unsigned few);

/* GPUs, counted without any driver library: CUDA_VISIBLE_DEVICES, else
 * NVIDIA_VISIBLE_DEVICES and /dev/nvidia<N>, else the GPU nodes of /dev/kfd. */
unsigned machine_gpus(void);
/* The same with everything given; for tests. `root` stands before /dev and
 * /sys; NULL variables are unset. */
unsigned machine_count_gpus(const char *cuda_visible,
                            const char *nvidia_visible, const char *root);

/* Random bits; from the clock and the pid where the kernel has none yet. */
uint64_t machine_random(void);

/* The limit of open descriptors. */
struct machine_files {
    bool raised;
    uint64_t before, now; /* Soft limit. */
};

/* Raise the soft limit to the hard one where it is below `need`. Children
 * inherit it: give workers `before` again. */
void machine_raise_files(uint64_t need, struct machine_files *ret);

/* The addresses of this machine's interfaces but loopback, with commas between
 * them: as many as fit in `cap`. */
void machine_addresses(char *out, size_t cap);

void machine_host(char *out, unsigned cap);

#endif
