/* Tests of ddp/frame, ddp/hello and ddp/fault: what ranks tell each other. */
#include "ddp/fault.h"
#include "ddp/frame.h"
#include "ddp/hello.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* One of each kind, all fields of that kind set. */
static const struct ddp_frame samples[] = {
    {.kind = DDP_HELLO, .rank = 3, .world = 4, .attempt = UINT32_MAX,
     .master_port = 29500, .order = 1,
     .addr = {.ip = {[10] = 0xff, 0xff, 10, 0, 0, 7}, .port = 40000},
     .host = {5, [15] = 6}, .text = "job"},
    {.kind = DDP_WELCOME},
    {.kind = DDP_REFUSE, .code = 7, .retry = 1, .rank = 0, .peer = 2,
     .text = "why"},
    {.kind = DDP_WAITING, .n = 5, .peer = 1},
    {.kind = DDP_TABLE, .token = {1, 2, 3}, .via_root = 1, .sockets = 9,
     .shm_pid = 7, .shm_fd = 8,
     .addr = {.ip = {0xfe, 0x80, [15] = 1}, .port = 1}},
    {.kind = DDP_RING, .token = {9, [15] = 8}, .rank = 1, .to = 2,
     .channel = 1},
    {.kind = DDP_READY, .shm = 1, .pairs = 1},
    {.kind = DDP_GO, .shm = 1, .pairs = 1},
    {.kind = DDP_FAULT, .code = 6, .rank = 1, .peer = UINT32_MAX, .text = ""},
    {.kind = DDP_CALL, .seq = UINT64_MAX - 1, .what = 1, .type = 7, .op = 4,
     .root = 0x01020304, .count = UINT64_C(1) << 40},
    {.kind = DDP_PING, .peer = 6},
    {.kind = DDP_BYE},
};
#define N_SAMPLES (sizeof samples / sizeof samples[0])

static void test_round_trip(void **state)
{
    (void)state;
    for (unsigned i = 0; i < N_SAMPLES; i++) {
        uint8_t buf[DDP_FRAME_MAX], again[DDP_FRAME_MAX];
        struct ddp_frame f;
        unsigned version;
        size_t len = ddp_frame_encode(&samples[i], buf);

        assert_true(len >= DDP_FRAME_HEAD && len <= DDP_FRAME_MAX);
        assert_int_equal(ddp_frame_decode(buf, len, &f, &version), len);
        assert_memory_equal(&f, &samples[i], sizeof f);
        assert_int_equal(version, DDP_FRAME_VERSION);
        assert_int_equal(ddp_frame_encode(&f, again), len);
        assert_memory_equal(buf, again, len);
    }
}

/* Every cut is "more, please"; what follows a frame is left alone. */
static void test_torn(void **state)
{
    (void)state;
    for (unsigned i = 0; i < N_SAMPLES; i++) {
        uint8_t buf[2 * DDP_FRAME_MAX] = {0};
        struct ddp_frame f;
        unsigned version;
        size_t len = ddp_frame_encode(&samples[i], buf);

        for (size_t cut = 0; cut < len; cut++)
            assert_int_equal(ddp_frame_decode(buf, cut, &f, &version), 0);
        memset(buf + len, 0xee, DDP_FRAME_MAX);
        assert_int_equal(ddp_frame_decode(buf, len + 100, &f, &version), len);
    }
}

static void test_bytes(void **state)
{
    static const uint8_t want[] = {'L', 'D', 'D', 'P', DDP_FRAME_VERSION,
                                   11, 0, 4,
                                   0,   0,   1,   2};
    const struct ddp_frame f = {.kind = DDP_PING, .peer = 258};
    uint8_t buf[DDP_FRAME_MAX];

    (void)state;
    assert_int_equal(ddp_frame_encode(&f, buf), sizeof want);
    assert_memory_equal(buf, want, sizeof want);
}

static void test_strangers(void **state)
{
    static const char *const cases[] = {
        "GET / HTTP/1.1\r\n\r\n", "\x16\x03\x01", "LDDQ", "LD\n", "\n",
    };
    struct ddp_frame f;
    unsigned version;

    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(ddp_frame_decode((const uint8_t *)cases[i],
                                          strlen(cases[i]), &f, &version), -1);
        assert_int_equal(version, 0);
    }
}

static void test_malformed(void **state)
{
    uint8_t buf[DDP_FRAME_MAX];
    struct ddp_frame f;
    unsigned version;
    size_t len = ddp_frame_encode(&samples[0], buf);

    (void)state;
    buf[4] = DDP_FRAME_VERSION + 1; /* Said so, from the head on. */
    assert_int_equal(ddp_frame_decode(buf, DDP_FRAME_HEAD, &f, &version), -1);
    assert_int_equal(version, DDP_FRAME_VERSION + 1);
    buf[4] = DDP_FRAME_VERSION;
    buf[5] = 0; /* No kind. */
    assert_int_equal(ddp_frame_decode(buf, len, &f, &version), -1);
    buf[5] = 13;
    assert_int_equal(ddp_frame_decode(buf, len, &f, &version), -1);
    buf[5] = DDP_HELLO;
    buf[7]++; /* One byte too many. */
    assert_int_equal(ddp_frame_decode(buf, len + 1, &f, &version), -1);
    buf[7] = (uint8_t)(buf[7] - 2); /* One too few. */
    assert_int_equal(ddp_frame_decode(buf, len, &f, &version), -1);
    buf[6] = 0xff; /* Longer than any frame. */
    assert_int_equal(ddp_frame_decode(buf, DDP_FRAME_HEAD, &f, &version), -1);

    len = ddp_frame_encode(&samples[2], buf);
    buf[DDP_FRAME_HEAD + 17] = 200; /* A text longer than the frame. */
    assert_int_equal(ddp_frame_decode(buf, len, &f, &version), -1);
    (void)ddp_frame_encode(&samples[2], buf);
    buf[4] = 9; /* REFUSE is read from every version. */
    assert_int_equal(ddp_frame_decode(buf, len, &f, &version), len);
    assert_string_equal(f.text, "why");
}

/* Random damage: never a crash, and never a frame that is not one. */
static void test_noise(void **state)
{
    uint32_t seed = 1;

    (void)state;
    for (unsigned i = 0; i < 200000; i++) {
        uint8_t buf[DDP_FRAME_MAX + 16], again[DDP_FRAME_MAX];
        struct ddp_frame f;
        unsigned version;
        size_t len = ddp_frame_encode(&samples[i % N_SAMPLES], buf);
        int n;

        for (unsigned k = 0; k < 1 + i % 4; k++) {
            seed = seed * 1103515245u + 12345u;
            buf[(seed >> 8) % len] = (uint8_t)(seed >> 20);
        }
        n = ddp_frame_decode(buf, len, &f, &version);
        if (n > 0)
            assert_int_equal(ddp_frame_encode(&f, again), n);
    }
}

static void test_text_is_cut_and_clean(void **state)
{
    struct ddp_frame f = {.kind = DDP_FAULT}, got;
    uint8_t buf[DDP_FRAME_MAX];
    unsigned version;

    (void)state;
    memset(f.text, 'x', sizeof f.text);
    f.text[0] = '\n';
    f.text[1] = '\033';
    assert_true(ddp_frame_decode(buf, ddp_frame_encode(&f, buf), &got,
                                 &version) > 0);
    assert_int_equal(strlen(got.text), DDP_FRAME_TEXT_MAX);
    assert_int_equal(got.text[0], '?');
    assert_int_equal(got.text[1], '?');
}

static void test_fault(void **state)
{
    struct ddp_error e, got;
    struct ddp_frame f;

    (void)state;
    assert_int_equal(ddp_fault(&e, DDP_EPEER, 1, 2, "rank %d died", 2),
                     DDP_EPEER);
    ddp_fault_put(&e, &f);
    assert_int_equal(f.kind, DDP_FAULT);
    assert_int_equal(ddp_fault_take(&got, 5, &f), DDP_EPEER);
    assert_int_equal(got.code, DDP_EPEER);
    assert_int_equal(got.rank, 5);
    assert_int_equal(got.peer, 2);
    assert_string_equal(got.text, "rank 1 reports: rank 2 died");
    (void)ddp_fault(&e, DDP_EINVAL, 0, -1, "%s", e.text); /* Quotes itself. */
    assert_string_equal(e.text, "rank 2 died");
    assert_int_equal(e.peer, -1);
    ddp_fault_put(&e, &f);
    f.code = 99; /* A code that this version does not know. */
    assert_int_equal(ddp_fault_take(&got, 5, &f), DDP_EPEER);
    assert_int_equal(got.peer, -1);
    f.code = 0;
    assert_int_equal(ddp_fault_take(&got, 5, &f), DDP_EPEER);
}

static void test_hello(void **state)
{
    static const struct ddp_conf root = {.size = 4, .master_port = 29500,
                                         .attempt = 2, .job = "a"};
    static const struct {
        struct ddp_conf from;
        enum ddp_hello_verdict verdict;
        const char *want;
    } cases[] = {
        {{.rank = 3, .size = 4, .master_port = 29500, .attempt = 2, .job = "a"},
         DDP_HELLO_FITS, ""},
        {{.rank = 3, .size = 4, .master_port = 29500, .attempt = 1, .job = "a"},
         DDP_HELLO_OTHER, "the attempt is 2 on rank 0 but 1 on rank 3"},
        {{.rank = 3, .size = 4, .master_port = 29500,
          .attempt = DDP_NO_ATTEMPT, .job = "a"},
         DDP_HELLO_OTHER, "the attempt is 2 on rank 0 but -1 on rank 3"},
        {{.rank = 3, .size = 9, .master_port = 29500, .attempt = 2, .job = "b"},
         DDP_HELLO_OTHER, "job id is 'a' on rank 0 but 'b' on rank 3"},
        {{.rank = 3, .size = 4, .master_port = 29501, .attempt = 2, .job = "a"},
         DDP_HELLO_OTHER, "MASTER_PORT is 29500 on rank 0 but 29501"},
        {{.rank = 2, .size = 3, .master_port = 29500, .attempt = 2, .job = "a"},
         DDP_HELLO_FATAL, "WORLD_SIZE is 4 on rank 0 but 3 on rank 2"},
        {{.rank = 0, .size = 4, .master_port = 29500, .attempt = 2, .job = "a"},
         DDP_HELLO_CLAIMED, "RANK is 0 on two"},
        {{.rank = 4, .size = 4, .master_port = 29500, .attempt = 2, .job = "a"},
         DDP_HELLO_CLAIMED, "not below WORLD_SIZE 4"},
    };
    const struct ddp_addr at = {.port = 1};
    const uint8_t host[DDP_TOKEN] = {7};

    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char why[DDP_FRAME_TEXT_MAX] = "";
        struct ddp_frame f;

        ddp_hello_put(&cases[i].from, &at, host, &f);
        assert_int_equal(ddp_hello_check(&root, &f, why), cases[i].verdict);
        if (!strstr(why, cases[i].want))
            fail_msg("case %u: '%s'", i, why);
    }
}

static void test_byte_order(void **state)
{
    const struct ddp_conf conf = {.rank = 1, .size = 2};
    const struct ddp_addr at = {.port = 1};
    const uint8_t host[DDP_TOKEN] = {7};
    char why[DDP_FRAME_TEXT_MAX];
    struct ddp_frame f;

    (void)state;
    ddp_hello_put(&conf, &at, host, &f);
    f.order = !f.order;
    assert_int_equal(ddp_hello_check(&conf, &f, why), DDP_HELLO_FATAL);
    assert_non_null(strstr(why, "byte order"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_torn),
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_strangers),
        cmocka_unit_test(test_malformed),
        cmocka_unit_test(test_noise),
        cmocka_unit_test(test_text_is_cut_and_clean),
        cmocka_unit_test(test_fault),
        cmocka_unit_test(test_hello),
        cmocka_unit_test(test_byte_order),
    };

    return cmocka_run_group_tests_name("ddp_frame", tests, NULL, NULL);
}
