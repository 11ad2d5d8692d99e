/* small: all_reduce of few bytes, and barrier, over pairs (double.h, pair.h).
 *
 * Each rank sends its CALL frame and all elements in one piece to its partner
 * of a step, and waits for those of the partner; there is no other message.
 * Elements of a later step may come early, and wait in their pair's buffer.
 * A rank that waits long says so to those who wait for it, and to the
 * neighbours in the ring, as in ring.c. A rank that has sent its part may be
 * through and silent, but never before: who waits for it may blame it.
 * The connections of the ring tell of a failure elsewhere, and of a rank that
 * is in another call. */
#ifndef DDP_SMALL_H
#define DDP_SMALL_H

#include "ddp/meet.h"

/* Whether a call is small, on the ring of all or a rail: the same on all
 * ranks. */
bool ddp_small_fits(const struct ddp_links *l, const struct ddp_request *q);

int ddp_small_run(struct ddp_comm *c, struct ddp_links *l,
                  const struct ddp_request *q, struct ddp_error *err);

/* The pairs of a ring, without connections, whose ranks are seats; false: no
 * memory. */
bool ddp_pairs_make(struct ddp_links *l);
void ddp_pairs_free(struct ddp_links *l);

/* Connect the pairs of a new ring, by the listener of its ddp_init; without
 * pairs where one of them cannot be had. An error only where the ring broke. */
int ddp_small_connect(struct ddp_comm *c, const struct ddp_boot *b,
                      const struct ddp_home *homes, struct ddp_error *err);

#endif
