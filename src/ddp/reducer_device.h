/* reducer_device: what a reducer of device memory does otherwise: copies to
 * and from buckets are put on streams, and events keep the order.
 *
 * On the caller's stream: a gradient's copy into its bucket, and an event once
 * the bucket is whole. On a stream of its own: the wait for that event, the
 * all-reduce, the copies back. ddp_reducer_wait() makes the caller's stream
 * wait for the own one, so what is put on it later sees the averages. */
#ifndef DDP_REDUCER_DEVICE_H
#define DDP_REDUCER_DEVICE_H

#include "ddp/reducer.h"

struct ddp_reducer_device {
    const struct ddp_cuda *cuda; /* The communicator's. */
    int device;
    void *stream, *own; /* The caller's; this one's. */
    void *joined;       /* The event for ddp_reducer_wait(). */
    void **whole;       /* Of each bucket; n_whole are made. */
    size_t n_whole;
};

/* Whether the gradients are in device memory; DDP_EINVAL where some are and
 * some not, DDP_ENOTSUP where that cannot be. */
int ddp_reducer_where(struct ddp_comm *c, const struct ddp_param *params,
                      size_t n, const struct ddp_reducer_options *opt,
                      bool *ret_device, struct ddp_error *e);

/* NULL with *e. */
struct ddp_reducer_device *ddp_reducer_device_new(struct ddp_comm *c,
                                                  void *stream,
                                                  struct ddp_error *e);
/* One event for each of r's buckets; then it can be used. */
int ddp_reducer_device_events(struct ddp_reducer *r, struct ddp_error *e);
void ddp_reducer_device_free(struct ddp_reducer_device *d);

void *ddp_reducer_device_alloc(const struct ddp_reducer_device *d, size_t n);

/* In the caller's thread. */
int ddp_reducer_device_pack(struct ddp_reducer *r, size_t param,
                            struct ddp_error *e);
int ddp_reducer_device_whole(struct ddp_reducer *r, size_t bucket,
                             struct ddp_error *e);
int ddp_reducer_device_join(struct ddp_reducer *r, struct ddp_error *e);

/* In the reducer's: first of all; before and after a bucket's all-reduce. */
void ddp_reducer_device_enter(const struct ddp_reducer *r);
int ddp_reducer_device_begin(struct ddp_reducer *r, size_t bucket,
                             struct ddp_error *e);
int ddp_reducer_device_unpack(struct ddp_reducer *r, size_t bucket,
                              struct ddp_error *e);

#endif
