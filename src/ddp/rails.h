/* rails: all_reduce and barrier of several pods that have several ranks each.
 *
 * In a pod data goes through its shared memory (share.h), between pods over
 * rails: rail s is a ring, and pairs, of the ranks that have seat s in their
 * pods (layout.h). A large all_reduce has three parts: a reduce_scatter in
 * each pod, an all_reduce of each share on its rail, an all_gather in each pod.
 * A small one has two: an all_reduce in each pod, then the same elements go by
 * recursive doubling on all rails alike. All other calls go over the ring of
 * all.
 *
 * Each part is a call of its kind with the deadline, the CALL frame and the
 * errors of the whole. A rank that waits in one part says so to those who may
 * wait for it in another (beside.h), so that who is named is one who is
 * silent. A failure is told to all whom this rank is connected to. */
#ifndef DDP_RAILS_H
#define DDP_RAILS_H

#include "ddp/meet.h"

/* Whether a call goes over rails: the same on all ranks. */
bool ddp_rails_fits(const struct ddp_comm *c, const struct ddp_request *q);

int ddp_rails_run(struct ddp_comm *c, const struct ddp_request *q,
                  struct ddp_error *err);

/* Make the pods' memories and the rails, where the layout has some and all
 * ranks can have theirs: else c->rail.seats stays 0. An error only where the
 * ring broke. */
int ddp_rails_connect(struct ddp_comm *c, const struct ddp_boot *b,
                      const struct ddp_home *homes, struct ddp_error *err);

#endif
