/* nccl_parts: what the files of nccl.h share. */
#ifndef DDP_NCCL_PARTS_H
#define DDP_NCCL_PARTS_H

#include "ddp/aside.h"
#include "ddp/cuda.h"
#include "ddp/nccl_lib.h"
#include "ddp/watch.h"

#include <semaphore.h>
#include <stdatomic.h>

#define DDP_NCCL_QUEUE 64  /* Calls that are on streams at a time. */
#define DDP_NCCL_SHAPES 256
#define DDP_NCCL_LOOK_NS 1000000 /* Between two looks at what may go wrong. */

/* Calls that are alike to NCCL: which algorithm it takes depends on these. */
struct ddp_nccl_shape {
    int used, what, type, op;
    unsigned root;
    size_t count;
};

struct ddp_nccl {
    struct ddp_nccl_lib lib;
    const struct ddp_cuda *cuda; /* Borrowed of the communicator. */
    struct ddp_nccl_keeper *keeper; /* Of the communicators; NULL: none. */
    struct ddp_aside *kept;         /* Its thread. */
    struct ddp_nccl_comm *comm;     /* For calls; NULL: not made. */
    int device;                  /* The current one when it was made. */
    int cuda_error;              /* The last one; 0: none. */
    /* Call number i is over with events[i % DDP_NCCL_QUEUE]. */
    void *events[DDP_NCCL_QUEUE]; /* NULL: not made. */
    uint64_t n_put, n_over;       /* Calls on streams; known to be done. */
    uint64_t looked_ns;           /* When it was last asked if all is well. */
    struct ddp_request last;      /* The call put last. */
    struct ddp_nccl_shape shapes[DDP_NCCL_SHAPES]; /* That were there. */
    struct ddp_aside *aside;      /* While a call of NCCL's is made there. */
};

/* What the thread has that connects the ranks, and ends that again. */
struct ddp_nccl_keeper {
    struct ddp_nccl_lib lib;
    int (*set_device)(int device);
    int device, size, rank;
    struct ddp_nccl_id id;
    struct ddp_nccl_comm *start; /* Does not block; what `comm` is made of. */
    struct ddp_nccl_comm *split; /* Where NCCL puts that, at any time, */
    bool is_splitting;           /* while this is so. */
    struct ddp_nccl_comm *comm;  /* Blocks. */
    atomic_int result;   /* Of connecting; DDP_NCCL_IN_PROGRESS: not yet. */
    atomic_bool is_held; /* By a call that it does not come back from. */
    atomic_int order;    /* How to end; with that it is posted: */
    sem_t ordered;
};

/* A collective, which may hang in NCCL. */
struct ddp_nccl_job {
    int (*run)(struct ddp_nccl_job *j); /* Gives an enum ddp_nccl_result. */
    struct ddp_nccl_lib lib;
    int (*set_device)(int device);
    int device;
    struct ddp_nccl_comm *comm;
    struct ddp_request q;
    void *stream;
    int result;
};

/* Do *j aside, until it is over or anything else ends the call. 0 with what
 * NCCL gave in j->result, or the code. */
int ddp_nccl_apart(struct ddp_nccl *n, struct ddp_watch *w, const char *doing,
                   struct ddp_nccl_job *j);

/* Whether such a call was made before; from now on it was. */
bool ddp_nccl_knows(struct ddp_nccl *n, const struct ddp_request *q);

/* End the call with an error of NCCL's: what it says, whose it is, what it
 * likely means. Returns the code. */
int ddp_nccl_fail(struct ddp_nccl *n, struct ddp_watch *w, const char *doing,
                  int result);

/* 1: NCCL has done what a call on n->comm began, 0: not yet, -1: it failed with
 * *ret. For ddp_nccl_wait(). */
int ddp_nccl_is_settled(struct ddp_nccl *n, int *ret);

/* Make n->comm, in the thread that will end it. */
int ddp_nccl_connect(struct ddp_nccl *n, struct ddp_watch *w, const char *doing,
                     const struct ddp_nccl_id *id);

/* End that, or what there is of it; what hangs in it is left behind. */
void ddp_nccl_disconnect(struct ddp_nccl *n, bool aborts);

/* Make w->c->nccl, on all ranks or none. */
int ddp_nccl_make(struct ddp_watch *w);

/* Until `is_done` gives 1, or -1 with an enum ddp_nccl_result, or anything
 * else ends the call. */
int ddp_nccl_wait(struct ddp_nccl *n, struct ddp_watch *w, const char *doing,
                  int (*is_done)(struct ddp_nccl *n, int *ret_error));

#endif
