/* nccl_apart: calls of NCCL's that may connect ranks, and so hang where one
 * has died. They are made aside, so that the deadline and another rank's death
 * end the call here all the same. Which algorithm NCCL takes depends on the
 * call's shape, and it connects for each at its first use: so a call of a
 * shape that was there before only queues a kernel, and needs no thread. */
#include "ddp/blame.h"
#include "ddp/nccl_parts.h"

#include <stdlib.h>

static void work(void *arg)
{
    struct ddp_nccl_job *j = arg;

    (void)j->set_device(j->device); /* Of each thread. */
    j->result = j->run(j);
}

static int is_over(struct ddp_nccl *n, int *ret)
{
    *ret = DDP_NCCL_SUCCESS;
    return ddp_aside_is_over(n->aside);
}

int ddp_nccl_apart(struct ddp_nccl *n, struct ddp_watch *w, const char *doing,
                   struct ddp_nccl_job *j)
{
    struct ddp_nccl_job *own = malloc(sizeof *own);
    int rc;

    if (own) {
        j->lib = n->lib;
        j->set_device = n->cuda->set_device;
        j->device = n->device;
        *own = *j;
        n->aside = ddp_aside_begin(work, free, own);
    }
    if (!own || !n->aside) {
        free(own);
        return ddp_blame(w->c, w->q, w->err, DDP_ENOMEM, -1, "no memory or "
                         "thread for NCCL");
    }
    rc = ddp_nccl_wait(n, w, doing, is_over);
    if (!rc)
        *j = *own;
    ddp_aside_leave(n->aside);
    n->aside = NULL;
    return rc;
}

bool ddp_nccl_knows(struct ddp_nccl *n, const struct ddp_request *q)
{
    uint64_t hash = q->count * UINT64_C(0x9e3779b97f4a7c15);
    struct ddp_nccl_shape *at, new = {.used = 1, .what = (int)q->what,
                                      .type = q->type, .op = q->op,
                                      .root = q->root, .count = q->count};

    hash ^= (unsigned)q->what * 31u + (unsigned)q->type * 7u +
            (unsigned)q->op + q->root * 131u;
    at = &n->shapes[(hash ^ hash >> 32) % DDP_NCCL_SHAPES];
    if (at->used && at->what == new.what && at->type == new.type &&
        at->op == new.op && at->root == new.root && at->count == new.count)
        return true;
    *at = new;
    return false;
}
