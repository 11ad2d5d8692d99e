/* Tests of supervise/tail. */
#include "supervise/tail.h"

#include "base/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static char ring[TAIL_MAX], cut_ring[TAIL_MAX];

static void put(struct tail *t, const char *s)
{
    tail_put(t, s, strlen(s));
}

static void test_last_lines(void **state)
{
    static const struct {
        const char *in;
        unsigned max_lines;
        const char *want;
    } cases[] = {
        {"", 5, ""},
        {"\n\n", 5, ""},
        {" \t\r\n", 5, ""},
        {"a", 5, "a"},
        {"a\n", 5, "a"},
        {"a\nb\nc\n", 5, "a\nb\nc"},
        {"a\nb\nc\n", 2, "b\nc"},
        {"a\nb\nc", 1, "c"},
        {"a\nb\nc", 0, ""},
        {"a\n\nb\n\n \n\n", 5, "a\n\nb"},
        {"a\n\nb\n", 2, "b"}, /* No blank line in front. */
        /* Carriage returns. */
        {"1%\r2%\r3%\n", 5, "3%"},
        {"1%\r2%\r3%", 5, "3%"},
        {"1%\r2%\r", 5, "2%"},
        {"windows\r\nline\r\n", 5, "windows\nline"},
        {"1%\r2%\r\nend\n", 5, "2%\nend"},
        {"\r\r\n", 5, ""},
        /* Escape sequences. */
        {"\033[31mred\033[0m\n", 5, "red"},
        {"\033[1;38;5;196mError\033[m: x\033[K", 5, "Error: x"},
        {"\033[?25lhidden\033[?25h", 5, "hidden"},
        {"\033[2 qcursor", 5, "cursor"},
        {"\033]0;title\amore\n", 5, "more"},
        {"\033]8;;http://x\033\\link\033]8;;\033\\\n", 5, "link"},
        {"\033Pdcs\033\\x", 5, "x"},
        {"\033(Bcharset", 5, "charset"},
        {"\0337save\0338", 5, "save"},
        {"\033cfull", 5, "full"},
        {"a\033", 5, "a"},
        {"a\033[", 5, "a"},
        {"a\033[12", 5, "a"},
        {"a\033]0;never ended\nb", 5, "a\nb"}, /* It takes no more lines. */
        {"a\033]0;x\033[0mb", 5, "ab"},
        {"\033[\033[31mx", 5, "x"},
        {"\033[3\xc3\xa9", 5, "\xc3\xa9"},
        {"10%\r\033[K20%\r\033[K\n", 5, "20%"},
        /* What is no text. */
        {"\x01\x7f\xff", 5, "???"},
        {"\xc3\xa9\t\xe2\x82\xac", 5, "\xc3\xa9\t\xe2\x82\xac"},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tail t;
        char out[TAIL_MAX + 1];
        size_t n;

        tail_init(&t, ring);
        put(&t, cases[i].in);
        n = tail_text(&t, cases[i].max_lines, out, sizeof out);
        assert_string_equal(out, cases[i].want);
        assert_int_equal(n, strlen(out));
    }
}

static void test_nul_becomes_a_mark(void **state)
{
    struct tail t;
    char out[64];

    (void)state;
    tail_init(&t, ring);
    tail_put(&t, "a\0b\n\0", 5);
    (void)tail_text(&t, 5, out, sizeof out);
    assert_string_equal(out, "a?b\n?");
}

static void test_the_newest_are_kept_where_room_is_short(void **state)
{
    static const struct {
        size_t cap;
        const char *want;
    } cases[] = {
        {14, "one\ntwo\nthree"}, {13, "two\nthree"}, {10, "two\nthree"},
        {9, "three"},            {6, "three"},      {5, "thre"},
        {2, "t"},                {1, ""},
    };
    struct tail t;
    char out[64];

    (void)state;
    tail_init(&t, ring);
    put(&t, "one\ntwo\nthree\n");
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t n = tail_text(&t, 9, out, cases[i].cap);

        assert_string_equal(out, cases[i].want);
        assert_int_equal(n, strlen(out));
    }
    assert_int_equal(tail_text(&t, 9, out, 0), 0);

    tail_init(&t, ring);
    put(&t, "a\nxx\xe2\x82\xac");
    assert_int_equal(tail_text(&t, 9, out, 5), 2);
    assert_string_equal(out, "xx");
}

static void test_only_the_last_bytes_are_held(void **state)
{
    struct tail t;
    char out[TAIL_MAX + 1], line[64];

    (void)state;
    tail_init(&t, ring);
    for (unsigned i = 0; i < 10000; i++) {
        (void)snprintf(line, sizeof line, "line %u of many\n", i);
        put(&t, line);
    }
    (void)tail_text(&t, 3, out, sizeof out);
    assert_string_equal(out, "line 9997 of many\nline 9998 of many\n"
                             "line 9999 of many");
    /* The oldest line lost its beginning and is left out. */
    (void)tail_text(&t, 10000, out, sizeof out);
    assert_memory_equal(out, "line ", 5);
    assert_true(strlen(out) > TAIL_MAX - 40);
}

static void test_one_line_over_all_bytes(void **state)
{
    static char big[3 * TAIL_MAX + 1];
    struct tail t;
    char out[TAIL_MAX + 1];

    (void)state;
    for (size_t i = 0; i + 3 < sizeof big; i += 3)
        memcpy(big + i, "\xe2\x82\xac", 3);
    tail_init(&t, ring);
    put(&t, big);
    /* 2048 is no multiple of 3: the torn character goes. */
    assert_int_equal(tail_text(&t, 5, out, sizeof out), TAIL_MAX / 3 * 3);
    assert_memory_equal(out, "\xe2\x82\xac", 3);
    put(&t, "\nlast");
    (void)tail_text(&t, 5, out, sizeof out);
    assert_string_equal(out, "last");
}

/* However the bytes arrive, the ring holds the last of them. */
static void test_cuts_never_change_the_text(void **state)
{
    static char in[5 * TAIL_MAX];
    unsigned seed = 7;

    (void)state;
    for (unsigned round = 0; round < 300; round++) {
        struct tail whole, cut;
        char a[TAIL_MAX + 1], b[TAIL_MAX + 1], again[TAIL_MAX + 1];
        size_t n, len, cap;

        seed = seed * 1103515245u + 12345u;
        n = (seed >> 8) % sizeof in;
        for (size_t i = 0; i < n; i++) {
            seed = seed * 1103515245u + 12345u;
            in[i] = (seed >> 16) % 9 ? (char)(seed >> 20)
                                     : "\n\r\033[ m]\\\a"[(seed >> 24) % 9];
        }
        tail_init(&whole, ring);
        tail_init(&cut, cut_ring);
        tail_put(&whole, in, n);
        for (size_t at = 0; at < n;) {
            size_t part;

            seed = seed * 1103515245u + 12345u;
            part = (seed >> 8) % (round % 2 ? 4000 : 60);
            part = part < n - at ? part : n - at;
            tail_put(&cut, in + at, part);
            at += part;
        }
        cap = 1 + (seed >> 4) % TAIL_MAX;
        len = tail_text(&whole, 1 + round % 40, a, cap);
        assert_int_equal(tail_text(&cut, 1 + round % 40, b, cap), len);
        assert_string_equal(a, b);
        assert_true(len < cap);
        assert_null(strchr(a, '\033'));
        memcpy(again, a, sizeof again);
        assert_int_equal(text_make_utf8(again, TAIL_MAX), len);
        assert_string_equal(again, a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_last_lines),
        cmocka_unit_test(test_nul_becomes_a_mark),
        cmocka_unit_test(test_the_newest_are_kept_where_room_is_short),
        cmocka_unit_test(test_only_the_last_bytes_are_held),
        cmocka_unit_test(test_one_line_over_all_bytes),
        cmocka_unit_test(test_cuts_never_change_the_text),
    };

    return cmocka_run_group_tests_name("tail", tests, NULL, NULL);
}
