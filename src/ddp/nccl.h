/* nccl: collectives of device memory, by NCCL.
 *
 * libnccl.so.2 is opened at the first such call, which all ranks make: they
 * tell each other over the host's ring whether they have it, and which, and
 * rank 0's id; so one that has none is an error on all, at once. The id is
 * made for that one try and never used again. What of NCCL's may hang is done
 * aside; while that goes on, or work is on the stream, this side looks whether
 * it is done, whether NCCL has failed, whether another rank has died or told
 * of a failure, whether ddp_abort was called and whether time is up; each of
 * these ends the call, aborts NCCL's communicator and is told to the others. */
#ifndef DDP_NCCL_H
#define DDP_NCCL_H

#include "ddp/comm.h"
#include "ddp/cuda.h"

struct ddp_nccl;

/* Open the CUDA runtime if this process has loaded it: then buffers without a
 * stream may be a device's. */
void ddp_nccl_look(struct ddp_comm *c);

/* Whether `p` is device memory, for the call `name`. 0, or DDP_ESYSTEM where
 * CUDA has failed before: the communicator ends, as the call would read a
 * device's memory as the host's. */
int ddp_nccl_is_device(struct ddp_comm *c, const char *name, const void *p,
                       bool *ret, struct ddp_error *err);

/* Whether the call's memory is a device's; *ret is that. 0, or DDP_EINVAL or
 * DDP_ENOTSUP. Opens the CUDA runtime where a stream is given. */
int ddp_nccl_wants(struct ddp_comm *c, const struct ddp_request *q,
                   const void *stream, bool *ret, struct ddp_error *err);

/* Carry out a checked collective of device memory on `stream`; where c->queues
 * is set, only put it there. */
int ddp_nccl_run(struct ddp_comm *c, const struct ddp_request *q, void *stream,
                 struct ddp_error *err);

/* Until all that was put is done. */
int ddp_nccl_drain(struct ddp_comm *c, struct ddp_error *err);

/* NULL is ignored; `aborts`: what is under way is thrown away. */
void ddp_nccl_free(struct ddp_nccl *n, bool aborts);

#endif
