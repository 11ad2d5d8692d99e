/* barrier: events that cross each other: a newcomer that goes away while it
 * is being checked, a pod that is lost while a failure settles. */
#include "barrier_fixture.h"

/* Its place among the connections may then be another pod's. */
static void test_newcomer_goes_away(void **state)
{
    (void)state;
    begin(3);
    join(10, BARRIER_LOCAL, 0);
    join(10, 1, 1);
    come(100, 5, hello(1, 999));
    told("0:WELCOME 1:WELCOME 1:PING ");
    barrier_closed(&b, 200, 5);
    join(300, 5, 2); /* Pod 2, on the connection of that number. */
    told("5:WELCOME ");
    assert_int_equal(last.node_rank, 2);
    say(400, 1, (struct wire_msg){.kind = WIRE_PING});
    barrier_timeout(&b, 100 + BARRIER_PROBE_MS);
    told("1:WAITING 5:WAITING "); /* Not refused for what another did. */

    come(5000, 6, hello(1, 999));
    barrier_closed(&b, 5010, 6);
    barrier_open(&b, 5020, 6, "10.0.0.6:2");
    barrier_timeout(&b, 5000 + BARRIER_PROBE_MS); /* Pod 1 says nothing. */
    told("1:PING ");
    assert_int_equal(peers[1].conn, 1);
    assert_int_equal(peers[1].hello.incarnation, 101);
}

/* Both went away: the pod must not be waited for without end. */
static void test_newcomer_and_holder_go_away(void **state)
{
    (void)state;
    run_all(2);
    come(100, 5, hello(1, 999));
    barrier_closed(&b, 200, 5);
    barrier_closed(&b, 300, 1);
    assert_true(barrier_deadline(&b) <= 300 + BARRIER_RESUME_MS);
    barrier_timeout(&b, 300 + BARRIER_RESUME_MS);
    told("1:PING 0:STOP ");
    assert_int_equal(peers[1].state, PEER_LOST);

    run_all(2); /* Dropped for its second HELLO, not closed yet. */
    come(100, 5, hello(1, 999));
    say(110, 5, hello(1, 999));
    told("1:PING x5 ");
    barrier_closed(&b, 300, 1);
    barrier_closed(&b, 301, 5);
    barrier_timeout(&b, 300 + BARRIER_RESUME_MS);
    told("0:STOP ");
}

/* The newcomer takes the place where the old connection closes and the old
 * agent, whose workers may run, is not back in time. */
static void test_holder_goes_away(void **state)
{
    (void)state;
    run_all(2);
    come(100, 5, hello(1, 999));
    barrier_closed(&b, 300, 1);
    told("1:PING ");
    barrier_timeout(&b, 300 + BARRIER_RESUME_MS);
    told("0:STOP 5:WELCOME ");
    assert_int_equal(peers[1].conn, 5);
    assert_int_equal(b.n_restarts, 0);
    arrive(2400, 5, 1);
    arrive(2400, BARRIER_LOCAL, 1);
    told("5:START 0:START ");
}

/* The time to come back ends while another pod's failure settles. */
static void test_lost_while_a_failure_settles(void **state)
{
    (void)state;
    run_all(3);
    barrier_closed(&b, 1000, 2);
    say(2980, 1, failed(1, 0)); /* What that did to its peer. */
    barrier_timeout(&b, 1000 + BARRIER_RESUME_MS);
    told("0:STOP 1:STOP ");
    assert_int_equal(b.phase, BAR_GATHER); /* Nothing is late yet. */
    assert_int_equal(b.n_restarts, 1);
    assert_true(b.gather_ms <= 1000 + BARRIER_RESUME_MS);
    barrier_timeout(&b, 3001);
    assert_int_equal(b.phase, BAR_GATHER);
}

static void test_left_while_a_failure_settles(void **state)
{
    (void)state;
    run_all(3);
    say(1000, 1, failed(1, 0));
    say(1010, 2, left());
    told("0:STOP 1:STOP ");
    barrier_timeout(&b, 1011);
    assert_int_equal(b.phase, BAR_GATHER);
}

/* The same where the failure ends the job: all must hear of it. */
static void test_end_while_a_failure_settles(void **state)
{
    struct barrier_config c = usual(3);

    (void)state;
    c.restart_never = true;
    begin_with(&c);
    all_arrive();
    barrier_closed(&b, 1000, 2);
    say(2980, 1, failed(7, 0));
    barrier_timeout(&b, 1000 + BARRIER_RESUME_MS);
    told("0:END 1:END ");
    assert_int_equal(last.code, 7);
    assert_int_equal(b.phase, BAR_ENDING); /* Pod 1 has not said BYE. */
    bye(3010, BARRIER_LOCAL);
    bye(3010, 1);
    barrier_closed(&b, 3020, 1);
    assert_int_equal(b.phase, BAR_OVER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_newcomer_goes_away),
        cmocka_unit_test(test_newcomer_and_holder_go_away),
        cmocka_unit_test(test_holder_goes_away),
        cmocka_unit_test(test_lost_while_a_failure_settles),
        cmocka_unit_test(test_left_while_a_failure_settles),
        cmocka_unit_test(test_end_while_a_failure_settles),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
