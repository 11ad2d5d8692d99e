/* aside: see aside.h. */
#include "ddp/aside.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

struct ddp_aside {
    atomic_bool is_over;
    atomic_int holders;
    void (*work)(void *arg);
    void (*end)(void *arg);
    void *arg;
};

void ddp_aside_leave(struct ddp_aside *a)
{
    if (atomic_fetch_sub(&a->holders, 1) > 1)
        return;
    a->end(a->arg);
    free(a);
}

static void *run(void *arg)
{
    struct ddp_aside *a = arg;

    a->work(a->arg);
    atomic_store(&a->is_over, true);
    ddp_aside_leave(a);
    return NULL;
}

struct ddp_aside *ddp_aside_begin(void (*work)(void *arg),
                                  void (*end)(void *arg), void *arg)
{
    struct ddp_aside *a = calloc(1, sizeof *a);
    sigset_t all, was;
    pthread_t thread;
    int status;

    if (!a)
        return NULL;
    a->work = work;
    a->end = end;
    a->arg = arg;
    atomic_store(&a->holders, 2);
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &was);
    status = pthread_create(&thread, NULL, run, a);
    (void)pthread_sigmask(SIG_SETMASK, &was, NULL);
    if (status != 0) {
        free(a);
        return NULL;
    }
    (void)pthread_detach(thread);
    return a;
}

bool ddp_aside_is_over(struct ddp_aside *a)
{
    return atomic_load(&a->is_over);
}
