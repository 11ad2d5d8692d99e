/* pod: what it tells pod 0, what it hears, and when it gives up. */
#include "pod_fixture.h"

#include "agent/pod_parts.h"

static const struct wire_msg admitted = {.kind = WIRE_WELCOME,
                                         .incarnation = 1, .node_rank = 1};

/* Workers and what they left are gone. */
static void all_gone(uint64_t now)
{
    ends(now, 0, 143);
    ends(now, 1, 143);
    pod_swept(&p, now, 0, false);
    pod_swept(&p, now, 0, false);
    assert_int_not_equal(p.state, POD_STOPPING);
    story[0] = '\0';
}

static struct wire_msg stop(uint32_t round, uint64_t delay_ms)
{
    struct wire_msg m = {.kind = WIRE_STOP, .round = round,
                         .delay_ms = delay_ms};

    m.failure = (struct failure){.kind = FAILURE_LOST, .code = 201};
    memcpy(m.failure.text, "node rank 2 is gone", 20);
    return m;
}

/* The budget is pod 0's, whatever this pod was started with. */
static void test_budget(void **state)
{
    char buf[POD_BUDGET_MAX];
    struct verdict v;

    (void)state;
    make(1, 2, false);
    p.cfg.max_restarts = 3;
    p.cfg.restart_period_ms = 7000;
    assert_string_equal(pod_budget(&p, buf),
                        "0 restarts used, at most 3 within 7 s");
    pod_link_up(&p, 2);
    hear(3, admitted);
    assert_string_equal(pod_budget(&p, buf), "0 of 0 restarts used");
    pod_verdict(&p, 4, &v);
    assert_int_equal(v.max_restarts, 0);
    assert_int_equal(v.restart_period_ms, 0);
    pod_link_down(&p, 5, "closed");
    pod_link_up(&p, 6);
    hear(7, (struct wire_msg){.kind = WIRE_WELCOME, .incarnation = 2,
                              .node_rank = 1, .max_restarts = 5,
                              .restart_period_ms = 60000});
    assert_string_equal(pod_budget(&p, buf),
                        "0 restarts used, at most 5 within 60 s");
}

static void test_staging(void **state)
{
    static const uint8_t digest[WIRE_DIGEST] = {7, 8, 9};

    (void)state;
    make(1, 2, true);
    pod_stage_progress(&p, 2, 30);
    told("stage connect "); /* Nobody there to be told. */
    pod_link_up(&p, 3);
    hear(4, admitted);
    told("HELLO PROGRESS ");
    assert_int_equal(sent.percent, 30);
    pod_stage_progress(&p, 5, 250);
    assert_int_equal(sent.percent, 100);
    pod_stage_done(&p, 6, digest);
    told("PROGRESS ARRIVED ");
    assert_memory_equal(sent.digest, digest, WIRE_DIGEST);
    pod_stage_done(&p, 7, digest); /* Once is enough. */
    pod_stage_progress(&p, 8, 50);
    told("");
}

static void test_told_to_stop_while_staging(void **state)
{
    (void)state;
    make(1, 2, true);
    pod_link_up(&p, 2);
    hear(3, admitted);
    story[0] = '\0';
    pod_signal(&p, 10, SIGINT);
    told("FAILED unstage BYE close ");
    pod_link_down(&p, 11, "closed");
    assert_int_equal(p.state, POD_GONE);
    assert_int_equal(p.exit_code, 130);
    assert_int_equal(pod_deadline(&p), UINT64_MAX);

    make(1, 2, true); /* Without pod 0 there is nobody to tell. */
    pod_signal(&p, 10, SIGTERM);
    told("stage connect unstage ");
    assert_int_equal(p.state, POD_GONE);
    assert_int_equal(p.exit_code, 143);
}

/* While its workers stop, pod 0 must be able to see that they still may run:
 * the pod comes back, and says again what it is doing. */
static void test_cut_off_while_it_is_stopping(void **state)
{
    (void)state;
    member_runs();
    pod_signal(&p, 10, SIGTERM);
    told("FAILED kill0:15 kill1:15 ");
    pod_link_down(&p, 20, "reset");
    pod_timeout(&p, 20 + POD_RETRY_MIN_MS);
    told("sweep:15 connect ");
    pod_link_up(&p, 130);
    assert_int_equal(sent.kind, WIRE_HELLO);
    assert_int_equal(sent.running, 0);
    hear(131, (struct wire_msg){.kind = WIRE_WELCOME, .incarnation = 1,
                                .round = 1, .node_rank = 1});
    told("HELLO FAILED ");
    assert_int_equal(sent.failure.kind, FAILURE_STOPPED);
    hear(132, (struct wire_msg){.kind = WIRE_START, .round = 1});
    told(""); /* No new start. */
    ends(140, 0, 143);
    ends(141, 1, 143);
    pod_swept(&p, 142, 0, false);
    assert_int_equal(sent.kind, WIRE_BYE);
    assert_int_equal(p.state, POD_LEAVING);
}

/* The end is known, the last words are not told yet: TERM ends the wait. */
static void test_told_to_stop_while_failing(void **state)
{
    (void)state;
    make(1, 2, true);
    pod_fault(&p, 10, 66, "x is missing");
    pod_fault(&p, 11, 65, "y is wrong"); /* The first one counts. */
    pod_signal(&p, 20, SIGTERM);
    assert_int_equal(p.state, POD_GONE);
    assert_int_equal(p.exit_code, 66);
    assert_string_equal(p.cause.text, "x is missing");
}

/* TERM came first: the job's end comes too late to be this pod's. */
static void test_end_after_term(void **state)
{
    struct wire_msg end = {.kind = WIRE_END, .code = 0};

    (void)state;
    member_runs();
    pod_signal(&p, 10, SIGTERM);
    hear(11, end);
    assert_int_equal(p.state, POD_STOPPING);
    all_gone(12);
    hear(13, end); /* Nothing more is to be said. */
    assert_int_equal(p.state, POD_GONE);
    assert_int_equal(p.exit_code, 143);
}

/* And the other way round: the end was heard, then TERM. */
static void test_term_after_the_end(void **state)
{
    struct wire_msg end = {.kind = WIRE_END, .code = 7};

    (void)state;
    member_runs();
    end.failure.kind = FAILURE_WORKER;
    hear(10, end);
    told("kill0:15 kill1:15 ");
    pod_timeout(&p, 10 + SUP_LOOK_MS);
    pod_signal(&p, 20, SIGTERM); /* The first one: the grace goes on. */
    assert_int_equal(pod_deadline(&p), 10 + p.cfg.grace_ms);
    pod_signal(&p, 21, SIGTERM);
    assert_int_equal(pod_deadline(&p), 21); /* No grace any more. */
    all_gone(30);
    assert_int_equal(p.state, POD_LEAVING);
    pod_signal(&p, 40, SIGTERM);
    assert_int_equal(p.state, POD_GONE);
    assert_int_equal(p.exit_code, 7);
}

/* STOP while the workers have ended and what they left is cleaned up. */
static void test_stop_while_cleaning_up(void **state)
{
    (void)state;
    member_runs();
    ends(10, 0, 0);
    ends(10, 1, 0);
    told("sweep:15 ");
    hear(11, stop(0, 0));
    pod_swept(&p, 12, 0, false);
    told("ARRIVED ");
    assert_int_equal(sent.round, 1);
    assert_int_equal(p.state, POD_WAITING);
}

static void test_stop_after_done(void **state)
{
    (void)state;
    member_runs();
    ends(10, 0, 0);
    ends(10, 1, 0);
    pod_swept(&p, 12, 0, false);
    told("sweep:15 DONE ");
    assert_int_equal(p.state, POD_FINISHED);
    hear(20, stop(0, 1500));
    told("ARRIVED ");
    assert_string_equal(said, "node rank 2 is gone; stopping all workers, next "
                              "round in 1.5 s");
}

/* Where nothing failed pod 0 has the words: --restart-policy always, a pod
 * that joins. */
static void test_stop_without_a_failure(void **state)
{
    struct wire_msg m = stop(0, 1500);

    (void)state;
    member_runs();
    ends(10, 0, 0);
    ends(10, 1, 0);
    pod_swept(&p, 12, 0, false);
    m.failure.kind = FAILURE_NONE;
    memcpy(m.failure.text, "all workers ended", 18);
    memcpy(m.text, "restart 1 of 3", 15);
    hear(20, m);
    told("sweep:15 DONE ARRIVED ");
    assert_string_equal(said, "all workers ended; next round in 1.5 s "
                              "(restart 1 of 3)");
}

/* Of another round than the one that runs: it is not about these workers. */
static void test_old_stop(void **state)
{
    (void)state;
    make(1, 2, false);
    pod_link_up(&p, 2);
    hear(3, admitted);
    story[0] = '\0';
    hear(4, stop(0, 0)); /* Nothing has run yet. */
    told("");
    hear(5, (struct wire_msg){.kind = WIRE_START, .round = 3});
    told("spawn3 ");
    hear(6, stop(2, 0));
    hear(7, (struct wire_msg){.kind = WIRE_START, .round = 3});
    told("");
    assert_int_equal(p.state, POD_RUNNING);
}

static void test_heartbeats(void **state)
{
    (void)state;
    member_runs();
    hear(11, (struct wire_msg){.kind = WIRE_PING});
    told("PING "); /* The answer. */
    assert_int_equal(pod_deadline(&p), 11 + POD_PING_MS);
    pod_timeout(&p, 11 + POD_PING_MS);
    told("PING "); /* Pod 0 should have said something by now. */
}

/* Pod 0 says nothing, and the connection stays open. */
static void test_silent_pod_0(void **state)
{
    uint64_t end = 4 + BARRIER_SILENCE_MS; /* START was at 4. */

    (void)state;
    member_runs();
    for (uint64_t t = 5000; t < end; t += 1000)
        pod_timeout(&p, t);
    assert_null(strstr(story, "abort"));
    assert_true(pod_deadline(&p) <= end);
    story[0] = '\0';
    pod_timeout(&p, end);
    /* Its end would say that nothing runs here any more. */
    told("kill0:15 kill1:15 ");
    assert_int_equal(p.state, POD_STOPPING);
    assert_true(pod_deadline(&p) > end);
    ends(end + 10, 0, 143);
    ends(end + 10, 1, 143);
    pod_swept(&p, end + 20, 0, false);
    told("sweep:15 abort "); /* And no ARRIVED before. */
    pod_timeout(&p, end + 20 + POD_RETRY_MIN_MS);
    pod_link_up(&p, end + 200);
    told("connect HELLO ");
    assert_int_equal(sent.last_zero, 1);
    assert_int_equal(sent.last_end, WIRE_END_SILENT);
}

/* It is heard again while its workers stop: the connection goes on. */
static void test_silent_for_a_while(void **state)
{
    uint64_t end = 4 + BARRIER_SILENCE_MS;

    (void)state;
    member_runs();
    pod_timeout(&p, end);
    hear(end + 5, (struct wire_msg){.kind = WIRE_PING});
    story[0] = '\0';
    ends(end + 10, 0, 143);
    ends(end + 10, 1, 143);
    pod_swept(&p, end + 20, 0, false);
    told("sweep:15 ARRIVED ");
    assert_int_equal(sent.round, 1);
}

/* Connect once more, to whomever. */
static void hello_again(uint64_t now)
{
    pod_timeout(&p, now);
    pod_link_up(&p, now);
    assert_int_equal(sent.kind, WIRE_HELLO);
}

/* Machine and network stood still; what was on its way comes at last. */
static void test_old_frames(void **state)
{
    uint64_t late = 3 + BARRIER_SILENCE_MS;

    (void)state;
    make(1, 2, false);
    pod_link_up(&p, 2);
    hear(3, admitted);
    story[0] = '\0';
    hear(late, (struct wire_msg){.kind = WIRE_PING});
    hear(late, (struct wire_msg){.kind = WIRE_START, .round = 0});
    assert_int_equal(p.state, POD_WAITING);
    told("PING ");
    assert_true(pod_deadline(&p) <= late + POD_STALE_MS);
    pod_timeout(&p, late + POD_STALE_MS);
    told("abort "); /* And anew. */
    hello_again(late + POD_STALE_MS + POD_RETRY_MIN_MS);
    assert_int_equal(sent.last_end, WIRE_END_SILENT);
    hear(late + 1000, admitted);
    hear(late + 1001, (struct wire_msg){.kind = WIRE_START, .round = 0});
    assert_int_equal(p.state, POD_RUNNING);

    make(1, 2, false); /* An end counts. */
    pod_link_up(&p, 2);
    hear(3, admitted);
    hear(late, (struct wire_msg){.kind = WIRE_END, .code = 7});
    assert_true(p.ended);
    assert_int_equal(p.exit_code, 7);
}


/* What HELLO tells a new pod 0 of the last one. */
static void test_how_pod_0_ended(void **state)
{
    struct wire_msg dropped = stop(0, 0);

    (void)state;
    make(1, 2, false);
    pod_link_up(&p, 2);
    assert_int_equal(sent.last_zero, 0);
    assert_int_equal(sent.last_end, WIRE_END_NONE);
    hear(3, admitted);
    pod_link_down(&p, 10, "reset");
    hello_again(200);
    assert_int_equal(sent.last_zero, admitted.incarnation);
    assert_int_equal(sent.last_end, WIRE_END_CLOSED);
    /* It is there, and then it is not heard any more. */
    pod_timeout(&p, 200 + BARRIER_SILENCE_MS);
    hello_again(201 + BARRIER_SILENCE_MS + POD_RETRY_MAX_MS);
    assert_int_equal(sent.last_end, WIRE_END_SILENT);

    member_runs(); /* Pod 0 lives, and takes this pod for lost. */
    dropped.failure.node_rank = 1;
    hear(10, dropped);
    pod_link_down(&p, 11, "closed");
    hello_again(200);
    assert_int_equal(sent.last_end, WIRE_END_SILENT);
    hear(201, admitted);
    pod_link_down(&p, 300, "reset");
    hello_again(500);
    assert_int_equal(sent.last_end, WIRE_END_CLOSED);
}

/* The next pod 0 waits for a silent one; its own end does not make that the
 * next but one's to forget. A round that starts does. */
static void test_pod_0_before_the_last_was_silent(void **state)
{
    struct wire_msg next = admitted;
    struct wire_msg start = {.kind = WIRE_START, .world_size = 4,
                             .group_size = 2, .group_rank = 1};

    (void)state;
    make(1, 2, false);
    pod_link_up(&p, 2);
    hear(3, admitted);
    pod_timeout(&p, 3 + BARRIER_SILENCE_MS);
    next.incarnation = 2;
    hello_again(4 + BARRIER_SILENCE_MS + POD_RETRY_MAX_MS);
    hear(17000, next);
    pod_link_down(&p, 17010, "closed");
    hello_again(17200);
    assert_int_equal(sent.last_zero, 2);
    assert_int_equal(sent.last_end, WIRE_END_SILENT);
    hear(17201, next);
    hear(17202, start);
    assert_int_equal(p.state, POD_RUNNING);
    pod_link_down(&p, 17300, "closed");
    hello_again(17500);
    assert_int_equal(sent.last_end, WIRE_END_CLOSED);
}

/* A connection that is made and then not answered is given up, too. */
static void test_no_welcome(void **state)
{
    (void)state;
    make(1, 2, false);
    pod_link_up(&p, 100);
    story[0] = '\0';
    pod_timeout(&p, 99 + BARRIER_SILENCE_MS);
    told("");
    pod_timeout(&p, 100 + BARRIER_SILENCE_MS);
    told("abort ");
    pod_timeout(&p, 100 + BARRIER_SILENCE_MS + POD_RETRY_MIN_MS);
    told("connect ");
}

/* Soon at first, then each second. */
static void test_retries(void **state)
{
    static const uint64_t waits[] = {100, 200, 400, 800, 1000, 1000, 1000};
    uint64_t now = 10;

    (void)state;
    make(1, 2, false);
    told("connect ");
    for (unsigned i = 0; i < sizeof waits / sizeof waits[0]; i++) {
        pod_link_down(&p, now, "connection refused");
        pod_link_down(&p, now, "connection refused");
        assert_int_equal(pod_deadline(&p), now + waits[i]);
        pod_timeout(&p, now + waits[i] - 1);
        told("");
        now += waits[i];
        pod_timeout(&p, now);
        told("connect ");
    }
    pod_link_up(&p, now);
    hear(now, admitted);
    pod_link_down(&p, now + 10, "reset"); /* From the start again. */
    assert_int_equal(pod_deadline(&p), now + 10 + POD_RETRY_MIN_MS);
}

/* Who is waited for, each ten seconds. */
static void test_says_what_it_waits_for(void **state)
{
    (void)state;
    make(1, 2, false);
    pod_link_down(&p, 10, "connection refused");
    assert_string_equal(said, "node rank 0 at z:1: connection refused, "
                              "retrying");
    said[0] = '\0';
    pod_timeout(&p, BARRIER_SUMMARY_MS);
    assert_string_equal(said, "");
    pod_timeout(&p, 1 + BARRIER_SUMMARY_MS);
    assert_string_equal(said, "waiting: node rank 0 at z:1 not reached yet: "
                              "connection refused; for at most 50 s more "
                              "(--barrier-timeout)");
    pod_link_up(&p, 20000);
    hear(20000, admitted);
    hear(20001, (struct wire_msg){.kind = WIRE_WAITING, .text = "node rank 2"});
    assert_string_equal(said, "waiting: node rank 2");
    hear(20002, (struct wire_msg){.kind = WIRE_WAITING, .text = "node rank 2",
                                  .bound = WIRE_BARRIER_TIMEOUT,
                                  .delay_ms = 589998});
    assert_string_equal(said, "waiting: node rank 2; for at most 9 min 50 s "
                              "more (--barrier-timeout)");
    assert_string_equal(p.waiting, "node rank 2");
    hear(20003, (struct wire_msg){.kind = WIRE_WAITING, .text = "node rank 2",
                                  .bound = WIRE_REJOIN_TIMEOUT,
                                  .delay_ms = 1});
    assert_string_equal(said, "waiting: node rank 2; for at most 1 s more "
                              "(--rejoin-timeout)");
    hear(20004, (struct wire_msg){.kind = WIRE_WAITING, .text = "node rank 2",
                                  .bound = WIRE_REJOIN_TIMEOUT + 1});
    assert_string_equal(said, "waiting: node rank 2");
    pod_link_down(&p, 20010, "reset");
    pod_timeout(&p, 20010 + BARRIER_SUMMARY_MS);
    assert_string_equal(said, "waiting: node rank 0 at z:1 seen and lost: "
                              "reset; for at most 20 s more "
                              "(--rejoin-timeout)");
}

/* A pod that has failed by itself tries for 30 s to tell of it, and says so. */
static void test_says_how_long_it_tells(void **state)
{
    (void)state;
    make(1, 2, true);
    pod_link_down(&p, 10, "connection refused");
    pod_fault(&p, 100, 66, "x is missing");
    pod_timeout(&p, 100 + BARRIER_SUMMARY_MS);
    assert_string_equal(said, "waiting: node rank 0 at z:1 not reached yet: "
                              "connection refused; for at most 20 s more");
    pod_timeout(&p, 100 + POD_REPORT_MS);
    assert_int_equal(p.state, POD_GONE);
    assert_int_equal(p.exit_code, 66);
}

static void test_lost_after_it_was_admitted(void **state)
{
    (void)state;
    make(1, 2, false);
    pod_link_up(&p, 2);
    hear(1000, admitted);
    pod_link_down(&p, 2000, "reset"); /* It counts from here. */
    pod_timeout(&p, 1999 + 30000);
    assert_int_not_equal(p.state, POD_GONE);
    pod_timeout(&p, 2000 + 30000);
    assert_int_equal(p.state, POD_GONE);
    assert_int_equal(p.exit_code, 201);
    assert_string_equal(p.cause.text, "node rank 0 at z:1 was lost and did not "
                                      "come back in time (--rejoin-timeout "
                                      "30 s): reset");
}

static struct wire_msg zero_stops(void)
{
    struct wire_msg m = stop(0, 0);

    m.failure = (struct failure){.kind = FAILURE_STOPPED, .code = 143,
                                 .signo = SIGTERM, .host = "w0"};
    return m;
}

/* Pod 0 has said that it leaves: it is not lost, and the verdict says so. */
static void test_pod_0_was_told_to_stop(void **state)
{
    (void)state;
    for (int running = 0; running < 2; running++) {
        if (running) {
            member_runs();
        } else { /* While the pods gather it is said, too. */
            make(1, 2, true);
            pod_link_up(&p, 2);
            hear(3, admitted);
        }
        hear(10, zero_stops());
        assert_non_null(strstr(said, "node rank 0 (host w0) was told to stop "
                                     "from outside (SIGTERM)"));
        if (running)
            all_gone(20);
        pod_link_down(&p, 2000, "closed");
        pod_timeout(&p, 2000 + BARRIER_SUMMARY_MS);
        assert_non_null(strstr(said, "node rank 0 at z:1 told to stop from "
                                     "outside"));
        pod_timeout(&p, 2000 + 30000);
        assert_int_equal(p.exit_code, 201);
        assert_int_equal(p.cause.kind, FAILURE_STOPPED);
        assert_int_equal(p.cause.signo, SIGTERM);
        assert_int_equal(p.cause.node_rank, 0);
    }
}

/* But another one took its place, and is lost by itself. */
static void test_next_pod_0_is_lost(void **state)
{
    struct wire_msg next = admitted;

    (void)state;
    make(1, 2, false);
    pod_link_up(&p, 2);
    hear(3, admitted);
    hear(10, zero_stops());
    pod_link_down(&p, 20, "closed");
    pod_link_up(&p, 30);
    next.incarnation = 2;
    hear(40, next);
    pod_link_down(&p, 50, "reset");
    pod_timeout(&p, 50 + 30000);
    assert_int_equal(p.cause.kind, FAILURE_LOST);
}

/* Its own fault is more than that nobody was there to hear of it. */
static void test_fault_and_nobody_there(void **state)
{
    (void)state;
    make(1, 2, true);
    pod_link_down(&p, 10, "connection refused");
    pod_fault(&p, 59000, 65, "x is wrong");
    pod_timeout(&p, 1 + 60000);
    assert_int_equal(p.exit_code, 65);
    assert_string_equal(p.cause.text, "x is wrong");
}

static void test_refusal_in_words(void **state)
{
    struct wire_msg m = {.kind = WIRE_REFUSE, .code = 78, .text = "too many"};

    (void)state;
    make(1, 2, true);
    pod_link_up(&p, 2);
    hear(3, m);
    told("stage connect HELLO unstage ");
    assert_int_equal(p.exit_code, 78);
    assert_string_equal(p.cause.text, "node rank 0 at z:1 refuses this pod: "
                                      "too many");
}

/* Pod 0 says which node rank this is, and may be replaced by a new agent. */
static void test_rank_is_given(void **state)
{
    struct wire_msg m = admitted;

    (void)state;
    make(WIRE_ANY_RANK, 4, false);
    p.cfg.any_rank = true;
    pod_link_up(&p, 2);
    assert_int_equal(sent.node_rank, WIRE_ANY_RANK);
    assert_int_equal(sent.any_rank, 1);
    m.node_rank = 3;
    m.round = 6;
    hear(3, m);
    assert_string_equal(said, "this pod is node rank 3");
    assert_int_equal(sent.kind, WIRE_ARRIVED);
    assert_int_equal(sent.round, 6);
    pod_link_down(&p, 10, "reset");
    pod_link_up(&p, 20);
    assert_int_equal(sent.node_rank, 3); /* As before, if that can be. */
    m.incarnation = 2;
    hear(21, m);
    assert_string_equal(said, "node rank 0 is a new agent now");
}

/* On pod 0: connections that are closed, for whatever reason. */
static void test_strangers(void **state)
{
    (void)state;
    make(0, 2, false);
    pod_conn_open(&p, 10, 1, "10.0.0.9:1");
    pod_conn_garbage(&p, 11, 1, "no frame of agent", 0);
    told("abort1 ");
    pod_conn_closed(&p, 12, 1);
    pod_conn_open(&p, 13, 2, "10.0.0.9:2");
    pod_conn_garbage(&p, 14, 2, "another protocol version", 9);
    told("2:REFUSE close2 ");
    pod_conn_closed(&p, 15, 2);
    assert_int_equal(p.state, POD_WAITING);
}

/* What outlives SIGKILL is the pod's fault, and all hear of it. */
static void test_stuck(void **state)
{
    uint64_t t;

    (void)state;
    member_runs();
    hear(10, stop(0, 0));
    pod_swept(&p, 10, 0, false);
    for (t = 1010; p.state == POD_STOPPING && t < 30000; t += 100) {
        hear(t, (struct wire_msg){.kind = WIRE_PING});
        pod_timeout(&p, t);
        pod_swept(&p, t, 1, false);
    }
    assert_int_equal(p.state, POD_FAILING);
    assert_int_equal(sent.kind, WIRE_FAILED);
    assert_int_equal(sent.failure.kind, FAILURE_AGENT);
    assert_int_equal(sent.failure.code, 202);
}

static void test_nonsense(void **state)
{
    static const enum wire_kind kinds[] = {WIRE_HELLO, WIRE_PROGRESS,
                                           WIRE_ARRIVED, WIRE_FAILED,
                                           WIRE_DONE, WIRE_BYE};

    (void)state;
    member_runs();
    for (unsigned i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        hear(10, (struct wire_msg){.kind = kinds[i]});
    told("");
    assert_int_equal(p.state, POD_RUNNING);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_budget),
        cmocka_unit_test(test_staging),
        cmocka_unit_test(test_told_to_stop_while_staging),
        cmocka_unit_test(test_told_to_stop_while_failing),
        cmocka_unit_test(test_end_after_term),
        cmocka_unit_test(test_term_after_the_end),
        cmocka_unit_test(test_stop_while_cleaning_up),
        cmocka_unit_test(test_stop_after_done),
        cmocka_unit_test(test_stop_without_a_failure),
        cmocka_unit_test(test_old_stop),
        cmocka_unit_test(test_heartbeats),
        cmocka_unit_test(test_silent_pod_0),
        cmocka_unit_test(test_silent_for_a_while),
        cmocka_unit_test(test_how_pod_0_ended),
        cmocka_unit_test(test_pod_0_before_the_last_was_silent),
        cmocka_unit_test(test_old_frames),
        cmocka_unit_test(test_no_welcome),
        cmocka_unit_test(test_retries),
        cmocka_unit_test(test_says_what_it_waits_for),
        cmocka_unit_test(test_says_how_long_it_tells),
        cmocka_unit_test(test_lost_after_it_was_admitted),
        cmocka_unit_test(test_pod_0_was_told_to_stop),
        cmocka_unit_test(test_next_pod_0_is_lost),
        cmocka_unit_test(test_fault_and_nobody_there),
        cmocka_unit_test(test_refusal_in_words),
        cmocka_unit_test(test_rank_is_given),
        cmocka_unit_test(test_cut_off_while_it_is_stopping),
        cmocka_unit_test(test_strangers),
        cmocka_unit_test(test_stuck),
        cmocka_unit_test(test_nonsense),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
