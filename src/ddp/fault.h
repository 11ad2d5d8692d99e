/* fault: fill a struct ddp_error; carry one to other ranks. */
#ifndef DDP_FAULT_H
#define DDP_FAULT_H

#include "ddp.h"
#include "ddp/frame.h"

/* Set all of *e and return `code`. `peer` is the rank to blame, or -1. */
int ddp_fault(struct ddp_error *e, int code, int rank, int peer,
              const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* The FAULT frame for an error that was found here. */
void ddp_fault_put(const struct ddp_error *e, struct ddp_frame *ret);

/* Fill *e from a FAULT or REFUSE frame of another rank; returns the code. */
int ddp_fault_take(struct ddp_error *e, int own_rank,
                   const struct ddp_frame *f);

#endif
