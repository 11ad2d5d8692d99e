/* pod: what runs again in one pod alone: --pre-start, and with --restart-scope
 * worker a worker that failed. */
#include "pod_fixture.h"

static struct pod_held held[2];

static void on_pre_start(void *c, uint32_t round)
{
    (void)c;
    add("pre%u ", round);
}

static void on_spawn_again(void *c, const struct pod_round *r, uint32_t worker,
                           uint32_t attempt)
{
    (void)c;
    (void)r;
    add("again%u#%u ", worker, attempt);
}

static void on_sweep_worker(void *c, uint32_t worker, int signo)
{
    (void)c;
    add("sweep%u:%d ", worker, signo);
}

/* A pod of one or of two; see make(). */
static void make_more(uint32_t rank, uint32_t nnodes, bool pre, bool scope)
{
    struct pod_config cfg = {.node_rank = rank, .nnodes = nnodes, .nproc = 2,
                             .max_restarts = 2, .incarnation = 9,
                             .barrier_timeout_ms = 60000,
                             .rejoin_timeout_ms = 30000, .grace_ms = 1000,
                             .has_pre_start = pre,
                             .restart_reset_ms = 600000, .job_id = "j",
                             .host = "h", .zero = "z:1"};
    struct barrier_config bc = {.incarnation = 9, .seed = 3, .nnodes = nnodes,
                                .job_id = "j", .barrier_timeout_ms = 60000,
                                .rejoin_timeout_ms = 30000, .grace_ms = 1000,
                                .backoff_min_ms = 100, .backoff_max_ms = 100,
                                .restart_reset_ms = 600000, .max_restarts = 2,
                                .scope_worker = scope, .same_limit = 3,
                                .master_port = 1};
    struct pod_out o = out;

    o.pre_start = on_pre_start;
    o.spawn_again = on_spawn_again;
    o.sweep_worker = on_sweep_worker;
    story[0] = '\0';
    memset(held, 0, sizeof held);
    memset(&p, 0, sizeof p);
    pod_init(&p, &cfg, &o, 1);
    if (scope)
        pod_hold_workers(&p, held);
    if (rank == 0)
        pod_own_barrier(&p, &bar, &bc, peers, conns, 4, 1);
    pod_start(&p, 1);
}

/* The process and all that it left are gone. */
static void all_gone(uint64_t now)
{
    while (p.sup.sweeping)
        pod_swept(&p, now, 0, false);
}

static void test_pre_start_comes_first(void **state)
{
    (void)state;
    make_more(0, 1, true, false);
    told("pre0 ");
    assert_int_equal(p.state, POD_PREPARING);
    ends(10, 0, 0);
    told("sweep:15 "); /* Its children do not survive. */
    pod_swept(&p, 10, 1, false);
    assert_int_equal(p.state, POD_PREPARING);
    pod_timeout(&p, pod_deadline(&p));
    told("sweep:0 ");
    pod_swept(&p, 50, 0, false);
    told("spawn0 ");
    ends(60, 0, 3); /* And before each round. */
    ends(61, 1, 143);
    story[0] = '\0';
    all_gone(62);
    told("pre1 ");
}

static void test_pre_start_fails(void **state)
{
    (void)state;
    make_more(0, 1, true, false);
    story[0] = '\0';
    ends(10, 0, 5);
    all_gone(11);
    assert_non_null(strstr(said, "--pre-start exited with 5 after 5 ms in "
                                 "round 0; it is tried again in "));
    assert_non_null(strstr(said, "(restart 1 of 2)"));
    told("sweep:15 ");
    pod_timeout(&p, pod_deadline(&p));
    told("pre0 ");
    ends(200, 0, 6);
    all_gone(201);
    pod_timeout(&p, pod_deadline(&p));
    ends(400, 0, 7);
    all_gone(401);
    assert_int_equal(p.state, POD_GONE);
    assert_int_equal(p.exit_code, 7);
    assert_int_equal(p.cause.kind, FAILURE_PREPARE);
}

static void test_pre_start_and_the_same_failure(void **state)
{
    (void)state;
    make_more(0, 1, true, false);
    bar.cfg.max_restarts = 9;
    for (uint64_t t = 10; t < 1000 && p.state != POD_GONE; t += 300) {
        ends(t, 0, 5);
        all_gone(t);
        pod_timeout(&p, t + 200);
    }
    assert_int_equal(bar.n_restarts, 2);
    assert_string_equal(p.why, "--pre-start failed 3 times in a row with 5 "
                               "within 10 s (--same-failure-limit)");
}

/* Stopped by a signal: TERM, KILL after the grace, no round. */
static void test_term_while_it_runs(void **state)
{
    (void)state;
    make_more(0, 1, true, false);
    pod_signal(&p, 9, SIGUSR1); /* It is no worker. */
    pod_signal(&p, 10, SIGTERM);
    told("pre0 kill0:15 ");
    pod_swept(&p, 10, 0, false);
    pod_timeout(&p, 1010);
    told("kill0:9 sweep:9 ");
    ends(1011, 0, 137);
    all_gone(1011);
    assert_int_equal(p.state, POD_GONE);
    assert_int_equal(p.exit_code, 143);
    make_more(0, 1, true, false);
    ends(10, 0, 5);
    all_gone(11); /* And in the back-off. */
    pod_signal(&p, 20, SIGTERM);
    assert_int_equal(p.state, POD_GONE);
    assert_int_equal(p.exit_code, 143);
}

/* The question is asked anew after a cut; an answer to another one is not
 * taken; a question that was answered gets the same answer. */
static void test_questions_over_a_cut(void **state)
{
    struct wire_msg again = {.kind = WIRE_AGAIN, .serial = 1, .go = 1,
                             .n_restarts = 1, .delay_ms = 100};

    (void)state;
    make_more(1, 2, true, false);
    told("pre0 connect ");
    p.cfg.node_rank = WIRE_ANY_RANK; /* It is told with WELCOME. */
    ends(10, 0, 5);
    all_gone(11);
    pod_link_up(&p, 20);
    story[0] = '\0';
    hear(21, (struct wire_msg){.kind = WIRE_WELCOME, .incarnation = 1,
                               .node_rank = 1});
    told("PROGRESS FAILED ");
    assert_int_equal(sent.serial, 1);
    assert_int_equal(sent.failure.kind, FAILURE_PREPARE);
    assert_int_equal(sent.failure.node_rank, 1);
    again.serial = 7;
    hear(22, again);
    assert_true(p.asks);
    again.serial = 1;
    hear(23, again);
    assert_int_equal(p.n_restarts, 1);
    hear(24, again); /* Twice is once. */
    pod_timeout(&p, 123);
    told("pre0 ");
}

static void scope_runs(void)
{
    make_more(0, 1, false, true);
    told("spawn0 ");
}

static void test_one_worker_again(void **state)
{
    (void)state;
    scope_runs();
    ends(10, 1, 3);
    told("sweep1:15 "); /* The other one is left alone. */
    assert_int_equal(p.state, POD_RUNNING);
    assert_int_equal(p.n_restarts, 1);
    pod_timeout(&p, 200);
    told(""); /* Not while something of it lives. */
    pod_worker_swept(&p, 200, 1, 1);
    pod_timeout(&p, pod_deadline(&p));
    told("sweep1:0 ");
    pod_worker_swept(&p, 230, 1, 0);
    told("again1#1 ");
    ends(300, 1, 4);
    pod_worker_swept(&p, 300, 1, 0);
    told("sweep1:15 ");
    pod_timeout(&p, pod_deadline(&p)); /* The back-off. */
    told("again1#2 ");
    ends(500, 0, 0);
    ends(501, 1, 0);
    told("sweep:15 ");
    all_gone(501);
    assert_int_equal(p.exit_code, 0);
}

static void test_what_a_worker_left_is_killed(void **state)
{
    (void)state;
    scope_runs();
    ends(10, 1, 3);
    pod_worker_swept(&p, 10, 1, 1);
    for (uint64_t t = 30; t < 1010; t = pod_deadline(&p)) {
        pod_timeout(&p, t);
        if (held[1].sweeping && !held[1].killed)
            pod_worker_swept(&p, t, 1, 1);
    }
    story[0] = '\0';
    pod_timeout(&p, 1010);
    told("sweep1:9 ");
    pod_worker_swept(&p, 1010, 1, 0);
    told("again1#1 ");
}

/* What outlives KILL ends the job, as it does after a round. */
/* It is tried again later than pod 0 said: why, and for how long yet. */
static void test_what_a_worker_left_takes_its_time(void **state)
{
    (void)state;
    scope_runs();
    p.cfg.grace_ms = p.sup.grace_ms = 5000;
    ends(10, 1, 3);
    said[0] = '\0';
    pod_worker_swept(&p, 1009, 1, 1);
    assert_string_equal(said, "");
    pod_worker_swept(&p, 1010, 1, 1);
    assert_string_equal(said, "1 process that rank 1 left behind runs on; for "
                              "at most 4 s more (--grace)");
    said[0] = '\0';
    pod_worker_swept(&p, 1400, 1, 1);
    assert_string_equal(said, ""); /* Once. */
}

static void test_stuck(void **state)
{
    (void)state;
    scope_runs();
    ends(10, 1, 3);
    pod_worker_swept(&p, 10, 1, 1);
    for (uint64_t t = 0; t < 20000 && p.state == POD_RUNNING; ) {
        t = pod_deadline(&p);
        pod_timeout(&p, t);
        if (held[1].sweeping)
            pod_worker_swept(&p, t, 1, 1);
    }
    assert_int_equal(p.state, POD_STOPPING);
    assert_non_null(strstr(said, "outlives SIGKILL"));
    assert_int_equal(p.n_held, 0);
}

static void test_budget_of_workers(void **state)
{
    (void)state;
    scope_runs();
    ends(10, 0, 3);
    ends(10, 1, 4);
    story[0] = '\0';
    pod_worker_swept(&p, 10, 0, 0);
    pod_worker_swept(&p, 10, 1, 0);
    pod_timeout(&p, 200);
    told("again0#1 again1#1 ");
    ends(300, 1, 5);
    all_gone(300);
    assert_non_null(strstr(story, "kill0:15"));
    assert_int_equal(p.exit_code, 5);
    assert_int_equal(p.cause.rank, 1);
}

/* TERM comes while one is dead: it is not started any more. */
static void test_no_start_while_stopping(void **state)
{
    (void)state;
    scope_runs();
    ends(10, 1, 3);
    pod_signal(&p, 20, SIGTERM);
    told("sweep1:15 kill0:15 ");
    pod_worker_swept(&p, 30, 1, 0);
    pod_swept(&p, 30, 0, false);
    pod_timeout(&p, 500);
    ends(600, 0, 143);
    all_gone(600);
    told("sweep:15 ");
    assert_int_equal(p.exit_code, 143);
}

/* `always`: who ended with 0 comes again, until the budget is used up. */
static void test_always(void **state)
{
    (void)state;
    scope_runs();
    p.cfg.restart_always = bar.cfg.restart_always = true;
    for (uint64_t t = 10; t < 700; t += 200) {
        ends(t, 0, 0);
        if (held[0].sweeping)
            pod_worker_swept(&p, t, 0, 0);
        pod_timeout(&p, t + 150);
    }
    assert_int_equal(p.n_restarts, 2);
    assert_int_equal(p.state, POD_RUNNING); /* Worker 1 runs on. */
    story[0] = '\0';
    ends(900, 1, 0);
    told("sweep1:15 sweep:15 ");
    all_gone(900);
    assert_int_equal(p.exit_code, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pre_start_comes_first),
        cmocka_unit_test(test_pre_start_fails),
        cmocka_unit_test(test_pre_start_and_the_same_failure),
        cmocka_unit_test(test_term_while_it_runs),
        cmocka_unit_test(test_questions_over_a_cut),
        cmocka_unit_test(test_one_worker_again),
        cmocka_unit_test(test_what_a_worker_left_is_killed),
        cmocka_unit_test(test_what_a_worker_left_takes_its_time),
        cmocka_unit_test(test_stuck),
        cmocka_unit_test(test_budget_of_workers),
        cmocka_unit_test(test_no_start_while_stopping),
        cmocka_unit_test(test_always),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
