/* barrier: pods that come back, to the same pod 0 or to a new one. */
#include "barrier_fixture.h"

/* HELLO of the same agent as at first. */
static struct wire_msg again(uint32_t rank, uint32_t round, uint32_t running)
{
    struct wire_msg m = hello(rank, 100 + rank);

    m.round = round;
    m.running = running;
    return m;
}

static void test_start_was_lost(void **state)
{
    (void)state;
    run_all(3);
    barrier_closed(&b, 1000, 2);
    come(1500, 7, again(2, 0, WIRE_NO_ROUND));
    told("7:WELCOME 7:START ");
    assert_int_equal(last.rank_base, 4);
    assert_int_equal(last.world_size, 6);
    assert_int_equal(last.group_rank, 2);
    assert_int_equal(last.group_size, 3);
    assert_int_equal(last.master_port, 29500);
    assert_int_equal(b.phase, BAR_RUN);
}

static void test_same_round_runs_on(void **state)
{
    (void)state;
    run_all(2);
    barrier_closed(&b, 1000, 1);
    come(1500, 7, again(1, 0, 0));
    told("7:WELCOME ");
    barrier_timeout(&b, 1000 + BARRIER_RESUME_MS);
    assert_int_equal(b.phase, BAR_RUN);
    assert_int_equal(peers[1].state, PEER_RUNNING);
}

/* One that did not see its old connection die. */
static void test_second_connection(void **state)
{
    (void)state;
    run_all(2);
    come(1000, 7, again(1, 0, 0));
    told("x1 7:WELCOME ");
    barrier_closed(&b, 1001, 1); /* The event of that. */
    say(1002, 1, (struct wire_msg){.kind = WIRE_DONE});
    barrier_timeout(&b, 1001 + BARRIER_RESUME_MS);
    told("");
    assert_int_equal(b.phase, BAR_RUN);
    done(4000, 7);
    done(4000, BARRIER_LOCAL);
    told("0:END 7:END ");
}

/* Its workers ended while it was cut off: what it says next is the cause. */
static void test_stopped_while_cut_off(void **state)
{
    (void)state;
    run_all(3);
    barrier_closed(&b, 1000, 1);
    come(1500, 7, again(1, 1, WIRE_NO_ROUND));
    told("7:WELCOME ");
    say(1501, 7, failed(5, 0));
    arrive(1501, 7, 1);
    barrier_timeout(&b, 1500 + BARRIER_SETTLE_MS);
    assert_int_equal(b.phase, BAR_GATHER);
    assert_int_equal(last.kind, WIRE_STOP);
    assert_int_equal(last.failure.kind, FAILURE_WORKER);
    assert_int_equal(last.failure.code, 5);

    run_all(3); /* And where it says nothing more. */
    barrier_closed(&b, 1000, 1);
    come(1500, 7, again(1, 1, WIRE_NO_ROUND));
    story[0] = '\0';
    barrier_timeout(&b, 1500 + BARRIER_SETTLE_MS);
    told("0:STOP 7:STOP 2:STOP ");
    assert_string_equal(last.failure.text, "node rank 1 stopped its workers "
                                           "while it was cut off");
}

/* It ran through the end of its round: it must hear of it now. */
static void test_stop_was_lost(void **state)
{
    (void)state;
    run_all(3);
    barrier_closed(&b, 900, 1);
    say(1000, 2, failed(5, 0));
    barrier_timeout(&b, 1000 + BARRIER_SETTLE_MS);
    told("0:STOP 2:STOP ");
    come(1500, 7, again(1, 0, 0));
    told("7:WELCOME 7:STOP ");
    assert_int_equal(last.round, 0);
    arrive(1600, 7, 0); /* Nothing of the old round: too early to be true. */
    assert_int_equal(peers[1].state, PEER_STOPPING);
    arrive(1700, 7, 1);
    assert_int_equal(peers[1].state, PEER_ARRIVED);
}

/* A new agent within the time in which the old one could come back with its
 * workers: it has to wait until that is over. */
static void test_replaced(void **state)
{
    struct wire_msg m;

    (void)state;
    run_all(2);
    barrier_closed(&b, 1000, 1);
    m = hello(1, 555);
    come(1100, 7, m);
    told("");
    barrier_timeout(&b, 999 + BARRIER_RESUME_MS);
    told("");
    barrier_timeout(&b, 1000 + BARRIER_RESUME_MS);
    told("0:STOP 7:WELCOME ");
    assert_int_equal(last.round, 1);
    arrive(3200, 7, 0); /* It has never run: any round will do. */
    arrive(3200, BARRIER_LOCAL, 1);
    told("7:START 0:START ");
    assert_int_equal(last.round, 1);
}

/* The old one is back in time: there are two with the same rank. */
static void test_not_replaced(void **state)
{
    (void)state;
    run_all(2);
    barrier_closed(&b, 1000, 1);
    come(1100, 7, hello(1, 555));
    come(1200, 8, again(1, 0, 0));
    told("8:WELCOME 7:REFUSE x7 ");
    refused(78, "node rank 1 is held by a live pod at 10.0.0.8:1; this one is "
                "at 10.0.0.7:1: give each pod its own --node-rank");
    assert_int_equal(b.phase, BAR_RUN);
}

/* The newcomer's own connection breaks, and it comes again. */
static void test_newcomer_again(void **state)
{
    (void)state;
    run_all(2);
    come(1000, 7, hello(1, 555));
    come(1500, 8, hello(1, 555));
    told("1:PING x7 ");
    barrier_closed(&b, 1501, 7);
    barrier_timeout(&b, 1000 + BARRIER_PROBE_MS); /* Pod 1 is silent. */
    told("1:STOP x1 0:STOP 8:WELCOME ");
}

/* It was cut off until its lease was over, but said HELLO before that. */
static void test_lease_ended_after_hello(void **state)
{
    (void)state;
    run_all(3);
    barrier_closed(&b, 1000, 1);
    come(1500, 7, again(1, 0, 0));
    arrive(1600, 7, 1);
    barrier_timeout(&b, 1600 + BARRIER_SETTLE_MS);
    assert_int_equal(b.phase, BAR_GATHER);
    assert_int_equal(b.n_restarts, 0); /* A first loss is free. */
    assert_int_equal(peers[1].state, PEER_ARRIVED);
}

/* A new pod 0 takes the highest round and count, and stops what runs. */
static void test_new_pod_0(void **state)
{
    struct wire_msg m;

    (void)state;
    begin(3);
    join(10, BARRIER_LOCAL, 0);
    arrive(10, BARRIER_LOCAL, 0);
    m = again(1, 4, 4);
    m.n_restarts = 2;
    story[0] = '\0';
    come(20, 1, m);
    told("1:WELCOME 1:STOP ");
    assert_int_equal(last.round, 4);
    assert_int_equal(b.round, 5);
    come(30, 2, again(2, 3, WIRE_NO_ROUND)); /* One that knows less. */
    told("2:WELCOME ");
    assert_int_equal(last.round, 5);
    arrive(40, 2, 5);
    arrive(50, 1, 5);
    told("2:START 1:START 0:START ");
    assert_int_equal(last.round, 5);
    assert_int_equal(last.n_restarts, 2);
}

/* What is said about a round that is over says nothing about this one. */
static void test_old_frames(void **state)
{
    struct wire_msg old;

    (void)state;
    run_all(2);
    old = failed(3, 0);
    say(1000, 1, old);
    barrier_timeout(&b, 1000 + BARRIER_SETTLE_MS);
    arrive(1100, 1, 1);
    arrive(1100, BARRIER_LOCAL, 1);
    barrier_timeout(&b, b.not_before_ms);
    assert_int_equal(b.phase, BAR_RUN);
    story[0] = '\0';
    say(3000, 1, old);
    say(3000, 1, (struct wire_msg){.kind = WIRE_DONE, .round = 0});
    arrive(3000, 1, 1);
    barrier_timeout(&b, 3000 + BARRIER_SETTLE_MS);
    told("");
    assert_int_equal(peers[1].state, PEER_RUNNING);
    assert_int_equal(b.n_restarts, 1);
}

/* Bytes that are no frame, on a connection that was admitted. */
static void test_garbage_of_a_pod(void **state)
{
    (void)state;
    run_all(2);
    barrier_garbage(&b, 1000, 1, "no such message", WIRE_VERSION);
    told("x1 ");
    barrier_closed(&b, 1001, 1); /* The event of that. */
    come(1500, 7, again(1, 0, 0));
    told("7:WELCOME ");
    assert_int_equal(b.phase, BAR_RUN);
}

/* Messages that only pod 0 sends, and frames on closed connections. */
static void test_nonsense(void **state)
{
    static const enum wire_kind kinds[] = {
        WIRE_HELLO, WIRE_WELCOME, WIRE_REFUSE, WIRE_WAITING, WIRE_START,
        WIRE_STOP, WIRE_END, WIRE_PING, WIRE_BYE};

    (void)state;
    run_all(2);
    for (unsigned i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        say(1000, 1, (struct wire_msg){.kind = kinds[i]});
        say(1000, 9, (struct wire_msg){.kind = kinds[i]});
    }
    barrier_garbage(&b, 1000, 9, "no frame of agent", 0);
    told("");
    assert_int_equal(b.phase, BAR_RUN);
    assert_int_equal(peers[1].state, PEER_RUNNING);
}

/* A stranger has ten seconds to say who he is. */
static void test_silent_stranger(void **state)
{
    (void)state;
    run_all(2);
    barrier_open(&b, 1000, 9, "10.9.9.9:1");
    assert_true(barrier_deadline(&b) <= 1000 + BARRIER_HELLO_MS);
    say(10000, 1, (struct wire_msg){.kind = WIRE_PING});
    barrier_timeout(&b, 999 + BARRIER_HELLO_MS);
    told("");
    barrier_timeout(&b, 1000 + BARRIER_HELLO_MS);
    told("x9 ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_start_was_lost),
        cmocka_unit_test(test_same_round_runs_on),
        cmocka_unit_test(test_second_connection),
        cmocka_unit_test(test_stopped_while_cut_off),
        cmocka_unit_test(test_stop_was_lost),
        cmocka_unit_test(test_replaced),
        cmocka_unit_test(test_not_replaced),
        cmocka_unit_test(test_newcomer_again),
        cmocka_unit_test(test_lease_ended_after_hello),
        cmocka_unit_test(test_new_pod_0),
        cmocka_unit_test(test_old_frames),
        cmocka_unit_test(test_garbage_of_a_pod),
        cmocka_unit_test(test_nonsense),
        cmocka_unit_test(test_silent_stranger),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
