/* Tests of agent/hostlist: Slurm's lists. */
#include "agent/hostlist.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void test_lists(void **state)
{
    static const struct {
        const char *list, *want; /* Names with blanks between them. */
    } cases[] = {
        {"n1", "n1"},
        {"n1,n2", "n1 n2"},
        {"n[1-3]", "n1 n2 n3"},
        {"n[08-10]", "n08 n09 n10"},
        {"n[8-10]", "n8 n9 n10"},
        {"n[001-002,7,010-011]x", "n001x n002x n7x n010x n011x"},
        {"rack[1-2]node[1-2]", "rack1node1 rack1node2 rack2node1 rack2node2"},
        {"a[1-2]b[01,3]c,d", "a1b01c a1b3c a2b01c a2b3c d"},
        {"[1-2]", "1 2"},
        {"a-b[1],c.d", "a-b1 c.d"},
        {"n[0-0]", "n0"},
        {"n[00-02]", "n00 n01 n02"},
        {"n[99-101]", "n99 n100 n101"},
    };
    char all[1024], one[HOSTLIST_NAME_MAX];

    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint32_t n = hostlist_count(cases[i].list);
        size_t len = 0;

        all[0] = '\0';
        for (uint32_t k = 0; k < n; k++) {
            assert_true(hostlist_at(cases[i].list, k, one));
            len += (size_t)snprintf(all + len, sizeof all - len, "%s%s",
                                    k ? " " : "", one);
        }
        assert_string_equal(all, cases[i].want);
        assert_false(hostlist_at(cases[i].list, n, one));
    }
}

static void test_what_is_none(void **state)
{
    static const char *const cases[] = {
        "", ",", "a,", ",a", "a,,b", "n[", "n]", "n[]", "n[1", "n[1-", "n[-1]",
        "n[1-]", "n[2-1]", "n[1,]", "n[,1]", "n[a-b]", "n[1-2-3]", "n[1]]",
        "n[[1]]", "a b", "n[1 -2]", "n[1-99999999]", "n[1-300]m[1-300]",
        "n[1-60000],m[1-60000]", "n[1234567890123]",
        "a[1]b[1]c[1]d[1]e[1]f[1]g[1]h[1]i[1]",
    };
    char one[HOSTLIST_NAME_MAX];

    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (hostlist_count(cases[i]) != 0)
            fail_msg("'%s' is taken for a list", cases[i]);
        assert_false(hostlist_at(cases[i], 0, one));
    }
}

static void test_limits(void **state)
{
    char one[HOSTLIST_NAME_MAX], longest[400];

    (void)state;
    assert_int_equal(hostlist_count("n[1-65536]"), 65536);
    assert_true(hostlist_at("n[1-65536]", 65535, one));
    assert_string_equal(one, "n65536");
    assert_true(hostlist_at("r[0-255]n[000-255]", 65535, one));
    assert_string_equal(one, "r255n255");
    memset(longest, 'a', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    assert_false(hostlist_at(longest, 0, one));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_what_is_none),
        cmocka_unit_test(test_limits),
    };

    return cmocka_run_group_tests_name("hostlist", tests, NULL, NULL);
}
