/* barrier: which failure is worth a restart, how many there are, and how long
 * each is waited for. */
#include "barrier_fixture.h"

#include <signal.h>

#include "rendezvous/barrier_policy.h"

/* A worker of pod 1 fails and nobody is another cause. */
static void fail_with(uint64_t now, int code)
{
    say(now, 1, failed(code, code > 128 ? code - 128 : 0));
    barrier_timeout(&b, now + BARRIER_SETTLE_MS);
}

/* Both pods are ready again, and the back-off is over. */
static void gather(uint64_t now)
{
    arrive(now, 1, b.round);
    arrive(now, BARRIER_LOCAL, b.round);
    if (b.not_before_ms > now) {
        say(b.not_before_ms - 1, 1, (struct wire_msg){.kind = WIRE_PING});
        barrier_timeout(&b, b.not_before_ms);
    }
    assert_int_equal(b.phase, BAR_RUN);
}

static void run_with(const struct barrier_config *c)
{
    begin_with(c);
    all_arrive();
}

/* Whether a worker's exit code ends the job under this configuration. */
static bool ends_job(const struct barrier_config *c, int code)
{
    run_with(c);
    fail_with(1000, code);
    if (b.phase == BAR_GATHER) {
        assert_int_equal(last.kind, WIRE_STOP);
        assert_int_equal(b.n_restarts, 1);
        return false;
    }
    assert_int_equal(b.phase, BAR_ENDING);
    assert_int_equal(last.kind, WIRE_END);
    assert_int_equal(last.code, code);
    assert_int_equal(b.n_restarts, 0);
    return true;
}

static void test_permanent_codes(void **state)
{
    struct barrier_config on_failure = usual(2), never = usual(2),
                          by_code = usual(2), listed = usual(2);

    (void)state;
    never.restart_never = true;
    by_code.restart_by_code = true;
    listed.no_restart_on[2] = listed.no_restart_on[255] = true;
    for (int code = 1; code < 256; code++) {
        bool no_exec = code == 126 || code == 127;

        if (ends_job(&on_failure, code) != no_exec ||
            !ends_job(&never, code) ||
            ends_job(&by_code, code) != (code < 128) ||
            ends_job(&listed, code) != (no_exec || code == 2 || code == 255))
            fail_msg("exit code %d", code);
    }
}

/* A pod's own failure is everybody's, at once. */
static void test_fault_of_a_pod(void **state)
{
    struct wire_msg m = {.kind = WIRE_FAILED};

    (void)state;
    begin(3);
    join(10, BARRIER_LOCAL, 0);
    join(10, 1, 1);
    story[0] = '\0';
    m.failure.kind = FAILURE_AGENT;
    m.failure.code = 65;
    m.failure.node_rank = 1;
    memcpy(m.failure.text, "x: wrong", 9);
    say(20, 1, m);
    told("0:END 1:END ");
    assert_int_equal(last.code, 65);
    assert_string_equal(last.failure.text, "x: wrong");
}

static void test_always(void **state)
{
    struct barrier_config c = usual(2);

    (void)state;
    c.restart_always = true;
    c.max_restarts = 1;
    run_with(&c);
    done(1000, BARRIER_LOCAL);
    done(1000, 1);
    told("0:STOP 1:STOP ");
    assert_string_equal(last.failure.text, "all workers ended with 0, and "
                                           "--restart-policy is always");
    gather(1010);
    story[0] = '\0';
    done(9000, 1);
    done(9000, BARRIER_LOCAL);
    told("0:END 1:END ");
    assert_int_equal(last.code, 0);
}

/* With a period the budget fills up again. */
static void test_always_within_a_period(void **state)
{
    struct barrier_config c = usual(2);

    (void)state;
    c.restart_always = true;
    c.max_restarts = 1;
    c.restart_period_ms = 60000;
    run_with(&c);
    done(1000, BARRIER_LOCAL);
    done(1000, 1);
    gather(1010);
    story[0] = '\0';
    done(61000, BARRIER_LOCAL); /* A minute later. */
    done(61000, 1);
    told("0:STOP 1:STOP ");
    gather(61010);
    story[0] = '\0';
    done(70000, BARRIER_LOCAL); /* Nine seconds. */
    done(70000, 1);
    told("0:END 1:END ");
    assert_int_equal(last.code, 0);
}

static void test_budget_within_a_period(void **state)
{
    struct barrier_config c = usual(2);

    (void)state;
    c.restart_period_ms = 60000; /* Two in a minute. */
    run_with(&c);
    fail_with(1000, 3);
    gather(1100);
    fail_with(30000, 3);
    gather(30100);
    fail_with(61100, 3); /* The first is forgotten. */
    assert_int_equal(b.phase, BAR_GATHER);
    assert_int_equal(b.n_restarts, 3);
    gather(61200);
    fail_with(80000, 3);
    assert_int_equal(b.phase, BAR_ENDING);
    assert_int_equal(b.end.code, 3);
    assert_int_equal(b.end.n_restarts, 3);
}

/* One rank, one code, early, three times: a bug that no restart mends. */
static void test_same_failure_limit(void **state)
{
    struct barrier_config c = usual(2);

    (void)state;
    c.same_limit = 3;
    c.max_restarts = 100;
    run_with(&c);
    fail_with(1000, 3);
    gather(1100);
    fail_with(b.round_ms + 10, 3);
    assert_string_equal(last.text, "restart 2 of 100");
    gather(b.round_ms + 100);
    fail_with(b.round_ms + 10, 4); /* Another code: the row begins anew. */
    gather(b.round_ms + 100);
    fail_with(b.round_ms + 10, 4);
    gather(b.round_ms + 100);
    say(b.round_ms + 10, 1, left()); /* A round that ends otherwise, too. */
    bye(b.round_ms + 10, 1);
    barrier_closed(&b, b.round_ms + 11, 1);
    come(b.not_before_ms, 1, hello(1, 900));
    gather(b.not_before_ms);
    fail_with(b.round_ms + 10, 4);
    gather(b.round_ms + 100);
    fail_with(b.round_ms + 10, 4);
    gather(b.round_ms + 100);
    assert_int_equal(b.n_restarts, 6);
    fail_with(b.round_ms + 10, 4);
    assert_int_equal(last.kind, WIRE_END);
    assert_int_equal(last.code, 4);
    assert_string_equal(last.text, "rank 0 failed 3 times in a row with 4 "
                        "within 10 s of its start (--same-failure-limit)");
    c.same_limit = 1;
    run_with(&c);
    fail_with(1000, 3);
    assert_string_equal(last.text, "rank 0 failed 1 time in a row with 3 "
                                   "within 10 s of its start "
                                   "(--same-failure-limit)");
}

/* Late failures, and those of several ranks, are worth their restarts. */
static void test_other_failures_are_not_the_same(void **state)
{
    struct barrier_config c = usual(2);

    (void)state;
    c.same_limit = 2;
    c.max_restarts = 4;
    run_with(&c);
    for (uint32_t i = 0; i < 4; i++) {
        struct wire_msg m = failed(3, 0);

        m.failure.rank = i % 2;
        m.failure.ran_ms = i < 2 ? BARRIER_SAME_MS : 10;
        say(b.round_ms + 10, 1, m);
        barrier_timeout(&b, b.round_ms + 10 + BARRIER_SETTLE_MS);
        gather(b.round_ms + 100);
    }
    assert_int_equal(b.n_restarts, 4);
    fail_with(b.round_ms + 10, 3);
    assert_string_equal(last.text, ""); /* "4 of 4 restarts" says it. */
}

/* A worker that may be started again alone: each question costs one restart,
 * asked again it is answered alike; a new agent's numbers begin anew. */
static void test_again(void **state)
{
    struct barrier_config c = usual(2);
    struct wire_msg m;
    uint64_t delay;

    (void)state;
    c.scope_worker = true;
    run_with(&c);
    m = failed(3, 0);
    m.serial = m.in_a_row = 1;
    say(1000, 1, m);
    told("0:AGAIN 1:AGAIN "); /* The other one hears of the restart alone. */
    assert_int_equal(last.serial, 1);
    assert_int_equal(last.go, 1);
    assert_int_equal(last.n_restarts, 1);
    delay = last.delay_ms;
    say(1001, 1, m);
    told("1:AGAIN ");
    assert_int_equal(last.delay_ms, delay);
    assert_int_equal(b.n_restarts, 1);
    m.serial = m.in_a_row = 2;
    say(2000, 1, m);
    told("0:AGAIN 1:AGAIN ");
    assert_in_range(last.delay_ms, 2000, 2500);
    m.serial = 3;
    say(3000, 1, m);
    told("0:END 1:END ");
    assert_int_equal(last.code, 3);
    c.scope_worker = false; /* Pod 0 decides: all are stopped. */
    run_with(&c);
    say(1000, 1, m);
    barrier_timeout(&b, 1000 + BARRIER_SETTLE_MS);
    told("0:STOP 1:STOP ");
}

/* What is told of a decision. */
static void test_reasons(void **state)
{
    static const struct {
        int code;
        const char *why;
    } cases[] = {
        {127, "127 is permanent: a command that cannot be run"},
        {2, "--no-restart-on has 2"},
        {9, "--restart-policy exit-code: below 128 is permanent"},
    };
    struct barrier_config c = usual(2);

    (void)state;
    c.no_restart_on[2] = c.restart_by_code = true;
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        run_with(&c);
        fail_with(1000, cases[i].code);
        assert_int_equal(last.kind, WIRE_END);
        assert_string_equal(last.text, cases[i].why);
    }
    c.restart_never = true;
    run_with(&c);
    fail_with(1000, 255);
    assert_string_equal(last.text, "--restart-policy is never");
    c = usual(2);
    c.restart_period_ms = 60000;
    c.max_restarts = 1;
    run_with(&c);
    fail_with(1000, 1);
    assert_string_equal(last.text, "restart 1, at most 1 within 60 s");
    gather(1100);
    fail_with(b.round_ms + 10, 1);
    assert_string_equal(last.text, "all 1 within 60 s are used");
}

static void test_no_budget(void **state)
{
    struct barrier_config c = usual(2);

    (void)state;
    c.max_restarts = 0;
    run_with(&c);
    fail_with(1000, 3);
    assert_int_equal(b.end.code, 3);
}

/* Doubles up to the maximum, and up to a quarter more; never below the minimum
 * or above the maximum. */
static void test_backoff_bounds(void **state)
{
    struct barrier_config c = usual(2);
    uint64_t shortest = UINT64_MAX, longest = 0;

    (void)state;
    c.backoff_max_ms = 30000;
    c.max_restarts = 100;
    for (uint64_t seed = 0; seed < 100; seed++) {
        uint64_t now = 1000, want = 1000;

        c.seed = seed * 2654435761u;
        run_with(&c);
        for (unsigned i = 0; i < 8; i++) {
            fail_with(now, 1);
            assert_in_range(last.delay_ms, want < 30000 ? want : 22500,
                            want < 24000 ? want + want / 4 : 30000);
            assert_int_equal(b.not_before_ms,
                             now + BARRIER_SETTLE_MS + last.delay_ms);
            if (i == 0 && last.delay_ms < shortest)
                shortest = last.delay_ms;
            if (i == 0 && last.delay_ms > longest)
                longest = last.delay_ms;
            gather(now + 70);
            now = b.round_ms + 100;
            want = want >= 15000 ? 30000 : want * 2;
        }
    }
    assert_true(longest - shortest > 100); /* Jobs do not march in step. */
}

/* No back-off asked for, or one that stays. */
static void test_backoff_edges(void **state)
{
    struct barrier_config c = usual(2);

    (void)state;
    c.backoff_min_ms = c.backoff_max_ms = 0;
    run_with(&c);
    fail_with(1000, 1);
    assert_int_equal(last.delay_ms, 0);
    gather(1070);
    fail_with(2000, 1);
    assert_int_equal(last.delay_ms, 0);

    c.backoff_min_ms = 9000; /* Above the maximum. */
    c.backoff_max_ms = 4000;
    run_with(&c);
    fail_with(1000, 1);
    assert_in_range(last.delay_ms, 3000, 4000);

    /* As long as is said, each time. */
    c.backoff_min_ms = c.backoff_max_ms = 4000;
    for (c.seed = 1; c.seed < 100; c.seed++) {
        run_with(&c);
        fail_with(1000, 1);
        assert_int_equal(last.delay_ms, 4000);
    }
    c.backoff_max_ms = 4100; /* Less than a quarter more. */
    for (c.seed = 1; c.seed < 100; c.seed++) {
        run_with(&c);
        fail_with(1000, 1);
        assert_in_range(last.delay_ms, 4000, 4100);
    }
}

static void test_health_resets_the_backoff(void **state)
{
    struct barrier_config c = usual(2);

    (void)state;
    c.max_restarts = 10;
    run_with(&c);
    fail_with(1000, 1);
    gather(1100);
    fail_with(5000, 1);
    assert_in_range(last.delay_ms, 2000, 2500);
    gather(5100);
    fail_with(b.round_ms + c.restart_reset_ms, 1);
    assert_in_range(last.delay_ms, 1000, 1250);
    assert_int_equal(b.n_restarts, 3); /* The budget is the job's. */
}

/* Pod 1 is lost and a new one takes its place. */
static void replace(uint64_t now, uint64_t incarnation)
{
    struct wire_msg m = hello(1, incarnation);

    barrier_closed(&b, now, 1);
    m.round = b.round;
    come(now + 1000, 1, m);
    barrier_timeout(&b, now + BARRIER_RESUME_MS);
}

/* What ends a healthy round need not be a failure that costs a restart. */
static void test_free_ends_reset_the_backoff(void **state)
{
    struct barrier_config c = usual(2);

    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        bool healthy = i & 1, is_loss = i & 2;
        uint64_t end;

        run_with(&c);
        fail_with(1000, 1);
        gather(1100);
        end = b.round_ms + c.restart_reset_ms - (healthy ? 0 : 5000);
        if (is_loss) {
            replace(end, 201);
        } else {
            say(end, 1, left());
            say(end, 1, (struct wire_msg){.kind = WIRE_BYE});
            replace(end + 10, 201);
        }
        assert_int_equal(b.n_restarts, 1);
        gather(end + BARRIER_RESUME_MS + 100);
        fail_with(end + 10000, 1);
        assert_int_equal(b.n_restarts, 2);
        assert_in_range(last.delay_ms, healthy ? 1000 : 2000,
                        healthy ? 1250 : 2500);
    }
}

static void test_losses(void **state)
{
    (void)state;
    run_all(2);
    replace(1000, 201);
    told("0:STOP 1:WELCOME ");
    assert_int_equal(b.n_restarts, 0); /* The first of a rank is free. */
    gather(3100);
    replace(4000, 202);
    assert_int_equal(b.n_restarts, 1); /* The second is not. */
    gather(6100);
    replace(b.round_ms + cfg.restart_reset_ms, 203);
    assert_int_equal(b.n_restarts, 1); /* After health it is, again. */
    assert_int_equal(b.phase, BAR_GATHER);
}

static void test_loss_without_restarts(void **state)
{
    struct barrier_config c = usual(2);

    (void)state;
    c.restart_never = true;
    run_with(&c);
    barrier_closed(&b, 1000, 1);
    barrier_timeout(&b, 1000 + BARRIER_RESUME_MS);
    told("0:END ");
    assert_int_equal(last.code, 201);
    assert_string_equal(last.failure.text, "node rank 1 (w1, 10.0.0.1:1) "
                        "closed its connection and did not come back within "
                        "2 s");
}

/* STOP tells pod 0's own side of a lost pod; only where none is sent, or is
 * about another failure, is it said beside it. */
static void test_a_loss_is_said_once(void **state)
{
    (void)state;
    run_all(2);
    logged[0] = '\0';
    barrier_closed(&b, 1000, 1);
    barrier_timeout(&b, 1000 + BARRIER_RESUME_MS);
    told("0:STOP ");
    assert_null(strstr(logged, "did not come back"));
    run_all(3);
    logged[0] = '\0';
    barrier_closed(&b, 1000, 1);
    say(999 + BARRIER_RESUME_MS, 2, failed(3, 0));
    barrier_timeout(&b, 1000 + BARRIER_RESUME_MS);
    assert_int_equal(last.failure.kind, FAILURE_WORKER);
    assert_non_null(strstr(logged, "node rank 1 (w1, 10.0.0.1:1) closed"));
    begin(2);
    join(10, 1, 1);
    logged[0] = '\0';
    barrier_closed(&b, 1000, 1);
    barrier_timeout(&b, 1000 + BARRIER_RESUME_MS);
    assert_non_null(strstr(logged, "node rank 1 (w1, 10.0.0.1:1) closed"));
}

/* An announced stop is free, but the pod must come back in time. */
static void test_told_to_stop(void **state)
{
    (void)state;
    run_all(2);
    logged[0] = '\0';
    say(1000, 1, left());
    told("0:STOP ");
    assert_null(strstr(logged, "told to stop"));
    assert_int_equal(b.n_restarts, 0);
    assert_int_equal(last.delay_ms, 0);
    barrier_closed(&b, 1100, 1);
    arrive(1200, BARRIER_LOCAL, 1);
    barrier_timeout(&b, 1000 + cfg.rejoin_timeout_ms - 1);
    assert_int_equal(b.phase, BAR_GATHER);
    barrier_timeout(&b, 1000 + cfg.rejoin_timeout_ms);
    assert_int_equal(last.kind, WIRE_END);
    assert_int_equal(last.code, 201);
    assert_int_equal(last.failure.kind, FAILURE_STOPPED);
    assert_int_equal(last.failure.signo, SIGTERM);
    assert_int_equal(last.failure.node_rank, 1);
    assert_string_equal(last.failure.host, "w1");
    assert_string_equal(last.failure.text,
                        "did not come back in time (--rejoin-timeout 5 min)");
}

static void test_several_do_not_come_back(void **state)
{
    (void)state;
    run_all(3);
    say(1000, 1, left());
    say(1000, 2, left());
    barrier_closed(&b, 1100, 1);
    barrier_closed(&b, 1100, 2);
    arrive(1200, BARRIER_LOCAL, 1);
    barrier_timeout(&b, 1000 + cfg.rejoin_timeout_ms);
    assert_int_equal(last.kind, WIRE_END);
    assert_string_equal(last.failure.text, "did not come back in time "
                        "(--rejoin-timeout 5 min)\nmissing: node ranks "
                        "1-2 told to stop from outside");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_permanent_codes),
        cmocka_unit_test(test_fault_of_a_pod),
        cmocka_unit_test(test_always),
        cmocka_unit_test(test_always_within_a_period),
        cmocka_unit_test(test_budget_within_a_period),
        cmocka_unit_test(test_same_failure_limit),
        cmocka_unit_test(test_other_failures_are_not_the_same),
        cmocka_unit_test(test_again),
        cmocka_unit_test(test_reasons),
        cmocka_unit_test(test_no_budget),
        cmocka_unit_test(test_backoff_bounds),
        cmocka_unit_test(test_backoff_edges),
        cmocka_unit_test(test_health_resets_the_backoff),
        cmocka_unit_test(test_free_ends_reset_the_backoff),
        cmocka_unit_test(test_losses),
        cmocka_unit_test(test_loss_without_restarts),
        cmocka_unit_test(test_a_loss_is_said_once),
        cmocka_unit_test(test_told_to_stop),
        cmocka_unit_test(test_several_do_not_come_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
