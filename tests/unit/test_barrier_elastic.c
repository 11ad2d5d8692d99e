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
                                           "joins");
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
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
