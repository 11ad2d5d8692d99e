/* stager: the lines between the child and agent. */
#include "dataset/stager.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct stager_line a, b;
static char line[STAGER_LINE_MAX];

static void there_and_back(void)
{
    assert_true(stager_format(&a, line, sizeof line));
    assert_int_equal(line[strlen(line) - 1], '\n');
    line[strlen(line) - 1] = '\0';
    assert_true(stager_parse(line, &b));
    assert_int_equal(a.kind, b.kind);
}

static void test_lines(void **state)
{
    (void)state;
    memset(&a, 0, sizeof a);
    a.kind = STAGER_PROGRESS;
    a.percent = 42;
    a.now = (struct stage_progress){.done = 5, .total = UINT64_C(1) << 50,
                                    .n_done = 2, .n_files = 3, .waiting = true};
    (void)snprintf(a.set.name, sizeof a.set.name, "a set");
    there_and_back();
    assert_true(b.percent == 42 && b.now.waiting && b.now.done == 5);
    assert_false(b.now.syncing);
    assert_true(b.now.total == a.now.total && b.now.n_done == 2);
    assert_true(b.now.n_files == 3);
    assert_string_equal(b.now.name, "a set");
    a.now.syncing = true;
    there_and_back();
    assert_true(b.now.waiting && b.now.syncing);
    a.now.waiting = false;
    there_and_back();
    assert_true(!b.now.waiting && b.now.syncing);

    a.kind = STAGER_SET;
    a.index = 3;
    memset(a.set.digest, 0x5a, sizeof a.set.digest);
    (void)snprintf(a.set.name, sizeof a.set.name, "my set\twith a tab");
    (void)snprintf(a.set.dir, sizeof a.set.dir, "/s/my set@0/x y");
    a.set.reused = true;
    a.set.n_files = 1u << 20;
    a.set.n_bytes = (uint64_t)1 << 50;
    there_and_back();
    assert_memory_equal(a.set.digest, b.set.digest, 32);
    assert_string_equal(a.set.name, b.set.name);
    assert_string_equal(a.set.dir, b.set.dir);
    assert_true(b.index == 3 && b.set.reused);
    assert_true(b.set.n_bytes == a.set.n_bytes);

    a.kind = STAGER_ERROR;
    a.err.code = 65;
    (void)snprintf(a.err.text, sizeof a.err.text, "a\nb: wrong");
    there_and_back();
    assert_int_equal(b.err.code, 65);
    assert_string_equal(b.err.text, "a b: wrong");
}

static void test_malformed(void **state)
{
    static const char *const bad[] = {
        "", "progress", "progress 101 0 0 0 0 0 n", "progress x 0",
        "progress 1 0", "progress 1 0 2 1 0 0 n", "progress 1 0 1 2 3 1 n",
        "progress 1 0 1 2 1 3",
        "progress 1 4 1 2 1 3 n", "set", "set 1 00",
        "set 0 zz 0 1 1 n\t/d", "error", "error 0 x", "error 999 x", "hello",
        ("set 0 5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a"
         "5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a 0 1 1 name-without-folder"),
    };

    (void)state;
    for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(stager_parse(bad[i], &b));
}

/* No change of a line makes it crash, and what is read has its bounds. */
static void test_changed_lines(void **state)
{
    uint64_t r = 88172645463325252u;

    (void)state;
    memset(&a, 0, sizeof a);
    a.kind = STAGER_SET;
    (void)snprintf(a.set.name, sizeof a.set.name, "set");
    (void)snprintf(a.set.dir, sizeof a.set.dir, "/s/set@0");
    for (unsigned i = 0; i < 20000; i++) {
        size_t len;

        assert_true(stager_format(&a, line, sizeof line));
        len = strlen(line) - 1;
        line[len] = '\0';
        for (unsigned k = 0; k < 3; k++) {
            r ^= r << 13, r ^= r >> 7, r ^= r << 17;
            line[r % len] = (char)(1 + (r >> 32) % 255);
        }
        if (stager_parse(line, &b) && b.kind == STAGER_SET)
            assert_true(b.set.dir[0] == '/' && !strchr(b.set.name, '/'));
    }
}

/* A line that does not fit is none. */
static void test_too_long(void **state)
{
    (void)state;
    memset(&a, 0, sizeof a);
    a.kind = STAGER_SET;
    memset(a.set.name, 'n', sizeof a.set.name - 1);
    memset(a.set.dir, 'd', sizeof a.set.dir - 1);
    a.set.dir[0] = '/';
    there_and_back(); /* The longest ones do. */
    assert_string_equal(a.set.dir, b.set.dir);
    assert_string_equal(a.set.name, b.set.name);
    assert_false(stager_format(&a, line, PATH_MAX));
    assert_true(stager_format(&a, line, sizeof line));
    *strchr(line, '\n') = '\0';
    memmove(strchr(line, '/') + 1, strchr(line, '/'),
            strlen(strchr(line, '/')) + 1); /* One more byte of folder. */
    assert_false(stager_parse(line, &b));
}

static void test_digest(void **state)
{
    static struct stage_result sets[2];
    uint8_t one[32], two[32], swapped[32];

    (void)state;
    memset(sets[0].digest, 1, 32);
    memset(sets[1].digest, 2, 32);
    stager_digest(sets, 1, one);
    assert_memory_equal(one, sets[0].digest, 32);
    stager_digest(sets, 2, two);
    memset(sets[0].digest, 2, 32);
    memset(sets[1].digest, 1, 32);
    stager_digest(sets, 2, swapped);
    assert_memory_not_equal(two, swapped, 32);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_malformed),
        cmocka_unit_test(test_changed_lines),
        cmocka_unit_test(test_too_long),
        cmocka_unit_test(test_digest),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
