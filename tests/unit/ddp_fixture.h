/* A job of libddp whose ranks are threads of the test. cmocka's checks jump,
 * so threads only record; the main thread judges. */
#ifndef DDP_FIXTURE_H
#define DDP_FIXTURE_H

#include "ddp.h"

#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "ddp_pods.h"
#include "free_port.h"

#define FIXTURE_RANKS 17
#define FIXTURE_PATIENCE_MS 120000

struct job;

struct rank {
    pthread_t thread;
    struct job *job;
    int rank;
    struct ddp_comm *c;
    struct ddp_error err;
    char wrong[200]; /* Empty: all was right. */
};

struct job {
    unsigned n;
    uint64_t timeout_ms;
    int port;
    char id[40]; /* Other runs of this test may get the same port. */
    void (*run)(struct rank *r);
    const void *arg;
    struct rank ranks[FIXTURE_RANKS];
};

static inline uint64_t next_random(uint64_t *s)
{
    *s = *s * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *s >> 33;
}

__attribute__((format(printf, 2, 3), unused)) static void
rank_wrong(struct rank *r, const char *fmt, ...)
{
    va_list ap;

    if (*r->wrong)
        return; /* The first one counts. */
    va_start(ap, fmt);
    (void)vsnprintf(r->wrong, sizeof r->wrong, fmt, ap);
    va_end(ap);
}

static inline void *rank_main(void *arg)
{
    struct rank *r = arg;
    const struct ddp_options opt = {
        .size = sizeof opt, .timeout_ms = r->job->timeout_ms, .rank = r->rank,
        .world_size = (int)r->job->n, .master_addr = "127.0.0.1",
        .master_port = r->job->port, .job_id = r->job->id};

    pods_sit((unsigned)r->rank, r->job->n);
    if (ddp_init(&r->c, &opt, &r->err))
        rank_wrong(r, "ddp_init: %.180s", r->err.text);
    else
        r->job->run(r);
    ddp_free(r->c);
    return NULL;
}

/* Set-up of a group of tests: what the ranks of its jobs talk over. */
__attribute__((unused)) static int use_memory(void **state)
{
    (void)state;
    return unsetenv("DDP_TRANSPORT");
}

__attribute__((unused)) static int use_tcp(void **state)
{
    (void)state;
    return setenv("DDP_TRANSPORT", "tcp", 1);
}

/* Run n ranks, each of which calls `run`; none may find a thing wrong. */
static inline void job_run_within(struct job *j, unsigned n,
                                  void (*run)(struct rank *r), const void *arg,
                                  uint64_t timeout_ms)
{
    memset(j, 0, sizeof *j);
    j->n = n;
    j->timeout_ms = timeout_ms;
    j->port = free_port();
    j->run = run;
    j->arg = arg;
    (void)snprintf(j->id, sizeof j->id, "unit-%ld-%d", (long)getpid(), j->port);
    for (unsigned i = n; i-- > 0;) {
        j->ranks[i].job = j;
        j->ranks[i].rank = (int)i;
        assert_int_equal(pthread_create(&j->ranks[i].thread, NULL, rank_main,
                                        &j->ranks[i]), 0);
    }
    for (unsigned i = 0; i < n; i++)
        (void)pthread_join(j->ranks[i].thread, NULL);
    for (unsigned i = 0; i < n; i++)
        if (*j->ranks[i].wrong)
            fail_msg("%u ranks, rank %u: %s", n, i, j->ranks[i].wrong);
}

static inline void job_run(struct job *j, unsigned n,
                           void (*run)(struct rank *r), const void *arg)
{
    job_run_within(j, n, run, arg, FIXTURE_PATIENCE_MS);
}

#endif
