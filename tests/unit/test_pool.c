/* pool: every item once, and always the same fault. */
#include "dataset/pool.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define N 2000

struct job {
    atomic_uint times[N];
    size_t bad_from; /* Items from here on fail. */
    atomic_uint told;
};

static int work(void *ctx, const struct pool_turn *turn, struct err *e)
{
    struct job *j = ctx;

    *(char *)turn->scratch = 1;
    (void)atomic_fetch_add(&j->times[turn->i], 1);
    if (turn->i < j->bad_from)
        return 0;
    return err_set(e, ERR_DATA, "item %zu", turn->i);
}

static void tell(void *ctx, const struct stage_progress *p)
{
    struct job *j = ctx;

    assert_true(p->done <= p->total);
    assert_false(p->waiting);
    (void)atomic_fetch_add(&j->told, 1);
}

static void each_item_once(void **state)
{
    static struct job j = {.bad_from = SIZE_MAX};
    struct meter meter = {.fn = tell, .ctx = &j};
    struct err e = {.code = 0};

    (void)state;
    assert_int_equal(pool_run(N, 64, work, &j, &meter, &e), 0);
    assert_int_equal(e.code, 0);
    for (size_t i = 0; i < N; i++)
        assert_int_equal(atomic_load(&j.times[i]), 1);
}

static void lowest_fault_counts(void **state)
{
    struct meter meter = {.fn = NULL};

    (void)state;
    for (int round = 0; round < 50; round++) {
        static struct job j;
        struct err e = {.code = 0};

        j.bad_from = 100;
        assert_int_equal(pool_run(N, 64, work, &j, &meter, &e), -ERR_DATA);
        assert_string_equal(e.text, "item 100");
    }
}

/* The item waits until the caller's thread has told twice. */
static int wait_for_tell(void *ctx, const struct pool_turn *turn,
                         struct err *e)
{
    struct job *j = ctx;

    (void)turn;
    (void)e;
    while (atomic_load(&j->told) < 2)
        ;
    return 0;
}

static void caller_tells_meanwhile(void **state)
{
    static struct job j;
    struct meter meter = {.fn = tell, .ctx = &j, .total = 1};
    struct err e = {.code = 0};

    (void)state;
    assert_int_equal(pool_run(1, 1, wait_for_tell, &j, &meter, &e), 0);
}

static void nothing_to_do(void **state)
{
    struct meter meter = {.fn = NULL};
    struct err e = {.code = 0};

    (void)state;
    assert_int_equal(pool_run(0, 1, work, NULL, &meter, &e), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_item_once),
        cmocka_unit_test(lowest_fault_counts),
        cmocka_unit_test(caller_tells_meanwhile),
        cmocka_unit_test(nothing_to_do),
    };

    return cmocka_run_group_tests_name("pool", tests, NULL, NULL);
}
