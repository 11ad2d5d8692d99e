/* barrier: ranks by arrival, and jobs that start with fewer pods (MIN:MAX). */
#include "barrier_fixture.h"

#define LAST_CALL_MS 30000u

static void begin_elastic(uint32_t min, uint32_t max)
{
    struct barrier_config c = usual(max);

    c.min_nodes = min;
    c.last_call_ms = LAST_CALL_MS;
    begin_with(&c);
}

/* A pod that takes any rank. */
static struct wire_msg any(uint64_t incarnation)
{
    struct wire_msg m = hello(0, incarnation);

    m.node_rank = WIRE_ANY_RANK;
    m.any_rank = 1;
    return m;
}

static void alive(uint64_t now, uint32_t conn)
{
    say(now, conn, (struct wire_msg){.kind = WIRE_PING});
}

static void test_ranks_by_arrival(void **state)
{
    struct wire_msg m;

    (void)state;
    begin(4);
    join(10, BARRIER_LOCAL, 0);
    come(20, 9, any(900));
    assert_int_equal(last.node_rank, 1);
    come(30, 8, any(800));
    assert_int_equal(last.node_rank, 2);
    barrier_closed(&b, 40, 9);
    come(50, 10, any(900)); /* The same agent: its rank again. */
    assert_int_equal(last.node_rank, 1);
    m = any(900); /* And by its rank, which it knows now. */
    m.node_rank = 1;
    come(60, 11, m);
    assert_int_equal(last.kind, WIRE_WELCOME);
    assert_int_equal(last.node_rank, 1);
    come(70, 12, any(700));
    assert_int_equal(last.node_rank, 3);
    come(80, 13, any(600));
    refused(78, "all 4 node ranks are held by live pods");
}

/* A new pod takes the place of a lost one, or of one that may be lost. */
static void test_rank_of_a_lost_pod(void **state)
{
    (void)state;
    run_all(4);
    barrier_closed(&b, 1000, 3);
    barrier_timeout(&b, 1000 + BARRIER_RESUME_MS);
    barrier_closed(&b, 3100, 1);
    come(3200, 9, any(900));
    assert_int_equal(last.node_rank, 3); /* Pod 1 may come back yet. */
    story[0] = '\0';
    come(3300, 10, any(901));
    told(""); /* It waits whether it does. */
    come(3400, 11, any(902));
    told("11:REFUSE x11 ");
    barrier_timeout(&b, 3100 + BARRIER_RESUME_MS);
    told("10:WELCOME 10:WAITING 2:WAITING 9:WAITING "); /* And the news. */
    assert_int_equal(peers[1].conn, 10);
}

/* A rank that a new pod 0 has not seen yet stays the pod's own. */
static void test_rank_after_a_new_pod_0(void **state)
{
    struct wire_msg m = any(900);

    (void)state;
    begin(4);
    join(10, BARRIER_LOCAL, 0);
    m = any(900);
    m.node_rank = 3;
    come(20, 9, m);
    assert_int_equal(last.node_rank, 3);
    m = any(901); /* It had that too, from whomever. */
    m.node_rank = 3;
    come(30, 10, m);
    assert_int_equal(last.node_rank, 1);
}

static void test_rank_out_of_bounds(void **state)
{
    struct wire_msg m;

    (void)state;
    begin(2);
    join(10, BARRIER_LOCAL, 0);
    m = hello(2, 900);
    come(20, 1, m);
    refused(78, "node rank 2 is not below --nnodes 2");
    assert_int_equal(b.phase, BAR_GATHER);
}

static void test_last_call(void **state)
{
    (void)state;
    begin_elastic(2, 4);
    join(10, BARRIER_LOCAL, 0);
    arrive(10, BARRIER_LOCAL, 0);
    join(20, 2, 2);
    arrive(100, 2, 0);
    told("0:WELCOME 2:WELCOME ");
    assert_true(barrier_deadline(&b) <= 100 + LAST_CALL_MS);
    alive(9000, 2);
    barrier_timeout(&b, 10100);
    assert_string_equal(last.text, "node ranks 1,3 not seen yet; 2 of 4 pods "
                                   "are there; no round starts within 20 s: "
                                   "the last call for the others");
    alive(20000, 2);
    alive(29000, 2);
    story[0] = '\0';
    barrier_timeout(&b, 99 + LAST_CALL_MS);
    assert_int_equal(b.phase, BAR_GATHER);
    barrier_timeout(&b, 100 + LAST_CALL_MS);
    assert_non_null(strstr(story, "2:START 0:START "));
    assert_int_equal(last.world_size, 4);
    assert_int_equal(last.group_size, 2);
    done(40000, 2);
    done(40000, BARRIER_LOCAL);
    assert_int_equal(b.end.code, 0); /* Those that ran are all. */
}

/* No call is needed where nobody is missing. */
static void test_all_at_once(void **state)
{
    (void)state;
    begin_elastic(2, 3);
    for (uint32_t i = 0; i < 3; i++) {
        join(10, i, i);
        arrive(10, i, 0);
    }
    told("0:WELCOME 1:WELCOME 2:WELCOME 2:START 1:START 0:START ");
    assert_int_equal(last.world_size, 6);
}

/* Pod 0 gives the workers their address: not without it. */
static void test_not_without_pod_0(void **state)
{
    (void)state;
    begin_elastic(2, 4);
    join(10, BARRIER_LOCAL, 0);
    for (uint32_t i = 1; i <= 2; i++) {
        join(10, i, i);
        arrive(10, i, 0);
    }
    alive(40000, 1);
    alive(40000, 2);
    barrier_timeout(&b, 40001);
    assert_int_equal(b.phase, BAR_GATHER);
    arrive(41000, BARRIER_LOCAL, 0);
    alive(41000 + LAST_CALL_MS, 1);
    alive(41000 + LAST_CALL_MS, 2);
    barrier_timeout(&b, 41000 + LAST_CALL_MS);
    assert_int_equal(b.phase, BAR_RUN);
}

/* One that comes later: the round starts anew with it, for free. */
static void test_grows(void **state)
{
    (void)state;
    begin_elastic(2, 3);
    for (uint32_t i = 0; i < 2; i++) {
        join(10, i, i);
        arrive(10, i, 0);
    }
    alive(LAST_CALL_MS, 1);
    barrier_timeout(&b, 10 + LAST_CALL_MS);
    assert_int_equal(b.phase, BAR_RUN);
    story[0] = '\0';
    join(50000, 2, 2);
    told("2:WELCOME ");
    arrive(50100, 2, 1);
    told("0:STOP 1:STOP ");
    assert_string_equal(last.failure.text, "node rank 2 (w2, 10.0.0.2:1) "
                                           "joins; stopping all workers");
    assert_int_equal(b.n_restarts, 0);
    arrive(50200, 1, 1);
    arrive(50200, BARRIER_LOCAL, 1);
    told("2:START 1:START 0:START ");
    assert_int_equal(last.world_size, 6);
}

/* Nobody is waited for while enough are there; with fewer, the lost one is. */
static void test_shrinks(void **state)
{
    uint64_t start = 3100 + LAST_CALL_MS;

    (void)state;
    begin_elastic(2, 3);
    all_arrive();
    barrier_closed(&b, 1000, 2);
    barrier_timeout(&b, 1000 + BARRIER_RESUME_MS);
    told("0:STOP 1:STOP ");
    arrive(3100, 1, 1);
    arrive(3100, BARRIER_LOCAL, 1);
    alive(start, 1);
    barrier_timeout(&b, start);
    assert_int_equal(b.phase, BAR_RUN);
    assert_int_equal(b.n_members, 2);
    barrier_closed(&b, start + 1000, 1);
    barrier_timeout(&b, start + 1000 + BARRIER_RESUME_MS);
    arrive(start + 3100, BARRIER_LOCAL, 2);
    barrier_timeout(&b, start + 3000 + cfg.rejoin_timeout_ms);
    assert_int_equal(b.phase, BAR_ENDING);
    assert_int_equal(b.end.code, 201);
}

/* One that may come back within two seconds is not left behind. */
static void test_waits_for_a_short_cut(void **state)
{
    uint64_t call = 10 + LAST_CALL_MS;

    (void)state;
    begin_elastic(2, 3);
    for (uint32_t i = 0; i < 2; i++) {
        join(10, i, i);
        arrive(10, i, 0);
    }
    join(20, 2, 2);
    alive(call - 1000, 1);
    barrier_closed(&b, call - 1000, 2);
    barrier_timeout(&b, call);
    assert_int_equal(b.phase, BAR_GATHER);
    come(call + 100, 7, hello(2, 102));
    arrive(call + 200, 7, 0);
    assert_int_equal(b.phase, BAR_RUN);
    assert_int_equal(b.n_members, 3);
}

/* With one less than MIN the last call is void. */
static void test_last_call_begins_anew(void **state)
{
    (void)state;
    begin_elastic(2, 4);
    join(10, BARRIER_LOCAL, 0);
    arrive(10, BARRIER_LOCAL, 0);
    join(20, 1, 1);
    arrive(100, 1, 0);
    say(1000, 1, left());
    say(1001, 1, (struct wire_msg){.kind = WIRE_BYE});
    barrier_closed(&b, 1002, 1);
    join(20000, 2, 2);
    arrive(20000, 2, 0);
    alive(100 + LAST_CALL_MS, 2);
    barrier_timeout(&b, 100 + LAST_CALL_MS);
    assert_int_equal(b.phase, BAR_GATHER);
    alive(20000 + LAST_CALL_MS, 2);
    barrier_timeout(&b, 20000 + LAST_CALL_MS);
    assert_int_equal(b.phase, BAR_RUN);
}

/* Three pods of MIN 2; pod 2 is gone, the others run on without it. */
static uint64_t go_on_without_2(void)
{
    uint64_t start = 3100 + LAST_CALL_MS;

    begin_elastic(2, 3);
    all_arrive();
    barrier_closed(&b, 1000, 2);
    barrier_timeout(&b, 1000 + BARRIER_RESUME_MS);
    arrive(3100, 1, 1);
    arrive(3100, BARRIER_LOCAL, 1);
    alive(start, 1);
    barrier_timeout(&b, start);
    assert_int_equal(b.phase, BAR_RUN);
    return start;
}

/* A pod that the last round did not need has not been waited for in vain. */
static void test_lost_long_ago(void **state)
{
    uint64_t t = go_on_without_2() + 2 * cfg.rejoin_timeout_ms;

    (void)state;
    alive(t, 1);
    say(t, 1, failed(3, 0));
    barrier_timeout(&b, t + BARRIER_SETTLE_MS);
    assert_int_equal(b.phase, BAR_GATHER);
    barrier_timeout(&b, t + 100);
    assert_int_equal(b.phase, BAR_GATHER);
    assert_true(barrier_deadline(&b) > t + 100);
    /* Nor is its time what pod 0 wakes up for again and again. */
    arrive(t + 200, 1, 2);
    arrive(t + 200, BARRIER_LOCAL, 2);
    b.not_before_ms = t + 2 * cfg.rejoin_timeout_ms;
    t += cfg.rejoin_timeout_ms + BARRIER_SETTLE_MS;
    for (int i = 0; i < 3; i++) {
        alive(t, 1);
        barrier_timeout(&b, t);
        assert_true(barrier_deadline(&b) > t);
        t = barrier_deadline(&b);
    }
    assert_int_equal(b.phase, BAR_GATHER);
}

/* Pods that are still stopping their workers are on their way. */
static void test_the_others_are_coming(void **state)
{
    uint64_t t = go_on_without_2() + 1000;

    (void)state;
    say(t, 1, failed(3, 0));
    barrier_timeout(&b, t + BARRIER_SETTLE_MS);
    t += BARRIER_SETTLE_MS + cfg.rejoin_timeout_ms;
    alive(t, 1);
    barrier_timeout(&b, t);
    assert_int_equal(b.phase, BAR_GATHER);
    assert_true(barrier_deadline(&b) > t);
}

/* It says that it stops: its workers may run until its connection ends. */
static void test_not_while_one_is_stopping(void **state)
{
    uint64_t call = 1100 + LAST_CALL_MS;

    (void)state;
    begin_elastic(2, 3);
    all_arrive();
    say(1000, 2, left());
    arrive(1100, 1, 1);
    arrive(1100, BARRIER_LOCAL, 1);
    for (uint64_t t = 5000; t <= call; t += 5000) {
        alive(t, 1);
        alive(t, 2);
        barrier_timeout(&b, t);
    }
    barrier_timeout(&b, call);
    assert_int_equal(b.phase, BAR_GATHER);
    say(call + 10, 2, (struct wire_msg){.kind = WIRE_BYE});
    barrier_closed(&b, call + 20, 2);
    assert_true(barrier_deadline(&b) <= call + 20);
    barrier_timeout(&b, call + 20);
    alive(call + 20 + LAST_CALL_MS, 1);
    barrier_timeout(&b, call + 20 + LAST_CALL_MS);
    assert_int_equal(b.phase, BAR_RUN);
}

/* A pod from before knows of a later round than the group that runs. */
static void test_rounds_go_up(void **state)
{
    struct wire_msg m;

    (void)state;
    begin_elastic(2, 3);
    for (uint32_t i = 0; i < 2; i++) {
        join(10, i, i);
        arrive(10, i, 0);
    }
    alive(LAST_CALL_MS, 1);
    barrier_timeout(&b, 10 + LAST_CALL_MS);
    assert_int_equal(b.round, 0);
    m = hello(2, 900);
    m.round = 7;
    m.n_restarts = 1;
    come(50000, 2, m);
    arrive(50100, 2, 7);
    arrive(50200, 1, 1);
    arrive(50200, BARRIER_LOCAL, 1);
    assert_int_equal(b.phase, BAR_RUN);
    assert_int_equal(b.round, 7);
    assert_int_equal(last.round, 7);
    assert_int_equal(last.n_restarts, 1);
}

/* All ranks are held, one by a pod that does not answer: it may be dead. */
static void test_rank_of_a_mute_pod(void **state)
{
    uint64_t t = 12 + BARRIER_PING_MS + BARRIER_PROBE_MS;

    (void)state;
    run_all(3);
    alive(t, 1);
    come(t, 9, any(900));
    told("2:PING ");
    alive(t + 500, 2); /* It lives, and all are held; but perhaps not soon. */
    barrier_timeout(&b, t + BARRIER_PROBE_MS);
    told("x9 ");
    come(t + BARRIER_PROBE_MS, 9, any(900));
    refused(78, "all 3 node ranks are held by live pods");

    run_all(3);
    alive(t, 1);
    come(t, 9, any(900));
    barrier_timeout(&b, t + BARRIER_PROBE_MS);
    assert_int_equal(peers[2].conn, 9);
    assert_int_equal(last.node_rank, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranks_by_arrival),
        cmocka_unit_test(test_rank_of_a_lost_pod),
        cmocka_unit_test(test_rank_after_a_new_pod_0),
        cmocka_unit_test(test_rank_out_of_bounds),
        cmocka_unit_test(test_last_call),
        cmocka_unit_test(test_all_at_once),
        cmocka_unit_test(test_not_without_pod_0),
        cmocka_unit_test(test_grows),
        cmocka_unit_test(test_shrinks),
        cmocka_unit_test(test_waits_for_a_short_cut),
        cmocka_unit_test(test_last_call_begins_anew),
        cmocka_unit_test(test_lost_long_ago),
        cmocka_unit_test(test_the_others_are_coming),
        cmocka_unit_test(test_not_while_one_is_stopping),
        cmocka_unit_test(test_rounds_go_up),
        cmocka_unit_test(test_rank_of_a_mute_pod),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
