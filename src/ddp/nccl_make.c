/* nccl_make: the ranks tell each other what they have, and connect by NCCL; see
 * nccl.h. */
#include "ddp/nccl.h"
#include "ddp/blame.h"
#include "ddp/clock.h"
#include "ddp/nccl_parts.h"
#include "ddp/share.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPENS "NCCL is opened and makes its id"
#define CONNECTS "NCCL connects the ranks"

/* What each rank tells before NCCL is used at all. */
struct greeting {
    int32_t ready, version;
    struct ddp_nccl_id id; /* Rank 0's counts. */
    char why[224];
};

/* What may hang, and is then left behind. */
struct opening {
    int rank;
    struct ddp_nccl_lib lib;
    struct greeting g;
};

static void open_it(void *arg)
{
    struct opening *o = arg;
    struct greeting *g = &o->g;
    const char *last, *text, *advice;
    char hint[100];
    int r;

    if (!ddp_nccl_open(&o->lib, g->why, sizeof g->why))
        return;
    g->version = o->lib.version;
    r = o->rank == 0 ? o->lib.get_id(&g->id) : DDP_NCCL_SUCCESS;
    g->ready = r == DDP_NCCL_SUCCESS;
    if (g->ready)
        return;
    last = o->lib.last_error(NULL);
    text = o->lib.text(r);
    advice = strstr(text, " ("); /* "run with NCCL_DEBUG": room is short. */
    ddp_nccl_hint(r, last ? last : "", hint, sizeof hint);
    (void)snprintf(g->why, sizeof g->why, "ncclGetUniqueId: %.*s%s%.60s%s%s",
                   advice && advice - text < 40 ? (int)(advice - text) : 40,
                   text, last ? ": " : "", last ? last : "",
                   hint[0] ? "; likely: " : "", hint);
}

static int is_open(struct ddp_nccl *n, int *ret)
{
    *ret = DDP_NCCL_SUCCESS;
    return ddp_aside_is_over(n->aside);
}

/* Make n->lib and what this rank has to tell of it. */
static int greet(struct ddp_nccl *n, struct ddp_watch *w, struct greeting *g)
{
    struct opening *o = calloc(1, sizeof *o);
    int rc;

    if (o) {
        o->rank = w->c->rank;
        n->aside = ddp_aside_begin(open_it, free, o);
    }
    if (!o || !n->aside) {
        free(o);
        return ddp_blame(w->c, w->q, w->err, DDP_ENOMEM, -1, "no memory or "
                         "thread for NCCL");
    }
    rc = ddp_nccl_wait(n, w, OPENS, is_open);
    if (!rc) {
        n->lib = o->lib;
        *g = o->g;
    }
    ddp_aside_leave(n->aside);
    n->aside = NULL;
    return rc;
}

/* All ranks' greetings, over the host's ring. */
static int exchange(struct ddp_comm *c, const struct greeting *mine,
                    struct greeting *all, struct ddp_error *err)
{
    const struct ddp_request q = {.what = DDP_ALL_GATHER, .send = mine,
                                  .recv = all, .count = sizeof *mine,
                                  .width = 1, .type = DDP_U8};

    all[c->rank] = *mine;
    if (c->size == 1)
        return 0;
    c->n_calls--; /* It is no call of its own, and is counted there. */
    return ddp_host_run(c, &q, err);
}

/* The first rank that differs decides, on all alike. */
static int compare(struct ddp_watch *w, const struct greeting *all)
{
    char why[DDP_WHY + 64], a[24], b[24];

    for (int r = 0; r < w->c->size; r++) {
        if (!all[r].ready) {
            (void)snprintf(why, sizeof why, "device memory needs NCCL on all "
                           "ranks; rank %d: %.200s", r, all[r].why);
            return ddp_blame(w->c, w->q, w->err, DDP_ESYSTEM, r, why);
        }
        if (all[r].version == all[0].version)
            continue;
        ddp_nccl_version(all[0].version, a, sizeof a);
        ddp_nccl_version(all[r].version, b, sizeof b);
        (void)snprintf(why, sizeof why, "rank 0 has NCCL %s, and rank %d %s: "
                       "the same image on all, or LD_PRELOAD of one", a, r, b);
        return ddp_blame(w->c, w->q, w->err, DDP_EMISMATCH, r, why);
    }
    return 0;
}

/* One rank without NCCL needs none. */
static bool is_alone(const struct ddp_comm *c, const struct greeting *mine)
{
    return c->size == 1 && !mine->ready;
}

int ddp_nccl_make(struct ddp_watch *w)
{
    struct ddp_comm *c = w->c;
    struct greeting mine, *all = calloc((size_t)c->size, sizeof *all);
    struct ddp_nccl *n = calloc(1, sizeof *n);
    int rc;

    if (!all || !n) {
        free(all);
        free(n);
        return ddp_blame(c, w->q, w->err, DDP_ENOMEM, -1, "out of memory");
    }
    n->cuda = &c->cuda;
    rc = greet(n, w, &mine);
    n->cuda_error = c->cuda.get_device(&n->device);
    if (!rc)
        rc = exchange(c, &mine, all, w->err);
    w->deadline = ddp_now() + c->timeout_ms; /* From here on it is NCCL's. */
    if (!rc && !is_alone(c, &mine))
        rc = compare(w, all);
    if (!rc && n->cuda_error)
        rc = ddp_nccl_fail(n, w, "cudaGetDevice", DDP_NCCL_CUDA_ERROR);
    if (!rc && !is_alone(c, &mine))
        rc = ddp_nccl_connect(n, w, CONNECTS, &all[0].id);
    free(all);
    if (rc)
        ddp_nccl_free(n, true);
    else
        c->nccl = n;
    return rc;
}
