/* double: with whom a rank exchanges its elements in a small all_reduce.
 *
 * Pure. Recursive doubling: in step k each rank exchanges all elements with
 * the one whose number differs in bit k, and both combine the two, the lower
 * rank's first, so that after log2(n) steps all have the same bits. Where n is
 * no power of two, each odd rank below 2 * rest first takes in the elements of
 * the even one below it, and gives it the result at the end. */
#ifndef DDP_DOUBLE_H
#define DDP_DOUBLE_H

#include <stdbool.h>

#define DDP_PAIRS_MAX 13 /* Of DDP_SIZE_MAX ranks: 11 steps and one that is
                          * folded in, or 12. */
#define DDP_STEPS_MAX (DDP_PAIRS_MAX + 1)

struct ddp_step {
    unsigned pair; /* Of ddp_double_pairs(). */
    bool sends, receives;
    bool combines; /* What is received: else it is the result. */
};

/* The ranks that rank `rank` of `size` has to do with; their number. */
unsigned ddp_double_pairs(unsigned rank, unsigned size,
                          unsigned ret[DDP_PAIRS_MAX]);

/* What to do, in order; the number of steps. */
unsigned ddp_double_steps(unsigned rank, unsigned size,
                          struct ddp_step ret[DDP_STEPS_MAX]);

#endif
