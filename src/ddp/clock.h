/* clock: monotonic milliseconds; deadlines are points of this clock. */
#ifndef DDP_CLOCK_H
#define DDP_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t ddp_now(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static inline uint64_t ddp_now_ns(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* For poll: milliseconds until `deadline`, at most `max`, never negative. */
static inline int ddp_until(uint64_t now, uint64_t deadline, int max)
{
    if (deadline <= now)
        return 0;
    return deadline - now < (uint64_t)max ? (int)(deadline - now) : max;
}

#endif
