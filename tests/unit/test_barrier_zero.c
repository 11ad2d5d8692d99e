/* barrier: a new pod 0, and what the pods tell it of the last one. */
#include "barrier_fixture.h"

#define LAST 77u /* The incarnation of the last pod 0. */

static struct wire_msg from(uint32_t rank, enum wire_end end)
{
    struct wire_msg m = hello(rank, 100 + rank);

    m.last_zero = LAST;
    m.last_end = (uint8_t)end;
    return m;
}

static uint64_t lease(void)
{
    return BARRIER_SILENCE_MS + cfg.grace_ms + BARRIER_LATE_MS;
}

static void arrive_with(uint64_t now, struct wire_msg m)
{
    join(10, BARRIER_LOCAL, 0);
    arrive(10, BARRIER_LOCAL, 0);
    come(now, 1, m);
    arrive(now, 1, 0);
}

/* Its agent is gone, and its workers with it. */
static void test_closed(void **state)
{
    (void)state;
    begin(2);
    arrive_with(1000, from(1, WIRE_END_CLOSED));
    assert_int_equal(b.phase, BAR_RUN);
}

/* It may live behind a partition: its workers have its lease and grace. */
static void test_silent(void **state)
{
    uint64_t until = 1000 + BARRIER_SILENCE_MS + BARRIER_LATE_MS;

    (void)state;
    begin(2);
    arrive_with(1000, from(1, WIRE_END_SILENT));
    until += cfg.grace_ms;
    assert_int_equal(b.phase, BAR_GATHER);
    assert_int_equal(b.not_before_ms, until);
    say(until - 1, 1, (struct wire_msg){.kind = WIRE_PING});
    barrier_timeout(&b, until - 1);
    assert_int_equal(b.phase, BAR_GATHER);
    assert_true(barrier_deadline(&b) <= until);
    barrier_timeout(&b, until);
    assert_int_equal(b.phase, BAR_RUN);
}

/* This very pod 0, which it could not hear for a while. */
static void test_the_same(void **state)
{
    struct wire_msg m;

    (void)state;
    begin(2);
    m = from(1, WIRE_END_SILENT);
    m.last_zero = cfg.incarnation;
    arrive_with(1000, m);
    assert_int_equal(b.phase, BAR_RUN);
}

/* Who is missing may have workers from the last pod 0. */
static void test_missing(void **state)
{
    struct barrier_config c = usual(3);

    (void)state;
    c.min_nodes = 2;
    c.last_call_ms = 1000;
    begin_with(&c);
    arrive_with(1000, from(1, WIRE_END_CLOSED));
    say(9000, 1, (struct wire_msg){.kind = WIRE_PING});
    barrier_timeout(&b, lease() - 7000);
    assert_int_equal(last.kind, WIRE_WAITING);
    assert_string_equal(last.text,
                        "node rank 2 not seen yet; 2 of 3 pods are there; no "
                        "round starts within 7 s: a missing pod may still run "
                        "workers under the last node rank 0");
    say(1 + lease() - 1, 1, (struct wire_msg){.kind = WIRE_PING});
    barrier_timeout(&b, 1 + lease() - 1);
    assert_int_equal(b.phase, BAR_GATHER);
    barrier_timeout(&b, 1 + lease());
    assert_int_equal(b.phase, BAR_RUN);

    begin_with(&c); /* Nobody has had another pod 0: a new job. */
    arrive_with(1000, hello(1, 101));
    barrier_timeout(&b, 2000);
    assert_int_equal(b.phase, BAR_RUN);

    /* A pod that knows one comes when the new job runs. */
    come(3000, 2, from(2, WIRE_END_CLOSED));
    arrive(3100, 2, 0);
    assert_int_equal(b.phase, BAR_GATHER);
    arrive(3200, BARRIER_LOCAL, 1);
    barrier_closed(&b, 3300, 1);
    barrier_timeout(&b, 3300 + BARRIER_RESUME_MS);
    say(1 + lease() - 1, 2, (struct wire_msg){.kind = WIRE_PING});
    barrier_timeout(&b, 1 + lease() - 1);
    assert_int_equal(b.phase, BAR_GATHER);
    barrier_timeout(&b, 1 + lease());
    assert_int_equal(b.phase, BAR_RUN);

    begin_with(&c); /* Nobody is missing. */
    arrive_with(1000, from(1, WIRE_END_CLOSED));
    come(1500, 2, from(2, WIRE_END_CLOSED));
    arrive(1500, 2, 0);
    assert_int_equal(b.phase, BAR_RUN);
}

/* By arrival: a pod that is new here got the rank of one that comes later. */
static void test_claim(void **state)
{
    struct wire_msg m = {0};

    (void)state;
    begin(4);
    join(10, BARRIER_LOCAL, 0);
    m = hello(0, 900);
    m.node_rank = WIRE_ANY_RANK;
    m.any_rank = 1;
    come(20, 5, m);
    assert_int_equal(last.node_rank, 1);
    arrive(21, 5, 0);
    story[0] = '\0';
    m = from(1, WIRE_END_CLOSED);
    m.any_rank = 1;
    come(30, 6, m);
    told("x5 6:WELCOME ");
    assert_int_equal(last.node_rank, 1);
    assert_int_equal(b.counts[PEER_ARRIVED], 0);
    m = hello(1, 900); /* As pod 0 told it. */
    m.any_rank = 1;
    m.last_zero = cfg.incarnation;
    come(40, 7, m);
    assert_int_equal(last.node_rank, 2);
    m = from(1, WIRE_END_CLOSED); /* Two cannot both have had it. */
    m.incarnation = 901;
    m.any_rank = 1;
    come(50, 8, m);
    assert_int_equal(last.node_rank, 3);
    assert_int_equal(peers[1].hello.incarnation, 101);
    story[0] = '\0';
    m = from(3, WIRE_END_CLOSED); /* So that one is new to rank 3. */
    m.any_rank = 1;
    come(60, 9, m);
    told("x8 9:WELCOME ");
    assert_int_equal(last.node_rank, 3);
}

/* A lost pod is found by pod 0 alone, whatever a frame says. */
static void test_bad_failure(void **state)
{
    struct wire_msg m = {.kind = WIRE_FAILED};

    (void)state;
    run_all(3);
    m.failure.kind = FAILURE_LOST;
    m.failure.node_rank = UINT32_MAX;
    say(1000, 1, m);
    barrier_timeout(&b, 1000 + BARRIER_SETTLE_MS);
    assert_int_equal(b.phase, BAR_RUN);
    m.failure.kind = FAILURE_WORKER;
    m.failure.code = 3;
    say(2000, 1, m);
    barrier_timeout(&b, 2000 + BARRIER_SETTLE_MS);
    assert_int_equal(last.kind, WIRE_STOP);
    assert_int_equal(last.failure.node_rank, 1);
}

/* Pod 0 stood still, or its clock was set forward: elsewhere no time may have
 * passed, and what was said meanwhile is not read yet. */
static void test_stood_still(void **state)
{
    uint64_t until, late = 10000;

    (void)state;
    begin(2);
    arrive_with(1000, from(1, WIRE_END_SILENT));
    until = b.not_before_ms;
    (barrier_timeout)(&b, b.wake_ms);
    assert_int_equal(b.not_before_ms, until); /* In time. */
    assert_true(b.wake_ms <= 3000); /* Or that would not be noticed. */
    say(b.wake_ms, 1, (struct wire_msg){.kind = WIRE_PING});
    (barrier_timeout)(&b, b.wake_ms + late);
    assert_int_equal(b.not_before_ms, until + late);
    assert_int_equal(b.phase, BAR_GATHER);

    run_all(2); /* A pod that may come back within 2 s. */
    barrier_closed(&b, 1000, 1);
    (barrier_open)(&b, b.wake_ms + late, 9, "10.0.0.9:1");
    say(b.wake_ms, 9, from(1, WIRE_END_NONE));
    assert_int_equal(b.phase, BAR_RUN);
    assert_int_equal(peers[1].conn, 9);

    run_all(2); /* A pod whose rank is claimed may answer yet. */
    come(1000, 5, hello(1, 999));
    (barrier_timeout)(&b, b.wake_ms + late);
    assert_int_equal(peers[1].conn, 1);
    assert_int_equal(b.phase, BAR_RUN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_closed),
        cmocka_unit_test(test_silent),
        cmocka_unit_test(test_the_same),
        cmocka_unit_test(test_missing),
        cmocka_unit_test(test_claim),
        cmocka_unit_test(test_bad_failure),
        cmocka_unit_test(test_stood_still),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
