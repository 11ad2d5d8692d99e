/* Tests of ddp/bucket and of the reducer. */
#include "ddp/bucket.h"

#include "ddp_fixture.h"

#include <math.h>

/* --- which gradients travel together ------------------------------------- */

static void test_plan(void **state)
{
    static float mem[100];
    const struct ddp_bucket_sizes sizes = {.first_bytes = 40, .bytes = 100};
    struct ddp_param p[6] = {{.grad = mem, .count = 20, .type = DDP_F32}};
    struct ddp_bucket b[6];

    (void)state;
    /* In memory: 0 | 1 | 2 | 3, a gap, 4 | 5, of which 5 is no float. */
    for (unsigned i = 1; i < 6; i++)
        p[i] = (struct ddp_param){.grad = mem + 10 * i + (i < 4 ? 10 : 20),
                                  .count = 10, .type = DDP_F32};
    p[5].type = DDP_BF16;
    assert_int_equal(ddp_bucket_plan(p, 6, &sizes, b), 3);
    assert_int_equal(b[0].first, 5); /* Another type: alone. */
    assert_int_equal(b[0].n, 1);
    assert_int_equal(b[0].type, DDP_BF16);
    assert_int_equal(b[1].first, 2); /* Closed from 100 bytes on. */
    assert_int_equal(b[1].n, 3);
    assert_int_equal(b[1].count, 30);
    assert_false(b[1].in_place);
    assert_int_equal(b[2].first, 0);
    assert_int_equal(b[2].n, 2);
    assert_true(b[2].in_place);
    assert_int_equal(ddp_bucket_plan(p, 0, &sizes, b), 0);
}

static void test_sizes(void **state)
{
    struct ddp_bucket_sizes s;

    (void)state;
    assert_null(ddp_bucket_sizes(0, 0, &s));
    assert_true(s.first_bytes == 1048576 && s.bytes == 25 * 1048576);
    assert_null(ddp_bucket_sizes(0, 0.5, &s)); /* The first is not larger. */
    assert_true(s.first_bytes == 524288 && s.bytes == 524288);
    assert_non_null(ddp_bucket_sizes(-1, 0, &s));
    assert_non_null(ddp_bucket_sizes(0, 1e9, &s));
    assert_non_null(ddp_bucket_sizes(0, nan(""), &s));
}

/* --- steps --------------------------------------------------------------- */

#define MOST_PARAMS 40
#define STEPS 6

struct model {
    struct ddp_param params[MOST_PARAMS];
    size_t n;
    void *memory;
    bool sums, is_narrow;
};

static float value(int rank, unsigned step, size_t i, size_t k)
{
    return (float)((int)((i * 3 + k + step + (size_t)rank) % 7) - 3);
}

static void put(const struct ddp_param *p, size_t k, float v)
{
    if (p->type == DDP_F64)
        ((double *)p->grad)[k] = (double)v;
    else
        ((float *)p->grad)[k] = v;
}

static double get(const struct ddp_param *p, size_t k)
{
    return p->type == DDP_F64 ? ((double *)p->grad)[k]
                              : (double)((float *)p->grad)[k];
}

/* Alike on all ranks but for where gradients lie in memory. */
static struct ddp_reducer *make(struct rank *r, struct model *m, uint64_t *seed)
{
    struct ddp_reducer_options opt = {.size = sizeof opt};
    struct ddp_reducer *ret = NULL;
    bool together = (*seed + (uint64_t)r->rank) % 2;
    size_t at = 0;

    m->n = 1 + next_random(seed) % MOST_PARAMS;
    opt.bucket_mib = (double)(1 + next_random(seed) % 40) / 1000;
    opt.first_bucket_mib = opt.bucket_mib / 4;
    opt.sum = (int)(next_random(seed) % 2);
    m->sums = opt.sum != 0;
    if (next_random(seed) % 2)
        opt.wire = next_random(seed) % 2 ? DDP_F16 : DDP_BF16;
    m->is_narrow = opt.wire != 0;
    m->memory = calloc(MOST_PARAMS, 3001 * 8);
    for (size_t i = 0; i < m->n; i++) {
        struct ddp_param *p = &m->params[i];

        /* Even, so that all stay aligned. */
        p->count = next_random(seed) % 4 ? next_random(seed) % 1500 * 2 : 0;
        p->type = next_random(seed) % 8 ? DDP_F32 : DDP_F64;
        p->grad = (uint8_t *)m->memory + at;
        at += p->count * (p->type == DDP_F64 ? 8 : 4) + (together ? 0 : 8);
    }
    if (ddp_reducer_new(&ret, r->c, m->params, m->n, &opt, &r->err))
        rank_wrong(r, "new: %.180s", r->err.text);
    return ret;
}

static void check(struct rank *r, const struct model *m, unsigned step,
                  unsigned n_passes)
{
    unsigned n = r->job->n;

    for (size_t i = 0; i < m->n; i++)
        for (size_t k = 0; k < m->params[i].count; k++) {
            double want = 0, got = get(&m->params[i], k), off;

            for (unsigned pass = 0; pass < n_passes; pass++)
                for (unsigned q = 0; q < n; q++)
                    want += (double)value((int)q, step - pass, i, k);
            want = m->sums ? want : (double)((float)want / (float)n);
            off = got > want ? got - want : want - got;
            if (off > (m->is_narrow ? 0.3 : 1e-6))
                rank_wrong(r, "step %u: parameter %zu of %zu, element %zu: %g "
                           "for %g", step, i, m->n, k, got, want);
        }
}

/* All parameters, in an order of this rank's own. */
static void all_ready(struct rank *r, struct ddp_reducer *red, size_t n,
                      uint64_t seed)
{
    size_t order[MOST_PARAMS];

    seed += (uint64_t)r->rank;
    for (size_t i = 0; i < n; i++)
        order[i] = i;
    for (size_t i = n; i-- > 1;) {
        size_t j = next_random(&seed) % (i + 1), was = order[i];

        order[i] = order[j];
        order[j] = was;
    }
    for (size_t i = 0; i < n; i++)
        if (ddp_reducer_ready(red, order[i], &r->err))
            rank_wrong(r, "ready: %.180s", r->err.text);
}

static void backward(struct rank *r, struct model *m, unsigned step, bool add)
{
    for (size_t i = 0; i < m->n; i++)
        for (size_t k = 0; k < m->params[i].count; k++)
            put(&m->params[i], k,
                value(r->rank, step, i, k) +
                    (add ? (float)get(&m->params[i], k) : 0));
}

static void run_steps(struct rank *r)
{
    uint64_t seed = 77 + *(const unsigned *)r->job->arg;
    struct model m = {.n = 0};
    struct ddp_reducer *red = make(r, &m, &seed);

    for (unsigned step = 1; step <= STEPS && red && !*r->wrong; step++) {
        bool adds = step % 3 == 2; /* With the step after it. */

        if (ddp_reducer_no_sync(red, adds, &r->err))
            rank_wrong(r, "no_sync: %.180s", r->err.text);
        backward(r, &m, step, step % 3 == 0);
        all_ready(r, red, m.n, seed + step);
        if (ddp_reducer_wait(red, &r->err))
            rank_wrong(r, "wait: %.180s", r->err.text);
        if (!adds)
            check(r, &m, step, step % 3 == 0 ? 2 : 1);
    }
    ddp_reducer_free(red);
    free(m.memory);
}

static void test_steps(void **state)
{
    static struct job j;

    (void)state;
    for (unsigned n = 1; n <= 5; n++)
        for (unsigned seed = 0; seed < 4; seed++)
            job_run(&j, n, run_steps, &seed);
}

/* --- what goes wrong ----------------------------------------------------- */

static void expect(struct rank *r, int rc, int want, const char *text)
{
    if (rc != want || r->err.code != want || !strstr(r->err.text, text))
        rank_wrong(r, "%d (wanted %d): %.150s", rc, want, r->err.text);
}

static float floats[FIXTURE_RANKS][3][10];

static struct ddp_reducer *make_three(struct rank *r)
{
    struct ddp_param p[3] = {{.count = 10, .type = DDP_F32}};
    struct ddp_reducer *ret = NULL;

    for (unsigned i = 0; i < 3; i++)
        p[i] = (struct ddp_param){.grad = floats[r->rank][i], .count = 10,
                                  .type = DDP_F32};
    if (ddp_reducer_new(&ret, r->c, p, 3, NULL, &r->err))
        rank_wrong(r, "new: %.180s", r->err.text);
    return ret;
}

static void run_unused(struct rank *r)
{
    struct ddp_reducer *red = make_three(r);

    if (!red && r->err.code == DDP_EUNUSED && r->rank != 1) {
        *r->wrong = '\0'; /* The others were through, and failed, before. */
        return;
    }
    for (size_t i = 0; i < 3 && red; i++)
        if (r->rank != 1 || i != 2)
            (void)ddp_reducer_ready(red, i, &r->err);
    expect(r, ddp_reducer_wait(red, &r->err), DDP_EUNUSED,
           "parameter 2 of 0 to 2 was not ready");
    if (r->err.peer != (r->job->n > 1 ? 1 : 0))
        rank_wrong(r, "peer is %d", r->err.peer);
    expect(r, ddp_reducer_ready(red, 0, &r->err), DDP_EUNUSED, "parameter 2");
    expect(r, ddp_barrier(r->c, &r->err), DDP_EUNUSED, "parameter 2");
    ddp_reducer_free(red);
}

static void test_unused_parameter(void **state)
{
    static struct job j;

    (void)state;
    job_run(&j, 2, run_unused, NULL);
    job_run(&j, 4, run_unused, NULL);
}

static void run_twice(struct rank *r)
{
    struct ddp_reducer *red = make_three(r);

    if (!red)
        return;
    (void)ddp_reducer_ready(red, 1, &r->err);
    expect(r, ddp_reducer_ready(red, 1, &r->err), DDP_EINVAL,
           "parameter 1 was ready before");
    expect(r, ddp_reducer_ready(red, 3, &r->err), DDP_EINVAL,
           "parameter 3 is none of 0 to 2");
    expect(r, ddp_reducer_no_sync(red, 1, &r->err), DDP_EINVAL, "the midst");
    (void)ddp_reducer_ready(red, 0, &r->err);
    (void)ddp_reducer_ready(red, 2, &r->err);
    if (ddp_reducer_wait(red, &r->err)) /* None of it did any harm. */
        rank_wrong(r, "wait: %.180s", r->err.text);
    ddp_reducer_free(red);
}

static void test_ready_twice(void **state)
{
    static struct job j;

    (void)state;
    job_run(&j, 1, run_twice, NULL);
    job_run(&j, 3, run_twice, NULL);
}

static void run_mismatch(struct rank *r)
{
    float f[10] = {0};
    const struct ddp_param p = {.grad = f, .count = r->rank == 2 ? 9 : 10,
                                .type = DDP_F32};
    struct ddp_reducer *red = NULL;

    expect(r, ddp_reducer_new(&red, r->c, &p, 1, NULL, &r->err), DDP_EMISMATCH,
           "of rank 2 differ");
    if (r->err.peer != 2 || red)
        rank_wrong(r, "peer is %d", r->err.peer);
}

static void test_other_parameters(void **state)
{
    static struct job j;

    (void)state;
    job_run(&j, 3, run_mismatch, NULL);
}

/* A rank goes in the midst of a step; another one gives up by itself. */
static void run_leave(struct rank *r)
{
    struct ddp_reducer *red = make_three(r);

    /* Whoever goes before all have made one ends the job for them. */
    (void)pthread_barrier_wait((pthread_barrier_t *)(uintptr_t)r->job->arg);
    for (size_t i = 0; i < 3 && red && r->rank != 1; i++)
        (void)ddp_reducer_ready(red, i, &r->err);
    if (r->rank == 0) { /* Its wait ends with what rank 1 or 2 does. */
        int rc = ddp_reducer_wait(red, &r->err);

        if (rc != DDP_EPEER && rc != DDP_EABORTED)
            rank_wrong(r, "%d: %.180s", rc, r->err.text);
    }
    ddp_reducer_free(red);
}

static void test_free_in_the_midst(void **state)
{
    static struct job j;
    pthread_barrier_t made;

    (void)state;
    assert_int_equal(pthread_barrier_init(&made, NULL, 3), 0);
    job_run(&j, 3, run_leave, &made);
    (void)pthread_barrier_destroy(&made);
}

static void test_wrong_arguments(void **state)
{
    struct rank r = {.rank = 0};
    float f[4] = {0};
    struct ddp_param p = {.grad = f, .count = 4, .type = DDP_F32};
    struct ddp_reducer_options o = {.size = sizeof o};
    struct ddp_reducer *red = NULL;

    (void)state;
    assert_int_equal(ddp_init(&r.c, NULL, &r.err), 0);
    expect(&r, ddp_reducer_new(&red, NULL, &p, 1, NULL, &r.err), DDP_EINVAL,
           "communicator is NULL");
    expect(&r, ddp_reducer_new(&red, r.c, NULL, 1, NULL, &r.err), DDP_EINVAL,
           "params is NULL");
    p.type = DDP_I32;
    expect(&r, ddp_reducer_new(&red, r.c, &p, 1, NULL, &r.err), DDP_EINVAL,
           "parameter 0: its type is no float");
    p.type = DDP_F32;
    p.grad = (uint8_t *)f + 1;
    expect(&r, ddp_reducer_new(&red, r.c, &p, 1, NULL, &r.err), DDP_EINVAL,
           "not aligned");
    p.grad = f;
    o.wire = DDP_F64;
    expect(&r, ddp_reducer_new(&red, r.c, &p, 1, &o, &r.err), DDP_EINVAL,
           "wire is 8");
    o.wire = DDP_F16;
    o.size = 3;
    expect(&r, ddp_reducer_new(&red, r.c, &p, 1, &o, &r.err), DDP_EINVAL,
           "options.size is 3");
    o.size = sizeof o;
    o.bucket_mib = -1;
    expect(&r, ddp_reducer_new(&red, r.c, &p, 1, &o, &r.err), DDP_EINVAL,
           "bucket_mib");
    expect(&r, ddp_reducer_wait(NULL, &r.err), DDP_EINVAL, "is NULL");
    expect(&r, ddp_reducer_ready(NULL, 0, &r.err), DDP_EINVAL, "is NULL");
    expect(&r, ddp_reducer_no_sync(NULL, 0, &r.err), DDP_EINVAL, "is NULL");
    assert_null(red);
    assert_string_equal(r.wrong, "");
    assert_int_equal(ddp_reducer_new(&red, r.c, NULL, 0, NULL, NULL), 0);
    assert_int_equal(ddp_reducer_wait(red, NULL), 0); /* Nothing to do. */
    ddp_reducer_free(red);
    ddp_reducer_free(NULL);
    ddp_free(r.c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plan),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_steps),
        cmocka_unit_test(test_unused_parameter),
        cmocka_unit_test(test_ready_twice),
        cmocka_unit_test(test_other_parameters),
        cmocka_unit_test(test_free_in_the_midst),
        cmocka_unit_test(test_wrong_arguments),
    };

    /* Over shared memory, then over TCP. */
    int rc = cmocka_run_group_tests_name("ddp_reducer", tests, use_memory,
                                         NULL);

    return rc + cmocka_run_group_tests_name("ddp_reducer_tcp", tests, use_tcp,
                                            NULL);
}
