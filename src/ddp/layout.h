/* layout: which ranks share a machine, and so which rails there are.
 *
 * Pure. A pod is the ranks of one host; rail s is the ranks that are number s
 * of their pods. There are rails where there are at least two pods of equally
 * many ranks, at least two, and where the order of the pods and that of the
 * ranks is one and the same on each rail: that of pods of consecutive ranks,
 * or of ranks that are dealt out one by one. */
#ifndef DDP_LAYOUT_H
#define DDP_LAYOUT_H

#include "ddp/frame.h"

#include <stdbool.h>

struct ddp_layout {
    unsigned n_pods, n_seats;
    unsigned pod, seat; /* Of this rank. */
    unsigned *ranks;    /* Room for all; [pod * n_seats + seat]. */
};

/* From the host of each rank: hosts + r * stride is that of rank r, as in
 * shm.h. False where there are no rails. */
bool ddp_layout_find(struct ddp_layout *l, const uint8_t *hosts, size_t stride,
                     unsigned rank, unsigned size);

static inline unsigned ddp_layout_rank(const struct ddp_layout *l,
                                       unsigned pod, unsigned seat)
{
    return l->ranks[pod * l->n_seats + seat];
}

#endif
