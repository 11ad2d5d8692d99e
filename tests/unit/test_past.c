/* past: ages go on, and more restarts than fit share one. */
#include "rendezvous/past.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static uint32_t total(const struct past *p)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < p->n_runs; i++)
        n += p->runs[i].n;
    return n;
}

static void test_time_passes(void **state)
{
    struct past p = {.zero_losses = 1, .zero_age_ms = 50};

    (void)state;
    past_count(&p, 1);
    past_age(&p, 1000);
    past_count(&p, 2);
    past_add(&p, 5000, 3);
    past_add(&p, UINT32_MAX - 10u, 4);
    assert_int_equal(p.zero_age_ms, 1050);
    assert_int_equal(p.n_runs, 4);
    assert_int_equal(p.runs[0].age_ms, 0);
    assert_int_equal(p.runs[0].n, 2);
    assert_int_equal(p.runs[1].age_ms, 1000);
    assert_int_equal(p.runs[2].age_ms, 5000);
    past_age(&p, 11); /* The last ones are too old to be told. */
    assert_int_equal(p.n_runs, 3);
    past_age(&p, UINT64_MAX);
    assert_int_equal(p.n_runs, 0);
    assert_true(p.zero_age_ms == UINT64_MAX);
}

static void test_same_age(void **state)
{
    struct past p = {0};

    (void)state;
    for (uint32_t i = 0; i < 100; i++)
        past_add(&p, 7, 1);
    assert_int_equal(p.n_runs, 1);
    assert_int_equal(p.runs[0].n, 100);
    past_add(&p, 8, 0);
    past_add(&p, (uint64_t)UINT32_MAX + 1, 1);
    assert_int_equal(p.n_runs, 1);
}

static void check_order(const struct past *p)
{
    assert_in_range(p->n_runs, 1, PAST_RUNS_MAX);
    for (uint32_t i = 1; i < p->n_runs; i++)
        assert_true(p->runs[i].age_ms > p->runs[i - 1].age_ms);
}

/* None is lost, none gets younger, and the list is the same when it is made
 * again from itself. */
static void test_too_many(void **state)
{
    struct past p = {0}, again = {0};

    (void)state;
    for (uint32_t i = 0; i < 200; i++)
        past_add(&p, 10u + i * i, 1);
    assert_int_equal(total(&p), 200);
    check_order(&p);
    for (uint32_t i = 0, done = 0; i < p.n_runs; i++) {
        done += p.runs[i].n;
        assert_int_equal(p.runs[i].age_ms, 10 + (done - 1) * (done - 1));
    }
    for (uint32_t i = 0; i < p.n_runs; i++)
        for (uint32_t n = p.runs[i].n; n > 0; n--)
            past_add(&again, p.runs[i].age_ms, 1);
    assert_memory_equal(&again, &p, sizeof p);
    for (uint32_t i = 0; i < 200; i++) {
        past_age(&p, 100);
        past_count(&p, 1);
        check_order(&p);
        assert_int_equal(total(&p), 201 + i);
    }
}

static void test_lost(void **state)
{
    struct past p = {0};

    (void)state;
    for (uint32_t i = 0; i < PAST_LOST_MAX; i++)
        assert_true(past_lose(&p, i, 100 + i));
    assert_false(past_lose(&p, 3, 104)); /* It was younger. */
    assert_true(past_lose(&p, 3, 7));
    assert_int_equal(p.lost[3].age_ms, 7);
    assert_false(past_lose(&p, 99, 1000)); /* So old, and no room. */
    assert_true(past_lose(&p, 99, 50)); /* In place of the oldest. */
    assert_int_equal(p.n_lost, PAST_LOST_MAX);
    assert_int_equal(p.lost[PAST_LOST_MAX - 1].rank, 99);
    assert_false(past_lose(&p, 5, (uint64_t)UINT32_MAX + 1));
    past_age(&p, UINT32_MAX - 60);
    assert_int_equal(p.n_lost, 2);
    assert_int_equal(p.lost[0].rank, 3);
    assert_int_equal(p.lost[1].rank, 99);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_time_passes),
        cmocka_unit_test(test_same_age),
        cmocka_unit_test(test_too_many),
        cmocka_unit_test(test_lost),
    };

    return cmocka_run_group_tests_name("past", tests, NULL, NULL);
}
