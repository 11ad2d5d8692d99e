/* cuda: the CUDA runtime, opened where it is: whether memory is a device's,
 * and whether a stream has done its work. */
#ifndef DDP_CUDA_H
#define DDP_CUDA_H

#include "ddp/nccl_abi.h"

#include <stdbool.h>

#define DDP_CUDA_WHY 200

struct ddp_cuda {
    void *handle; /* NULL: not open. */
    int (*attributes)(struct ddp_cuda_attributes *ret, const void *p);
    int (*event_new)(void **ret, unsigned flags);
    int (*event_record)(void *event, void *stream);
    int (*event_query)(void *event);
    int (*event_free)(void *event);
    int (*copy)(void *to, const void *from, size_t n, int kind, void *stream);
    int (*stream_new)(void **ret, unsigned flags, int priority);
    int (*stream_free)(void *stream);
    int (*stream_wait)(void *stream, void *event, unsigned flags);
    int (*malloc)(void **ret, size_t n);
    int (*free)(void *p);
    int (*get_device)(int *ret);
    int (*set_device)(int device);
    int (*last_error)(void); /* Takes it off, too. */
    const char *(*text)(int error);
};

/* Open it. `fresh` false: only where this process has loaded it already, as
 * one that has device memory must have. False: there is none, and why. */
bool ddp_cuda_open(struct ddp_cuda *ret, bool fresh, char why[DDP_CUDA_WHY]);

/* 1: device or managed memory; 0: not; -error: CUDA cannot tell, as a kernel
 * or a copy has broken it for this process. */
int ddp_cuda_is_device(const struct ddp_cuda *c, const void *p);

/* 1: what was on the stream when the event was recorded is done; 0: not yet;
 * -error. */
int ddp_cuda_is_done(const struct ddp_cuda *c, void *event);

#endif
