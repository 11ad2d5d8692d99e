/* nccl_abi: the part of NCCL's and the CUDA runtime's binary interfaces that
 * libddp uses, declared here so that no header of theirs is needed to build.
 * tests/unit/test_ddp_nccl_abi.c compares it with an official nccl.h where one
 * is present. Numbers and layouts are those of NCCL 2.18; later versions add
 * at the end, and take the size that a struct says. */
#ifndef DDP_NCCL_ABI_H
#define DDP_NCCL_ABI_H

#include <limits.h>
#include <stddef.h>

#define DDP_NCCL_OLDEST 21800 /* X * 10000 + Y * 100 + Z. */
#define DDP_NCCL_MAJOR 2
#define DDP_NCCL_MAGIC 0xcafebeefu
#define DDP_NCCL_UNDEF INT_MIN

enum ddp_nccl_result {
    DDP_NCCL_SUCCESS = 0,
    DDP_NCCL_CUDA_ERROR = 1,
    DDP_NCCL_SYSTEM_ERROR = 2,
    DDP_NCCL_INTERNAL_ERROR = 3,
    DDP_NCCL_INVALID_ARGUMENT = 4,
    DDP_NCCL_INVALID_USAGE = 5,
    DDP_NCCL_REMOTE_ERROR = 6,
    DDP_NCCL_IN_PROGRESS = 7,
};

struct ddp_nccl_id {
    char bytes[128];
};

struct ddp_nccl_config { /* ncclConfig_t, up to what 2.18 has. */
    size_t size;
    unsigned magic, version;
    int blocking, cga_cluster_size, min_ctas, max_ctas;
    const char *net_name;
    int split_share;
};

struct ddp_nccl_comm; /* Opaque: what ncclComm_t points to. */

/* cudaPointerAttributes of CUDA 11 and later, with room for more. */
struct ddp_cuda_attributes {
    int type, device; /* enum ddp_cuda_memory. */
    void *device_pointer, *host_pointer;
    char room[256];
};

enum ddp_cuda_memory {
    DDP_CUDA_UNREGISTERED,
    DDP_CUDA_HOST,
    DDP_CUDA_DEVICE,
    DDP_CUDA_MANAGED,
};

#define DDP_CUDA_ECC 214
#define DDP_CUDA_NOT_READY 600
#define DDP_CUDA_BROKEN 700 /* An illegal address; to 799 they are like it. */
#define DDP_CUDA_COPY_DEFAULT 4
#define DDP_CUDA_EVENT_PLAIN 2  /* Without timing. */
#define DDP_CUDA_STREAM_PLAIN 1 /* Does not wait for the default one. */
/* CUDA takes the highest priority that it has for it: else a reduction starts
 * only when the backward pass's kernels leave multiprocessors unused. */
#define DDP_CUDA_STREAM_FIRST (-100)

#endif
