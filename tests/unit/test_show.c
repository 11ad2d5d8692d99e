/* Tests of base/show: how long work is told, and of fetch/urls' paths. */
#include "base/show.h"
#include "fetch/urls.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void test_bytes(void **state)
{
    static const struct {
        uint64_t n;
        const char *want;
    } cases[] = {{0, "0 bytes"}, {1, "1 byte"}, {1023, "1023 bytes"},
                 {1024, "1.0 KiB"}, {1536, "1.5 KiB"}, {1048575, "1023.9 KiB"},
                 {1048576, "1.0 MiB"}, {UINT64_C(4) << 30, "4.0 GiB"},
                 {UINT64_MAX, "15.9 EiB"}};
    char buf[SHOW_BYTES_MAX];

    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(show_bytes(buf, cases[i].n), cases[i].want);
}

static void test_text(void **state)
{
    static const struct {
        struct show_state st;
        uint64_t rate;
        unsigned columns;
        const char *want;
    } cases[] = {
        {{10, 3, 1 << 20, 4 << 20, NULL, false}, 1 << 20, 80,
         "3 of 10 files, 1.0 MiB of 4.0 MiB (25 %), 1.0 MiB/s, 3 s left"},
        {{10, 3, 1 << 20, 4 << 20, NULL, false}, 0, 120,
         "[======                  ] 3 of 10 files, 1.0 MiB of 4.0 MiB (25 %)"},
        {{1, 0, 999, 1000, NULL, false}, 0, 0,
         "0 of 1 files, 999 bytes of 1000 bytes (99 %)"},
        {{1, 1, 1000, 1000, NULL, false}, 5, 0,
         "1 of 1 files, 1000 bytes of 1000 bytes (100 %)"},
        {{9, 9, (UINT64_C(1) << 60) - 1, UINT64_C(1) << 60, NULL, false}, 0, 0,
         "9 of 9 files, 1023.9 PiB of 1.0 EiB (99 %)"},
        {{1, 1, 0, 0, NULL, false}, 5, 0, "1 of 1 files (100 %)"},
        {{4, 1, 0, 0, NULL, false}, 5, 0, "1 of 4 files (25 %)"},
        {{2, 1, 9, 9, NULL, false}, 5, 0,
         "1 of 2 files, 9 bytes of 9 bytes (99 %)"},
        {{2, 1, 5, 10, "set", false}, 0, 0,
         "set: 1 of 2 files, 5 bytes of 10 bytes (50 %)"},
        {{2, 1, 5, 10, "set", true}, 0, 0,
         "set: another process stages it: 1 of 2 files, 5 bytes of 10 bytes "
         "(50 %)"},
        {{0, 0, 0, 0, "set", true}, 0, 0, "set: another process stages it"},
    };
    char buf[SHOW_COLUMNS_MAX];

    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        show_text(&cases[i].st, cases[i].rate, cases[i].columns, buf,
                  sizeof buf);
        assert_string_equal(buf, cases[i].want);
    }
}

static void test_joined_urls(void **state)
{
    static const char *const cases[][3] = {
        {"http://h", "a/b", "http://h/a/b"},
        {"http://h/", "a", "http://h/a"},
        {"http://h/x", "a b#?%&\xc3\xa9~",
         "http://h/x/a%20b%23%3F%25%26%C3%A9~"},
    };

    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        char *url = urls_join(cases[i][0], cases[i][1]);

        assert_string_equal(url, cases[i][2]);
        free(url);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_joined_urls),
    };

    return cmocka_run_group_tests_name("show", tests, NULL, NULL);
}
