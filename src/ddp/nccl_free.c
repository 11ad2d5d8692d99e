/* nccl_free: the end of NCCL's communicator. To end one in which something
 * hangs may hang itself, so a thread does it, which is waited for, but not
 * for long. */
#include "ddp/nccl.h"
#include "ddp/clock.h"
#include "ddp/nccl_parts.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#define END_MS 3000 /* For finalising; then it is aborted. */
#define LEAVE_MS 5000 /* For all of it; then the thread is left behind. */
#define POLL_NS 1000000

struct end { /* Freed by whoever is last. */
    pthread_mutex_t lock;
    pthread_cond_t over;
    bool is_over, is_left;
    bool aborts;
    struct ddp_nccl_lib lib;
    struct ddp_nccl_comm *comm;
};

/* Finalising goes on by itself once it is begun; then it can be destroyed. */
static void finish(const struct end *e)
{
    uint64_t until = ddp_now() + END_MS;
    struct timespec step = {.tv_nsec = POLL_NS};
    int state = DDP_NCCL_IN_PROGRESS, r = e->lib.finalize(e->comm);

    while ((r == DDP_NCCL_SUCCESS || r == DDP_NCCL_IN_PROGRESS) &&
           state == DDP_NCCL_IN_PROGRESS && ddp_now() < until) {
        r = e->lib.async_error(e->comm, &state);
        if (r == DDP_NCCL_SUCCESS && state == DDP_NCCL_IN_PROGRESS)
            (void)nanosleep(&step, NULL);
    }
    if (r == DDP_NCCL_SUCCESS && state == DDP_NCCL_SUCCESS)
        (void)e->lib.destroy(e->comm);
    else
        (void)e->lib.abort(e->comm);
}

static void end_free(struct end *e)
{
    (void)pthread_mutex_destroy(&e->lock);
    (void)pthread_cond_destroy(&e->over);
    free(e);
}

static void *run(void *arg)
{
    struct end *e = arg;
    bool is_left;

    if (e->aborts)
        (void)e->lib.abort(e->comm);
    else
        finish(e);
    (void)pthread_mutex_lock(&e->lock);
    e->is_over = true;
    is_left = e->is_left;
    (void)pthread_cond_signal(&e->over);
    (void)pthread_mutex_unlock(&e->lock);
    if (is_left)
        end_free(e);
    return NULL;
}

static bool start(struct end *e)
{
    sigset_t all, was;
    pthread_t thread;
    bool started;

    sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &was);
    started = pthread_create(&thread, NULL, run, e) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &was, NULL);
    if (started)
        (void)pthread_detach(thread);
    return started;
}

static void wait_for(struct end *e)
{
    struct timespec until;
    bool is_over;

    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += LEAVE_MS / 1000;
    (void)pthread_mutex_lock(&e->lock);
    while (!e->is_over &&
           pthread_cond_timedwait(&e->over, &e->lock, &until) == 0)
        ;
    is_over = e->is_over;
    e->is_left = true;
    (void)pthread_mutex_unlock(&e->lock);
    if (is_over)
        end_free(e);
}

void ddp_nccl_free(struct ddp_nccl *n, bool aborts)
{
    struct end *e;

    if (!n)
        return;
    e = n->comm ? calloc(1, sizeof *e) : NULL;
    if (e) { /* No memory: the process is about to end anyway. */
        (void)pthread_mutex_init(&e->lock, NULL);
        (void)pthread_cond_init(&e->over, NULL);
        e->lib = n->lib;
        e->comm = n->comm;
        e->aborts = aborts;
        if (start(e))
            wait_for(e);
        else
            end_free(e);
    }
    if (n->event && !aborts)
        (void)n->cuda->event_free(n->event);
    free(n); /* The libraries stay: their threads may run on. */
}
