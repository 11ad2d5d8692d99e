/* watch: is all well, while this rank waits for something that is not the
 * ring's own: NCCL, a stream? */
#ifndef DDP_WATCH_H
#define DDP_WATCH_H

#include "ddp/comm.h"

struct ddp_watch {
    struct ddp_comm *c;
    const struct ddp_request *q;
    struct ddp_error *err;
    uint64_t deadline;
    uint64_t lost_until; /* A neighbour is gone: then it is an error; or 0. */
    struct ddp_conn *lost;
};

void ddp_watch_begin(struct ddp_watch *w, struct ddp_comm *c,
                     const struct ddp_request *q, struct ddp_error *err);

/* 0, or the error that ends the call: another rank's, ddp_abort. Not the
 * deadline: whoever waits knows what for. Does not block. */
int ddp_watch_look(struct ddp_watch *w, uint64_t now);

#endif
