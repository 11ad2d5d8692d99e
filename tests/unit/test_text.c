/* Tests of base/text. */
#include "base/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void test_add_appends(void **state)
{
    char buf[16];
    struct text t;

    (void)state;
    text_init(&t, buf, sizeof buf);
    assert_string_equal(buf, "");
    text_add(&t, "%s", "");
    text_add(&t, "%d-", 12);
    text_add(&t, "%s", "abc");
    assert_string_equal(buf, "12-abc");
    assert_int_equal(t.len, 6);
    assert_false(t.cut);
}

static void test_add_cuts_and_then_stays(void **state)
{
    char buf[8];
    struct text t;

    (void)state;
    text_init(&t, buf, sizeof buf);
    text_add(&t, "1234567");
    assert_false(t.cut);
    assert_int_equal(t.len, 7);
    text_add(&t, "%s", "");
    assert_false(t.cut);
    text_add(&t, "8");
    assert_true(t.cut);
    assert_string_equal(buf, "1234567");

    /* A character that does not fit leaves room, which stays empty. */
    text_init(&t, buf, sizeof buf);
    text_add(&t, "12345\xe2\x82\xac");
    assert_true(t.cut);
    assert_string_equal(buf, "12345");
    text_add(&t, "6");
    assert_string_equal(buf, "12345");
    assert_int_equal(t.len, 5);

    text_init(&t, buf, 1);
    text_add(&t, "x");
    assert_string_equal(buf, "");
    assert_true(t.cut);
}

static void test_plural(void **state)
{
    (void)state;
    assert_string_equal(text_plural(0), "s");
    assert_string_equal(text_plural(1), "");
    assert_string_equal(text_plural(UINT64_MAX), "s");
}

static bool is_digit(const void *ctx, unsigned i)
{
    return ((const char *)ctx)[i] == '1';
}

static void test_ranges_are_folded(void **state)
{
    static const struct {
        const char *members;
        size_t max;
        const char *want;
    } cases[] = {
        {"", 80, ""},
        {"0000", 80, ""},
        {"1", 80, "0"},
        {"0110", 80, "1-2"},
        {"10111001", 80, "0,2-4,7"},
        {"1111", 80, "0-3"},
        {"0011", 80, "2-3"},
        {"101010", 7, "0,2,4"},
        {"10101010", 6, "0,..."},    /* Room for the dots is kept. */
        {"1010101", 3, "..."},
        {"1110111", 3, "..."},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char buf[100];
        struct text t;

        text_init(&t, buf, sizeof buf);
        text_add(&t, "r ");
        text_add_ranges(&t, (unsigned)strlen(cases[i].members), is_digit,
                        cases[i].members, cases[i].max);
        assert_string_equal(buf + 2, cases[i].want);
        assert_true(t.len - 2 <= cases[i].max);
    }
}

static void test_ranges_with_an_end_in_the_middle(void **state)
{
    char members[3001], buf[64];
    struct text t;

    (void)state;
    for (unsigned i = 0; i < 3000; i++)
        members[i] = i % 2 ? '1' : '0';
    members[3000] = '\0';
    text_init(&t, buf, sizeof buf);
    text_add_ranges(&t, 3000, is_digit, members, 16);
    assert_string_equal(buf, "1,3,5,7,9,11,...");
}

static void test_durations(void **state)
{
    static const struct {
        uint64_t ms;
        const char *want;
    } cases[] = {
        {0, "0 ms"},           {999, "999 ms"},
        {1000, "1 s"},         {1099, "1 s"},
        {1100, "1.1 s"},       {3249, "3.2 s"},
        {9999, "9.9 s"},       {10900, "10 s"},
        {119999, "119 s"},     {120000, "2 min"},
        {200000, "3 min 20 s"}, {600000, "10 min"},
        {7199999, "119 min 59 s"}, {7200000, "2 h"},
        {7500000, "2 h 5 min"},
        {UINT64_MAX, "5124095576030 h 25 min"},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char buf[64];
        struct text t;

        text_init(&t, buf, sizeof buf);
        text_add_duration(&t, cases[i].ms);
        assert_string_equal(buf, cases[i].want);
    }
}

static void test_copy(void **state)
{
    char buf[5];

    (void)state;
    assert_true(text_copy(buf, sizeof buf, "abcd"));
    assert_string_equal(buf, "abcd");
    assert_false(text_copy(buf, sizeof buf, "abcde"));
    assert_string_equal(buf, "abcd");
    assert_false(text_copy(buf, sizeof buf, "abc\xc3\xa9"));
    assert_string_equal(buf, "abc");
    assert_false(text_copy(buf, 1, "a"));
    assert_string_equal(buf, "");
    assert_true(text_copy(buf, 1, ""));
}

static void test_whole(void **state)
{
    static const struct {
        const char *s;
        size_t want;
    } cases[] = {
        {"", 0},
        {"a", 1},
        {"a\xc3", 1},
        {"a\xc3\xa9", 3},
        {"a\xe2", 1},
        {"a\xe2\x82", 1},
        {"a\xe2\x82\xac", 4},
        {"\xf0\x9f\x98", 0},
        {"\xf0\x9f\x98\x80", 4},
        {"\x80\x80\x80\x80", 4}, /* No UTF-8: nothing to keep whole. */
        {"a\xff", 2},
        {"\xc3" "ab", 3},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(text_whole(cases[i].s, strlen(cases[i].s)),
                         cases[i].want);
}

static void test_make_utf8(void **state)
{
    static const struct {
        const char *in;
        size_t max;
        const char *want;
    } cases[] = {
        {"", 10, ""},
        {"plain\ttext\n", 20, "plain\ttext\n"},
        {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 20,
         "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"},
        {"\x01\x1b[31m\r\x7f", 20, "??[31m??"},
        {"\xc2\x9b" "31m\xc2\xa0", 20, "??31m\xc2\xa0"}, /* C1; no-break. */
        {"a\xff\xfe" "b", 20, "a??b"},
        {"\xc0\xaf", 20, "??"},          /* Longer than needed. */
        {"\xe0\x80\xaf", 20, "???"},
        {"\xf0\x80\x80\xaf", 20, "????"},
        {"\xed\xa0\x80", 20, "???"},     /* A surrogate. */
        {"\xf4\x90\x80\x80", 20, "????"}, /* Beyond U+10FFFF. */
        {"\xf5\x80\x80\x80", 20, "????"},
        {"\xe2\x82", 20, "??"},          /* Ends too early. */
        {"\xe2" "a", 20, "?a"},
        {"\x80", 20, "?"},
        {"abc", 2, "ab"},
        {"abc", 0, ""},
        {"a\xe2\x82\xac", 3, "a"},       /* Does not fit as a whole. */
        {"a\xe2\x82\xac", 4, "a\xe2\x82\xac"},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char buf[32];

        memcpy(buf, cases[i].in, strlen(cases[i].in) + 1);
        assert_int_equal(text_make_utf8(buf, cases[i].max),
                         strlen(cases[i].want));
        assert_string_equal(buf, cases[i].want);
    }
}

static void test_make_utf8_of_its_own_output_changes_nothing(void **state)
{
    unsigned seed = 1;

    (void)state;
    for (unsigned i = 0; i < 2000; i++) {
        char buf[41], again[41];
        size_t n;

        for (unsigned k = 0; k < 40; k++) {
            seed = seed * 1103515245u + 12345u;
            buf[k] = (char)(1 + (seed >> 16) % 255);
            if ((seed >> 8) % 3 == 0 && k > 0)
                buf[k] = (char)(0x80 | (buf[k] & 0x3f));
        }
        buf[40] = '\0';
        n = text_make_utf8(buf, 37);
        assert_true(n <= 37);
        memcpy(again, buf, sizeof again);
        assert_int_equal(text_make_utf8(again, 40), n);
        assert_string_equal(again, buf);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_add_appends),
        cmocka_unit_test(test_plural),
        cmocka_unit_test(test_add_cuts_and_then_stays),
        cmocka_unit_test(test_ranges_are_folded),
        cmocka_unit_test(test_ranges_with_an_end_in_the_middle),
        cmocka_unit_test(test_durations),
        cmocka_unit_test(test_copy),
        cmocka_unit_test(test_whole),
        cmocka_unit_test(test_make_utf8),
        cmocka_unit_test(test_make_utf8_of_its_own_output_changes_nothing),
    };

    return cmocka_run_group_tests_name("text", tests, NULL, NULL);
}
