/* pool: see pool.h. */
#include "dataset/pool.h"

#include "agent/machine.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define TELL_MS 100

struct pool {
    size_t n, scratch_bytes;
    pool_fn *fn;
    void *ctx;
    atomic_size_t next, first_bad;
    unsigned n_cpus;
    atomic_uint n_busy; /* Threads. */
    pthread_mutex_t lock; /* Of what follows. */
    pthread_cond_t ended;
    unsigned n_running;
    size_t bad; /* Number of the item that `err` is of. */
    struct err err;
};

bool pool_stopped(const struct pool_turn *turn)
{
    return atomic_load(&turn->pool->first_bad) < turn->i;
}

bool pool_has_idle_cpu(const struct pool_turn *turn)
{
    return atomic_load(&turn->pool->n_busy) < turn->pool->n_cpus;
}

static void note_fault(struct pool *p, size_t i, const struct err *e)
{
    (void)pthread_mutex_lock(&p->lock);
    if (i < p->bad) {
        p->bad = i;
        p->err = *e;
        atomic_store(&p->first_bad, i);
    }
    (void)pthread_mutex_unlock(&p->lock);
}

static void work(struct pool *p, void *scratch)
{
    struct pool_turn turn = {.pool = p, .scratch = scratch};

    for (;;) {
        struct err e = {.code = 0};

        turn.i = atomic_fetch_add(&p->next, 1);
        if (turn.i >= p->n || pool_stopped(&turn))
            return;
        if (p->fn(p->ctx, &turn, &e) && !pool_stopped(&turn))
            note_fault(p, turn.i, &e);
    }
}

/* Without memory for its buffers a thread leaves the work to the others; the
 * last one to fail so says it. */
static void *thread_main(void *arg)
{
    struct pool *p = arg;
    void *scratch = malloc(p->scratch_bytes);

    if (scratch)
        work(p, scratch);
    atomic_fetch_sub(&p->n_busy, 1);
    (void)pthread_mutex_lock(&p->lock);
    p->n_running--;
    if (!scratch && p->n_running == 0 && atomic_load(&p->next) < p->n &&
        p->bad > p->n) {
        p->bad = p->n;
        (void)err_set(&p->err, ERR_RESOURCE, "no memory left for buffers");
    }
    (void)pthread_cond_signal(&p->ended);
    (void)pthread_mutex_unlock(&p->lock);
    free(scratch);
    return NULL;
}

/* Wait for the threads; tell how far they are. Called with the lock held. */
static void watch(struct pool *p, struct meter *meter)
{
    while (p->n_running > 0) {
        struct timespec until;

        (void)clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += TELL_MS * 1000000L;
        if (until.tv_nsec >= 1000000000L) {
            until.tv_nsec -= 1000000000L;
            until.tv_sec++;
        }
        if (pthread_cond_timedwait(&p->ended, &p->lock, &until) == 0)
            continue;
        (void)pthread_mutex_unlock(&p->lock);
        meter_tell(meter);
        (void)pthread_mutex_lock(&p->lock);
    }
}

static void run_threads(struct pool *p, struct meter *meter)
{
    pthread_t threads[POOL_THREADS_MAX];
    unsigned want = p->n_cpus, n = 0;

    if (want < POOL_THREADS_MIN)
        want = POOL_THREADS_MIN;
    if (want > POOL_THREADS_MAX)
        want = POOL_THREADS_MAX;
    if (want > p->n)
        want = (unsigned)p->n;
    atomic_init(&p->n_busy, want);
    (void)pthread_mutex_lock(&p->lock);
    while (n < want &&
           pthread_create(&threads[n], NULL, thread_main, p) == 0) {
        p->n_running++;
        n++;
    }
    atomic_fetch_sub(&p->n_busy, want - n);
    if (n == 0 && want > 0) { /* No thread to be had: this one, then. */
        p->n_running = 1;
        atomic_store(&p->n_busy, 1);
        (void)pthread_mutex_unlock(&p->lock);
        (void)thread_main(p);
        (void)pthread_mutex_lock(&p->lock);
    }
    watch(p, meter);
    (void)pthread_mutex_unlock(&p->lock);
    while (n > 0)
        (void)pthread_join(threads[--n], NULL);
}

int pool_run(size_t n, size_t scratch_bytes, pool_fn *fn, void *ctx,
             struct meter *meter, struct err *e)
{
    struct pool p = {.n = n, .scratch_bytes = scratch_bytes, .fn = fn,
                     .ctx = ctx, .bad = SIZE_MAX, .n_cpus = machine_cpus(1)};
    pthread_condattr_t attr;

    atomic_init(&p.next, 0);
    atomic_init(&p.first_bad, SIZE_MAX);
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_mutex_init(&p.lock, NULL);
    (void)pthread_cond_init(&p.ended, &attr);
    (void)pthread_condattr_destroy(&attr);
    run_threads(&p, meter);
    (void)pthread_cond_destroy(&p.ended);
    (void)pthread_mutex_destroy(&p.lock);
    if (p.bad == SIZE_MAX)
        return 0;
    *e = p.err;
    return -e->code;
}
