/* pod: the life of one pod, told by what it asks for. */
#include "pod_fixture.h"

static void test_one_pod_alone(void **state)
{
    (void)state;
    make(0, 1, false);
    told("spawn0 ");
    ends(10, 0, 0);
    ends(11, 1, 0);
    told("sweep:15 ");
    pod_swept(&p, 11, 0, false);
    assert_int_equal(p.state, POD_GONE);
    assert_int_equal(p.exit_code, 0);
}

/* Its workers run: only they, signals and questions wake it. */
static void test_alone_it_sleeps(void **state)
{
    uint64_t at;

    (void)state;
    make(0, 1, false);
    for (unsigned i = 0; (at = pod_deadline(&p)) != UINT64_MAX; i++) {
        assert_true(i < 20 && at < 60000);
        pod_timeout(&p, at);
    }
    told("spawn0 ");
    ends(3600000, 1, 3); /* And goes on, as if it had been awake. */
    told("kill0:15 ");
    ends(3600002, 0, 143);
    pod_swept(&p, 3600003, 0, false);
    pod_swept(&p, 3600003, 0, false);
    for (unsigned i = 0; i < 3 && p.state == POD_WAITING; i++) {
        at = pod_deadline(&p);
        assert_true(at > 3600003 && at <= 3600003 + 200);
        pod_timeout(&p, at);
    }
    told("sweep:15 spawn1 ");
}

static void test_failure_and_restart(void **state)
{
    (void)state;
    make(0, 1, false);
    ends(10, 1, 3);
    told("spawn0 kill0:15 ");
    ends(12, 0, 143); /* Agent's own TERM is no cause. */
    pod_swept(&p, 13, 0, false);
    pod_swept(&p, 13, 0, false);
    assert_int_equal(p.state, POD_WAITING);
    pod_timeout(&p, 113);
    told("sweep:15 spawn1 ");
    ends(120, 0, 3);
    ends(121, 1, 143);
    pod_swept(&p, 122, 0, false);
    pod_swept(&p, 122, 0, false);
    assert_int_equal(p.state, POD_GONE);
    assert_int_equal(p.exit_code, 3);
    assert_int_equal(p.cause.local_rank, 0);
}

static void on_tidy(void *c)
{
    (void)c;
    add("tidy ");
}

/* When nothing of a round runs any more, and another one may follow. */
static void test_tidy(void **state)
{
    (void)state;
    member_runs();
    p.out.tidy = on_tidy;
    ends(10, 1, 3);
    ends(12, 0, 143);
    told("kill0:15 sweep:15 FAILED ");
    pod_swept(&p, 13, 1, false);
    told("");
    pod_swept(&p, 14, 0, false); /* Before pod 0 hears of it. */
    told("tidy FAILED ARRIVED ");
    hear(20, (struct wire_msg){.kind = WIRE_START, .round = 1, .rank_base = 2,
                               .world_size = 4, .group_rank = 1,
                               .group_size = 2});
    told("spawn1 ");
    pod_signal(&p, 30, SIGTERM); /* None will follow. */
    ends(31, 0, 143);
    ends(32, 1, 143);
    pod_swept(&p, 33, 0, false);
    pod_swept(&p, 34, 0, false);
    assert_null(strstr(story, "tidy"));
}

static void test_a_kill_beats_its_consequence(void **state)
{
    (void)state;
    member_runs();
    ends(10, 0, 1);
    told("kill1:15 "); /* Stopped at once, told when settled. */
    ends(11, 1, 137);
    told("sweep:15 FAILED ");
    assert_int_equal(sent.failure.code, 137);
    assert_int_equal(sent.failure.rank, 3);
}

/* Words of a peer that ended, and then one that is stopped and exits: it need
 * not have been that peer. */
static void test_a_stopped_worker_is_no_cause(void **state)
{
    struct pod_exit x = {.code = 1, .hint = "", .tail = "RuntimeError: [/gloo"
                         "/transport/tcp/pair.cc:553] Connection closed by "
                         "peer [10.0.0.2]:1"};

    (void)state;
    member_runs();
    pod_worker_exit(&p, 10, &x);
    ends(11, 1, 3);
    told("kill1:15 sweep:15 FAILED ");
    assert_int_equal(sent.failure.code, 1);
    assert_int_equal(sent.failure.rank, 2);
}

static void test_failure_settles_in_time(void **state)
{
    (void)state;
    member_runs();
    ends(10, 0, 1);
    story[0] = '\0';
    pod_timeout(&p, 10 + SUP_LOOK_MS);
    told("sweep:15 ");
    assert_int_equal(pod_deadline(&p), 10 + POD_SETTLE_MS);
    pod_timeout(&p, 10 + POD_SETTLE_MS);
    told("FAILED ");
}

/* A failure whose report was cut off is told again before ARRIVED. */
static void test_no_failure_is_lost(void **state)
{
    (void)state;
    member_runs();
    pod_link_down(&p, 9, "cut");
    ends(10, 0, 5);
    ends(11, 1, 143);
    pod_swept(&p, 12, 0, false);
    pod_swept(&p, 12, 0, false);
    assert_int_equal(p.state, POD_WAITING);
    story[0] = '\0';
    pod_link_up(&p, 50);
    hear(51, (struct wire_msg){.kind = WIRE_WELCOME, .incarnation = 1,
                               .node_rank = 1, .round = 0});
    assert_non_null(strstr(story, "HELLO FAILED ARRIVED"));
}

static void test_term(void **state)
{
    struct verdict v;

    (void)state;
    member_runs();
    pod_signal(&p, 10, SIGUSR1);
    told("kill0:10 kill1:10 ");
    pod_signal(&p, 20, SIGTERM);
    told("FAILED kill0:15 kill1:15 ");
    assert_int_equal(sent.failure.kind, FAILURE_STOPPED);
    pod_swept(&p, 20, 0, false);
    pod_signal(&p, 30, SIGTERM); /* Ends the grace. */
    pod_timeout(&p, 30);
    told("kill0:9 kill1:9 sweep:9 ");
    ends(31, 0, 137);
    ends(31, 1, 137);
    pod_swept(&p, 31, 0, false);
    pod_swept(&p, 32, 0, false);
    told("BYE close ");
    pod_link_down(&p, 33, "closed");
    assert_int_equal(p.state, POD_GONE);
    assert_int_equal(p.exit_code, 143);
    pod_verdict(&p, 40, &v);
    assert_int_equal(v.told_ms, 20 - p.start_ms); /* Not the stop's end. */
    assert_int_equal(v.job_ms, 40 - p.start_ms);
}

static void test_a_signal_that_stops_as_term(void **state)
{
    (void)state;
    member_runs();
    p.cfg.stop_with = (uint64_t)1 << SIGUSR1;
    pod_signal(&p, 10, SIGUSR2);
    told("kill0:12 kill1:12 ");
    pod_signal(&p, 20, SIGUSR1);
    told("FAILED kill0:10 kill1:10 ");
    assert_int_equal(sent.failure.code, 128 + SIGUSR1);
    pod_swept(&p, 20, 0, false);
    pod_signal(&p, 30, SIGTERM); /* Ends the grace. */
    pod_timeout(&p, 30);
    told("kill0:9 kill1:9 sweep:9 ");
}

static void test_term_and_a_process_that_outlives_kill(void **state)
{
    (void)state;
    member_runs();
    pod_signal(&p, 10, SIGTERM);
    pod_swept(&p, 10, 0, false);
    for (uint64_t t = 1010; t < 1010 + SUP_STUCK_SOON_MS; t += 50) {
        pod_timeout(&p, t);
        pod_swept(&p, t, 1, false);
        assert_int_equal(p.state, POD_STOPPING);
    }
    pod_timeout(&p, 1010 + SUP_STUCK_SOON_MS);
    pod_timeout(&p, 1010 + SUP_STUCK_SOON_MS + SUP_LAST_LOOK_MS);
    assert_int_equal(p.state, POD_LEAVING);
    assert_int_equal(p.exit_code, 143);
}

/* All have ended with 0, but what they left behind ignores TERM. */
static void test_what_is_left_takes_its_time(void **state)
{
    (void)state;
    member_runs();
    p.cfg.grace_ms = p.sup.grace_ms = 5000;
    ends(10, 0, 0);
    ends(10, 1, 0);
    said[0] = '\0';
    pod_swept(&p, 11, 2, false);
    pod_swept(&p, 1009, 2, false); /* Mostly it is over by then. */
    assert_string_equal(said, "");
    pod_swept(&p, 1010, 2, false);
    assert_string_equal(said, "2 processes that the workers left behind run "
                              "on; for at most 4 s more (--grace)");
    said[0] = '\0';
    pod_swept(&p, 1400, 1, false);
    assert_string_equal(said, ""); /* Once. */
    pod_signal(&p, 2010, SIGINT);
    assert_string_equal(said, "got SIGINT: stopping, within 3 s; a second "
                              "signal ends that");
    pod_signal(&p, 2020, SIGINT);
    pod_timeout(&p, 2020);
    pod_swept(&p, 2021, 0, false);
    assert_int_equal(p.state, POD_LEAVING);
    assert_int_equal(p.exit_code, 130);
    assert_false(p.left_told); /* Of the next round it is told again. */
}

/* Pod 0 leaves last: for whom it stays, and why the job ends, is told first. */
static void test_pod_0_stays(void **state)
{
    struct wire_msg m = {.kind = WIRE_HELLO, .incarnation = 5, .node_rank = 1,
                         .nnodes = 2, .nproc = 2, .running = WIRE_NO_ROUND,
                         .job_id = "j"};

    (void)state;
    make(0, 2, false); /* For one that has not come. */
    pod_fault(&p, 10, 65, "file x is wrong");
    assert_string_equal(said, "file x is wrong; telling the other pods");
    pod_timeout(&p, 10 + POD_LEFT_MS - 1);
    assert_string_equal(said, "file x is wrong; telling the other pods");
    pod_timeout(&p, 10 + POD_LEFT_MS);
    assert_string_equal(said, "the job is over: waiting for node rank 1 to "
                              "hear of it and leave; for at most 29 s more");
    make(0, 2, false); /* For one whose workers are slow. */
    bar.cfg.max_restarts = 0;
    pod_conn_open(&p, 2, 1, "a:1");
    pod_conn_message(&p, 2, 1, &m);
    m = (struct wire_msg){.kind = WIRE_ARRIVED};
    pod_conn_message(&p, 3, 1, &m);
    assert_int_equal(p.state, POD_RUNNING);
    ends(10, 0, 3);
    ends(10, 1, 143);
    pod_swept(&p, 10, 0, false);
    pod_swept(&p, 10, 0, false);
    pod_timeout(&p, 100);
    assert_int_equal(p.state, POD_LEAVING);
    pod_timeout(&p, 100 + POD_LEFT_MS);
    assert_non_null(strstr(said, "exited with 3 after 5 ms in round 0; this "
                                 "ends the job: waiting for node rank 1 to "
                                 "hear of it and leave; for at most 30 s"));
    m.kind = WIRE_BYE;
    pod_conn_message(&p, 2000, 1, &m);
    pod_timeout(&p, 2100);
    assert_int_equal(p.state, POD_GONE);
}

static void test_bad_data_is_told(void **state)
{
    (void)state;
    make(1, 2, true);
    told("stage connect ");
    pod_fault(&p, 10, 65, "file x is wrong");
    told("");
    pod_link_up(&p, 20);
    hear(21, (struct wire_msg){.kind = WIRE_WELCOME, .incarnation = 1,
                               .node_rank = 1});
    told("HELLO FAILED ");
    hear(22, (struct wire_msg){.kind = WIRE_END, .code = 65,
                               .failure = sent.failure});
    told("BYE close ");
    make(1, 2, true); /* And where pod 0 is never there. */
    pod_fault(&p, 10, 65, "file x is wrong");
    pod_link_down(&p, 20, "refused");
    pod_timeout(&p, 10 + POD_REPORT_MS);
    assert_int_equal(p.state, POD_GONE);
    assert_int_equal(p.exit_code, 65);
}

static void test_the_lease(void **state)
{
    (void)state;
    member_runs();
    pod_link_down(&p, 100, "reset");
    pod_timeout(&p, 4 + BARRIER_SILENCE_MS); /* Last heard at 4. */
    assert_non_null(strstr(story, "kill0:15 kill1:15"));
    assert_int_equal(p.state, POD_STOPPING);
    ends(15100, 0, 143);
    ends(15100, 1, 143);
    pod_swept(&p, 15100, 0, false);
    pod_swept(&p, 15100, 0, false);
    assert_int_equal(p.state, POD_WAITING);
    pod_timeout(&p, 100 + 30000 - 1);
    assert_int_equal(p.state, POD_WAITING);
    pod_timeout(&p, 100 + 30000);
    assert_int_equal(p.state, POD_GONE);
    assert_int_equal(p.exit_code, 201);
}

static void test_pod_0_is_never_reached(void **state)
{
    (void)state;
    make(1, 2, false);
    pod_link_down(&p, 50, "connection refused");
    pod_timeout(&p, 1 + 60000);
    assert_int_equal(p.exit_code, 200);
    assert_string_equal(p.cause.text, "not all pods arrived in time "
                                      "(--barrier-timeout 60 s): node rank 0 "
                                      "at z:1 was not reached: connection "
                                      "refused");
}

static void test_refused(void **state)
{
    (void)state;
    make(1, 2, false);
    pod_link_up(&p, 2);
    hear(3, (struct wire_msg){.kind = WIRE_REFUSE, .code = 77, .text = "no"});
    assert_int_equal(p.exit_code, 77);
    assert_int_equal(p.state, POD_GONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_pod_alone),
        cmocka_unit_test(test_alone_it_sleeps),
        cmocka_unit_test(test_failure_and_restart),
        cmocka_unit_test(test_tidy),
        cmocka_unit_test(test_a_kill_beats_its_consequence),
        cmocka_unit_test(test_a_stopped_worker_is_no_cause),
        cmocka_unit_test(test_failure_settles_in_time),
        cmocka_unit_test(test_no_failure_is_lost),
        cmocka_unit_test(test_term),
        cmocka_unit_test(test_a_signal_that_stops_as_term),
        cmocka_unit_test(test_term_and_a_process_that_outlives_kill),
        cmocka_unit_test(test_what_is_left_takes_its_time),
        cmocka_unit_test(test_pod_0_stays),
        cmocka_unit_test(test_bad_data_is_told),
        cmocka_unit_test(test_the_lease),
        cmocka_unit_test(test_pod_0_is_never_reached),
        cmocka_unit_test(test_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
