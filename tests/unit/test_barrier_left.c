/* Pods that were told to stop, while they are still stopping. */
#include "barrier_fixture.h"

/* Pod 1 of three is told to stop; its workers take their time. */
static void pod_1_stops(void)
{
    run_all(3);
    say(1000, 1, left());
    assert_int_equal(peers[1].state, PEER_LEFT);
    assert_int_equal(b.phase, BAR_GATHER);
    arrive(1100, 0, 1);
    arrive(1100, 2, 1);
    story[0] = '\0';
}

static void test_says_that_nothing_runs(void **state)
{
    (void)state;
    pod_1_stops();
    bye(2000, 1);
    barrier_closed(&b, 2001, 1);
    come(2002, 5, hello(1, 900)); /* At once: nothing can be running. */
    told("5:WELCOME ");
    arrive(2004, 5, 1);
    assert_int_equal(b.phase, BAR_RUN);
}

/* Its connection breaks while its workers stop: it has 2 s to come back, and
 * the new pod waits for them. */
static void test_cut_off_while_stopping(void **state)
{
    struct wire_msg again = hello(1, 101);

    (void)state;
    pod_1_stops();
    barrier_closed(&b, 1500, 1);
    come(1600, 5, hello(1, 900));
    told("5:WAITING "); /* The old one may be alive. */
    again.running = 0;
    come(2000, 6, again);
    told("6:WELCOME ");
    assert_int_equal(peers[1].state, PEER_LEFT);
    assert_int_equal(b.conns[5].challenges, 1);
    say(2001, 6, left()); /* It says so once more. */
    assert_int_equal(peers[1].lost_ms, 1000);
}

static void test_dies_while_stopping(void **state)
{
    (void)state;
    pod_1_stops();
    barrier_closed(&b, 1500, 1);
    come(1600, 5, hello(1, 900));
    barrier_timeout(&b, 1500 + BARRIER_RESUME_MS - 1);
    assert_int_equal(peers[1].conn, BARRIER_NO_CONN);
    barrier_timeout(&b, 1500 + BARRIER_RESUME_MS);
    assert_int_equal(peers[1].conn, 5);
    arrive(3600, 5, 1);
    assert_int_equal(b.phase, BAR_RUN);
}

/* Kubernetes may start the new pod while the old one is still stopping: that
 * is no rank claimed twice. */
static void test_new_pod_waits_for_the_old_one(void **state)
{
    (void)state;
    pod_1_stops();
    come(1600, 5, hello(1, 900));
    told("5:WAITING 1:PING ");
    say(1700, 1, (struct wire_msg){.kind = WIRE_PING});
    barrier_timeout(&b, 1600 + BARRIER_PROBE_MS);
    assert_int_equal(b.conns[5].challenges, 1);
    say(9000, 1, (struct wire_msg){.kind = WIRE_PING});
    barrier_timeout(&b, 9000);
    assert_int_equal(b.conns[5].challenges, 1);
    story[0] = '\0';
    bye(9500, 1);
    barrier_closed(&b, 9501, 1);
    told("5:WELCOME ");
}

/* Behind a cut network it stops, too: by its grace at the latest. */
static void test_silent_while_stopping(void **state)
{
    uint64_t t = 1000 + BARRIER_SILENCE_MS;

    (void)state;
    pod_1_stops();
    say(t - 1, 2, (struct wire_msg){.kind = WIRE_PING});
    come(t - 1, 5, hello(1, 900));
    barrier_timeout(&b, t);
    barrier_timeout(&b, t + 1);
    assert_int_equal(peers[1].conn, 5);
    arrive(t + 2, 5, 1);
    assert_int_equal(b.phase, BAR_GATHER);
    barrier_timeout(&b, t + cfg.grace_ms);
    assert_int_equal(b.phase, BAR_RUN);
}

static void test_any_rank_waits_for_it(void **state)
{
    struct wire_msg m = hello(0, 900);

    (void)state;
    pod_1_stops();
    m.any_rank = true;
    m.node_rank = WIRE_ANY_RANK;
    come(1600, 5, m);
    told("5:WAITING 1:PING ");
    assert_int_equal(b.conns[5].challenges, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_says_that_nothing_runs),
        cmocka_unit_test(test_cut_off_while_stopping),
        cmocka_unit_test(test_dies_while_stopping),
        cmocka_unit_test(test_new_pod_waits_for_the_old_one),
        cmocka_unit_test(test_silent_while_stopping),
        cmocka_unit_test(test_any_rank_waits_for_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
