/* Tests of rendezvous/mesh_talk: two ends of a connection, byte by byte. */
#include "rendezvous/mesh_talk.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define NONCE 0x1122334455667788u

static uint8_t block[MESH_BLOCK];

static int setup(void **state)
{
    (void)state;
    mesh_block(NONCE, block);
    return 0;
}

/* Give `t` the n bytes at `bytes` in pieces of at most `piece`; what it wants
 * next, and how many bytes it took. */
static enum mesh_talk_next feed(struct mesh_talk *t, const uint8_t *bytes,
                                size_t n, size_t piece, size_t *ret_taken,
                                enum mesh_reason *ret_reason)
{
    enum mesh_talk_next next = MESH_TALK_READ;
    size_t at = 0;

    while (at < n && next == MESH_TALK_READ) {
        size_t len = mesh_talk_room(t);

        len = len < piece ? len : piece;
        len = len < n - at ? len : n - at;
        next = mesh_talk_take(t, bytes + at, len, block, ret_reason);
        at += len;
    }
    *ret_taken = at;
    return next;
}

/* What one end sends: hello, block, thanks. */
static size_t all_bytes(uint8_t *out, uint32_t from, uint32_t to)
{
    mesh_hello(out, NONCE, from, to);
    memcpy(out + MESH_HELLO, block, MESH_BLOCK);
    out[MESH_HELLO + MESH_BLOCK] = MESH_GOT_IT;
    return MESH_HELLO + MESH_BLOCK + 1;
}

static void test_conversation(void **state)
{
    static const size_t pieces[] = {1, 7, 24, 1448, 65536, 1000000};
    static uint8_t bytes[MESH_HELLO + MESH_BLOCK + 1];
    enum mesh_reason reason;

    (void)state;
    for (unsigned i = 0; i < sizeof pieces / sizeof pieces[0]; i++)
        for (int calls = 0; calls < 2; calls++) {
            struct mesh_talk t = {.calls = calls, .me = 3};
            size_t n = all_bytes(bytes, 70000, 3), at, taken;

            t.them = calls ? 70000 : 0;
            assert_int_equal(feed(&t, bytes, n, pieces[i], &at, &reason),
                             MESH_TALK_JUDGE);
            assert_int_equal(at, MESH_HELLO);
            assert_true(mesh_talk_judge(&t, NONCE));
            assert_int_equal(t.them, 70000);
            assert_int_equal(feed(&t, bytes + at, n - at, pieces[i], &taken,
                                  &reason), MESH_TALK_THANK);
            at += taken;
            assert_int_equal(at, MESH_HELLO + MESH_BLOCK);
            assert_int_equal(feed(&t, bytes + at, n - at, pieces[i], &taken,
                                  &reason), MESH_TALK_OVER);
            assert_true(t.got_it);
        }
}

static void test_hello(void **state)
{
    static const struct {
        uint64_t nonce;
        uint32_t from, to;
        int changed; /* Which byte, or -1. */
        bool calls, right;
    } cases[] = {
        {NONCE, 1, 2, -1, true, true},      {NONCE, 1, 2, -1, false, true},
        {NONCE + 1, 1, 2, -1, true, false}, {NONCE + 1, 1, 2, -1, false, false},
        {NONCE, 5, 2, -1, true, false},     {NONCE, 5, 2, -1, false, true},
        {NONCE, 1, 3, -1, true, false},     {NONCE, 1, 3, -1, false, false},
        {NONCE, 1, 2, 0, false, false},     {NONCE, 1, 2, 3, true, false},
        {NONCE, 1, 2, 4, false, false},     {NONCE, 1, 2, 5, false, false},
        {NONCE, 1, 2, 8, false, false},     {NONCE, 1, 2, 15, false, false},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct mesh_talk t = {.calls = cases[i].calls, .me = 2, .them = 1};

        mesh_hello(t.hello, cases[i].nonce, cases[i].from, cases[i].to);
        t.n_hello = MESH_HELLO;
        if (cases[i].changed >= 0)
            t.hello[cases[i].changed] ^= 1;
        if (mesh_talk_judge(&t, NONCE) != cases[i].right)
            fail_msg("case %u", i);
    }
}

static void test_changed_bytes(void **state)
{
    static const size_t where[] = {MESH_HELLO, MESH_HELLO + 1000,
                                   MESH_HELLO + MESH_BLOCK - 1,
                                   MESH_HELLO + MESH_BLOCK};
    static uint8_t bytes[MESH_HELLO + MESH_BLOCK + 1];

    (void)state;
    for (unsigned i = 0; i < sizeof where / sizeof where[0]; i++) {
        struct mesh_talk t = {.calls = true, .me = 1, .them = 0};
        size_t n = all_bytes(bytes, 0, 1), at = 0, taken;
        enum mesh_reason reason = MESH_FINE;
        enum mesh_talk_next next;

        bytes[where[i]] ^= 0x40;
        do {
            next = feed(&t, bytes + at, n - at, 500, &taken, &reason);
            at += taken;
            if (next == MESH_TALK_JUDGE)
                assert_true(mesh_talk_judge(&t, NONCE));
        } while (next == MESH_TALK_JUDGE || next == MESH_TALK_THANK);
        assert_int_equal(next, MESH_TALK_FAILED);
        assert_int_equal(reason, MESH_CHANGED);
    }
}

/* Bytes after a hello that was not found right. */
static void test_not_judged(void **state)
{
    struct mesh_talk t = {.me = 1, .n_hello = MESH_HELLO};
    enum mesh_reason reason = MESH_FINE;

    (void)state;
    assert_int_equal(mesh_talk_take(&t, block, 10, block, &reason),
                     MESH_TALK_FAILED);
    assert_int_equal(reason, MESH_STRANGER);
}

static void test_blocks_differ(void **state)
{
    static uint8_t other[MESH_BLOCK];
    unsigned same = 0, zeros = 0;

    (void)state;
    mesh_block(NONCE + 2, other);
    for (size_t i = 0; i < MESH_BLOCK; i++) {
        same += other[i] == block[i];
        zeros += block[i] == 0;
    }
    assert_in_range(same, 0, MESH_BLOCK / 128);
    assert_in_range(zeros, 0, MESH_BLOCK / 128);
}

static void test_late(void **state)
{
    static const struct {
        struct mesh_talk t;
        size_t unsent;
        enum mesh_reason why;
    } cases[] = {
        {{.connected = false}, 1, MESH_TIMED_OUT},
        {{.connected = true}, 0, MESH_SILENT},
        {{.connected = true, .knows = true}, 64000, MESH_STUCK},
        {{.connected = true, .knows = true, .n_in = 999}, 1, MESH_STUCK},
        {{.connected = true, .knows = true, .n_in = 999}, 0, MESH_STUCK_HERE},
        {{.connected = true, .knows = true, .n_in = MESH_BLOCK}, 64000,
         MESH_STUCK_THERE},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(mesh_talk_late(&cases[i].t, cases[i].unsent),
                         cases[i].why);
}

static void test_words(void **state)
{
    static const struct {
        uint8_t ip[16];
        const char *text;
    } cases[] = {
        {{[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 3}, "10.0.0.3:4567"},
        {{[10] = 0xff, [11] = 0xff, [12] = 255, [13] = 255, [14] = 255,
          [15] = 255}, "255.255.255.255:4567"},
        {{0}, "[::]:4567"},
        {{[15] = 1}, "[::1]:4567"},
        {{[0] = 0xfd, [15] = 9}, "[fd00::9]:4567"},
        {{[0] = 0xfe, [1] = 0x80}, "[fe80::]:4567"},
        {{[0] = 0x20, [1] = 1, [7] = 5, [15] = 1}, "[2001:0:0:5::1]:4567"},
        {{[1] = 1, [3] = 2, [5] = 3, [9] = 5, [11] = 6, [13] = 7, [15] = 8},
         "[1:2:3:0:5:6:7:8]:4567"},
        {{[0] = 0x12, [1] = 0x34, [3] = 2, [5] = 3, [7] = 4, [9] = 5, [11] = 6,
          [13] = 7, [14] = 0xab, [15] = 0xcd}, "[1234:2:3:4:5:6:7:abcd]:4567"},
        {{[5] = 3, [7] = 4, [9] = 5, [11] = 6, [13] = 7, [15] = 8},
         "[::3:4:5:6:7:8]:4567"},
    };
    struct wire_partner p = {.rank = 2, .reason = MESH_TIMED_OUT};
    char buf[200];
    struct text t;

    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct wire_addr a = {.port = 4567};

        memcpy(a.ip, cases[i].ip, sizeof a.ip);
        text_init(&t, buf, sizeof buf);
        mesh_add_addr(&t, &a);
        assert_string_equal(buf, cases[i].text);
    }
    memcpy(p.at.ip, cases[0].ip, sizeof p.at.ip);
    p.at.port = 4567;
    text_init(&t, buf, sizeof buf);
    mesh_add_partner(&t, &p);
    assert_string_equal(buf, "node rank 2 at 10.0.0.3:4567: no answer (timed "
                             "out)");
    /* A number that this version does not know has words, too. */
    assert_string_equal(mesh_reason_text(200), "it fails");
    assert_int_equal(mesh_reason_of_errno(ECONNREFUSED), MESH_REFUSED);
    assert_int_equal(mesh_reason_of_errno(ETIMEDOUT), MESH_TIMED_OUT);
    assert_int_equal(mesh_reason_of_errno(EPROTO), MESH_FAILED);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_conversation),
        cmocka_unit_test(test_hello),
        cmocka_unit_test(test_changed_bytes),
        cmocka_unit_test(test_not_judged),
        cmocka_unit_test(test_blocks_differ),
        cmocka_unit_test(test_late),
        cmocka_unit_test(test_words),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, setup, NULL);
}
