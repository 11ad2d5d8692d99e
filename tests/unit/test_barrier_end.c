/* barrier: how the job ends, and whom pod 0 stays for. */
#include "barrier_fixture.h"

static void all_done(uint64_t now)
{
    for (uint32_t i = cfg.nnodes; i-- > 0;)
        done(now, i);
    assert_int_equal(b.phase, BAR_ENDING);
    assert_int_equal(b.end.code, 0);
    story[0] = '\0';
}

/* Look again each second; when it was over, or UINT64_MAX after `until`. */
static uint64_t over_at(uint64_t from, uint64_t until)
{
    for (uint64_t now = from; now <= until; now += 1000) {
        barrier_timeout(&b, now);
        if (b.phase == BAR_OVER)
            return now;
    }
    return UINT64_MAX;
}

/* As above, while pod `conn` says that it is alive. */
static uint64_t over_at_with(uint32_t conn, uint64_t from, uint64_t until)
{
    for (uint64_t now = from; now <= until; now += 1000) {
        say(now, conn, (struct wire_msg){.kind = WIRE_PING});
        if (over_at(now, now) == now)
            return now;
    }
    return UINT64_MAX;
}

static void test_over(void **state)
{
    (void)state;
    run_all(2);
    all_done(1000);
    bye(1001, 1);
    barrier_closed(&b, 1002, 1);
    assert_int_equal(b.phase, BAR_ENDING);
    bye(1003, BARRIER_LOCAL);
    assert_int_equal(b.phase, BAR_OVER);
    assert_int_equal(barrier_deadline(&b), UINT64_MAX);
    barrier_open(&b, 1100, 3, "10.0.0.3:1");
    say(1100, 3, hello(1, 7));
    told(""); /* Nobody is listened to any more. */
}

/* It said BYE, but its connection stays open. */
static void test_no_fin(void **state)
{
    (void)state;
    run_all(2);
    all_done(1000);
    bye(1010, 1);
    bye(1010, BARRIER_LOCAL);
    assert_in_range(over_at(1010, 9000), 2000, 3100);
}

/* One that stops long: its grace, and then some time to say so. */
static void test_slow_pod(void **state)
{
    (void)state;
    run_all(2);
    say(1000, 1, failed(126, 0));
    barrier_timeout(&b, 1000 + BARRIER_SETTLE_MS);
    told("0:END 1:END ");
    bye(1100, BARRIER_LOCAL);
    assert_in_range(over_at_with(1, 1100, 60000),
                    1060 + cfg.grace_ms + BARRIER_HEAR_MS,
                    2100 + cfg.grace_ms + BARRIER_HEAR_MS);
}

/* A pod that was cut off when the end was told has ten seconds. */
static void test_cut_off_at_the_end(void **state)
{
    struct wire_msg m;

    (void)state;
    run_all(3);
    done(900, 1);
    barrier_closed(&b, 950, 1);
    done(1000, 2);
    done(1000, BARRIER_LOCAL);
    told("0:END 2:END ");
    assert_non_null(strstr(logged, "the job is over; node rank 1 (w1, "
                                   "10.0.0.1:1) is cut off and has at most 10 "
                                   "s"));
    bye(1010, BARRIER_LOCAL);
    bye(1010, 2);
    barrier_closed(&b, 1020, 2);
    barrier_timeout(&b, 950 + BARRIER_RESUME_MS);
    assert_int_equal(b.phase, BAR_ENDING);
    m = hello(1, 101);
    m.running = 0;
    come(5000, 7, m);
    told("7:WELCOME 7:END ");
    assert_int_equal(last.code, 0);
    bye(5010, 7);
    barrier_closed(&b, 5020, 7);
    assert_int_equal(b.phase, BAR_OVER);
}

static void test_never_back_at_the_end(void **state)
{
    (void)state;
    run_all(2);
    done(900, 1);
    barrier_closed(&b, 950, 1);
    done(1000, BARRIER_LOCAL);
    assert_int_equal(b.end.code, 0); /* It was done: no failure. */
    bye(1010, BARRIER_LOCAL);
    assert_in_range(over_at(1010, 60000), 950 + BARRIER_END_MS,
                    2010 + BARRIER_END_MS);
    told("0:END ");
}

/* Bad data here: the pods that are still to come must hear it, too. */
static void test_fault_before_the_start(void **state)
{
    struct wire_msg m = {.kind = WIRE_FAILED};

    (void)state;
    begin(3);
    join(10, BARRIER_LOCAL, 0);
    m.failure.kind = FAILURE_AGENT;
    m.failure.code = 65;
    say(100, BARRIER_LOCAL, m);
    bye(101, BARRIER_LOCAL);
    told("0:WELCOME 0:END ");
    assert_int_equal(over_at(200, 20000), UINT64_MAX);
    join(20000, 1, 1);
    told("1:WELCOME 1:END ");
    assert_int_equal(last.code, 65);
    bye(20010, 1);
    barrier_closed(&b, 20020, 1);
    assert_int_equal(b.phase, BAR_ENDING); /* Pod 2. */
    assert_in_range(over_at(20100, 60000), 100 + BARRIER_HEAR_MS,
                    1100 + BARRIER_HEAR_MS);
}

static void test_all_heard_the_fault(void **state)
{
    struct wire_msg m = {.kind = WIRE_FAILED};

    (void)state;
    begin(2);
    join(10, BARRIER_LOCAL, 0);
    m.failure.kind = FAILURE_AGENT;
    m.failure.code = 66;
    say(100, BARRIER_LOCAL, m);
    bye(101, BARRIER_LOCAL);
    join(5000, 1, 1);
    bye(5001, 1);
    barrier_closed(&b, 5002, 1);
    assert_int_equal(b.phase, BAR_OVER);
}

/* Who did not come within the time is not waited for once more. */
static void test_nobody_came(void **state)
{
    (void)state;
    begin(2);
    join(10, BARRIER_LOCAL, 0);
    arrive(10, BARRIER_LOCAL, 0);
    barrier_timeout(&b, 1 + cfg.barrier_timeout_ms);
    assert_int_equal(b.phase, BAR_ENDING);
    assert_int_equal(last.code, 200);
    assert_string_equal(last.failure.text, "not all pods arrived in time "
                                           "(--barrier-timeout 10 min): node "
                                           "rank 1 not seen yet");
    bye(700000, BARRIER_LOCAL);
    assert_int_equal(b.phase, BAR_OVER);
}

/* A pod that was told to stop is on its way already. */
static void test_left_at_the_end(void **state)
{
    (void)state;
    run_all(3);
    all_done(1000);
    say(1001, 1, left());
    bye(1002, 2);
    barrier_closed(&b, 1003, 2);
    assert_int_equal(b.phase, BAR_ENDING);
    bye(1004, BARRIER_LOCAL);
    assert_int_equal(b.phase, BAR_OVER);
    assert_int_equal(b.end.code, 0);
}

/* The first end counts. */
static void test_failure_after_the_end(void **state)
{
    struct wire_msg m = {.kind = WIRE_FAILED};

    (void)state;
    run_all(2);
    all_done(1000);
    m.failure.kind = FAILURE_AGENT;
    m.failure.code = 202;
    say(1001, 1, m);
    say(1002, 1, failed(3, 0));
    barrier_timeout(&b, 1002 + BARRIER_SETTLE_MS);
    told("");
    assert_int_equal(b.end.code, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_over),
        cmocka_unit_test(test_no_fin),
        cmocka_unit_test(test_slow_pod),
        cmocka_unit_test(test_cut_off_at_the_end),
        cmocka_unit_test(test_never_back_at_the_end),
        cmocka_unit_test(test_fault_before_the_start),
        cmocka_unit_test(test_all_heard_the_fault),
        cmocka_unit_test(test_nobody_came),
        cmocka_unit_test(test_left_at_the_end),
        cmocka_unit_test(test_failure_after_the_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
