/* Tests of ddp/reduce and ddp/schedule: numbers, and the steps of a ring. */
#include "ddp/half.h"
#include "ddp/kernels.h"
#include "ddp/reduce.h"
#include "ddp/schedule.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Run all ops on one type over lengths around the block of the loops. */
#define CHECK(T, type, A, B)                                                   \
    do {                                                                       \
        for (size_t n = 0; n < 200; n += n < 3 ? 1 : 31) {                     \
            T a[200], b[200], out[201];                                        \
                                                                               \
            for (size_t i = 0; i < n; i++) {                                   \
                a[i] = (T)(A);                                                 \
                b[i] = (T)(B);                                                 \
            }                                                                  \
            for (int op = DDP_SUM; op <= DDP_AVG; op++) {                      \
                out[n] = 77;                                                   \
                ddp_reduce(type, op, out, a, b, n);                            \
                assert_true(out[n] == 77);                                     \
                for (size_t i = 0; i < n; i++) {                               \
                    T want = op == DDP_PROD  ? (T)(a[i] * b[i])                \
                             : op == DDP_MAX ? (a[i] > b[i] ? a[i] : b[i])     \
                             : op == DDP_MIN ? (a[i] < b[i] ? a[i] : b[i])     \
                                             : (T)(a[i] + b[i]);               \
                    assert_true(out[i] == want);                               \
                }                                                              \
                memcpy(out, a, n * sizeof *a); /* In place. */                 \
                ddp_reduce(type, op, out, out, b, n);                          \
                ddp_divide(type, out, out, n, 3);                              \
                for (size_t i = 0; i < n && op == DDP_AVG; i++)                \
                    assert_true(out[i] == (T)((T)(a[i] + b[i]) / (T)3));       \
            }                                                                  \
        }                                                                      \
    } while (0)

static void test_all_types(void **state)
{
    (void)state;
    CHECK(int8_t, DDP_I8, (int)(i % 15) - 7, (int)(i % 7) - 3);
    CHECK(uint8_t, DDP_U8, i % 100, 255 - i);
    CHECK(int32_t, DDP_I32, (int)i - 100, 50 - (int)i * 3);
    CHECK(uint32_t, DDP_U32, i, UINT32_MAX - i * 2);
    CHECK(int64_t, DDP_I64, INT64_C(-5000000000) + (int64_t)i,
          (int64_t)i * 7 - 300);
    CHECK(uint64_t, DDP_U64, i * UINT64_C(10000000000), UINT64_MAX - i);
    CHECK(float, DDP_F32, (float)i * 0.37f, 5.0f - (float)i);
    CHECK(double, DDP_F64, (double)i * 0.37, 5.0 - (double)i);
}

static void test_wrap(void **state)
{
    const int32_t a = INT32_MAX, b = 1;
    const int64_t c = INT64_MIN, d = -1;
    const int8_t e = 100, f = 100;
    int32_t r32;
    int64_t r64;
    int8_t r8;

    (void)state;
    ddp_reduce(DDP_I32, DDP_SUM, &r32, &a, &b, 1);
    assert_int_equal(r32, INT32_MIN);
    ddp_reduce(DDP_I64, DDP_SUM, &r64, &c, &d, 1);
    assert_true(r64 == INT64_MAX);
    ddp_reduce(DDP_I8, DDP_SUM, &r8, &e, &f, 1);
    assert_int_equal(r8, -56);
    r32 = -7;
    ddp_divide(DDP_I32, &r32, &r32, 1, 2);
    assert_int_equal(r32, -3); /* Toward zero. */
    r8 = -128;
    ddp_divide(DDP_I8, &r8, &r8, 1, 4096); /* A world larger than the type. */
    assert_int_equal(r8, 0);
}

static void test_nan_wins(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 70; i++)
        for (int op = DDP_MAX; op <= DDP_MIN; op++) {
            float a[70] = {0}, b[70] = {0}, out[70];
            double c[70] = {0}, d[70] = {0}, out2[70];

            a[i] = NAN;
            d[i] = NAN;
            ddp_reduce(DDP_F32, op, out, a, b, 70);
            assert_true(isnan(out[i]));
            ddp_reduce(DDP_F32, op, out, b, a, 70);
            assert_true(isnan(out[i]));
            ddp_reduce(DDP_F64, op, out2, c, d, 70);
            assert_true(isnan(out2[i]));
            ddp_reduce(DDP_F64, op, out2, d, c, 70);
            assert_true(isnan(out2[i]));
            assert_true(out[(i + 1) % 70] == 0);
        }
}

/* --- f16 and bf16 -------------------------------------------------------- */

static double half_value(unsigned h) /* Of a finite f16, by its definition. */
{
    int exponent = (int)(h >> 10 & 31);
    double m = (double)(h & 1023);

    m = exponent ? ldexp(1024 + m, exponent - 25) : ldexp(m, -24);
    return h & 0x8000 ? -m : m;
}

static void test_f16_is_what_it_should_be(void **state)
{
    (void)state;
    for (unsigned h = 0; h < 65536; h++) {
        float f = ddp_from_f16((uint16_t)h);

        if ((h & 0x7c00) != 0x7c00)
            assert_true((double)f == half_value(h) &&
                        !signbit(f) == !(h & 0x8000));
        else if (h & 1023)
            assert_true(isnan(f));
        else
            assert_true(isinf(f) && !signbit(f) == !(h & 0x8000));
        /* There and back; a signalling NaN comes back as a quiet one. */
        assert_int_equal(ddp_to_f16(f), isnan(f) ? h | 0x200 : h);
    }
}

/* Half-way to the next one goes to the even one; a bit beside it does not. */
static void test_f16_rounds_to_even(void **state)
{
    (void)state;
    for (unsigned h = 0; h < 0x7bff; h++) {
        float a = (float)((half_value(h) + half_value(h + 1)) / 2);

        assert_int_equal(ddp_to_f16(a), h & 1 ? h + 1 : h);
        assert_int_equal(ddp_to_f16(nextafterf(a, 0)), h);
        assert_int_equal(ddp_to_f16(nextafterf(a, 1e9f)), h + 1);
        assert_int_equal(ddp_to_f16(-a), 0x8000 | (h & 1 ? h + 1 : h));
    }
    assert_int_equal(ddp_to_f16(65519.996f), 0x7bff);
    assert_int_equal(ddp_to_f16(65520), 0x7c00);
    assert_int_equal(ddp_to_f16(1e30f), 0x7c00);
    assert_int_equal(ddp_to_bf16(1.00390625f), 0x3f80); /* Ties to even. */
    assert_int_equal(ddp_to_bf16(1.01171875f), 0x3f82);
    assert_int_equal(ddp_to_bf16(3.4e38f), 0x7f80);
    assert_true(isnan(ddp_from_bf16(ddp_to_bf16(NAN))));
}

/* Both sets of loops, and the one that was chosen, give the same bits. */
static void test_loops_agree(void **state)
{
    enum { N = 1003 };
    static float in[N], back[2][N];
    uint16_t out[2][N];
    const struct ddp_kernels *k[2] = {&ddp_kernels_base, &ddp_kernels_base};
    uint32_t seed = 1;

    (void)state;
#ifdef DDP_HAS_AVX2
    if (__builtin_cpu_supports("avx2"))
        k[1] = &ddp_kernels_avx2;
#endif
    for (unsigned turn = 0; turn < 300; turn++) {
        for (unsigned i = 0; i < N; i++) {
            seed = seed * 1664525u + 1013904223u;
            in[i] = ddp_float_of(turn % 2 ? seed
                                          : (seed & 0x8fffffffu) | 0x30000000u);
        }
        for (unsigned s = 0; s < 2; s++)
            k[s]->to_f16(out[s], in, N), k[s]->from_f16(back[s], out[s], N);
        assert_memory_equal(out[0], out[1], sizeof out[0]);
        assert_memory_equal(back[0], back[1], sizeof back[0]);
        for (unsigned s = 0; s < 2; s++)
            k[s]->to_bf16(out[s], in, N), k[s]->from_bf16(back[s], out[s], N);
        assert_memory_equal(out[0], out[1], sizeof out[0]);
        assert_memory_equal(back[0], back[1], sizeof back[0]);
    }
}

/* A fold is what one ddp_reduce after the other gives; halves round once. */
static void test_fold(void **state)
{
    enum { N = 2100, MANY = 5 };
    static uint16_t half[MANY][N];
    static float in[MANY][N], want[N], got[N];
    const void *ins[MANY], *halves[MANY];

    (void)state;
    for (unsigned k = 0; k < MANY; k++) {
        for (unsigned i = 0; i < N; i++)
            in[k][i] = 1.0f / (float)(i + 3 * k + 1);
        ddp_narrow(DDP_F16, half[k], in[k], N);
        ins[k] = in[k];
        halves[k] = half[k];
    }
    for (unsigned n_in = 1; n_in <= MANY; n_in++)
        for (int op = DDP_SUM; op <= DDP_AVG; op++) {
            memcpy(want, in[0], sizeof want);
            for (unsigned k = 1; k < n_in; k++)
                ddp_reduce(DDP_F32, op, want, want, in[k], N);
            if (op == DDP_AVG)
                ddp_divide(DDP_F32, want, want, N, n_in);
            ddp_fold(DDP_F32, op, got, ins, n_in, N);
            assert_memory_equal(got, want, sizeof want);
        }
    ddp_widen(DDP_F16, want, half[0], N);
    for (unsigned k = 1; k < MANY; k++) {
        ddp_widen(DDP_F16, got, half[k], N);
        ddp_reduce(DDP_F32, DDP_SUM, want, want, got, N);
    }
    ddp_narrow(DDP_F16, half[4], want, N);
    ddp_widen(DDP_F16, want, half[4], N);
    ddp_narrow(DDP_F16, half[4], in[4], N); /* The result's place, too. */
    ddp_fold(DDP_F16, DDP_SUM, half[4], halves, MANY, N);
    ddp_widen(DDP_F16, got, half[4], N);
    assert_memory_equal(got, want, sizeof want);
}

static void test_names(void **state)
{
    (void)state;
    assert_int_equal(ddp_type_width(DDP_BF16), 2);
    assert_int_equal(ddp_type_width(-1), 0);
    assert_int_equal(ddp_type_width(10), 0);
    assert_string_equal(ddp_type_name(DDP_F64), "f64");
    assert_string_equal(ddp_type_name(1000), "?");
    assert_string_equal(ddp_op_name(DDP_AVG), "avg");
    assert_string_equal(ddp_op_name(5), "?");
    assert_string_equal(ddp_what_name(DDP_BARRIER), "barrier");
    assert_string_equal(ddp_what_name(0), "?");
}

/* --- a ring in memory: all ranks step by step ---------------------------- */

#define MAX_SIZE 9

struct node {
    struct ddp_schedule s;
    uint32_t *in, *out, *tmp;
};

static uint32_t *place(struct node *n, const struct ddp_block *b)
{
    uint32_t *base = b->place == DDP_IN    ? n->in
                     : b->place == DDP_OUT ? n->out
                                           : n->tmp;

    return base + b->at / sizeof *base;
}

/* What rank r puts in at element i. */
static uint32_t value(unsigned r, size_t i)
{
    return (uint32_t)(r * 1000003u + i * 7919u + 1);
}

static void ring_open(struct node *nodes, enum ddp_what what, unsigned size,
                      unsigned root, size_t count)
{
    size_t all = count * size + 1;

    for (unsigned r = 0; r < size; r++) {
        struct node *n = &nodes[r];

        ddp_schedule_init(&n->s, what, r, size, root, count, 4);
        n->in = calloc(all, 4);
        n->out = what == DDP_BROADCAST ? n->in : calloc(all, 4);
        n->tmp = calloc(2 * count + 1, 4);
        assert_true(n->in && n->out && n->tmp);
        for (size_t i = 0; i < all; i++)
            n->in[i] = value(r, i);
        if (what == DDP_ALL_GATHER)
            memcpy(n->out + r * count, n->in, count * 4);
    }
}

/* Step j of all ranks: what each sends must fit what the next one expects. */
static void ring_step(struct node *nodes, unsigned size, unsigned j)
{
    static uint32_t wire[MAX_SIZE][4096];
    size_t lens[MAX_SIZE];

    for (unsigned r = 0; r < size; r++) {
        struct ddp_block b = {.len = 0};

        if (j < nodes[r].s.n_send)
            ddp_schedule_send(&nodes[r].s, j, &b);
        lens[r] = b.len;
        assert_true(b.len <= sizeof wire[r]);
        if (b.len)
            memcpy(wire[r], place(&nodes[r], &b), b.len);
    }
    for (unsigned r = 0; r < size; r++) {
        struct ddp_block b = {.len = 0};
        unsigned from = (r + size - 1) % size;

        if (j < nodes[r].s.n_recv)
            ddp_schedule_recv(&nodes[r].s, j, &b);
        assert_int_equal(b.len, lens[from]);
        if (b.reduce)
            ddp_reduce(DDP_U32, DDP_SUM, place(&nodes[r], &b),
                       nodes[r].in + b.own / 4, wire[from], b.len / 4);
        else if (b.len)
            memcpy(place(&nodes[r], &b), wire[from], b.len);
    }
}

static void ring_check(const struct node *n, enum ddp_what what, unsigned rank,
                       unsigned size, unsigned root, size_t count)
{
    size_t len = what == DDP_ALL_GATHER ? count * size : count;

    for (size_t i = 0; i < len; i++) {
        uint32_t want = 0;

        if (what == DDP_BROADCAST)
            want = value(root, i);
        else if (what == DDP_ALL_GATHER)
            want = value((unsigned)(i / count), i % count);
        else
            for (unsigned r = 0; r < size; r++)
                want += value(r, what == DDP_REDUCE_SCATTER ? rank * count + i
                                                            : i);
        assert_int_equal(n->out[i], want);
    }
}

/* A broadcast goes one hop a step, so its steps are shifted by the hops. */
static void broadcast_run(struct node *nodes, unsigned size, unsigned root)
{
    for (unsigned hop = 0; hop + 1 < size; hop++) {
        unsigned from = (root + hop) % size, to = (from + 1) % size;
        struct ddp_block s, r;

        assert_int_equal(nodes[from].s.n_send, hop ? 2 : 1);
        assert_int_equal(nodes[to].s.n_recv, 1);
        ddp_schedule_send(&nodes[from].s, hop ? 1 : 0, &s);
        ddp_schedule_recv(&nodes[to].s, 0, &r);
        assert_int_equal(s.len, r.len);
        if (s.len)
            memcpy(place(&nodes[to], &r), place(&nodes[from], &s), s.len);
    }
    assert_int_equal(nodes[root].s.n_recv, 0);
    assert_int_equal(nodes[(root + size - 1) % size].s.n_send, 0);
}

/* What is sent is what has come: the same block, received before. */
static void expect_needs(const struct node *n)
{
    for (unsigned j = 0; j < n->s.n_send; j++) {
        long needs = ddp_schedule_needs(&n->s, j);
        struct ddp_block sent, got;

        assert_true(needs < (long)j);
        if (needs < 0)
            continue;
        ddp_schedule_send(&n->s, j, &sent);
        ddp_schedule_recv(&n->s, (unsigned)needs, &got);
        assert_int_equal(sent.at, got.at);
        assert_int_equal(sent.len, got.len);
        assert_int_equal(sent.place, got.place);
    }
}

static void expect_schedule(enum ddp_what what, unsigned size, unsigned root,
                            size_t count, unsigned n_parts)
{
    struct node nodes[MAX_SIZE];

    ring_open(nodes, what, size, root, count);
    for (unsigned r = 0; r < size && what == DDP_ALL_REDUCE; r++)
        ddp_schedule_cut(&nodes[r].s, n_parts);
    if (what == DDP_BROADCAST)
        broadcast_run(nodes, size, root);
    else
        for (unsigned j = 0; j < nodes[0].s.n_recv; j++)
            ring_step(nodes, size, j);
    for (unsigned r = 0; r < size; r++) {
        expect_needs(&nodes[r]);
        ring_check(&nodes[r], what, r, size, root, count);
        free(nodes[r].tmp);
        if (nodes[r].out != nodes[r].in)
            free(nodes[r].out);
        free(nodes[r].in);
    }
}

static void test_schedules(void **state)
{
    static const size_t counts[] = {0, 1, 2, 5, 8, 64, 101};

    (void)state;
    for (unsigned size = 2; size <= MAX_SIZE; size++)
        for (unsigned k = 0; k < sizeof counts / sizeof counts[0]; k++) {
            for (unsigned parts = 1; parts <= 5; parts++)
                expect_schedule(DDP_ALL_REDUCE, size, 0, counts[k], parts);
            for (int what = DDP_BROADCAST; what <= DDP_ALL_GATHER; what++)
                expect_schedule((enum ddp_what)what, size,
                                what == DDP_BROADCAST ? k % size : 0,
                                counts[k], 1);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_types),
        cmocka_unit_test(test_wrap),
        cmocka_unit_test(test_nan_wins),
        cmocka_unit_test(test_f16_is_what_it_should_be),
        cmocka_unit_test(test_f16_rounds_to_even),
        cmocka_unit_test(test_loops_agree),
        cmocka_unit_test(test_fold),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_schedules),
    };

    return cmocka_run_group_tests_name("ddp_reduce", tests, NULL, NULL);
}
