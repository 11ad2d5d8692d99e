/* bench_device: what its parts share. Links no CUDA: each library is opened
 * where it is needed. One thread. */
#ifndef BENCH_DEVICE_H
#define BENCH_DEVICE_H

#include "ddp.h"

#include <stdbool.h>
#include <stddef.h>

#define MIB ((size_t)1 << 20)

struct bench_cuda {
    int (*malloc)(void **, size_t);
    int (*stream_new)(void **);
    int (*copy)(void *, const void *, size_t, int);
    int (*set_device)(int);
    int (*memset)(void *, int, size_t);
    int (*copy_async)(void *, const void *, size_t, int, void *);
    int (*wait)(void *);
    int (*pci_bus_id)(char *, int, int);
};

enum beside { BESIDE_FP32, BESIDE_TF32, BESIDE_COPIES };

/* What NVML saw in some steps; zeros where it has no answer. */
struct power {
    double watts, mhz;
    double capped; /* The part of the steps in which it was at its limit. */
};

extern struct bench_cuda cuda;
extern struct ddp_comm *comm;
extern struct ddp_error err;
extern void *stream;

double now(void); /* Seconds. */

/* The first of two libraries that is there, and n of its calls. */
bool find(const char *const libs[2], const char *const *names, unsigned n,
          void *ret);

/* Says what failed; the exit code. */
int fail(void);

/* bench_overlap.c: grads has 16 * 25 MiB. The exit code. */
int overlap(char *grads, enum beside beside);

/* bench_power.c: of this rank's GPU. Begin, look while the GPU works, end. */
void power_begin(void);
void power_look(void);
struct power power_end(void);

#endif
