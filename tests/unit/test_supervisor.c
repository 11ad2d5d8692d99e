/* supervisor: stories of a gang, told as what it asks for. */
#include "supervise/supervisor.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static char story[512];
static struct supervisor s;

static void add(const char *what, uint32_t n, int signo)
{
    size_t len = strlen(story);

    (void)snprintf(story + len, sizeof story - len, "%s%u:%d ", what, n,
                   signo);
}

static void on_kill(void *ctx, uint32_t worker, int signo)
{
    (void)ctx;
    add("kill", worker, signo);
}

static void on_sweep(void *ctx, int signo)
{
    (void)ctx;
    add("sweep", 0, signo);
}

static void begin(uint32_t n)
{
    struct sup_out out = {.kill = on_kill, .sweep = on_sweep};

    supervisor_init(&s, &out, n, 1000);
    (void)supervisor_start(&s, s.n_workers, 0);
    story[0] = '\0';
}

/* What was asked for since the last time. */
static void told(const char *want)
{
    assert_string_equal(story, want);
    story[0] = '\0';
}

static void test_all_end_well(void **state)
{
    (void)state;
    begin(2);
    assert_int_equal(supervisor_exited(&s, 10, 0, true), SUP_QUIET);
    told("");
    assert_int_equal(supervisor_exited(&s, 20, 1, true), SUP_QUIET);
    told("sweep0:15 "); /* What they left behind gets TERM. */
    assert_int_equal(supervisor_swept(&s, 20, 0, false), SUP_DONE);
    assert_int_equal(supervisor_deadline(&s), UINT64_MAX);
}

static void test_first_failure_stops_all(void **state)
{
    (void)state;
    begin(3);
    assert_int_equal(supervisor_exited(&s, 10, 1, false), SUP_FAILED);
    told("kill0:15 kill2:15 ");
    assert_int_equal(supervisor_exited(&s, 11, 0, false), SUP_QUIET);
    assert_int_equal(supervisor_deadline(&s), 10 + SUP_LOOK_MS);
    assert_int_equal(supervisor_exited(&s, 13, 2, true), SUP_QUIET);
    told("sweep0:15 ");
    assert_int_equal(supervisor_swept(&s, 14, 0, false), SUP_STOPPED);
}

static void test_kill_after_the_grace(void **state)
{
    (void)state;
    begin(2);
    supervisor_stop(&s, 100);
    told("kill0:15 kill1:15 ");
    supervisor_nudge(&s, 101); /* An orphan's death: no reason to look. */
    assert_int_equal(supervisor_deadline(&s), 100 + SUP_LOOK_MS);
    (void)supervisor_timeout(&s, 100 + SUP_LOOK_MS);
    told("sweep0:15 "); /* They take their time: what is beside them? */
    (void)supervisor_swept(&s, 106, 0, false);
    (void)supervisor_exited(&s, 107, 0, true);
    assert_int_equal(supervisor_deadline(&s), 1100);
    assert_int_equal(supervisor_timeout(&s, 1100), SUP_QUIET);
    told("kill1:9 sweep0:9 ");
    (void)supervisor_swept(&s, 1101, 0, false);
    assert_int_equal(supervisor_exited(&s, 1102, 1, false), SUP_QUIET);
    told("sweep0:9 ");
    assert_int_equal(supervisor_swept(&s, 1103, 0, false), SUP_STOPPED);
}

static void test_hurry(void **state)
{
    (void)state;
    begin(1);
    supervisor_hurry(&s, 5); /* Nothing is being stopped. */
    assert_int_equal(supervisor_deadline(&s), UINT64_MAX);
    supervisor_stop(&s, 10);
    (void)supervisor_timeout(&s, 15);
    (void)supervisor_swept(&s, 15, 0, false);
    supervisor_hurry(&s, 20);
    assert_int_equal(supervisor_deadline(&s), 20);
    story[0] = '\0';
    (void)supervisor_timeout(&s, 20);
    told("kill0:9 sweep0:9 ");
}

static void test_left_behind(void **state)
{
    (void)state;
    begin(1);
    (void)supervisor_exited(&s, 0, 0, true);
    told("sweep0:15 ");
    assert_int_equal(supervisor_swept(&s, 1, 2, false), SUP_QUIET);
    assert_int_equal(supervisor_deadline(&s), 1 + SUP_POLL_MS);
    (void)supervisor_timeout(&s, 21);
    told("sweep0:0 "); /* TERM once is enough. */
    (void)supervisor_swept(&s, 22, 1, false);
    supervisor_nudge(&s, 30);
    assert_int_equal(supervisor_deadline(&s), 30);
    (void)supervisor_timeout(&s, 1000);
    told("sweep0:9 ");
    assert_int_equal(supervisor_swept(&s, 1001, 0, false), SUP_DONE);
}

static void test_stuck(void **state)
{
    uint64_t now;

    (void)state;
    begin(1);
    supervisor_stop(&s, 0);
    (void)supervisor_swept(&s, 1, 0, false);
    for (now = 1000; now < 1000 + SUP_STUCK_MS; now += 100) {
        assert_int_equal(supervisor_timeout(&s, now), SUP_QUIET);
        (void)supervisor_swept(&s, now, 1, false);
    }
    assert_int_equal(supervisor_timeout(&s, now), SUP_QUIET);
    (void)supervisor_swept(&s, now, 1, false);
    now += SUP_LAST_LOOK_MS;
    assert_int_equal(supervisor_timeout(&s, now), SUP_STUCK);
    assert_int_equal(s.state, SUP_IDLE);
}

/* One grace for all: what a worker leaves behind that used it up has none. */
static void test_one_grace(void **state)
{
    (void)state;
    begin(2);
    supervisor_stop(&s, 0);
    (void)supervisor_timeout(&s, 5);
    told("kill0:15 kill1:15 sweep0:15 ");
    (void)supervisor_swept(&s, 6, 1, false);
    (void)supervisor_exited(&s, 900, 0, false);
    assert_int_equal(supervisor_deadline(&s), 1000);
    (void)supervisor_timeout(&s, 1000);
    told("kill1:9 sweep0:9 ");
    (void)supervisor_swept(&s, 1000, 0, false);
    (void)supervisor_exited(&s, 1001, 1, false);
    told("sweep0:9 "); /* At once: its children have come to light. */
    (void)supervisor_swept(&s, 1002, 1, false);
    (void)supervisor_timeout(&s, supervisor_deadline(&s));
    told("sweep0:9 ");
    assert_int_equal(supervisor_swept(&s, 1050, 0, true), SUP_STOPPED);
}

/* Told from outside there is less time for what outlives KILL. */
static void test_stuck_soon(void **state)
{
    (void)state;
    begin(1);
    supervisor_stop(&s, 0);
    (void)supervisor_swept(&s, 1, 0, false);
    (void)supervisor_timeout(&s, 1000);
    (void)supervisor_swept(&s, 1000, 1, false);
    supervisor_soon(&s); /* Also while it is being stopped. */
    for (uint64_t t = 1000; t < 1000 + SUP_STUCK_SOON_MS; t += 100) {
        assert_int_equal(supervisor_timeout(&s, t), SUP_QUIET);
        (void)supervisor_swept(&s, t, 1, false);
        assert_true(supervisor_deadline(&s) <= 1000 + SUP_STUCK_SOON_MS);
    }
    (void)supervisor_timeout(&s, 1000 + SUP_STUCK_SOON_MS);
    assert_int_equal(supervisor_timeout(&s, 1000 + SUP_STUCK_SOON_MS +
                                            SUP_LAST_LOOK_MS), SUP_STUCK);
    assert_true(s.stuck);
}

/* This agent stood still after the KILL: that it worked is not read yet. */
static void test_stood_still(void **state)
{
    uint64_t now = 1000 + 3 * SUP_STUCK_MS;

    (void)state;
    begin(1);
    supervisor_stop(&s, 0);
    (void)supervisor_swept(&s, 1, 0, false);
    assert_int_equal(supervisor_timeout(&s, 1000), SUP_QUIET);
    (void)supervisor_swept(&s, 1001, 1, false);
    story[0] = '\0';
    assert_int_equal(supervisor_timeout(&s, now), SUP_QUIET);
    told("sweep0:9 ");
    assert_true(supervisor_deadline(&s) <= now + SUP_LAST_LOOK_MS);
    (void)supervisor_exited(&s, now, 0, false);
    assert_int_equal(supervisor_swept(&s, now + 1, 0, false), SUP_STOPPED);
}

/* The last one dies between the wish for a look and the look: it is one look,
 * and what it finds is true when it is told. */
static void test_last_death_before_the_look(void **state)
{
    (void)state;
    begin(1);
    supervisor_stop(&s, 0);
    (void)supervisor_timeout(&s, 5);
    told("kill0:15 sweep0:15 ");
    (void)supervisor_exited(&s, 6, 0, false);
    told(""); /* One look at a time. */
    assert_int_equal(supervisor_swept(&s, 7, 1, false), SUP_QUIET);
    assert_int_equal(supervisor_deadline(&s), 7 + SUP_POLL_MS);
    (void)supervisor_timeout(&s, 7 + SUP_POLL_MS);
    told("sweep0:0 ");
    assert_int_equal(supervisor_swept(&s, 30, 0, false), SUP_STOPPED);
}

/* A look every 20 ms at first, every 320 ms later. */
static void test_looks_slow_down(void **state)
{
    static const uint64_t steps[] = {20, 40, 80, 160, 320, 320};
    uint64_t now = 0;

    (void)state;
    begin(1);
    s.grace_ms = 5000;
    (void)supervisor_exited(&s, 0, 0, true);
    for (unsigned i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        (void)supervisor_swept(&s, now, 1, false);
        assert_int_equal(supervisor_deadline(&s), now + steps[i]);
        now += steps[i];
        (void)supervisor_timeout(&s, now);
    }
}

/* The next gang starts as if there had been none. */
static void test_again(void **state)
{
    (void)state;
    test_stuck(state);
    (void)supervisor_start(&s, s.n_workers, 0);
    story[0] = '\0';
    assert_int_equal(supervisor_deadline(&s), UINT64_MAX);
    assert_int_equal(supervisor_swept(&s, 20000, 3, true), SUP_QUIET);
    (void)supervisor_exited(&s, 20001, 0, true);
    told("sweep0:15 ");
    assert_int_equal(supervisor_swept(&s, 20002, 0, false), SUP_DONE);
}

/* Output that nobody reads holds the end for the grace, no longer. */
static void test_pending_output(void **state)
{
    (void)state;
    begin(1);
    (void)supervisor_exited(&s, 0, 0, true);
    assert_int_equal(supervisor_swept(&s, 1, 0, true), SUP_QUIET);
    assert_int_equal(supervisor_swept(&s, 999, 0, true), SUP_QUIET);
    assert_int_equal(supervisor_swept(&s, 1000, 0, true), SUP_DONE);
}

static void test_late_and_wrong_exits(void **state)
{
    (void)state;
    begin(2);
    assert_int_equal(supervisor_exited(&s, 1, 7, false), SUP_QUIET);
    (void)supervisor_exited(&s, 2, 0, true);
    assert_int_equal(supervisor_exited(&s, 3, 0, false), SUP_QUIET);
    assert_int_equal(s.n_alive, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_end_well),
        cmocka_unit_test(test_first_failure_stops_all),
        cmocka_unit_test(test_kill_after_the_grace),
        cmocka_unit_test(test_hurry),
        cmocka_unit_test(test_left_behind),
        cmocka_unit_test(test_last_death_before_the_look),
        cmocka_unit_test(test_looks_slow_down),
        cmocka_unit_test(test_one_grace),
        cmocka_unit_test(test_stuck),
        cmocka_unit_test(test_stuck_soon),
        cmocka_unit_test(test_stood_still),
        cmocka_unit_test(test_again),
        cmocka_unit_test(test_pending_output),
        cmocka_unit_test(test_late_and_wrong_exits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
