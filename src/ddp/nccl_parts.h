/* nccl_parts: what the files of nccl.h share. */
#ifndef DDP_NCCL_PARTS_H
#define DDP_NCCL_PARTS_H

#include "ddp/cuda.h"
#include "ddp/nccl_lib.h"
#include "ddp/watch.h"

struct ddp_nccl {
    struct ddp_nccl_lib lib;
    const struct ddp_cuda *cuda; /* Borrowed of the communicator. */
    struct ddp_nccl_comm *comm;  /* NULL: not made. */
    void *event;                 /* NULL: not made. */
    int cuda_error;              /* The last one; 0: none. */
};

/* End the call with an error of NCCL's: what it says, whose it is, what it
 * likely means. Returns the code. */
int ddp_nccl_fail(struct ddp_nccl *n, struct ddp_watch *w, const char *doing,
                  int result);

/* For ddp_nccl_wait(): NCCL has done what a call of it began. */
int ddp_nccl_is_settled(struct ddp_nccl *n, int *ret);

/* Make w->c->nccl, on all ranks or none. */
int ddp_nccl_make(struct ddp_watch *w);

/* Until `is_done` gives 1, or -1 with an enum ddp_nccl_result, or anything
 * else ends the call. */
int ddp_nccl_wait(struct ddp_nccl *n, struct ddp_watch *w, const char *doing,
                  int (*is_done)(struct ddp_nccl *n, int *ret_error));

#endif
