/* Random calls of libddp against a serial reference: types, ops, calls,
 * counts, roots, in place or not, for 1 to 17 ranks, as threads. What each
 * rank does is a function of the world size's seed; threads only record. */
#include "ddp/reduce.h"

#include "ddp_fixture.h"

#define CALLS 40
#define MOST 70000 /* Elements of a rank; fewer with many ranks. */

/* A rank's buffers, and of each call a hash of its result. */
struct work {
    uint8_t *send, *recv, *want;
    uint64_t hashes[CALLS];
};

struct call {
    int what; /* 0 all_reduce, 1 reduce_scatter, 2 all_gather, 3 broadcast, */
    int type, op, root; /* 4 barrier. */
    size_t count, width;
    bool in_place, is_real; /* Real numbers, not small whole ones. */
};

static struct call draw(uint64_t *s, unsigned n)
{
    struct call k = {.what = (int)(next_random(s) % 9)};
    uint64_t size = next_random(s) % 8;

    k.what = k.what < 5 ? k.what : 0; /* all_reduce more often. */
    k.type = (int)(next_random(s) % 10);
    k.width = ddp_type_width(k.type);
    k.op = k.what < 2 ? (int)(next_random(s) % 5) : DDP_SUM;
    k.root = (int)(next_random(s) % n);
    k.count = size == 0   ? 0
              : size < 3  ? next_random(s) % 20
              : size == 7 ? next_random(s) % (MOST / (1 + n / 4))
                          : next_random(s) % 3000;
    k.in_place = next_random(s) % 2;
    k.is_real = (k.type == DDP_F32 || k.type == DDP_F64) && k.what == 0 &&
                next_random(s) % 2;
    return k;
}

/* What rank r has at element i: small, so that all sums are exact. */
static double value(const struct call *k, int r, size_t i)
{
    uint64_t s = (uint64_t)r * 977 + i * 31 + (uint64_t)k->type;
    uint64_t v = next_random(&s);
    bool is_signed = k->type != DDP_U8 && k->type != DDP_U32 &&
                     k->type != DDP_U64;

    if (k->is_real)
        return (double)v / 7e8 - 1;
    if (k->op == DDP_PROD)
        return v % 4 ? 1 : 2;
    return (double)(v % 5) - (is_signed ? 2 : 0);
}

static void store(uint8_t *buf, size_t i, int type, double v)
{
    float f = (float)v;
    int64_t whole = type == DDP_F64 ? 0 : (int64_t)v;

    buf += i * ddp_type_width(type);
    if (type == DDP_F64)
        memcpy(buf, &v, 8);
    else if (type == DDP_F32)
        memcpy(buf, &f, 4);
    else if (type == DDP_F16 || type == DDP_BF16)
        ddp_narrow(type, buf, &f, 1);
    else /* Little-endian: the lowest bytes; the test of others is theirs. */
        memcpy(buf, &whole, ddp_type_width(type));
}

static double reduced(const struct call *k, unsigned n, size_t i)
{
    double v = value(k, 0, i);

    for (int r = 1; r < (int)n; r++) {
        double x = value(k, r, i);

        v = k->op == DDP_PROD  ? v * x
            : k->op == DDP_MAX ? (x > v ? x : v)
            : k->op == DDP_MIN ? (x < v ? x : v)
                               : v + x;
    }
    if (k->op != DDP_AVG)
        return v;
    /* Of 16 bits: the exact sum, divided as float. */
    return k->type == DDP_F16 || k->type == DDP_BF16
               ? (double)((float)v / (float)n)
               : v / n;
}

static void fill(const struct rank *r, uint8_t *buf, const struct call *k,
                 size_t n)
{
    for (size_t i = 0; i < n; i++)
        store(buf, i, k->type, value(k, r->rank, i));
}

static bool is_near(const struct rank *r, const struct work *w,
                    const struct call *k)
{
    for (size_t i = 0; i < k->count; i++) {
        double want = reduced(k, r->job->n, i), got;
        float f;

        if (k->type == DDP_F32) {
            memcpy(&f, w->recv + i * 4, 4);
            got = (double)f;
        } else {
            memcpy(&got, w->recv + i * 8, 8);
        }
        if (!(got - want < 1e-3 && want - got < 1e-3))
            return false;
    }
    return true;
}

/* The expected result; its length in elements. */
static size_t expect(const struct rank *r, struct work *w,
                     const struct call *k)
{
    unsigned n = r->job->n;
    size_t first = k->what == 1 ? (size_t)r->rank * k->count : 0;

    if (k->what == 2) {
        for (size_t i = 0; i < n * k->count; i++)
            store(w->want, i, k->type,
                  value(k, (int)(i / k->count), i % k->count));
        return n * k->count;
    }
    for (size_t i = 0; i < k->count; i++)
        store(w->want, i, k->type, k->what == 3 ? value(k, k->root, i)
                                   : reduced(k, n, first + i));
    return k->count;
}

/* Make the call; *ret is where its result is. */
static int make_call(struct rank *r, struct work *w, const struct call *k,
                     uint8_t **ret)
{
    size_t mine = (size_t)r->rank * k->count * k->width;
    enum ddp_type type = (enum ddp_type)k->type;
    uint8_t *send = w->send, *recv = w->recv;

    if (k->in_place && k->what == 1)
        recv = send + mine;
    if (k->in_place && k->what == 2)
        send = recv + mine;
    if (k->in_place && k->what == 0)
        send = recv;
    fill(r, k->what == 3 ? recv : send, k,
         k->count * (k->what == 1 ? r->job->n : 1));
    *ret = recv;
    switch (k->what) {
    case 0:
        return ddp_all_reduce(r->c, send, recv, k->count, type,
                              (enum ddp_op)k->op, NULL, &r->err);
    case 1:
        return ddp_reduce_scatter(r->c, send, recv, k->count, type,
                                  (enum ddp_op)k->op, NULL, &r->err);
    case 2:
        return ddp_all_gather(r->c, send, recv, k->count, type, NULL, &r->err);
    case 3:
        return ddp_broadcast(r->c, recv, k->count, type, k->root, NULL,
                             &r->err);
    default:
        return ddp_barrier(r->c, &r->err);
    }
}

static uint64_t hash(const uint8_t *at, size_t n)
{
    uint64_t h = 1;

    for (size_t i = 0; i < n; i++)
        h = (h ^ at[i]) * UINT64_C(0x100000001b3);
    return h;
}

static void one_call(struct rank *r, struct work *w, unsigned at,
                     uint64_t *seed)
{
    struct call k = draw(seed, r->job->n);
    uint8_t *result;
    size_t len;

    if (make_call(r, w, &k, &result)) {
        rank_wrong(r, "call %u: %.180s", at, r->err.text);
        return;
    }
    if (k.what == 4)
        return;
    if (k.what == 0)
        w->hashes[at] = hash(result, k.count * k.width);
    len = expect(r, w, &k);
    if (k.is_real ? !is_near(r, w, &k)
                  : len && memcmp(result, w->want, len * k.width))
        rank_wrong(r, "call %u: what %d, %zu x %s, %s, root %d, in place %d",
                   at, k.what, k.count, ddp_type_name((unsigned)k.type),
                   ddp_op_name((unsigned)k.op), k.root, k.in_place);
}

static void run_rank(struct rank *r)
{
    struct work *w = (struct work *)(uintptr_t)r->job->arg + r->rank;
    size_t bytes = (size_t)MOST * 8 * 5;
    uint64_t seed = 1000 + r->job->n;

    w->send = calloc(1, bytes);
    w->recv = calloc(1, bytes);
    w->want = calloc(1, bytes);
    if (!w->send || !w->recv || !w->want)
        rank_wrong(r, "out of memory");
    for (unsigned i = 0; i < CALLS && !*r->wrong; i++)
        one_call(r, w, i, &seed);
    free(w->send);
    free(w->recv);
    free(w->want);
}

static void run_world(unsigned n)
{
    static struct job j;
    static struct work works[FIXTURE_RANKS];

    memset(works, 0, sizeof works);
    job_run(&j, n, run_rank, works);
    for (unsigned i = 0; i < n; i++)
        if (memcmp(works[i].hashes, works[0].hashes, sizeof works[0].hashes))
            fail_msg("%u ranks: rank %u has other bits than rank 0", n, i);
}

static void test_random_calls(void **state)
{
    (void)state;
    for (unsigned n = 1; n <= FIXTURE_RANKS; n++)
        run_world(n);
}

/* So large that a ring reduces it in parts: an odd number, an even one. */
static void run_large(struct rank *r)
{
    enum { N = 500001 };
    int64_t *a = calloc(N, sizeof *a), n = (int64_t)r->job->n;

    for (int64_t i = 0; i < N && a; i++)
        a[i] = i * (r->rank + 1);
    if (!a || ddp_all_reduce(r->c, a, a, N, DDP_I64, DDP_SUM, NULL, &r->err))
        rank_wrong(r, "%.180s", a ? r->err.text : "out of memory");
    for (int64_t i = 0; i < N && a && !*r->wrong; i++)
        if (a[i] != i * (n * (n + 1) / 2))
            rank_wrong(r, "element %lld is %lld", (long long)i,
                       (long long)a[i]);
    free(a);
}

static void test_large(void **state)
{
    struct job j;

    (void)state;
    for (unsigned n = 2; n <= 4; n++)
        job_run(&j, n, run_large, NULL);
}

/* Several for elements, each of which gets a stripe in turn. */
static int use_sockets(void **state)
{
    (void)state;
    return setenv("DDP_SOCKETS", "3", 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_calls),
        cmocka_unit_test(test_large),
    };

    /* Over shared memory, then over TCP, both, and several
     * sockets. */
    int rc = cmocka_run_group_tests_name("ddp_random", tests, use_memory,
                                         NULL);

    rc += cmocka_run_group_tests_name("ddp_random_tcp", tests, use_tcp, NULL);
    rc += cmocka_run_group_tests_name("ddp_random_pods", tests, use_pods, NULL);
    rc += cmocka_run_group_tests_name("ddp_random_dealt", tests,
                                      use_dealt_pods, end_pods);
    return rc + cmocka_run_group_tests_name("ddp_random_sockets", tests,
                                            use_sockets, NULL);
}
