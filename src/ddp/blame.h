/* blame: how calls fail, whatever they go over: the words, and the telling. */
#ifndef DDP_BLAME_H
#define DDP_BLAME_H

#include "ddp/comm.h"

#define DDP_WHY 256

/* End the call in progress with an error of this rank's: fill *err, tell the
 * other ranks. Returns `code`. */
int ddp_blame(struct ddp_comm *c, const struct ddp_request *q,
              struct ddp_error *err, int code, int peer, const char *why);

/* The same with the words of a FAULT frame that came from rank `from` (-1: by
 * the shared memory), unless it blames a rank that was lost after another one,
 * as was seen here. */
int ddp_blame_by_frame(struct ddp_comm *c, const struct ddp_request *q,
                       const struct ddp_frame *f, int from,
                       struct ddp_error *err);

int ddp_blame_aborted(struct ddp_comm *c, const struct ddp_request *q,
                      struct ddp_error *err);

/* A rank is gone: it has left, or its connection ended with `error`. Another
 * one that ended before is to blame in its place, as it may be the cause. */
int ddp_blame_lost(struct ddp_comm *c, const struct ddp_request *q,
                   struct ddp_error *err, int peer, bool has_left, int error);

/* The first rank that has ended, without having told why, left by ddp_free or
 * done its part of this call, is an error. 0: there is none. */
int ddp_blame_dead(struct ddp_comm *c, const struct ddp_request *q,
                   struct ddp_error *err);

/* Whether what is known of a lost rank is all that will be: either all ranks
 * are watched, or one was lost before and is the one to blame. Else another
 * rank may be about to tell of an earlier loss. */
bool ddp_blame_knows(struct ddp_comm *c);

/* The deadline passed; `peer` is silent (-1: none is), and whether it is in
 * this call. */
int ddp_blame_late(struct ddp_comm *c, const struct ddp_request *q,
                   struct ddp_error *err, int peer, bool has_call);

/* This rank's CALL frame. */
void ddp_call_frame(const struct ddp_comm *c, const struct ddp_request *q,
                    struct ddp_frame *ret);

/* Compare rank `peer`'s CALL frame with this rank's: 0, or the error. */
int ddp_blame_difference(struct ddp_comm *c, const struct ddp_request *q,
                         struct ddp_error *err, int peer,
                         const struct ddp_frame *m, const struct ddp_frame *f);

#endif
