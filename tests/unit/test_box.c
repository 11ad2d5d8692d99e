/* box: torch's own report of a failure is left out, and nothing else. */
#include "supervise/box.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define RULE "============================================================\n"
#define THIN "------------------------------------------------------------\n"
#define CAUSE                                                                  \
    "Traceback (most recent call last):\n  File \"t.py\", line 1, in f\n"      \
    "ValueError: nan\n"
#define LOGGED                                                                 \
    "W1128 07:00:00.1 12 torch/distributed/elastic/multiprocessing/api.py:900"\
    "] Sending process 14 closing signal SIGTERM\n"                            \
    "E1128 07:00:00.2 12 torch/distributed/elastic/multiprocessing/api.py:874"\
    "] failed (exitcode: 1) local_rank: 0 (pid: 13) of binary: /usr/bin/py\n"
#define CHILD_FAILED                                                           \
    "Traceback (most recent call last):\n"                                     \
    "  File \"/usr/bin/torchrun\", line 8, in <module>\n    sys.exit(main())\n"\
    "    raise ChildFailedError(\n"                                            \
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
#define BOX                                                                    \
    RULE "train.py FAILED\n" THIN "Failures:\n  <NO_OTHER_FAILURES>\n" THIN    \
    "Root Cause (first observed failure):\n[0]:\n  time      : 2026-11-28_07"  \
    ":00:00\n  host      : w0\n  rank      : 0 (local_rank: 0)\n  exitcode  :" \
    " 1 (pid: 13)\n  error_file: <N/A>\n  traceback : To enable traceback "    \
    "see: https://pytorch.org/docs/stable/elastic/errors.html\n" RULE

static const struct {
    const char *in, *want;
} cases[] = {
    {CAUSE LOGGED CHILD_FAILED BOX, CAUSE},
    {CAUSE BOX "after\n", CAUSE "after\n"},
    {CAUSE, CAUSE},
    {CAUSE "\nDuring handling of the above exception, another exception "
     "occurred:\n\n" CAUSE, CAUSE "\nDuring handling of the above exception, "
     "another exception occurred:\n\n" CAUSE},
    {RULE "just a rule\n" RULE "x", RULE "just a rule\n" RULE "x"},
    {"test FAILED\n", "test FAILED\n"},
    {RULE "train.py FAILED\n" THIN "Fail", ""}, /* Cut off. */
    {CHILD_FAILED, ""},
    {CHILD_FAILED CHILD_FAILED "x", "x"},
    {"", ""},
    {"\n\n", "\n\n"},
    {"Traceback (most recent call last):", "Traceback (most recent call "
                                           "last):"},
};

static void test_boxes(void **state)
{
    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char s[4096];
        size_t n = (size_t)snprintf(s, sizeof s, "%s", cases[i].in);

        n = box_strip(s, n);
        assert_string_equal(s, cases[i].want);
        assert_int_equal(n, strlen(s));
        assert_int_equal(box_strip(s, n), n); /* Nothing is left to find. */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_boxes),
    };

    return cmocka_run_group_tests_name("box", tests, NULL, NULL);
}
