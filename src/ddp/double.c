/* double: see double.h. */
#include "ddp/double.h"

/* The largest power of two that is not above n > 0. */
static unsigned power_below(unsigned n)
{
    unsigned p = 1;

    while (p <= n / 2)
        p *= 2;
    return p;
}

unsigned ddp_double_pairs(unsigned rank, unsigned size,
                          unsigned ret[DDP_PAIRS_MAX])
{
    unsigned power = power_below(size), rest = size - power, n = 0, seat;

    if (rank < 2 * rest)
        ret[n++] = rank ^ 1;
    if (rank < 2 * rest && rank % 2 == 0)
        return n;
    seat = rank < 2 * rest ? rank / 2 : rank - rest;
    for (unsigned bit = 1; bit < power; bit *= 2) {
        unsigned other = seat ^ bit;

        ret[n++] = other < rest ? 2 * other + 1 : other + rest;
    }
    return n;
}

unsigned ddp_double_steps(unsigned rank, unsigned size,
                          struct ddp_step ret[DDP_STEPS_MAX])
{
    unsigned pairs[DDP_PAIRS_MAX];
    unsigned n_pairs = ddp_double_pairs(rank, size, pairs), n = 0;
    bool folds = rank < 2 * (size - power_below(size));

    if (folds && rank % 2 == 0) {
        ret[n++] = (struct ddp_step){.sends = true};
        ret[n++] = (struct ddp_step){.receives = true};
        return n;
    }
    if (folds)
        ret[n++] = (struct ddp_step){.receives = true, .combines = true};
    for (unsigned i = folds; i < n_pairs; i++)
        ret[n++] = (struct ddp_step){.pair = i, .sends = true,
                                     .receives = true, .combines = true};
    if (folds)
        ret[n++] = (struct ddp_step){.sends = true};
    return n;
}
