/* blame: how calls fail, whatever they go over: the words, and the telling. */
#ifndef DDP_BLAME_H
#define DDP_BLAME_H

#include "ddp/comm.h"

#define DDP_WHY 256

/* End the call in progress with an error of this rank's: fill *err, tell the
 * other ranks. Returns `code`. */
int ddp_blame(struct ddp_comm *c, const struct ddp_request *q,
              struct ddp_error *err, int code, int peer, const char *why);

/* The same with the words of a FAULT frame that came. */
int ddp_blame_by_frame(struct ddp_comm *c, const struct ddp_frame *f,
                       struct ddp_error *err);

int ddp_blame_aborted(struct ddp_comm *c, const struct ddp_request *q,
                      struct ddp_error *err);

/* A rank is gone: it has left, or its connection ended with `error`. */
int ddp_blame_lost(struct ddp_comm *c, const struct ddp_request *q,
                   struct ddp_error *err, int peer, bool has_left, int error);

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
