/* wire: every message goes through and back; nothing malformed does. */
#include "rendezvous/wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* A message of each kind with every field that it carries set. */
static struct wire_msg full(enum wire_kind kind)
{
    struct wire_msg m = {.kind = kind, .round = 7};

    m.incarnation = 0x1122334455667788u;
    m.node_rank = 3;
    m.nnodes = 5;
    m.nproc = 8;
    m.max_restarts = 0x0a0b0c0d;
    m.restart_period_ms = 0x2122232425262728u;
    m.n_restarts = 2;
    m.running = WIRE_NO_ROUND;
    m.any_rank = 1;
    m.command_hash = 0xfedcba9876543210u;
    m.last_zero = 0x1020304050607080u;
    m.last_end = WIRE_END_SILENT;
    m.zero_lost = WIRE_LOST_LAST | WIRE_LOST_OLDER;
    m.lost_age_ms = 0x0102030405060708u;
    m.in_a_row = 4;
    m.past.zero_losses = 6;
    m.past.zero_age_ms = 0x1112131415161718u;
    past_add(&m.past, 1000, 1);
    past_add(&m.past, 60000, 3);
    (void)past_lose(&m.past, 2, 30000);
    memcpy(m.job_id, "job-\xc3\xa9", 7);
    memcpy(m.host, "w-3", 4);
    memset(m.digest, 0xab, sizeof m.digest);
    m.percent = 42;
    m.rank_base = 24;
    m.world_size = 40;
    m.group_rank = 3;
    m.group_size = 5;
    m.master_port = 29500;
    memcpy(m.hosts, "w-0,10.0.0.1", 13);
    m.delay_ms = 1500;
    m.bound = WIRE_REJOIN_TIMEOUT;
    m.code = 78;
    memcpy(m.text, "why\tand\nhow", 12);
    m.failure = (struct failure){.kind = FAILURE_WORKER, .code = 137,
                                 .signo = 9, .node_rank = 3, .rank = 25,
                                 .local_rank = 1, .pid = 4711, .round = 7,
                                 .ran_ms = 312};
    memcpy(m.failure.tail, "last words", 11);
    return m;
}

/* What a next pod 0 must know goes with HELLO, START and STOP. */
static void check_past(const struct wire_msg *a, const struct wire_msg *b)
{
    assert_int_equal(b->n_restarts, a->n_restarts);
    assert_int_equal(b->in_a_row, a->in_a_row);
    assert_memory_equal(&b->past, &a->past, sizeof a->past);
}

static const enum wire_kind kinds[] = {
#define X(name, number, direction, meaning) WIRE_##name,
    WIRE_TABLE(X)
#undef X
};
#define N_KINDS (sizeof kinds / sizeof kinds[0])

static int decode(const uint8_t *buf, size_t len, struct wire_msg *m)
{
    const char *why = NULL;
    unsigned version = 99;
    int n = wire_decode(buf, len, m, &why, &version);

    if (n < 0)
        assert_non_null(why);
    return n;
}

static void test_round_trip(void **state)
{
    (void)state;
    for (unsigned i = 0; i < N_KINDS; i++) {
        struct wire_msg m = full(kinds[i]), back;
        uint8_t a[WIRE_FRAME_MAX], b[WIRE_FRAME_MAX];
        size_t n = wire_encode(&m, a);

        assert_in_range(n, WIRE_HEAD, WIRE_FRAME_MAX);
        assert_int_equal(decode(a, n, &back), n);
        assert_int_equal(back.kind, m.kind);
        assert_int_equal(back.round, 7);
        if (m.kind == WIRE_HELLO || m.kind == WIRE_START || m.kind == WIRE_STOP)
            check_past(&m, &back);
        if (m.kind == WIRE_WAITING) {
            assert_int_equal(back.delay_ms, m.delay_ms);
            assert_int_equal(back.bound, m.bound);
        }
        if (m.kind == WIRE_WELCOME) {
            assert_int_equal(back.max_restarts, m.max_restarts);
            assert_int_equal(back.restart_period_ms, m.restart_period_ms);
        }
        if (m.kind == WIRE_HELLO) {
            assert_int_equal(back.zero_lost, m.zero_lost);
            assert_int_equal(back.lost_age_ms, m.lost_age_ms);
        }
        assert_int_equal(wire_encode(&back, b), n);
        assert_memory_equal(a, b, n);
        for (size_t k = 0; k < n; k++) /* A prefix needs more. */
            assert_int_equal(decode(a, k, &back), 0);
    }
}

static void test_longest_texts_fit(void **state)
{
    struct wire_msg m = full(WIRE_END), back;
    uint8_t a[WIRE_FRAME_MAX];

    (void)state;
    memset(m.failure.host, 'h', sizeof m.failure.host - 1);
    memset(m.failure.text, 't', sizeof m.failure.text - 1);
    memset(m.failure.tail, 'l', sizeof m.failure.tail - 1);
    assert_true(decode(a, wire_encode(&m, a), &back) > 0);
    assert_string_equal(back.failure.tail, m.failure.tail);
    memset(m.failure.tail, 0xff, sizeof m.failure.tail - 1);
    assert_true(decode(a, wire_encode(&m, a), &back) > 0);
    assert_string_equal(back.failure.host, m.failure.host);
}

/* Any flipped byte is refused, needs more, or is read as what it then says. */
static void test_flipped_bytes(void **state)
{
    (void)state;
    for (unsigned i = 0; i < N_KINDS; i++) {
        struct wire_msg m = full(kinds[i]), back;
        uint8_t a[WIRE_FRAME_MAX], b[WIRE_FRAME_MAX];
        size_t n = wire_encode(&m, a);

        for (size_t k = 0; k < n; k++) {
            int got;

            a[k] ^= 0x81;
            got = decode(a, n, &back);
            if (got > 0 && k != 4) { /* REFUSE of another version is read. */
                assert_int_equal(wire_encode(&back, b), got);
                assert_memory_equal(a, b, (size_t)got);
            }
            a[k] ^= 0x81;
        }
    }
}

static void test_strangers(void **state)
{
    static const char *const first[] = {"GET / HTTP/1.0\r\n\r\n", "AGNX",
                                        "SSH-2.0-x", "\0\0\0\0"};
    struct wire_msg m;

    (void)state;
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(decode((const uint8_t *)first[i], 4, &m), -1);
    assert_int_equal(decode((const uint8_t *)"G", 1, &m), -1);
    assert_int_equal(decode((const uint8_t *)"A", 1, &m), 0);
}

static void test_versions(void **state)
{
    struct wire_msg m = full(WIRE_HELLO), back;
    uint8_t a[WIRE_FRAME_MAX];
    size_t n = wire_encode(&m, a);
    const char *why;
    unsigned version;

    (void)state;
    a[4] = 9;
    assert_int_equal(wire_decode(a, n, &back, &why, &version), -1);
    assert_int_equal(version, 9);
    assert_string_equal(why, "another protocol version");
    m = full(WIRE_REFUSE); /* The reason must get through. */
    n = wire_encode(&m, a);
    a[4] = 9;
    assert_int_equal(wire_decode(a, n, &back, &why, &version), n);
    assert_int_equal(back.code, 78);
}

static void test_bounds(void **state)
{
    struct wire_msg m = full(WIRE_HELLO), back;
    uint8_t a[WIRE_FRAME_MAX];

    (void)state;
    m.nproc = 0; /* Servers alone. */
    assert_true(decode(a, wire_encode(&m, a), &back) > 0);
    m.nproc = WIRE_NPROC_MAX + 1;
    assert_int_equal(decode(a, wire_encode(&m, a), &back), -1);
    for (uint8_t flags = 0; flags < 32; flags++) {
        size_t n;

        m = full(WIRE_STOP);
        m.text[0] = '\0'; /* The failure ends before its two bytes. */
        n = wire_encode(&m, a);
        a[n - 3] = flags;
        if (decode(a, n, &back) < 0) {
            assert_true((flags & 6) == 6 || flags >= 16);
            continue;
        }
        assert_int_equal(back.failure.from_file, flags & 1);
        assert_int_equal(back.failure.role, flags / 2 % 4);
        assert_int_equal(back.failure.hung, flags / 8);
        assert_int_equal(wire_encode(&back, a), n);
        assert_int_equal(a[n - 3], flags);
    }
    m = full(WIRE_START); /* The youngest restarts come first. */
    m.past.runs[1].age_ms = 999;
    assert_int_equal(decode(a, wire_encode(&m, a), &back), -1);
    m = full(WIRE_START);
    (void)wire_encode(&m, a);
    a[WIRE_HEAD + 41] = PAST_RUNS_MAX + 1;
    assert_int_equal(decode(a, WIRE_FRAME_MAX, &back), -1);
    m = full(WIRE_PROGRESS);
    m.percent = WIRE_PREPARING + 1;
    assert_int_equal(decode(a, wire_encode(&m, a), &back), -1);
    m = full(WIRE_PING);
    (void)wire_encode(&m, a);
    a[6] = 0xff; /* A payload of 65,280 bytes. */
    assert_int_equal(decode(a, WIRE_HEAD, &back), -1);
}

/* Texts end in terminals: no control characters, no broken UTF-8. */
static void test_dirty_strings(void **state)
{
    static const uint8_t dirt[] = {0, 0x1b, 0x7f, 0xff, 0xc0};
    struct wire_msg m = full(WIRE_WAITING), back;
    uint8_t a[WIRE_FRAME_MAX];
    size_t n = wire_encode(&m, a);

    (void)state;
    for (unsigned i = 0; i < sizeof dirt; i++) {
        a[n - 2] = dirt[i];
        assert_int_equal(decode(a, n, &back), -1);
    }
    memcpy(m.text, "a\x1b[31mb", 8); /* Cleaned on the way out. */
    assert_true(decode(a, wire_encode(&m, a), &back) > 0);
    assert_string_equal(back.text, "a?[31mb");
}

static void test_random_bytes(void **state)
{
    uint8_t a[WIRE_FRAME_MAX];
    uint64_t r = 88172645463325252u;
    struct wire_msg m;

    (void)state;
    for (unsigned i = 0; i < 20000; i++) {
        size_t n = 16 + (size_t)(r % 200);

        for (size_t k = 0; k < n; k++) {
            r ^= r << 13, r ^= r >> 7, r ^= r << 17;
            a[k] = (uint8_t)r;
        }
        memcpy(a, "AGNT", 4);
        a[4] = WIRE_VERSION;
        a[5] = (uint8_t)(1 + r % N_KINDS);
        a[6] = 0;
        (void)decode(a, n, &m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_longest_texts_fit),
        cmocka_unit_test(test_flipped_bytes),
        cmocka_unit_test(test_strangers),
        cmocka_unit_test(test_versions),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_dirty_strings),
        cmocka_unit_test(test_random_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
