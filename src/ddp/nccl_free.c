/* nccl_free: the end of NCCL's communicators. To end one in which something
 * hangs may hang itself, so it is done aside and waited for, but not for
 * long. */
#include "ddp/nccl.h"
#include "ddp/aside.h"
#include "ddp/clock.h"
#include "ddp/nccl_parts.h"

#include <stdlib.h>
#include <time.h>

#define END_MS 3000 /* For finalising; then it is aborted. */
#define ABORT_MS 5000 /* For that; then it is left behind. */
#define POLL_NS 1000000

struct end {
    struct ddp_nccl_lib lib;
    struct ddp_nccl_comm *comms[2]; /* Calls', start's; NULL: not made. */
};

static void nap(void)
{
    struct timespec step = {.tv_nsec = POLL_NS};

    (void)nanosleep(&step, NULL);
}

static void abort_all(void *arg)
{
    const struct end *e = arg;

    for (int i = 0; i < 2; i++)
        if (e->comms[i])
            (void)e->lib.abort(e->comms[i]);
}

/* Finalising may go on by itself once it is begun; then it can be destroyed. */
static void finish(const struct ddp_nccl_lib *l, struct ddp_nccl_comm *comm)
{
    uint64_t until = ddp_now() + END_MS;
    int state = DDP_NCCL_IN_PROGRESS, r = l->finalize(comm);

    while ((r == DDP_NCCL_SUCCESS || r == DDP_NCCL_IN_PROGRESS) &&
           state == DDP_NCCL_IN_PROGRESS && ddp_now() < until) {
        r = l->async_error(comm, &state);
        if (r == DDP_NCCL_SUCCESS && state == DDP_NCCL_IN_PROGRESS)
            nap();
    }
    if (r == DDP_NCCL_SUCCESS && state == DDP_NCCL_SUCCESS)
        (void)l->destroy(comm);
    else
        (void)l->abort(comm);
}

static void finish_all(void *arg)
{
    const struct end *e = arg;

    for (int i = 0; i < 2; i++)
        if (e->comms[i])
            finish(&e->lib, e->comms[i]);
}

/* Whether `work` is over within ms, or cannot be begun. */
static bool end_comms(const struct ddp_nccl *n, void (*work)(void *arg),
                     uint64_t ms)
{
    struct end *e = malloc(sizeof *e);
    struct ddp_aside *a;
    uint64_t until = ddp_now() + ms;
    bool is_over;

    if (!e)
        return true; /* The process is about to end anyway. */
    *e = (struct end){.lib = n->lib, .comms = {n->comm, n->start}};
    a = ddp_aside_begin(work, free, e);
    if (!a) {
        free(e);
        return true;
    }
    while (!(is_over = ddp_aside_is_over(a)) && ddp_now() < until)
        nap();
    ddp_aside_leave(a);
    return is_over;
}

void ddp_nccl_free(struct ddp_nccl *n, bool aborts)
{
    if (!n)
        return;
    if (n->start && (aborts || !end_comms(n, finish_all, 3 * END_MS)))
        (void)end_comms(n, abort_all, ABORT_MS);
    for (unsigned i = 0; i < DDP_NCCL_QUEUE && !aborts; i++)
        if (n->events[i])
            (void)n->cuda->event_free(n->events[i]);
    if (n->start && !n->comm)
        return; /* NCCL may write to n->split still. */
    free(n); /* The libraries stay: their threads may run on. */
}
