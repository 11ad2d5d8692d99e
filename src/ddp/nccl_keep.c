/* nccl_keep: the thread that connects the ranks, keeps the communicators and
 * ends them. NCCL up to 2.26 holds what a communicator that does not block is
 * doing in the storage of the thread that asked for it, and up to 2.18 waits
 * for it at an abort in that thread alone: so one thread asks for all of it,
 * and lives as long as they do. Whoever waits for it may leave it behind. */
#include "ddp/blame.h"
#include "ddp/clock.h"
#include "ddp/nccl_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#define END_MS 3000 /* For finalising; then it is aborted. */
#define ABORT_MS 5000 /* For that; then it is left behind. */
#define HELD_MS 1000 /* For a start that NCCL does not come back from. */
#define POLL_NS 200000

enum order { GO_ON, FINISH, ABORT };

static void nap(void)
{
    struct timespec step = {.tv_nsec = POLL_NS};

    (void)nanosleep(&step, NULL);
}

/* --- in the thread --------------------------------------------------------*/

/* NCCL_COMM_BLOCKING goes before what is asked. */
static struct ddp_nccl_config config_of(int blocking)
{
    return (struct ddp_nccl_config){
        .size = sizeof(struct ddp_nccl_config), .magic = DDP_NCCL_MAGIC,
        .version = DDP_NCCL_OLDEST, .blocking = blocking,
        .cga_cluster_size = DDP_NCCL_UNDEF, .min_ctas = DDP_NCCL_UNDEF,
        .max_ctas = DDP_NCCL_UNDEF, .split_share = DDP_NCCL_UNDEF};
}

/* Until what gave r on that communicator is done, has failed, or goes on and is
 * not wanted any more: then it is still in progress. */
static int settle(struct ddp_nccl_keeper *k, struct ddp_nccl_comm *comm, int r)
{
    int state, n;

    atomic_store(&k->is_held, false);
    if (r != DDP_NCCL_SUCCESS && r != DDP_NCCL_IN_PROGRESS)
        return r;
    for (;;) {
        bool is_last = atomic_load(&k->order) != GO_ON;

        r = k->lib.async_error(comm, &state);
        if (r != DDP_NCCL_SUCCESS)
            return r;
        /* Up to 2.21 it is such a call that ends the thread of it. */
        if (state == DDP_NCCL_SUCCESS)
            return k->lib.count(comm, &n);
        if (state != DDP_NCCL_IN_PROGRESS || is_last)
            return state;
        nap();
    }
}

/* What connects does not block, so that it can be aborted; what calls are made
 * on does, as NCCL else starts a thread for each of them. */
static int connect_all(struct ddp_nccl_keeper *k)
{
    struct ddp_nccl_config waits = config_of(1), goes_on = config_of(0);
    struct ddp_nccl_comm *start = NULL;
    int r = k->lib.init(&start, k->size, k->id, k->rank, &goes_on);

    if (r == DDP_NCCL_SUCCESS || r == DDP_NCCL_IN_PROGRESS)
        k->start = start;
    r = settle(k, start, r);
    if (r != DDP_NCCL_SUCCESS || atomic_load(&k->order) != GO_ON)
        return r;
    k->is_splitting = true;
    atomic_store(&k->is_held, true);
    r = k->lib.split(start, 0, k->rank, &k->split, &waits);
    r = settle(k, start, r);
    if (r != DDP_NCCL_SUCCESS)
        return r;
    k->is_splitting = false;
    k->comm = k->split;
    return settle(k, k->comm, r);
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

static void end_one(const struct ddp_nccl_keeper *k, struct ddp_nccl_comm *comm)
{
    if (comm && atomic_load(&k->order) == FINISH)
        finish(&k->lib, comm);
    else if (comm)
        (void)k->lib.abort(comm);
}

static void work(void *arg)
{
    struct ddp_nccl_keeper *k = arg;

    (void)k->set_device(k->device); /* Of each thread. */
    atomic_store(&k->result, connect_all(k));
    while (sem_wait(&k->ordered) != 0 && errno == EINTR)
        ;
    end_one(k, k->comm);
    end_one(k, k->start);
}

static void end(void *arg)
{
    struct ddp_nccl_keeper *k = arg;

    (void)sem_destroy(&k->ordered);
    if (!k->is_splitting) /* Else NCCL may write to k->split still. */
        free(k);
}

/* --- for the others -------------------------------------------------------*/

static int is_connected(struct ddp_nccl *n, int *ret)
{
    *ret = atomic_load(&n->keeper->result);
    return *ret == DDP_NCCL_IN_PROGRESS ? 0 : *ret == DDP_NCCL_SUCCESS ? 1 : -1;
}

static struct ddp_nccl_keeper *keeper_new(const struct ddp_nccl *n,
                                          const struct ddp_comm *c,
                                          const struct ddp_nccl_id *id)
{
    struct ddp_nccl_keeper *k = calloc(1, sizeof *k);

    if (!k)
        return NULL;
    k->lib = n->lib;
    k->set_device = n->cuda->set_device;
    k->device = n->device;
    k->size = c->size;
    k->rank = c->rank;
    k->id = *id;
    atomic_store(&k->result, DDP_NCCL_IN_PROGRESS);
    atomic_store(&k->is_held, true);
    (void)sem_init(&k->ordered, 0, 0);
    return k;
}

int ddp_nccl_connect(struct ddp_nccl *n, struct ddp_watch *w, const char *doing,
                     const struct ddp_nccl_id *id)
{
    struct ddp_nccl_keeper *k = keeper_new(n, w->c, id);
    int rc;

    if (k)
        n->kept = ddp_aside_begin(work, end, k);
    if (!n->kept) {
        if (k)
            end(k);
        return ddp_blame(w->c, w->q, w->err, DDP_ENOMEM, -1, "no memory or "
                         "thread for NCCL");
    }
    n->keeper = k;
    rc = ddp_nccl_wait(n, w, doing, is_connected);
    if (!rc)
        n->comm = k->comm;
    return rc;
}

void ddp_nccl_disconnect(struct ddp_nccl *n, bool aborts)
{
    uint64_t begun = ddp_now(), ms = aborts ? ABORT_MS : 3 * END_MS;

    if (!n->kept)
        return;
    atomic_store(&n->keeper->order, aborts ? ABORT : FINISH);
    (void)sem_post(&n->keeper->ordered);
    while (!ddp_aside_is_over(n->kept) && ddp_now() - begun < ms) {
        if (atomic_load(&n->keeper->is_held) && ddp_now() - begun >= HELD_MS)
            break;
        nap();
    }
    ddp_aside_leave(n->kept);
    n->kept = NULL;
    n->comm = NULL;
}
