/* beside: the connections that a call does not go over, while it waits.
 *
 * A neighbour there may tell of a failure, or be in another call; and it may
 * wait for this rank, in the next call or in another part of this one, so that
 * this rank says that it is there. That a connection ends is told to the
 * caller, but is no error by itself: its rank may be through with the call. */
#ifndef DDP_BESIDE_H
#define DDP_BESIDE_H

#include "ddp/comm.h"

#include <poll.h>

struct ddp_beside {
    struct ddp_comm *c;
    const struct ddp_request *q;
    struct ddp_error *err;
    const struct ddp_frame *mine; /* The CALL frame of this call. */
    struct ddp_links *l;          /* NULL: there are none. */
    bool has_part;   /* Another part of this call goes over them: its CALL
                      * frames may come by now. */
    bool is_gone[2]; /* The ring's connections have ended: prev, next. */
};

/* What the neighbours have said before this call began, and by now. */
int ddp_beside_begin(struct ddp_beside *b);

/* Read what one neighbour says: side 0 is prev, 1 next. */
int ddp_beside_hear(struct ddp_beside *b, unsigned side);

/* Tell all that this rank is here, and whom it waits for (-1: nobody). */
void ddp_beside_ping(struct ddp_beside *b, int waits_for);

/* The same; and to the ranks of the shared memory, which may tell of a failure
 * in turn. */
int ddp_beside_tick(struct ddp_beside *b, int waits_for);

/* For poll, and after it. */
void ddp_beside_poll(const struct ddp_beside *b, struct pollfd p[2]);
int ddp_beside_turn(struct ddp_beside *b, const struct pollfd p[2]);

#endif
