/* share: collectives among ranks that share memory (shm.h).
 *
 * A call is a row of chunks, numbered on from those of the calls before. Each
 * rank stages its part of a chunk in its slot, for the others to read; waits
 * until the others have; and takes what it needs from theirs. In a large
 * all_reduce each rank reduces one share of the chunk, and the others copy
 * the result from its slot; in a small one each rank reduces all by itself,
 * which saves a wait. All reductions go from rank 0's elements to the last
 * rank's, so that the result is one and the same.
 *
 * The control connections of the ring stay open: their ends tell that a
 * neighbour died. All other bad news is in the shared memory. Where the call
 * is a part of one that goes over rails as well (rails.h), ranks of other pods
 * tell by those connections what they know, and hear that this one waits. */
#ifndef DDP_SHARE_H
#define DDP_SHARE_H

#include "ddp/beside.h"
#include "ddp/comm.h"
#include "ddp/shm.h"

/* A call in progress. */
struct ddp_share {
    struct ddp_comm *c;
    struct ddp_shm *s;
    const struct ddp_request *q;
    struct ddp_error *err;
    struct ddp_frame mine;   /* The CALL frame. */
    struct ddp_beside ring, rail;
    bool is_compared;        /* Another part has compared the CALL frames. */
    uint32_t first, last;    /* Its chunks. */
    size_t n_elements;       /* Of all chunks but the last. */
    bool is_small;           /* Each rank reduces all by itself. */
    uint64_t deadline;       /* 0: the clock has not been asked yet, */
    bool is_listening;       /* nor the others been looked at. */
    uint64_t next_ping;
    uint64_t silent_ms;      /* So long without a sign is silence. */
    const struct ddp_conn *lost; /* This one is gone, and another rank may
                                  * tell why, */
    uint64_t lost_until;         /* until then. */
    uint64_t dead_until;         /* So for a process that ended; 0: none. */
};

enum ddp_stage { DDP_STAGED, DDP_REDUCED, DDP_DONE };

/* Wait until rank r, or all ranks, have come to `chunk`. 0, or the error. */
int ddp_share_wait(struct ddp_share *x, unsigned r, enum ddp_stage stage,
                   uint32_t chunk);
int ddp_share_wait_all(struct ddp_share *x, enum ddp_stage stage,
                       uint32_t chunk);

/* Carry out a collective. */
int ddp_share_run(struct ddp_comm *c, const struct ddp_request *q,
                  struct ddp_error *err);

#endif
