/* What is said while pods are missing: the summary, and what has changed. */
#include "barrier_fixture.h"

static struct auth auth_of_the_job(void)
{
    struct auth a = {.has_token = true};

    memset(a.key, 7, sizeof a.key);
    return a;
}

static void describes(uint64_t now, const char *want)
{
    char text[WIRE_TEXT_MAX];

    barrier_describe(&b, now, text, sizeof text);
    assert_string_equal(text, want);
}

/* The pods hear of it half a second later; pod 0 has said it at once. */
static void test_arrivals_are_told(void **state)
{
    (void)state;
    begin(4);
    join(10, BARRIER_LOCAL, 0);
    arrive(11, BARRIER_LOCAL, 0);
    join(20, 1, 1);
    arrive(21, 1, 0);
    join(30, 2, 2);
    story[0] = '\0';
    barrier_timeout(&b, barrier_deadline(&b));
    told("1:WAITING 2:WAITING ");
    assert_string_equal(last.text, "node rank 2 staging (0 %); node ranks 0-1 "
                                   "arrived; 2 of 4 pods are there");
    barrier_timeout(&b, 2000);
    told(""); /* Nothing new. */
    arrive(3000, 2, 0);
    barrier_timeout(&b, 3000 + BARRIER_NEWS_MS);
    told(""); /* A little more, for there are 4. */
    barrier_timeout(&b, 3004 + BARRIER_NEWS_MS);
    told("1:WAITING 2:WAITING ");
    assert_string_equal(last.text, "node rank 2 arrived; 3 of 4 pods are "
                                   "there");
}

/* Of two that stage, one hangs; the time is the longer one's. */
static void test_staging_that_stands_still_is_told(void **state)
{
    struct wire_msg m = {.kind = WIRE_PROGRESS, .percent = 40};

    (void)state;
    begin(3);
    join(10, BARRIER_LOCAL, 0);
    arrive(11, BARRIER_LOCAL, 0);
    join(20, 1, 1);
    join(20, 2, 2);
    describes(70000, "node ranks 1-2 staging (0 %)");
    say(30000, 1, m);
    m.percent = 50;
    say(70000, 2, m);
    describes(89999, "node ranks 1-2 staging (40 to 50 %)");
    describes(90000, "node ranks 1-2 staging (40 to 50 %), no progress for 60 "
                     "s");
    say(90001, 1, m);
    describes(90001, "node ranks 1-2 staging (50 %)");
}

static void test_a_start_is_news_enough(void **state)
{
    (void)state;
    run_all(3);
    barrier_timeout(&b, 3000);
    told("");
    say(4000, 1, failed(1, 0));
    say(4000, 2, failed(1, 0));
    barrier_timeout(&b, 4000 + BARRIER_SETTLE_MS);
    assert_int_equal(b.phase, BAR_GATHER);
    story[0] = '\0';
    for (uint32_t i = 0; i < 3; i++)
        arrive(4100, i, 1);
    barrier_timeout(&b, 4100 + BARRIER_NEWS_MS + 3);
    told(""); /* All are there, and the back-off is known. */
}

static void test_a_loss_is_told(void **state)
{
    (void)state;
    begin(4);
    for (uint32_t i = 0; i < 3; i++) {
        join(10, i, i);
        arrive(11, i, 0);
    }
    barrier_timeout(&b, 1000);
    story[0] = '\0';
    barrier_closed(&b, 2000, 2);
    barrier_timeout(&b, 2600);
    told(""); /* It may come back. */
    barrier_timeout(&b, 2000 + BARRIER_RESUME_MS);
    barrier_timeout(&b, 2600 + BARRIER_RESUME_MS);
    told("1:WAITING ");
    assert_string_equal(last.text, "node rank 2 seen and lost, last heard 4.5 "
                                   "s ago at 10.0.0.2:1; 2 of 4 pods are "
                                   "there");
    barrier_timeout(&b, 9000);
    told("");
    join(9001, 7, 2); /* The same agent, after all. */
    story[0] = '\0';
    arrive(9002, 7, 0);
    barrier_timeout(&b, 9900);
    told("1:WAITING 7:WAITING ");
}

/* It is not just missing: it was there, and wrong. */
static void test_refused(void **state)
{
    struct wire_msg m = hello(1, 900);

    (void)state;
    begin(4);
    join(10, BARRIER_LOCAL, 0);
    join(10, 3, 3);
    memcpy(m.job_id, "other", 6);
    come(20, 5, m);
    m = hello(2, 901);
    m.node_rank = 77;
    m.nnodes = 78;
    memcpy(m.job_id, "other", 6);
    come(21, 6, m); /* No such rank here. */
    describes(30, "node rank 2 not seen yet; node rank 1 refused (wrong job "
                  "id); node ranks 0,3 staging (0 %)");
    barrier_timeout(&b, 1000);
    assert_string_equal(last.text,
                        "node rank 1 refused (wrong job id); node ranks 0,3 "
                        "staging (0 %); 0 of 4 pods are there");
    join(2000, 1, 1);
    describes(2000, "node rank 2 not seen yet; node ranks 0-1,3 staging (0 "
                    "%)");
}

static void test_wrong_token(void **state)
{
    struct barrier_config c = usual(3);

    (void)state;
    c.auth = auth_of_the_job();
    begin_with(&c);
    join(10, BARRIER_LOCAL, 0);
    join(11, 1, 1); /* Without any. */
    describes(30, "node rank 2 not seen yet; node rank 1 refused (wrong "
                  "token); node rank 0 staging (0 %)");
}

/* Who joins a job that runs is told the number of pods, and why not. */
static void test_wrong_nnodes(void **state)
{
    struct wire_msg m = hello(1, 900);

    (void)state;
    run_all(3);
    barrier_closed(&b, 1000, 1);
    barrier_timeout(&b, 1000 + BARRIER_RESUME_MS);
    m.nnodes = 9;
    come(4000, 5, m);
    describes(4000, "node rank 1 seen and lost, last heard 3.9 s ago at "
                    "10.0.0.1:1; node ranks 0,2 still stopping the workers of "
                    "the last round");
}

/* All are there and wait for the lease of one that was silent: 20 s and more
 * in which nobody would know why nothing happens. */
static void test_a_fence_is_told(void **state)
{
    (void)state;
    run_all(2);
    barrier_timeout(&b, 11 + BARRIER_SILENCE_MS); /* Pod 1 is silent. */
    assert_int_equal(b.phase, BAR_GATHER);
    arrive(15100, BARRIER_LOCAL, 1);
    barrier_timeout(&b, 16000);
    join(18000, 2, 1);
    arrive(18001, 2, 1);
    story[0] = '\0';
    barrier_timeout(&b, 18003 + BARRIER_NEWS_MS);
    told("0:WAITING 2:WAITING "); /* Pod 0 says it, too. */
    assert_string_equal(last.text, "node rank 1 arrived; 2 of 2 pods are "
                                   "there; no round starts within 18 s: "
                                   "workers of a pod that was silent may "
                                   "still run");
    barrier_timeout(&b, 19000);
    told("");
    barrier_timeout(&b, 11 + BARRIER_SILENCE_MS + BARRIER_SUMMARY_MS);
    assert_string_equal(last.text, "2 of 2 pods are there; no round starts "
                                   "within 12 s: workers of a pod that was "
                                   "silent may still run");
    told("0:WAITING 2:WAITING ");
    say(30000, 2, (struct wire_msg){.kind = WIRE_PING});
    barrier_timeout(&b, 11 + BARRIER_SILENCE_MS + 22000);
    assert_int_equal(b.phase, BAR_RUN);
}

static void bound(uint64_t now, enum wire_bound want, uint64_t left)
{
    barrier_timeout(&b, now);
    assert_int_equal(last.kind, WIRE_WAITING);
    assert_int_equal(last.bound, want);
    assert_int_equal(last.delay_ms, left);
    last.kind = WIRE_PING;
}

/* With who is missing goes how long they are waited for, by which option. */
static void test_how_long(void **state)
{
    struct barrier_config c = usual(3);

    (void)state;
    begin_with(&c);
    join(10, BARRIER_LOCAL, 0);
    arrive(11, BARRIER_LOCAL, 0);
    bound(1 + BARRIER_SUMMARY_MS, WIRE_BARRIER_TIMEOUT,
          c.barrier_timeout_ms - BARRIER_SUMMARY_MS);
    join(12000, 1, 1);
    join(12000, 2, 2);
    bound(13000, WIRE_BARRIER_TIMEOUT, c.barrier_timeout_ms - 12999);
    say(14000, 1, (struct wire_msg){.kind = WIRE_PROGRESS, .percent = 5});
    say(14000, 2, (struct wire_msg){.kind = WIRE_PROGRESS, .percent = 5});
    bound(1 + 2 * BARRIER_SUMMARY_MS, WIRE_NO_BOUND, 0); /* They move. */
    arrive(21000, 1, 0);
    arrive(21000, 2, 0);
    assert_int_equal(b.phase, BAR_RUN);
    say(22000, 1, left());
    say(22001, 1, (struct wire_msg){.kind = WIRE_BYE});
    barrier_closed(&b, 22002, 1);
    arrive(22003, BARRIER_LOCAL, 1);
    bound(22000 + BARRIER_SUMMARY_MS, WIRE_REJOIN_TIMEOUT,
          c.rejoin_timeout_ms - BARRIER_SUMMARY_MS);
    b.cfg.rejoin_timeout_ms = c.barrier_timeout_ms * 2;
    say(32500, 2, (struct wire_msg){.kind = WIRE_PING});
    bound(22000 + 2 * BARRIER_SUMMARY_MS, WIRE_BARRIER_TIMEOUT,
          c.barrier_timeout_ms + c.grace_ms + BARRIER_HEAR_MS -
              2 * BARRIER_SUMMARY_MS); /* Pod 2 still stops. */
}

/* Enough have arrived, and yet no round starts: --pre-start hangs on one. */
static void test_how_long_of_one_that_prepares(void **state)
{
    struct barrier_config c = usual(2);
    uint64_t limit = c.barrier_timeout_ms + c.grace_ms + BARRIER_HEAR_MS;

    (void)state;
    c.min_nodes = 1;
    c.last_call_ms = 1000;
    begin_with(&c);
    all_arrive();
    say(2000, BARRIER_LOCAL, failed(3, 0));
    barrier_timeout(&b, 2000 + BARRIER_SETTLE_MS);
    arrive(2100, BARRIER_LOCAL, 1);
    say(2100, 1, (struct wire_msg){.kind = WIRE_PROGRESS,
                                   .percent = WIRE_PREPARING});
    bound(2000 + BARRIER_SETTLE_MS + BARRIER_SUMMARY_MS, WIRE_BARRIER_TIMEOUT,
          limit - BARRIER_SUMMARY_MS);
    limit += 2000 + BARRIER_SETTLE_MS;
    say(limit - 1, 1, (struct wire_msg){.kind = WIRE_PING});
    barrier_timeout(&b, limit - 1);
    assert_int_equal(b.phase, BAR_GATHER);
    barrier_timeout(&b, limit);
    assert_int_equal(b.end.code, 200);
}

/* Not the first of those that are away decides: the one that is too many. */
static void test_how_long_of_more(void **state)
{
    struct barrier_config c = usual(4);

    (void)state;
    c.min_nodes = 2;
    c.last_call_ms = 1000;
    begin_with(&c);
    all_arrive();
    assert_int_equal(b.phase, BAR_RUN);
    for (uint32_t i = 3; i > 0; i--) {
        say(2000 + i, i, left());
        say(2000 + i, i, (struct wire_msg){.kind = WIRE_BYE});
        barrier_closed(&b, 2000 + i, i);
    }
    arrive(2010, BARRIER_LOCAL, 1);
    bound(2003 + BARRIER_SUMMARY_MS, WIRE_REJOIN_TIMEOUT,
          c.rejoin_timeout_ms - BARRIER_SUMMARY_MS);
}

static void test_a_long_back_off_is_told(void **state)
{
    struct barrier_config c = usual(2);

    (void)state;
    c.backoff_min_ms = c.backoff_max_ms = 30000;
    begin_with(&c);
    all_arrive();
    say(4000, 1, failed(1, 0));
    barrier_timeout(&b, 4000 + BARRIER_SETTLE_MS);
    arrive(4100, 0, 1);
    arrive(4100, 1, 1);
    barrier_timeout(&b, 4700);
    story[0] = '\0';
    barrier_timeout(&b, 4000 + BARRIER_SETTLE_MS + BARRIER_SUMMARY_MS);
    told("0:WAITING 1:WAITING ");
    assert_non_null(strstr(last.text, "2 of 2 pods are there; no round starts "
                                      "within "));
    assert_non_null(strstr(last.text, ": the back-off after a failure"));
}

/* Why node rank 2 does not come: its pod says that it is node rank 1. */
static void test_a_twin_is_told(void **state)
{
    (void)state;
    begin(3);
    join(10, BARRIER_LOCAL, 0);
    arrive(11, BARRIER_LOCAL, 0);
    join(20, 1, 1);
    arrive(21, 1, 0);
    barrier_timeout(&b, 1000);
    come(1100, 5, hello(1, 900));
    say(1200, 1, (struct wire_msg){.kind = WIRE_PING});
    barrier_timeout(&b, 1100 + BARRIER_PROBE_MS);
    story[0] = '\0';
    barrier_timeout(&b, 1103 + BARRIER_PROBE_MS + BARRIER_NEWS_MS);
    told("1:WAITING ");
    assert_string_equal(last.text, "node rank 1 claimed twice (10.0.0.1:1 and "
                                   "10.0.0.5:1); 2 of 3 pods are there");
    describes(7100, "node rank 2 not seen yet; node rank 1 claimed twice "
                    "(10.0.0.1:1 and 10.0.0.5:1, 4 s ago)");
    come(8000, 6, hello(1, 901)); /* It has been restarted. */
    say(8100, 1, (struct wire_msg){.kind = WIRE_PING});
    barrier_timeout(&b, 8000 + BARRIER_PROBE_MS);
    story[0] = '\0';
    barrier_timeout(&b, 9900 + BARRIER_PROBE_MS); /* Heartbeat. */
    told("0:WAITING 1:WAITING "); /* The summary alone. */
    join(12000, 2, 2);
    arrive(12001, 2, 0);
    assert_int_equal(b.phase, BAR_RUN);
    say(20000, 1, failed(1, 0));
    barrier_timeout(&b, 20000 + BARRIER_SETTLE_MS);
    assert_int_equal(b.phase, BAR_GATHER);
    describes(40000, "node ranks 0-2 still stopping the workers of the last "
                     "round");
}

static void test_another_version_is_told(void **state)
{
    (void)state;
    begin(3);
    join(10, BARRIER_LOCAL, 0);
    join(20, 1, 1);
    barrier_timeout(&b, 1000);
    barrier_open(&b, 2000, 5, "10.0.0.5:1");
    barrier_garbage(&b, 2000, 5, "version", 8);
    story[0] = '\0';
    barrier_timeout(&b, 2003 + BARRIER_NEWS_MS);
    told("1:WAITING ");
    assert_string_equal(last.text, "a pod of protocol version 8 refused "
                                   "(10.0.0.5:1); 0 of 3 pods are there");
    barrier_open(&b, 4000, 6, "10.0.0.6:1");
    barrier_garbage(&b, 4000, 6, "version", 9);
    barrier_timeout(&b, 4100);
    story[0] = '\0';
    barrier_timeout(&b, 4103 + BARRIER_NEWS_MS);
    told(""); /* No stranger makes all pods talk. */
    describes(5000, "node rank 2 not seen yet; node ranks 0-1 staging (0 %); "
                    "a pod of protocol version 9 refused (10.0.0.6:1, 1 s "
                    "ago)");
}

/* Pod 0 would give it a rank: the verdict tells of it, beside the rank that is
 * missing. */
static void test_refused_without_a_rank(void **state)
{
    struct wire_msg m = hello(WIRE_ANY_RANK, 900);

    (void)state;
    begin(2);
    join(10, BARRIER_LOCAL, 0);
    arrive(11, BARRIER_LOCAL, 0);
    barrier_timeout(&b, 1000);
    m.any_rank = true;
    (void)snprintf(m.job_id, sizeof m.job_id, "other");
    come(2000, 5, m);
    refused(77, "wrong job id: this pod says 'other', the job here is 'job': "
                "give all pods of a job the same --job-id");
    describes(2100, "node rank 1 not seen yet; a pod refused (wrong job id; "
                    "10.0.0.5:1)");
    barrier_timeout(&b, 1 + cfg.barrier_timeout_ms);
    assert_int_equal(b.end.code, 200);
    assert_non_null(strstr(b.end.failure.text, "node rank 1 not seen yet; a "
                           "pod refused (wrong job id; 10.0.0.5:1, "));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arrivals_are_told),
        cmocka_unit_test(test_staging_that_stands_still_is_told),
        cmocka_unit_test(test_a_start_is_news_enough),
        cmocka_unit_test(test_a_loss_is_told),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_wrong_token),
        cmocka_unit_test(test_wrong_nnodes),
        cmocka_unit_test(test_a_fence_is_told),
        cmocka_unit_test(test_how_long),
        cmocka_unit_test(test_how_long_of_one_that_prepares),
        cmocka_unit_test(test_how_long_of_more),
        cmocka_unit_test(test_a_long_back_off_is_told),
        cmocka_unit_test(test_a_twin_is_told),
        cmocka_unit_test(test_another_version_is_told),
        cmocka_unit_test(test_refused_without_a_rank),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
