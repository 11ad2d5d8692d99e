/* barrier: pod 0's side, told by what it sends. Whole jobs are in tests/sim;
 * here are admission, refusals, deadlines and texts, one by one. */
#include "barrier_fixture.h"

static void test_all_arrive(void **state)
{
    (void)state;
    begin(2);
    b.cfg.restart_period_ms = 5000;
    join(10, BARRIER_LOCAL, 0);
    told("0:WELCOME ");
    arrive(11, BARRIER_LOCAL, 0);
    join(20, 1, 1);
    told("1:WELCOME ");
    assert_int_equal(last.incarnation, 1);
    assert_int_equal(last.max_restarts, 2);
    assert_int_equal(last.restart_period_ms, 5000);
    arrive(21, 1, 0);
    told("1:START 0:START ");
    assert_int_equal(last.rank_base, 0); /* Pod 0 is told last. */
    assert_int_equal(last.world_size, 4);
    assert_int_equal(last.group_size, 2);
}

static void test_refusals(void **state)
{
    struct wire_msg m;

    (void)state;
    begin(2);
    join(10, BARRIER_LOCAL, 0);
    barrier_open(&b, 10, 1, "10.0.0.9:1");
    m = hello(1, 5);
    memcpy(m.job_id, "other", 6);
    say(10, 1, m);
    refused(77, "wrong job id: this pod says 'other', the job here is 'job': "
                "give all pods of a job the same --job-id");
    told("0:WELCOME 1:REFUSE x1 ");
    barrier_closed(&b, 11, 1);
    barrier_open(&b, 12, 2, "10.0.0.9:2");
    say(12, 2, hello(0, 6));
    refused(78, "node rank 0 is held by a live pod at here; this one is at "
                "10.0.0.9:2: give each pod its own --node-rank");
    barrier_open(&b, 13, 3, "10.0.0.9:3");
    barrier_garbage(&b, 13, 3, "another protocol version", 9);
    refused(78, "protocol version 9, node rank 0 speaks 3: use the same agent "
                "in all pods");
    assert_int_equal(b.phase, BAR_GATHER);
    story[0] = '\0';
    barrier_open(&b, 14, 4, "10.0.0.9:4");
    barrier_garbage(&b, 14, 4, "no frame of agent", 0);
    told("x4 "); /* A stranger gets no answer. */
    barrier_open(&b, 15, 5, "10.0.0.9:5");
    arrive(15, 5, 0);
    told("x5 "); /* No HELLO first. */
}

static void test_another_nnodes_ends_all(void **state)
{
    struct wire_msg m;

    (void)state;
    begin(2);
    join(10, BARRIER_LOCAL, 0);
    story[0] = '\0';
    barrier_open(&b, 20, 1, "10.0.0.1:1");
    m = hello(1, 5);
    m.nnodes = 3;
    say(20, 1, m);
    told("0:END 1:REFUSE x1 ");
    refused(78, "pods disagree about the number of pods: node rank 1 (w1, "
                "10.0.0.1:1) says --nnodes 3, node rank 0 says 2");
    say(21, BARRIER_LOCAL, (struct wire_msg){.kind = WIRE_BYE});
    assert_int_equal(b.phase, BAR_OVER); /* Nobody else is to hear. */
}

static void test_held_rank(void **state)
{
    (void)state;
    run_all(2);
    barrier_open(&b, 100, 5, "10.0.0.7:1");
    say(100, 5, hello(1, 999));
    told("1:PING ");
    say(100, 1, (struct wire_msg){.kind = WIRE_PING}); /* In the same ms. */
    barrier_timeout(&b, 100 + BARRIER_PROBE_MS);
    assert_int_equal(last.kind, WIRE_REFUSE);
    assert_int_equal(peers[1].conn, 1);
    assert_int_equal(b.phase, BAR_RUN);

    run_all(2); /* And one that does not answer. */
    barrier_open(&b, 100, 5, "10.0.0.7:1");
    say(100, 5, hello(1, 999));
    barrier_timeout(&b, 100 + BARRIER_PROBE_MS);
    assert_int_equal(peers[1].conn, 5);
    assert_int_equal(b.phase, BAR_GATHER);
    /* What ran there may run for its lease and grace. */
    assert_int_equal(b.not_before_ms, 100 + BARRIER_PROBE_MS +
                                          BARRIER_SILENCE_MS + cfg.grace_ms +
                                          BARRIER_LATE_MS);
}

static void test_restart_and_budget(void **state)
{
    (void)state;
    run_all(2);
    say(1000, 1, failed(3, 0));
    told(""); /* It settles first. */
    barrier_timeout(&b, 1000 + BARRIER_SETTLE_MS);
    told("0:STOP 1:STOP ");
    assert_int_equal(b.n_restarts, 1);
    assert_int_equal(last.failure.code, 3);
    assert_in_range(last.delay_ms, 1000, 1250);
    arrive(1100, 1, 1);
    arrive(1100, BARRIER_LOCAL, 1);
    told(""); /* The back-off. */
    barrier_timeout(&b, b.not_before_ms);
    told("1:START 0:START ");
    say(5000, 1, failed(3, 0));
    barrier_timeout(&b, 5000 + BARRIER_SETTLE_MS);
    assert_in_range(last.delay_ms, 2000, 2500); /* Doubled. */
    arrive(5100, 1, 2);
    arrive(5100, BARRIER_LOCAL, 2);
    barrier_timeout(&b, b.not_before_ms);
    story[0] = '\0';
    say(9000, 1, failed(4, 0));
    barrier_timeout(&b, 9000 + BARRIER_SETTLE_MS);
    told("0:END 1:END ");
    assert_int_equal(last.code, 4);
}

/* The peer's exit came first, the death that caused it a moment later. */
static void test_the_cause_wins(void **state)
{
    (void)state;
    run_all(3);
    say(1000, 1, failed(1, 0));
    say(1020, 2, failed(137, 9));
    barrier_timeout(&b, 1000 + BARRIER_SETTLE_MS);
    assert_int_equal(last.kind, WIRE_STOP);
    assert_int_equal(last.failure.code, 137);
}

static struct wire_msg failed_of_peer(int code, int signo)
{
    struct wire_msg m = failed(code, signo);

    (void)snprintf(m.failure.tail, sizeof m.failure.tail, "%s",
                   "RuntimeError: [/gloo/transport/tcp/pair.cc:553] "
                   "Connection closed by peer [10.0.0.2]:1");
    return m;
}

/* Who saw a peer's connection close ends before that peer, which Python takes
 * long to end; a crash of such a rank is no better a cause. */
static void test_the_peer_that_ended_first(void **state)
{
    (void)state;
    run_all(3);
    say(1000, 1, failed_of_peer(139, 11));
    say(1010, BARRIER_LOCAL, failed_of_peer(1, 0));
    barrier_timeout(&b, 1000 + BARRIER_SETTLE_MS);
    told("");
    say(1000 + BARRIER_PEER_MS - 1, 2, failed(7, 0));
    told("0:STOP 1:STOP 2:STOP ");
    assert_int_equal(last.failure.code, 7);

    run_all(3); /* The other way around. */
    say(1000, 2, failed(7, 0));
    say(1010, 1, failed_of_peer(139, 11));
    barrier_timeout(&b, 1000 + BARRIER_SETTLE_MS);
    assert_int_equal(last.kind, WIRE_STOP);
    assert_int_equal(last.failure.code, 7);

    run_all(3); /* What takes its place has time of its own. */
    say(1000, BARRIER_LOCAL, failed_of_peer(3, 0));
    say(1400, 1, failed(1, 0));
    say(1420, 2, failed(137, 9));
    barrier_timeout(&b, 1400 + BARRIER_SETTLE_MS);
    assert_int_equal(last.failure.code, 137);

    run_all(3); /* Nobody else: the first of them. */
    say(1000, 1, failed_of_peer(1, 0));
    say(1010, 2, failed_of_peer(139, 11));
    barrier_timeout(&b, 999 + BARRIER_PEER_MS);
    told("");
    assert_int_equal(barrier_deadline(&b), 1000 + BARRIER_PEER_MS);
    barrier_timeout(&b, 1000 + BARRIER_PEER_MS);
    told("0:STOP 1:STOP 2:STOP ");
    assert_int_equal(last.failure.code, 1);
}

static void test_lost_pod(void **state)
{
    (void)state;
    run_all(2);
    barrier_closed(&b, 100, 1);
    barrier_open(&b, 150, 2, "10.0.0.1:2"); /* The same agent again. */
    last = hello(1, 101);
    last.running = 0;
    say(150, 2, last);
    told("2:WELCOME ");
    assert_int_equal(b.phase, BAR_RUN);
    barrier_closed(&b, 200, 2);
    barrier_timeout(&b, 200 + BARRIER_RESUME_MS);
    told("0:STOP ");
    assert_int_equal(b.n_restarts, 0); /* The first loss is free. */
    arrive(3000, BARRIER_LOCAL, 1);
    barrier_timeout(&b, 200 + BARRIER_RESUME_MS + cfg.rejoin_timeout_ms);
    assert_int_equal(last.kind, WIRE_END);
    assert_int_equal(last.code, 201);
}

static void test_silence(void **state)
{
    (void)state;
    run_all(2);
    barrier_timeout(&b, 11 + BARRIER_SILENCE_MS);
    told("1:STOP x1 0:STOP "); /* Perhaps it hears that. */
}

static void test_timeout_names_the_missing(void **state)
{
    char text[512];

    (void)state;
    begin(4);
    join(10, BARRIER_LOCAL, 0);
    arrive(10, BARRIER_LOCAL, 0);
    join(20, 2, 2);
    say(30, 2, (struct wire_msg){.kind = WIRE_PROGRESS, .percent = 45});
    barrier_describe(&b, 40, text, sizeof text);
    assert_string_equal(text, "node ranks 1,3 not seen yet; node rank 2 "
                              "staging (45 %)");
    barrier_closed(&b, 50, 2);
    barrier_timeout(&b, 50 + BARRIER_RESUME_MS);
    barrier_describe(&b, 12030, text, sizeof text);
    assert_string_equal(text, "node ranks 1,3 not seen yet; node rank 2 seen "
                              "and lost, last heard 12 s ago at 10.0.0.2:1");
    barrier_timeout(&b, 1 + cfg.barrier_timeout_ms);
    assert_int_equal(last.kind, WIRE_END);
    assert_int_equal(last.code, 200);
}

/* Each pod that is missing is named with what is known of it. */
static void test_who_is_missing(void **state)
{
    char text[512];

    (void)state;
    begin(4);
    join(10, BARRIER_LOCAL, 0);
    for (uint32_t i = 1; i < 4; i++)
        join(10, i, i);
    say(20, 0, (struct wire_msg){.kind = WIRE_PROGRESS, .percent = 100});
    say(20, 3, (struct wire_msg){.kind = WIRE_PROGRESS, .percent = 9});
    barrier_describe(&b, 30, text, sizeof text);
    assert_string_equal(text, "node ranks 0-3 staging (0 to 100 %)");

    run_all(4);
    barrier_closed(&b, 1000, 2); /* Heard at 11. */
    say(3000, 3, left());
    barrier_timeout(&b, 1000 + BARRIER_RESUME_MS);
    barrier_closed(&b, 5000, 1);
    barrier_describe(&b, 60011, text, sizeof text);
    assert_string_equal(text, "node ranks 1-2 seen and lost, last heard 60 s "
                              "ago at 10.0.0.1:1; node rank 3 told to stop "
                              "from outside; node rank 0 still stopping the "
                              "workers of the last round");
    story[0] = '\0';
    barrier_timeout(&b, 3000 + BARRIER_SUMMARY_MS);
    assert_non_null(strstr(story, "0:WAITING"));
}

static void test_staging_is_not_late(void **state)
{
    uint64_t end = 1 + 600000;

    (void)state;
    begin(2);
    join(10, BARRIER_LOCAL, 0);
    arrive(10, BARRIER_LOCAL, 0);
    join(end - 30000, 1, 1);
    say(end - 1000, 1, (struct wire_msg){.kind = WIRE_PROGRESS, .percent = 9});
    barrier_timeout(&b, end);
    assert_int_equal(b.phase, BAR_GATHER);
    peers[1].heard_ms = end + BARRIER_STAGING_MS; /* Alive, but stuck. */
    barrier_timeout(&b, end + BARRIER_STAGING_MS);
    assert_int_equal(b.phase, BAR_ENDING);
}

static void test_end(void **state)
{
    (void)state;
    run_all(2);
    say(100, BARRIER_LOCAL, (struct wire_msg){.kind = WIRE_DONE});
    told("");
    say(200, 1, (struct wire_msg){.kind = WIRE_DONE});
    told("0:END 1:END ");
    assert_int_equal(last.code, 0);
    say(201, BARRIER_LOCAL, (struct wire_msg){.kind = WIRE_BYE});
    say(202, 1, (struct wire_msg){.kind = WIRE_BYE});
    assert_int_equal(b.phase, BAR_ENDING); /* Pod 0 leaves last. */
    barrier_closed(&b, 203, 1);
    assert_int_equal(b.phase, BAR_OVER);
}

static void test_different_data(void **state)
{
    struct wire_msg m = {.kind = WIRE_ARRIVED, .digest = {1}};

    (void)state;
    begin(2);
    join(10, BARRIER_LOCAL, 0);
    join(10, 1, 1);
    arrive(11, BARRIER_LOCAL, 0);
    story[0] = '\0';
    say(12, 1, m);
    told("0:END 1:END ");
    assert_int_equal(last.code, 78);
    assert_non_null(strstr(last.failure.text, "digest 0100000000"));
    assert_non_null(strstr(last.failure.text, "none (no --dataset) on node "
                                              "rank 0 (w0)"));
}

/* Who is ready before the failure is settled has not arrived in the log before
 * the failure is there. */
static void test_early_arrival(void **state)
{
    struct wire_msg m = {.kind = WIRE_FAILED};

    (void)state;
    run_all(2);
    m.round = b.round;
    m.failure.kind = FAILURE_WORKER;
    m.failure.code = 1;
    say(1000, 1, m);
    logged[0] = '\0';
    assert_int_equal(b.phase, BAR_RUN);
    arrive(1001, 1, b.round + 1);
    assert_int_equal(peers[1].state, PEER_ARRIVED);
    assert_string_equal(logged, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_arrive),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_another_nnodes_ends_all),
        cmocka_unit_test(test_held_rank),
        cmocka_unit_test(test_restart_and_budget),
        cmocka_unit_test(test_the_cause_wins),
        cmocka_unit_test(test_the_peer_that_ended_first),
        cmocka_unit_test(test_lost_pod),
        cmocka_unit_test(test_silence),
        cmocka_unit_test(test_timeout_names_the_missing),
        cmocka_unit_test(test_who_is_missing),
        cmocka_unit_test(test_staging_is_not_late),
        cmocka_unit_test(test_end),
        cmocka_unit_test(test_different_data),
        cmocka_unit_test(test_early_arrival),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
