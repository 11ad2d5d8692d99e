/* nccl_free: the end of NCCL's part of a communicator. */
#include "ddp/nccl.h"
#include "ddp/clock.h"
#include "ddp/nccl_parts.h"

#include <stdlib.h>
#include <time.h>

#define QUEUED_MS 9000 /* For what is queued; then it is aborted. */

/* What is queued would hang in NCCL's end, where it cannot be aborted. */
static bool is_idle(const struct ddp_nccl *n)
{
    const struct timespec step = {.tv_nsec = 200000};
    uint64_t until = ddp_now() + QUEUED_MS;
    int done = n->n_put == n->n_over;

    while (!done && ddp_now() < until) {
        done = ddp_cuda_is_done(n->cuda,
                                n->events[(n->n_put - 1) % DDP_NCCL_QUEUE]);
        if (!done)
            (void)nanosleep(&step, NULL);
    }
    return done == 1;
}

void ddp_nccl_free(struct ddp_nccl *n, bool aborts)
{
    if (!n)
        return;
    aborts = aborts || (n->kept && !is_idle(n));
    ddp_nccl_disconnect(n, aborts);
    for (unsigned i = 0; i < DDP_NCCL_QUEUE && !aborts; i++)
        if (n->events[i])
            (void)n->cuda->event_free(n->events[i]);
    free(n); /* The libraries stay: their threads may run on. */
}
