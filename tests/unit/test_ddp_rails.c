/* libddp's rails: which layouts have some, that they are used, and that nobody
 * uses them where one pod has no memory; calls that fail. Ranks are threads, on
 * hosts that ddp_pods.h makes up; right results are test_ddp_random's. */
#include "ddp/comm.h"
#include "ddp/layout.h"

#include "ddp_fixture.h"

#include <sched.h>
#include <stdatomic.h>
#include <time.h>

#define RANKS 6 /* Of all jobs here: three pods of two, or two of three. */
#define TIMEOUT_MS 1500
#define LATE_MS 30000 /* The machine may be busy. */

/* --- layouts ------------------------------------------------------------- */

static void test_layouts(void **state)
{
    static const struct {
        const char *hosts; /* Of each rank a letter; '-': shares nothing. */
        const char *want;  /* Ranks, pod by pod; NULL: no rails. */
        unsigned n_pods;
    } cases[] = {
        {"a", NULL, 0},
        {"aa", NULL, 0},
        {"ab", NULL, 0},
        {"aaaa", NULL, 0},
        {"abcd", NULL, 0},
        {"aabb", "0123", 2},
        {"abab", "0213", 2},
        {"bbaa", "0123", 2},
        {"aab", NULL, 0},
        {"aaab", NULL, 0},
        {"aaabb", NULL, 0},
        {"aabbb", NULL, 0},
        {"aabbbaacc", NULL, 0},
        {"aaa-bb", NULL, 0},
        {"----", NULL, 0},
        {"aaabbb", "012345", 2},
        {"ababab", "024135", 2},
        {"aabbcc", "012345", 3},
        {"abcabc", "031425", 3},
        {"aabccb", NULL, 0}, /* Rail 1: rank 5 before rank 4. */
        {"abba", NULL, 0},
        {"ccccaaaabbbb", "0123456789:;", 3},
    };

    (void)state;
    for (unsigned k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        unsigned size = (unsigned)strlen(cases[k].hosts), ranks[16];
        uint8_t hosts[16][20] = {{0}}; /* Among something else. */
        struct ddp_layout l = {.ranks = ranks};

        for (unsigned r = 0; r < size; r++)
            if (cases[k].hosts[r] != '-')
                hosts[r][DDP_TOKEN - 1] = (uint8_t)cases[k].hosts[r];
        for (unsigned r = 0; r < size; r++) {
            bool has = ddp_layout_find(&l, hosts[0], sizeof hosts[0], r, size);

            if (has != (cases[k].n_pods > 0))
                fail_msg("%s: %d", cases[k].hosts, has);
            if (!has)
                continue;
            assert_int_equal(l.n_pods, cases[k].n_pods);
            assert_int_equal(l.n_seats, size / cases[k].n_pods);
            assert_int_equal(ddp_layout_rank(&l, l.pod, l.seat), r);
            for (unsigned i = 0; i < size; i++)
                assert_int_equal(l.ranks[i], cases[k].want[i] - '0');
        }
    }
}

/* --- who uses them ------------------------------------------------------- */

static int pod_without_memory = -1;

struct ddp_shm *__real_ddp_shm_create(unsigned n, const uint8_t *token);
struct ddp_shm *__wrap_ddp_shm_create(unsigned n, const uint8_t *token);

struct ddp_shm *__wrap_ddp_shm_create(unsigned n, const uint8_t *token)
{
    return (int)pod_of_thread == pod_without_memory
               ? NULL
               : __real_ddp_shm_create(n, token);
}

/* Pods that share the processors of this machine, or have some of their own. */
static bool has_own_processors;
static unsigned n_processors;

void __real_ddp_shm_processors(uint8_t ret[DDP_TOKEN]);
void __wrap_ddp_shm_processors(uint8_t ret[DDP_TOKEN]);

void __wrap_ddp_shm_processors(uint8_t ret[DDP_TOKEN])
{
    __real_ddp_shm_processors(ret);
    ret[0] = (uint8_t)(ret[0] + (has_own_processors ? pod_of_thread : 0));
}

/* So few that not each rank of a job can have one. */
static void take_few_processors(void)
{
    cpu_set_t set;

    assert_int_equal(sched_getaffinity(0, sizeof set, &set), 0);
    for (size_t i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &set) && ++n_processors > RANKS / 2)
            CPU_CLR(i, &set);
    n_processors = (unsigned)CPU_COUNT(&set);
    assert_int_equal(sched_setaffinity(0, sizeof set, &set), 0);
}

static void run_sums(struct rank *r)
{
    bool has = pod_without_memory < 0;
    unsigned crowd = has_own_processors ? pods_seats(RANKS) : RANKS;
    enum { N = 30000 };
    int32_t *a = calloc(N, sizeof *a);

    if ((r->c->rail.seats > 0) != has || (r->c->shm != NULL) != has)
        rank_wrong(r, "%u seats, memory: %d", r->c->rail.seats,
                   r->c->shm != NULL);
    if (has && r->c->rail.seats * r->c->shm->n != RANKS)
        rank_wrong(r, "%u seats, %u ranks", r->c->rail.seats, r->c->shm->n);
    if (has && (r->c->shm->spin_ns > 0) != (crowd <= n_processors))
        rank_wrong(r, "%u ranks use %u processors; a wait spins: %d", crowd,
                   n_processors, r->c->shm->spin_ns > 0);
    for (size_t n = 1; n <= N && a && !*r->wrong; n *= 30) {
        for (size_t i = 0; i < n; i++)
            a[i] = (int32_t)i + r->rank;
        if (ddp_all_reduce(r->c, a, a, n, DDP_I32, DDP_SUM, NULL, &r->err))
            rank_wrong(r, "%.180s", r->err.text);
        for (size_t i = 0; i < n; i++)
            if (a[i] != RANKS * (int32_t)i + RANKS * (RANKS - 1) / 2)
                rank_wrong(r, "element %zu of %zu is %d", i, n, a[i]);
    }
    free(a);
}

static void test_used_by_all_or_nobody(void **state)
{
    struct job j;

    (void)state;
    for (int pod = -1; pod < 2; pod++) {
        pod_without_memory = pod;
        job_run(&j, RANKS, run_sums, NULL);
    }
    pod_without_memory = -1;
    has_own_processors = true;
    job_run(&j, RANKS, run_sums, NULL);
    has_own_processors = false;
}

/* --- calls that fail ----------------------------------------------------- */

struct fault {
    size_t count; /* Of the calls. */
    int who;      /* The rank that does something else. */
    enum { STAYS_AWAY, LEAVES, ABORTS, OTHER_COUNT, OTHER_CALL } what;
    int code;
    const char *text;
    atomic_uint *n_failed;
};

static double now_ms(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* Alive, but not in the call, until the others have failed. */
static void stay_away(const struct fault *f)
{
    const struct timespec pause = {.tv_nsec = 1000 * 1000};
    double until = now_ms() + LATE_MS;

    while (atomic_load(f->n_failed) < RANKS - 1 && now_ms() < until)
        (void)nanosleep(&pause, NULL);
}

static void *run_abort(void *c)
{
    (void)ddp_abort(c);
    return NULL;
}

/* 0, or its error. */
static int one_call(struct rank *r, const struct fault *f, float *a, bool odd)
{
    if (odd && f->what == OTHER_CALL)
        return ddp_broadcast(r->c, a, f->count, DDP_F32, 0, NULL, &r->err);
    return ddp_all_reduce(r->c, a, a, f->count + (odd &&
                                                  f->what == OTHER_COUNT),
                          DDP_F32, DDP_SUM, NULL, &r->err);
}

static void run_fault(struct rank *r)
{
    const struct fault *f = r->job->arg;
    bool is_it = r->rank == f->who, aborts = is_it && f->what == ABORTS;
    float *a = calloc(f->count + 1, sizeof *a);
    double began;
    pthread_t thread;
    int rc = 0;

    for (unsigned i = 0; i < 3 && a && !rc; i++)
        rc = one_call(r, f, a, false);
    if (!a)
        rank_wrong(r, "out of memory");
    if (is_it && f->what == LEAVES) {
        free(a);
        return;
    }
    if (is_it && f->what == STAYS_AWAY)
        stay_away(f);
    if (aborts && pthread_create(&thread, NULL, run_abort, r->c))
        rank_wrong(r, "no thread");
    began = now_ms();
    if (!rc) /* Else others were ahead, and have failed. */
        do
            rc = one_call(r, f, a, is_it);
        while (!rc && f->what == ABORTS);
    if (aborts)
        (void)pthread_join(thread, NULL);
    if (!is_it || f->what != STAYS_AWAY) {
        (void)atomic_fetch_add(f->n_failed, 1);
        if (rc != f->code || r->err.rank != r->rank ||
            !strstr(r->err.text, f->text))
            rank_wrong(r, "%d: %.180s", rc, rc ? r->err.text : "no error");
        if (f->code != DDP_EMISMATCH && r->err.peer != f->who)
            rank_wrong(r, "peer %d: %.180s", r->err.peer, r->err.text);
        if (now_ms() - began > LATE_MS)
            rank_wrong(r, "too late: %.180s", r->err.text);
    } else if (!rc) {
        rank_wrong(r, "who was away has no error");
    }
    free(a);
}

static void play(struct fault f)
{
    atomic_uint n_failed = 0;
    struct job j;

    f.n_failed = &n_failed;
    for (unsigned large = 0; large < 2; large++) {
        f.who = large == (pods_are == PODS_FEW) ? RANKS - 1 : 0;
        f.count = large ? 50000 : 10;
        atomic_store(&n_failed, 0);
        job_run_within(&j, RANKS, run_fault, &f,
                       f.what == STAYS_AWAY ? TIMEOUT_MS : FIXTURE_PATIENCE_MS);
    }
}

static void test_who_stays_away_is_named(void **state)
{
    (void)state;
    play((struct fault){.what = STAYS_AWAY, .code = DDP_ETIMEDOUT,
                        .text = "timed out after 1.5 s: rank "});
}

static void test_who_leaves_is_named(void **state)
{
    (void)state;
    play((struct fault){.what = LEAVES, .code = DDP_EPEER,
                        .text = " has left the job"});
}

static void test_abort(void **state)
{
    (void)state;
    play((struct fault){.what = ABORTS, .code = DDP_EABORTED,
                        .text = "aborted by ddp_abort"});
}

static void test_calls_differ(void **state)
{
    (void)state;
    play((struct fault){.what = OTHER_COUNT, .code = DDP_EMISMATCH,
                        .text = " x f32, sum, root 0 on rank "});
    play((struct fault){.what = OTHER_CALL, .code = DDP_EMISMATCH,
                        .text = " is in "});
}

int main(void)
{
    const struct CMUnitTest pure[] = {cmocka_unit_test(test_layouts)};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_used_by_all_or_nobody),
        cmocka_unit_test(test_who_stays_away_is_named),
        cmocka_unit_test(test_who_leaves_is_named),
        cmocka_unit_test(test_abort),
        cmocka_unit_test(test_calls_differ),
    };
    int rc = cmocka_run_group_tests_name("ddp_layout", pure, NULL, NULL);

    take_few_processors();
    /* Two pods of three; three pods of two, whose ranks are not consecutive. */
    rc += cmocka_run_group_tests_name("ddp_rails", tests, use_pods, NULL);
    return rc + cmocka_run_group_tests_name("ddp_rails_dealt", tests,
                                            use_dealt_pods, NULL);
}
