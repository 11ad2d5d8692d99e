/* comm: a communicator's insides, and the collectives over its ring.
 *
 * A call sends its CALL frame to both neighbours, then elements to the next
 * rank, and takes elements from the rank before once that one's CALL frame
 * fits. It is over when all steps of its schedule are done and both CALL
 * frames are in. While nothing moves, it sends PINGs, so that whoever times
 * out can tell a rank that is silent from one that waits itself.
 * Failures: a FAULT frame; the end of a connection whose rank is still
 * needed; a CALL that differs; the deadline; ddp_abort. Each is told to both
 * neighbours and closes the ring, so that it goes round at once. */
#ifndef DDP_COMM_H
#define DDP_COMM_H

#include "ddp/boot.h"
#include "ddp/cuda.h"
#include "ddp/lives.h"
#include "ddp/schedule.h"
#include "ddp/shm.h"

#include <stdatomic.h>

#define DDP_SCRATCH (128 * 1024) /* Bytes taken off the wire at a time. */

struct ddp_comm {
    int rank, size, local_rank;
    uint64_t timeout_ms;
    uint64_t n_calls; /* Collectives so far; the same on all ranks. */
    struct ddp_links links; /* Of size > 1: the ring of all. */
    struct ddp_links rail;  /* Seats > 0: that of rails.h. */
    struct ddp_shm *shm;    /* Where all ranks share memory: share.h; with
                             * rails, that of this pod's. */
    struct ddp_lives lives; /* Of the ranks that this one has to do with. */
    bool is_sharing;        /* A call goes over the memory. */
    bool has_fault;         /* One came while blame.c looked for the dead: */
    struct ddp_frame fault; /* this. */
    uint8_t *scratch;
    struct ddp_cuda cuda;   /* Open where device memory may come. */
    struct ddp_nccl *nccl;  /* From the first call of device memory on. */
    atomic_uint queues;     /* enum ddp_queues: they return once queued. */
    int wake_fd; /* An eventfd: readable once aborted. */
    atomic_bool is_aborted;
    atomic_flag busy;        /* A thread is inside a call. */
    struct ddp_error broken; /* The first error; its code is 0 before. */
};

/* Who wants calls of device memory queued. */
enum ddp_queues { DDP_QUEUES_CALLER = 1, DDP_QUEUES_REDUCER = 2 };

/* A collective, checked; `send` and `recv` as in ddp.h. Or a part of one, which
 * has the same deadline, and says what it is a part of. */
struct ddp_request {
    enum ddp_what what;
    const void *send;
    void *recv;
    size_t count, width;
    int type, op;
    unsigned root;
    const struct ddp_request *whole; /* NULL: this is no part. */
    uint64_t deadline;
    size_t total; /* Of all ranks' blocks, where the last ones are shorter. */
};

/* Make the ring from *conf, as ddp_init; NULL with *err. */
struct ddp_comm *ddp_comm_new(const struct ddp_conf *conf,
                              struct ddp_error *err);
void ddp_comm_free(struct ddp_comm *c);

/* Carry out a collective of two or more ranks, over whatever is best. */
int ddp_host_run(struct ddp_comm *c, const struct ddp_request *q,
                 struct ddp_error *err);

/* Carry out a collective on a ring of two or more ranks: that of all, or any
 * of this rank's. */
int ddp_ring_run(struct ddp_comm *c, const struct ddp_request *q,
                 struct ddp_error *err);
int ddp_ring_run_on(struct ddp_comm *c, struct ddp_links *l,
                    const struct ddp_request *q, struct ddp_error *err);

/* Fail for want of memory, while ddp_init runs, and tell the others. */
int ddp_comm_no_memory(struct ddp_comm *c, struct ddp_error *err);

/* Tell the other ranks of this rank's error, and close the ring. */
void ddp_comm_tell(struct ddp_comm *c, const struct ddp_error *e);

/* Break the communicator with *e, which the other ranks are told. No thread
 * is in a call. */
void ddp_comm_break(struct ddp_comm *c, const struct ddp_error *e);

/* Say a last word to all that this rank is connected to, and close. */
void ddp_comm_end(struct ddp_comm *c, const struct ddp_frame *last);

#endif
