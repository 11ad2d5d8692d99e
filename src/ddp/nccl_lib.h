/* nccl_lib: libnccl.so.2, opened into one struct of pointers. */
#ifndef DDP_NCCL_LIB_H
#define DDP_NCCL_LIB_H

#include "ddp/nccl_abi.h"

#include <stdbool.h>

#define DDP_NCCL_PATH 256

struct ddp_nccl_lib {
    void *handle;
    int version; /* As of ncclGetVersion. */
    char path[DDP_NCCL_PATH];
    int (*get_version)(int *);
    int (*get_id)(struct ddp_nccl_id *);
    int (*init)(struct ddp_nccl_comm **, int, struct ddp_nccl_id, int,
                struct ddp_nccl_config *);
    int (*split)(struct ddp_nccl_comm *, int, int, struct ddp_nccl_comm **,
                 struct ddp_nccl_config *);
    int (*async_error)(struct ddp_nccl_comm *, int *);
    int (*count)(struct ddp_nccl_comm *, int *);
    int (*finalize)(struct ddp_nccl_comm *);
    int (*destroy)(struct ddp_nccl_comm *);
    int (*abort)(struct ddp_nccl_comm *);
    const char *(*text)(int);
    const char *(*last_error)(struct ddp_nccl_comm *);
    int (*all_reduce)(const void *, void *, size_t, int, int,
                      struct ddp_nccl_comm *, void *);
    int (*reduce_scatter)(const void *, void *, size_t, int, int,
                          struct ddp_nccl_comm *, void *);
    int (*all_gather)(const void *, void *, size_t, int,
                      struct ddp_nccl_comm *, void *);
    int (*broadcast)(const void *, void *, size_t, int, int,
                     struct ddp_nccl_comm *, void *);
};

/* False: there is none that will do, and why. One that the program has, or
 * LD_PRELOAD brought, goes before what the dynamic linker finds. */
bool ddp_nccl_open(struct ddp_nccl_lib *ret, char *why, size_t cap);

/* "2.27.3" */
void ddp_nccl_version(int code, char *out, size_t cap);

/* What an error of NCCL likely means, for a message; "" where nothing is
 * known. Looks at /dev/shm, limits and interfaces. */
void ddp_nccl_hint(int result, const char *last, char *out, size_t cap);

#endif
