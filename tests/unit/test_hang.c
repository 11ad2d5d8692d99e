/* Tests of supervise/hang: who stands still, and for how long. */
#include "supervise/hang.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define T 8000 /* --hang-timeout; a look each second. */
#define START 100

static struct hang_worker workers[2];
static struct hang_seen seen[2];
static struct hang h;

static int make(void **state)
{
    (void)state;
    memset(workers, 0, sizeof workers);
    memset(seen, 0, sizeof seen);
    hang_init(&h, T, workers, 2);
    hang_begin(&h, START);
    for (int i = 0; i < 2; i++)
        seen[i] = (struct hang_seen){.is_alive = true, .start_ms = START,
                                     .has_cpu = true, .cpu_ms = 5000};
    return 0;
}

/* Looks each second from `from` to `to`; when they hung first, or 0. */
static uint64_t looks(uint64_t from, uint64_t to)
{
    for (uint64_t now = from; now <= to; now += hang_step_ms(&h))
        if (hang_look(&h, now, seen))
            return now;
    return 0;
}

static void test_two_that_stand_still(void **state)
{
    (void)state;
    assert_int_equal(hang_step_ms(&h), 1000);
    /* The first look is what it is compared with. */
    assert_int_equal(looks(1100, 60000), 9100);
}

static void test_output_is_life(void **state)
{
    (void)state;
    assert_int_equal(looks(1100, 8100), 0);
    seen[1].output_ms = 8500;
    assert_int_equal(looks(9100, 60000), 17100);
}

static void test_cpu_is_life(void **state)
{
    uint64_t now = 1100;

    (void)state;
    for (; now < 60000; now += 1000) { /* 1 % of a core, as little as that. */
        seen[0].cpu_ms += 10;
        assert_false(hang_look(&h, now, seen));
    }
    seen[0].cpu_ms += 9; /* And less. */
    assert_true(hang_look(&h, now, seen));
}

/* One burst counts until it is that long ago. */
static void test_a_burst(void **state)
{
    (void)state;
    assert_int_equal(looks(1100, 8100), 0);
    seen[0].cpu_ms += 500;
    assert_int_equal(looks(9100, 60000), 17100);
}

/* A child that ends takes its time along where nobody waited for it. */
static void test_less_cpu_than_before(void **state)
{
    (void)state;
    assert_int_equal(looks(1100, 8100), 0);
    seen[0].cpu_ms -= 1000;
    assert_int_equal(looks(9100, 60000), 17100);
}

static void test_one_of_two_works(void **state)
{
    (void)state;
    for (uint64_t now = 1100; now < 60000; now += 1000) {
        seen[1].output_ms = now - 500;
        assert_false(hang_look(&h, now, seen));
    }
    seen[1].is_alive = false; /* It is done; the other one waits for ever. */
    assert_true(hang_look(&h, 60100, seen));
    seen[0].is_alive = false;
    assert_int_equal(looks(61100, 90000), 0); /* Nobody is left. */
}

static void test_heartbeats(void **state)
{
    (void)state;
    seen[0].beats = true;
    seen[0].beat_ms = 3000;
    seen[0].is_stalled = true; /* All the same then. */
    for (uint64_t now = 1100; now < 11000; now += 1000) {
        seen[0].cpu_ms += 1000; /* It spins, */
        seen[0].output_ms = now; /* and writes. */
        assert_false(hang_look(&h, now, seen));
    }
    assert_true(hang_look(&h, 11100, seen));
    seen[0].beat_ms = 11500;
    assert_int_equal(looks(12100, 60000), 20100);
}

static void test_what_is_not_known_is_no_hang(void **state)
{
    (void)state;
    seen[0].has_cpu = false;
    assert_int_equal(looks(1100, 60000), 0);
    seen[0].has_cpu = true;
    seen[0].is_stalled = true; /* Nobody reads agent's output. */
    assert_int_equal(looks(60100, 90000), 0);
    seen[0].is_stalled = false;
    assert_int_not_equal(looks(90100, 120000), 0);
}

/* The machine was suspended, or agent's cgroup frozen with all its workers. */
static void test_nobody_looked(void **state)
{
    (void)state;
    seen[0].beats = true;
    seen[0].beat_ms = 5000;
    assert_int_equal(looks(1100, 5100), 0);
    assert_int_equal(looks(100000, 107000), 0);
    assert_int_equal(looks(108000, 120000), 108000);
}

static void test_another_worker_in_its_place(void **state)
{
    (void)state;
    assert_int_equal(looks(1100, 8100), 0);
    seen[1].start_ms = 8600;
    seen[1].cpu_ms = 0;
    assert_int_equal(looks(9100, 60000), 17100);
    hang_begin(&h, 20000); /* A round. */
    seen[0].start_ms = seen[1].start_ms = 20000;
    assert_int_equal(looks(21000, 60000), 29000);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup(f, make)
    const struct CMUnitTest tests[] = {
        TEST(test_two_that_stand_still),
        TEST(test_output_is_life),
        TEST(test_cpu_is_life),
        TEST(test_a_burst),
        TEST(test_less_cpu_than_before),
        TEST(test_one_of_two_works),
        TEST(test_heartbeats),
        TEST(test_what_is_not_known_is_no_hang),
        TEST(test_nobody_looked),
        TEST(test_another_worker_in_its_place),
    };

    return cmocka_run_group_tests_name("hang", tests, NULL, NULL);
}
