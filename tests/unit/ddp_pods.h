/* Ranks that are threads of a test, on hosts that the test makes up: who links
 * with --wrap=ddp_shm_host. */
#ifndef DDP_PODS_H
#define DDP_PODS_H

#include "ddp/shm.h"

#include <string.h>

/* None: all are on this host. Else pods of consecutive ranks, or ranks that
 * are dealt out to the pods one by one; of a size that divides the job's,
 * where there is one. Set before a job begins. */
static enum pods { PODS_NONE, PODS_FEW, PODS_DEALT } pods_are;

static _Thread_local unsigned pod_of_thread;

void __real_ddp_shm_host(uint8_t ret[DDP_TOKEN]);
void __wrap_ddp_shm_host(uint8_t ret[DDP_TOKEN]);

void __wrap_ddp_shm_host(uint8_t ret[DDP_TOKEN])
{
    __real_ddp_shm_host(ret);
    ret[0] = (uint8_t)(ret[0] + pod_of_thread);
}

/* How many ranks a pod of a job has: two at least. */
static inline unsigned pods_seats(unsigned size)
{
    unsigned n = 2;

    if (pods_are == PODS_DEALT) /* Few ranks in many pods. */
        while (n < size && size % n)
            n++;
    else /* Many in few, but not all in one. */
        for (unsigned i = 2; i < size; i++)
            n = size % i ? n : i;
    return n;
}

/* Of the thread that is a rank. */
static inline void pods_sit(unsigned rank, unsigned size)
{
    unsigned seats = pods_seats(size), n = (size + seats - 1) / seats;

    pod_of_thread = pods_are == PODS_NONE    ? 0
                    : pods_are == PODS_DEALT ? rank % n
                                             : rank / seats;
}

__attribute__((unused)) static int use_pods(void **state)
{
    (void)state;
    pods_are = PODS_FEW;
    return unsetenv("DDP_TRANSPORT");
}

__attribute__((unused)) static int use_dealt_pods(void **state)
{
    (void)state;
    pods_are = PODS_DEALT;
    return unsetenv("DDP_TRANSPORT");
}

__attribute__((unused)) static int end_pods(void **state)
{
    (void)state;
    pods_are = PODS_NONE;
    return 0;
}

#endif
