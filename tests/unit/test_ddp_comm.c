/* Tests of libddp's calls: the ranks of a job are threads of this program.
 * cmocka's checks jump, so threads only record; the main thread judges. */
#include "ddp.h"

#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "free_port.h"

#define MAX_RANKS 8
#define PATIENCE_MS 20000 /* Of calls that should succeed or fail at once. */

struct rank {
    pthread_t thread;
    struct ddp_options opt;
    void (*run)(struct rank *r);
    const void *arg;
    atomic_int *n_failed; /* Ranks whose call has failed. */
    atomic_bool *flag;    /* Shared by the ranks of a test. */
    atomic_bool *over;    /* Set once this rank has ended. */
    struct ddp_comm *c;
    int rc;               /* Of the call that matters, or of ddp_init. */
    struct ddp_error err; /* Of that call. */
    double ms;            /* How long ddp_init and run took. */
    bool is_wrong;        /* A result was wrong. */
};

struct job {
    unsigned n;
    char id[32]; /* Other runs of this test may get the same port. */
    struct rank ranks[MAX_RANKS];
};

static double now_ms(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void pause_ms(int ms)
{
    (void)poll(NULL, 0, ms);
}

static void job_init(struct job *j, unsigned n, void (*run)(struct rank *r),
                     const void *arg)
{
    int port = free_port();

    memset(j, 0, sizeof *j);
    j->n = n;
    (void)snprintf(j->id, sizeof j->id, "test-%ld", (long)getpid());
    for (unsigned i = 0; i < n; i++) {
        j->ranks[i].run = run;
        j->ranks[i].arg = arg;
        j->ranks[i].opt = (struct ddp_options){
            .size = sizeof j->ranks[i].opt, .timeout_ms = PATIENCE_MS,
            .world_size = (int)n, .rank = (int)i, .master_addr = "127.0.0.1",
            .master_port = port, .job_id = j->id};
    }
}

static void *rank_main(void *arg)
{
    struct rank *r = arg;
    double began = now_ms();

    r->rc = ddp_init(&r->c, &r->opt, &r->err);
    if (!r->rc && r->run)
        r->run(r);
    r->ms = now_ms() - began;
    ddp_free(r->c);
    if (r->over)
        atomic_store(r->over, true);
    return NULL;
}

static void rank_start(struct rank *r)
{
    assert_int_equal(pthread_create(&r->thread, NULL, rank_main, r), 0);
}

/* Start all ranks (the last one first), and wait for their ends. */
static void job_run(struct job *j)
{
    for (unsigned i = j->n; i-- > 0;)
        rank_start(&j->ranks[i]);
    for (unsigned i = 0; i < j->n; i++)
        (void)pthread_join(j->ranks[i].thread, NULL);
}

static void job_expect(const struct job *j, int code)
{
    for (unsigned i = 0; i < j->n; i++) {
        const struct rank *r = &j->ranks[i];

        if (r->rc != code || r->is_wrong)
            fail_msg("rank %u: %d %s%s", i, r->rc, r->rc ? r->err.text : "",
                     r->is_wrong ? "; wrong result" : "");
        if (code)
            assert_int_equal(r->err.code, code);
    }
}

static void expect_text(const struct rank *r, const char *want)
{
    if (!strstr(r->err.text, want))
        fail_msg("rank %d says '%s', wanted '%s'", r->opt.rank, r->err.text,
                 want);
}

/* --- success ------------------------------------------------------------- */

static uint64_t next_random(uint64_t *s)
{
    *s = *s * UINT64_C(6364136223846793005) + 1;
    return *s >> 33;
}

static int64_t part(int rank, size_t i)
{
    return (int64_t)(i * 31 + 7) * (rank + 1);
}

static int all_reduce_once(struct rank *r, int64_t *send, int64_t *recv,
                           size_t n)
{
    int size = ddp_size(r->c), rank = ddp_rank(r->c);
    int rc;

    for (size_t i = 0; i < n; i++)
        send[i] = part(rank, i);
    rc = ddp_all_reduce(r->c, send, recv, n, DDP_I64, DDP_SUM, NULL, &r->err);
    for (size_t i = 0; i < n && !rc; i++)
        if (recv[i] != part(0, i) * (size * (size + 1) / 2))
            r->is_wrong = true;
    return rc;
}

static int broadcast_once(struct rank *r, int64_t *buf, size_t n, int root)
{
    int rc;

    for (size_t i = 0; i < n; i++)
        buf[i] = part(ddp_rank(r->c), i);
    rc = ddp_broadcast(r->c, buf, n, DDP_I64, root, NULL, &r->err);
    for (size_t i = 0; i < n && !rc; i++)
        if (buf[i] != part(root, i))
            r->is_wrong = true;
    return rc;
}

/* Many calls in a row, of random kinds and lengths, alike on all ranks. */
static void run_mixture(struct rank *r)
{
    enum { MAX = 60000 };
    uint64_t seed = 42 + (uint64_t)ddp_size(r->c);
    int64_t *a = calloc(MAX, sizeof *a), *b = calloc(MAX, sizeof *b);

    for (unsigned k = 0; k < 60 && a && b && !r->rc; k++) {
        uint64_t kind = next_random(&seed) % 4;
        size_t n = next_random(&seed) % (k % 10 ? 50 : MAX);
        int root = (int)(next_random(&seed) % (uint64_t)ddp_size(r->c));

        if (kind == 0)
            r->rc = all_reduce_once(r, a, b, n);
        else if (kind == 1)
            r->rc = all_reduce_once(r, a, a, n);
        else if (kind == 2)
            r->rc = broadcast_once(r, a, n, root);
        else
            r->rc = ddp_barrier(r->c, &r->err);
    }
    free(a);
    free(b);
}

static void test_mixture(void **state)
{
    (void)state;
    for (unsigned n = 1; n <= 5; n++) {
        struct job j;

        job_init(&j, n, run_mixture, NULL);
        job_run(&j);
        job_expect(&j, 0);
    }
}

static void run_identity(struct rank *r)
{
    r->is_wrong = ddp_rank(r->c) != r->opt.rank ||
                  ddp_size(r->c) != r->opt.world_size ||
                  ddp_local_rank(r->c) != r->opt.local_rank;
}

static void test_identity(void **state)
{
    struct job j;

    (void)state;
    job_init(&j, 3, run_identity, NULL);
    for (unsigned i = 0; i < 3; i++) {
        j.ranks[i].opt.local_rank = (int)(i % 2);
        j.ranks[i].opt.local_world_size = 2;
    }
    job_run(&j);
    job_expect(&j, 0);
}

/* A name, IPv6 where there is one, a port of its own, a job id. */
static void test_addresses(void **state)
{
    static const char *const hosts[] = {"localhost", "127.0.0.1", "::1"};
    struct sockaddr_in6 a = {.sin6_family = AF_INET6,
                             .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool has_v6 = fd >= 0 && !bind(fd, (struct sockaddr *)&a, sizeof a);

    (void)state;
    if (fd >= 0)
        (void)close(fd);
    for (unsigned k = 0; k < (has_v6 ? 3u : 2u); k++) {
        struct job j;

        job_init(&j, 3, run_mixture, NULL);
        for (unsigned i = 0; i < 3; i++) {
            j.ranks[i].opt.master_addr = hosts[k];
            j.ranks[i].opt.bootstrap_port = j.ranks[i].opt.master_port;
            j.ranks[i].opt.master_port = 1;
            j.ranks[i].opt.job_id = "job";
        }
        job_run(&j);
        job_expect(&j, 0);
    }
}

/* Communicators one after the other on one port, as fast as they can. */
static void test_again_and_again(void **state)
{
    struct job j;

    (void)state;
    job_init(&j, 3, NULL, NULL);
    for (unsigned k = 0; k < 20; k++) {
        for (unsigned i = 0; i < 3; i++)
            j.ranks[i].c = NULL;
        job_run(&j);
        job_expect(&j, 0);
    }
}

static void test_one_process_needs_nothing(void **state)
{
    const float in[2] = {3, 4};
    float out[2] = {0};
    struct ddp_comm *c = NULL;

    (void)state;
    assert_int_equal(ddp_init(&c, NULL, NULL), 0);
    assert_int_equal(ddp_size(c), 1);
    assert_int_equal(ddp_all_reduce(c, in, out, 2, DDP_F32, DDP_AVG, NULL,
                                    NULL), 0);
    assert_memory_equal(in, out, sizeof in);
    out[0] = 0;
    assert_int_equal(ddp_all_gather(c, in, out, 2, DDP_F32, NULL, NULL), 0);
    assert_memory_equal(in, out, sizeof in);
    assert_int_equal(ddp_reduce_scatter(c, in, out, 1, DDP_F32, DDP_SUM, NULL,
                                        NULL), 0);
    assert_int_equal(ddp_broadcast(c, out, 2, DDP_F32, 0, NULL, NULL), 0);
    assert_int_equal(ddp_barrier(c, NULL), 0);
    assert_int_equal(ddp_abort(c), 0);
    assert_int_equal(ddp_barrier(c, NULL), DDP_EABORTED);
    assert_int_equal(ddp_abort(NULL), DDP_EINVAL);
    ddp_free(c);
    ddp_free(NULL);
}

/* --- arguments ----------------------------------------------------------- */

struct wrong {
    struct ddp_comm *c;
    struct ddp_error err;
};

static void expect_wrong(struct wrong *w, int rc, int code, const char *want)
{
    assert_int_equal(rc, code);
    assert_int_equal(w->err.code, code);
    assert_int_equal(w->err.peer, -1);
    if (!strstr(w->err.text, want))
        fail_msg("'%s', wanted '%s'", w->err.text, want);
}

static void test_wrong_arguments(void **state)
{
    struct wrong w = {.c = NULL};
    float b[8] = {0};
    uint8_t *odd = (uint8_t *)b + 1;
    int rc;

    (void)state;
    rc = ddp_init(NULL, NULL, &w.err);
    expect_wrong(&w, rc, DDP_EINVAL, "ret is NULL");
    rc = ddp_barrier(NULL, &w.err);
    expect_wrong(&w, rc, DDP_EINVAL, "communicator is NULL");
    assert_int_equal(ddp_init(&w.c, NULL, NULL), 0);
    rc = ddp_all_reduce(w.c, b, b, 1, (enum ddp_type)10, DDP_SUM, NULL, &w.err);
    expect_wrong(&w, rc, DDP_EINVAL, "type 10");
    rc = ddp_all_reduce(w.c, b, b, 1, DDP_F32, (enum ddp_op)5, NULL, &w.err);
    expect_wrong(&w, rc, DDP_EINVAL, "op 5");
    rc = ddp_all_reduce(w.c, b, b, 1, DDP_F32, DDP_SUM, &w, &w.err);
    /* As there is a CUDA runtime on this machine, or none. */
    expect_wrong(&w, rc, rc == DDP_EINVAL ? DDP_EINVAL : DDP_ENOTSUP,
                 "a stream is given");
    rc = ddp_all_reduce(w.c, NULL, b, 1, DDP_F32, DDP_SUM, NULL, &w.err);
    expect_wrong(&w, rc, DDP_EINVAL, "a buffer is NULL");
    rc = ddp_all_reduce(w.c, b, b, SIZE_MAX / 2, DDP_F32, DDP_SUM, NULL,
                        &w.err);
    expect_wrong(&w, rc, DDP_EINVAL, "too large");
    rc = ddp_all_reduce(w.c, odd, odd, 1, DDP_F32, DDP_SUM, NULL, &w.err);
    expect_wrong(&w, rc, DDP_EINVAL, "not aligned");
    rc = ddp_all_reduce(w.c, b, b + 1, 2, DDP_F32, DDP_SUM, NULL, &w.err);
    expect_wrong(&w, rc, DDP_EINVAL, "overlap");
    rc = ddp_all_reduce(w.c, b + 1, b, 2, DDP_F32, DDP_SUM, NULL, &w.err);
    expect_wrong(&w, rc, DDP_EINVAL, "overlap");
    rc = ddp_broadcast(w.c, b, 2, DDP_F32, 1, NULL, &w.err);
    expect_wrong(&w, rc, DDP_EINVAL, "root 1");
    rc = ddp_broadcast(w.c, b, 2, DDP_F32, -1, NULL, &w.err);
    expect_wrong(&w, rc, DDP_EINVAL, "root -1");
    assert_int_equal(ddp_all_reduce(w.c, NULL, NULL, 0, DDP_F32, DDP_SUM, NULL,
                                    NULL), 0);
    assert_int_equal(ddp_broadcast(w.c, b, 8, DDP_F16, 0, NULL, NULL), 0);
    assert_int_equal(ddp_barrier(w.c, NULL), 0); /* Nothing is broken. */
    ddp_free(w.c);
}

/* One thread at a time: the second one gets an error, the first goes on. */
static void *run_first(void *arg)
{
    struct rank *r = arg;

    do /* The other one may be inside, for a moment. */
        r->rc = ddp_barrier(r->c, &r->err);
    while (r->rc == DDP_EINVAL);
    return NULL;
}

static void run_busy(struct rank *r)
{
    double until = now_ms() + PATIENCE_MS;
    struct ddp_error err = {.text = ""};
    pthread_t first;
    float b[1];

    if (ddp_rank(r->c) == 1) {
        while (!atomic_load(r->flag) && now_ms() < until)
            pause_ms(1);
        r->rc = ddp_barrier(r->c, &r->err);
        return;
    }
    if (pthread_create(&first, NULL, run_first, r)) {
        r->is_wrong = true;
        return;
    }
    /* A call that fails anyway: its text tells whether the other is inside. */
    while (!strstr(err.text, "another thread") && now_ms() < until)
        (void)ddp_all_reduce(r->c, b, b, 1, (enum ddp_type)99, DDP_SUM, NULL,
                             &err);
    r->is_wrong = err.code != DDP_EINVAL || now_ms() >= until;
    atomic_store(r->flag, true);
    (void)pthread_join(first, NULL);
}

static void test_one_thread_at_a_time(void **state)
{
    atomic_bool flag = false;
    struct job j;

    (void)state;
    job_init(&j, 2, run_busy, NULL);
    j.ranks[0].flag = j.ranks[1].flag = &flag;
    job_run(&j);
    job_expect(&j, 0);
}

/* --- failures of a call -------------------------------------------------- */

/* The later calls of a broken communicator give the first error at once. */
static void expect_broken(struct rank *r)
{
    struct ddp_error err;
    double began = now_ms();

    if (r->rc && (ddp_barrier(r->c, &err) != r->rc ||
                  strcmp(err.text, r->err.text) || now_ms() - began > 1000))
        r->is_wrong = true;
}

/* The last rank differs in what `arg` says. */
static void run_differ(struct rank *r)
{
    bool odd = ddp_rank(r->c) == ddp_size(r->c) - 1;
    const char *what = r->arg;
    int32_t b[8] = {0};

    if (!strcmp(what, "call") && odd)
        r->rc = ddp_barrier(r->c, &r->err);
    else if (!strcmp(what, "root"))
        r->rc = ddp_broadcast(r->c, b, 4, DDP_I32, odd, NULL, &r->err);
    else
        r->rc = ddp_all_reduce(r->c, b, b,
                               odd && !strcmp(what, "count") ? 5 : 4,
                               odd && !strcmp(what, "type") ? DDP_F32 : DDP_I32,
                               odd && !strcmp(what, "op") ? DDP_MAX : DDP_SUM,
                               NULL, &r->err);
    expect_broken(r);
}

static void test_differing_calls(void **state)
{
    static const struct {
        const char *what, *want, *other, *pair;
    } cases[] = {
        {"count", "4 x i32, sum, root 0 on", ", but 5 x i32, sum, root 0 on",
         "5 x i32, sum, root 0 on"},
        {"type", "4 x i32, sum, root 0 on", ", but 4 x f32, sum, root 0 on",
         "4 x f32, sum, root 0 on"},
        {"op", "4 x i32, sum, root 0 on", ", but 4 x i32, max, root 0 on",
         "4 x i32, max, root 0 on"},
        {"root", "4 x i32, sum, root 0 on", ", but 4 x i32, sum, root 1 on",
         NULL},
        {"call", "all_reduce (call 1): rank", "is in barrier (call 1)",
         " is in "},
    };

    (void)state;
    for (unsigned k = 0; k < sizeof cases / sizeof cases[0]; k++)
        for (unsigned n = 2; n <= 5; n++) {
            struct job j;

            job_init(&j, n, run_differ, cases[k].what);
            job_run(&j);
            for (unsigned i = 1; i + 2 < n; i++)
                if (!strcmp(cases[k].what, "root") && !j.ranks[i].rc)
                    j.ranks[i] = j.ranks[0]; /* The data passed it before. */
            job_expect(&j, DDP_EMISMATCH);
            if (!getenv("DDP_TRANSPORT") || !strcmp(cases[k].what, "root")) {
                expect_text(&j.ranks[0], cases[k].want);
                expect_text(&j.ranks[0], cases[k].other);
                assert_int_equal(j.ranks[0].err.peer, n - 1);
                continue;
            }
            /* Small calls over TCP: the first two that differ and meet. */
            expect_text(&j.ranks[0], strcmp(cases[k].what, "call")
                                         ? "4 x i32, sum, root 0 on"
                                         : " (call 1): rank ");
            expect_text(&j.ranks[0], cases[k].pair);
        }
}

/* One rank stays away from the call, but is alive. */
static void run_absent(struct rank *r)
{
    double until = now_ms() + PATIENCE_MS;
    float b[1000] = {0};

    while (ddp_rank(r->c) == *(const int *)r->arg &&
           atomic_load(r->n_failed) < 4 && now_ms() < until)
        pause_ms(1);
    r->rc = ddp_all_reduce(r->c, b, b, 1000, DDP_F32, DDP_SUM, NULL, &r->err);
    expect_broken(r);
    (void)atomic_fetch_add(r->n_failed, 1);
}

static void test_the_silent_rank_is_named(void **state)
{
    (void)state;
    for (int absent = 0; absent < 5; absent++) {
        atomic_int n_failed = 0;
        struct job j;

        job_init(&j, 5, run_absent, &absent);
        for (unsigned i = 0; i < 5; i++) {
            j.ranks[i].opt.timeout_ms = 1000;
            j.ranks[i].n_failed = &n_failed;
        }
        job_run(&j);
        job_expect(&j, DDP_ETIMEDOUT);
        for (int i = 0; i < 5; i++) {
            if (j.ranks[i].err.peer != absent)
                fail_msg("absent %d, rank %d says: %s", absent, i,
                         j.ranks[i].err.text);
            expect_text(&j.ranks[i], "timed out after 1.0 s");
        }
    }
}

/* The last rank leaves (ddp_free) after one call. */
static void run_leave(struct rank *r)
{
    r->rc = ddp_barrier(r->c, &r->err);
    if (r->rc || ddp_rank(r->c) == ddp_size(r->c) - 1)
        return;
    r->rc = ddp_barrier(r->c, &r->err);
    expect_broken(r);
}

static void test_a_rank_leaves(void **state)
{
    (void)state;
    for (unsigned n = 2; n <= 4; n++) {
        struct job j;

        job_init(&j, n, run_leave, NULL);
        job_run(&j);
        assert_int_equal(j.ranks[n - 1].rc, 0);
        for (unsigned i = 0; i < n - 1; i++) {
            assert_int_equal(j.ranks[i].rc, DDP_EPEER);
            assert_int_equal(j.ranks[i].err.peer, n - 1);
            assert_int_equal(j.ranks[i].err.rank, i);
            expect_text(&j.ranks[i], "has left the job");
            assert_false(j.ranks[i].is_wrong);
            assert_true(j.ranks[i].ms < PATIENCE_MS / 2);
        }
    }
}

/* Rank 1 is aborted by another thread; rank 0 hears of it. */
static void *run_abort(void *arg)
{
    (void)ddp_abort(arg);
    return NULL;
}

static void run_aborted(struct rank *r)
{
    pthread_t thread;

    if (ddp_rank(r->c) == 1 && pthread_create(&thread, NULL, run_abort, r->c)) {
        r->is_wrong = true;
        return;
    }
    do
        r->rc = ddp_barrier(r->c, &r->err);
    while (!r->rc);
    if (ddp_rank(r->c) == 1)
        (void)pthread_join(thread, NULL);
    expect_broken(r);
}

/* Both orders: the abort may be first, or the call. */
static void test_abort(void **state)
{
    (void)state;
    for (unsigned k = 0; k < 10; k++) {
        struct job j;

        job_init(&j, 2, run_aborted, NULL);
        job_run(&j);
        job_expect(&j, DDP_EABORTED);
        for (unsigned i = 0; i < 2; i++) {
            assert_int_equal(j.ranks[i].err.peer, 1);
            expect_text(&j.ranks[i], "aborted by ddp_abort");
        }
    }
}

/* --- failures of ddp_init ------------------------------------------------ */

static void test_world_sizes_differ(void **state)
{
    struct job j;

    (void)state;
    job_init(&j, 3, NULL, NULL);
    j.ranks[2].opt.world_size = 4;
    job_run(&j);
    job_expect(&j, DDP_EMISMATCH);
    for (unsigned i = 0; i < 3; i++) {
        expect_text(&j.ranks[i], "WORLD_SIZE is 3 on rank 0 but 4 on rank 2");
        assert_true(j.ranks[i].ms < PATIENCE_MS / 2);
    }
}

static void test_a_rank_is_missing(void **state)
{
    struct job j;

    (void)state;
    job_init(&j, 4, NULL, NULL);
    for (unsigned i = 0; i < 4; i++)
        j.ranks[i].opt.timeout_ms = 600;
    j.n = 2; /* Ranks 2 and 3 never start. */
    job_run(&j);
    job_expect(&j, DDP_ETIMEDOUT);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(j.ranks[i].err.peer, 2);
        expect_text(&j.ranks[i], "2 of 4 ranks have not come");
    }
}

static void test_nobody_is_there(void **state)
{
    static const struct {
        const char *host, *want;
    } cases[] = {
        {"127.0.0.1", "last try: 127.0.0.1:"},
        {"no-such-host.invalid", "'no-such-host.invalid' does not resolve"},
    };

    (void)state;
    for (unsigned k = 0; k < 2; k++) {
        struct job j;
        struct rank *r = &j.ranks[1];

        job_init(&j, 2, NULL, NULL);
        r->opt.master_addr = cases[k].host;
        r->opt.timeout_ms = 400;
        rank_start(r);
        (void)pthread_join(r->thread, NULL);
        assert_int_equal(r->rc, DDP_ETIMEDOUT);
        assert_int_equal(r->err.peer, 0);
        expect_text(r, "rank 0 was not found at ");
        expect_text(r, cases[k].want);
    }
}

/* Two processes with one rank: the second is refused, the job goes on. */
static void test_a_rank_twice(void **state)
{
    atomic_bool over = false;
    struct job j, twin;

    (void)state;
    job_init(&j, 3, run_mixture, NULL);
    j.ranks[1].over = &over;
    twin = j;
    rank_start(&j.ranks[1]);
    rank_start(&twin.ranks[1]);
    rank_start(&j.ranks[0]);
    /* One of the two is refused; only then the last rank comes. */
    while (!atomic_load(&over))
        pause_ms(1);
    rank_start(&j.ranks[2]);
    for (unsigned i = 0; i < 3; i++)
        (void)pthread_join(j.ranks[i].thread, NULL);
    (void)pthread_join(twin.ranks[1].thread, NULL);
    if (j.ranks[1].rc) { /* The twin won. */
        struct rank was = j.ranks[1];

        j.ranks[1] = twin.ranks[1];
        twin.ranks[1] = was;
    }
    job_expect(&j, 0);
    assert_int_equal(twin.ranks[1].rc, DDP_EINVAL);
    expect_text(&twin.ranks[1], "RANK is 1 on two processes");
}

/* Another job's rank is refused until its deadline, and disturbs nobody. */
static void test_another_job(void **state)
{
    struct job j, other;

    (void)state;
    job_init(&j, 2, run_mixture, NULL);
    other = j;
    for (unsigned i = 0; i < 2; i++)
        j.ranks[i].opt.job_id = "this";
    other.ranks[1].opt.job_id = "that";
    other.ranks[1].opt.timeout_ms = 500;
    rank_start(&j.ranks[0]);
    rank_start(&other.ranks[1]);
    (void)pthread_join(other.ranks[1].thread, NULL);
    assert_int_equal(other.ranks[1].rc, DDP_ETIMEDOUT);
    expect_text(&other.ranks[1], "job id is 'this' on rank 0 but 'that'");
    rank_start(&j.ranks[1]);
    for (unsigned i = 0; i < 2; i++)
        (void)pthread_join(j.ranks[i].thread, NULL);
    job_expect(&j, 0);
}

/* Connections that say nothing, or nonsense, or what is almost a frame. */
static void test_strangers(void **state)
{
    static const struct {
        const char *bytes;
        size_t len;
    } words[] = {
        {"", 0},
        {"GET / HTTP/1.1\r\n\r\n", 18},
        {"LDD", 3},
        {"LDDP\x04\x02\x00\x00", 8}, /* WELCOME, to rank 0. */
        {"LDDP\x07\x01\x00\x00", 8}, /* Version 7. */
        {"LDDP\x04\x01\x01\xff", 8}, /* A HELLO that never ends. */
    };
    enum { N = 100 }; /* More than wait at one time. */
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct job j;
    int fds[N];
    double until = now_ms() + PATIENCE_MS;

    (void)state;
    job_init(&j, 3, run_mixture, NULL);
    rank_start(&j.ranks[0]);
    a.sin_port = htons((uint16_t)j.ranks[0].opt.master_port);
    for (unsigned i = 0; i < N; i++) {
        unsigned k = i % (sizeof words / sizeof words[0]);

        fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_true(fds[i] >= 0);
        while (connect(fds[i], (struct sockaddr *)&a, sizeof a) &&
               now_ms() < until)
            pause_ms(1);
        (void)send(fds[i], words[k].bytes, words[k].len, MSG_NOSIGNAL);
    }
    rank_start(&j.ranks[1]);
    rank_start(&j.ranks[2]);
    for (unsigned i = 0; i < 3; i++)
        (void)pthread_join(j.ranks[i].thread, NULL);
    for (unsigned i = 0; i < N; i++)
        (void)close(fds[i]);
    job_expect(&j, 0);
}

static int hold_port(int port)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons((uint16_t)port),
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(listen(fd, 1), 0);
    return fd;
}

/* The port is held, and stays so; or it is given up while rank 0 waits. */
static void test_port_in_use(void **state)
{
    struct job j;
    char want[64];
    int fd;

    (void)state;
    job_init(&j, 2, run_mixture, NULL);
    fd = hold_port(j.ranks[0].opt.master_port);
    j.ranks[0].opt.timeout_ms = 300;
    rank_start(&j.ranks[0]);
    (void)pthread_join(j.ranks[0].thread, NULL);
    assert_int_equal(j.ranks[0].rc, DDP_ESYSTEM);
    (void)snprintf(want, sizeof want, "cannot listen on 127.0.0.1 port %d: "
                   "another", j.ranks[0].opt.master_port);
    expect_text(&j.ranks[0], want);
    (void)close(fd);

    job_init(&j, 2, run_mixture, NULL);
    fd = hold_port(j.ranks[0].opt.master_port);
    rank_start(&j.ranks[0]);
    rank_start(&j.ranks[1]);
    pause_ms(150); /* So that both have most likely tried; not needed. */
    (void)close(fd);
    for (unsigned i = 0; i < 2; i++)
        (void)pthread_join(j.ranks[i].thread, NULL);
    job_expect(&j, 0);
}

static int clear_environment(void **state)
{
    static const char *const names[] = {
        "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR",
        "MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT",
        "TORCHELASTIC_USE_AGENT_STORE", "DDP_TIMEOUT", "DDP_BOOTSTRAP_PORT"};

    (void)state;
    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++)
        (void)unsetenv(names[i]);
    return 0;
}

static int choose_tcp(void **state)
{
    (void)state;
    return setenv("DDP_TRANSPORT", "tcp", 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mixture),
        cmocka_unit_test(test_identity),
        cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_again_and_again),
        cmocka_unit_test(test_one_process_needs_nothing),
        cmocka_unit_test(test_wrong_arguments),
        cmocka_unit_test(test_one_thread_at_a_time),
        cmocka_unit_test(test_differing_calls),
        cmocka_unit_test(test_the_silent_rank_is_named),
        cmocka_unit_test(test_a_rank_leaves),
        cmocka_unit_test(test_abort),
        cmocka_unit_test(test_world_sizes_differ),
        cmocka_unit_test(test_a_rank_is_missing),
        cmocka_unit_test(test_nobody_is_there),
        cmocka_unit_test(test_a_rank_twice),
        cmocka_unit_test(test_another_job),
        cmocka_unit_test(test_strangers),
        cmocka_unit_test(test_port_in_use),
    };

    /* Over shared memory, then over TCP. */
    int rc = cmocka_run_group_tests_name("ddp_comm", tests, clear_environment,
                                         NULL);

    return rc + cmocka_run_group_tests_name("ddp_comm_tcp", tests,
                                            choose_tcp, NULL);
}
