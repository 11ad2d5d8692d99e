/* pulse: a stager that gets on, and one that only lives. */
#include "dataset/pulse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define S 1000

static struct pulse p;

static bool take(uint64_t s, struct stage_progress at)
{
    return pulse_take(&p, &at, s * S);
}

static int begin(void **state)
{
    (void)state;
    memset(&p, 0, sizeof p);
    return 0;
}

static void test_each_number_is_progress(void **state)
{
    struct stage_progress at = {.total = 100, .n_files = 3};

    (void)state;
    assert_true(take(1, at));
    assert_false(take(6, at));
    at.done = 1;
    assert_true(take(11, at));
    assert_false(take(16, at));
    at.n_done = 1;
    assert_true(take(21, at));
    at.done = 0; /* Another set, or once more. */
    assert_true(take(26, at));
    at.waiting = true; /* Only who does the work is another one. */
    assert_false(take(31, at));
}

static void test_files_without_bytes(void **state)
{
    (void)state;
    assert_true(take(1, (struct stage_progress){.n_files = 9}));
    assert_true(take(6, (struct stage_progress){.n_files = 9, .n_done = 1}));
}

static void test_waiting_for_one_that_tells_nothing(void **state)
{
    const struct stage_progress nothing = {.waiting = true},
                                some = {.waiting = true, .total = 9, .done = 3};

    (void)state;
    assert_false(take(1, nothing));
    assert_true(take(6, some));
    assert_false(take(11, nothing)); /* Its word was not there just now. */
    assert_false(take(16, some));
}

static void test_a_sync_has_its_time(void **state)
{
    struct stage_progress at = {.total = 9, .done = 9, .n_files = 1};
    const uint64_t until = 1 + PULSE_SYNC_MS / S;

    (void)state;
    assert_true(take(1, at));
    at.syncing = true;
    assert_true(take(6, at));
    assert_true(take(until - 1, at));
    assert_false(take(until, at));
    at.n_done = 1;
    assert_true(take(until + 5, at));
    assert_true(take(2 * until, at)); /* Of the next file. */
    at.syncing = false;
    assert_false(take(2 * until + 1, at));
}

static void test_who_stands_still_is_told_of_once(void **state)
{
    struct stage_progress at = {.total = 9, .done = 1};
    uint64_t ms;

    (void)state;
    assert_false(pulse_has_stopped(&p, 100 * S, &ms)); /* Nothing heard yet. */
    assert_true(take(1, at));
    assert_false(pulse_has_stopped(&p, 30 * S, &ms));
    assert_true(pulse_has_stopped(&p, 31 * S, &ms));
    assert_int_equal(ms, PULSE_SAY_MS);
    assert_false(pulse_has_stopped(&p, 200 * S, &ms));
    at.done = 2;
    assert_true(take(201, at));
    assert_false(pulse_has_stopped(&p, 230 * S, &ms));
    assert_true(pulse_has_stopped(&p, 235 * S, &ms));
    assert_int_equal(ms, 34 * S);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_each_number_is_progress, begin),
        cmocka_unit_test_setup(test_files_without_bytes, begin),
        cmocka_unit_test_setup(test_waiting_for_one_that_tells_nothing, begin),
        cmocka_unit_test_setup(test_a_sync_has_its_time, begin),
        cmocka_unit_test_setup(test_who_stands_still_is_told_of_once, begin),
    };

    return cmocka_run_group_tests_name("pulse", tests, NULL, NULL);
}
