/* status_pod: what is said of a pod in each part of its life. */
#include "pod_fixture.h"

#include "agent/status.h"

static struct status s;

static void look(uint64_t now, const char *phase, const char *waiting)
{
    status_of_pod(&s, &p, now);
    assert_string_equal(s.phase, phase);
    assert_string_equal(s.waiting, waiting);
}

static void test_alone(void **state)
{
    (void)state;
    make(0, 1, true);
    pod_stage_progress(&p, 2, 30);
    look(5, "staging", "");
    assert_true(s.is_staging && s.percent == 30 && !s.is_ready);
    assert_true(s.has_barrier && !s.has_link);
    assert_int_equal(s.n_missing, 1);
    assert_string_equal(s.missing[0].state, "staging");
    pod_stage_done(&p, 6, (const uint8_t[WIRE_DIGEST]){1});
    look(7, "running", "");
    assert_true(s.is_ready && s.n_rounds == 1 && s.world_size == 2);
    assert_int_equal(s.exit_code, -1);
    assert_string_equal(s.cause, "");
    ends(10, 1, 3);
    look(11, "stopping", "");
    assert_false(s.is_ready);
    ends(12, 0, 143);
    pod_swept(&p, 13, 0, false);
    pod_swept(&p, 13, 0, false);
    look(13, "waiting", "the next round starts in 99 ms");
    assert_non_null(strstr(s.cause, "rank 1 (local rank 1"));
    pod_timeout(&p, 113);
    look(114, "running", "");
    assert_int_equal(s.round, 1);
    assert_int_equal(s.n_restarts, 1);
    assert_non_null(strstr(s.cause, "exited with 3")); /* Still the last. */
    pod_signal(&p, 120, SIGTERM);
    look(121, "stopping", "");
    assert_int_equal(s.stop_signo, SIGTERM);
}

static void test_pod_0_of_two(void **state)
{
    struct wire_msg hello = {.kind = WIRE_HELLO, .incarnation = 5,
                             .node_rank = 1, .nnodes = 2, .nproc = 2,
                             .running = WIRE_NO_ROUND, .job_id = "j",
                             .host = "other"};
    struct wire_msg progress = {.kind = WIRE_PROGRESS, .percent = 37};

    (void)state;
    make(0, 2, false);
    look(2, "waiting", "node rank 1 not seen yet");
    assert_string_equal(s.barrier_phase, "gathering");
    assert_int_equal(s.n_arrived, 1);
    assert_int_equal(s.n_missing, 1);
    assert_int_equal(s.missing[0].node_rank, 1);
    assert_string_equal(s.missing[0].state, "unseen");
    assert_string_equal(s.missing[0].host, "");
    pod_conn_open(&p, 3, 1, "10.0.0.2:1");
    pod_conn_message(&p, 3, 1, &hello);
    pod_conn_message(&p, 4, 1, &progress);
    look(5, "waiting", "node rank 1 staging (37 %)");
    assert_string_equal(s.missing[0].state, "staging");
    assert_string_equal(s.missing[0].host, "other");
    assert_int_equal(s.missing[0].percent, 37);
    pod_conn_message(&p, 6, 1, &(struct wire_msg){.kind = WIRE_ARRIVED});
    look(7, "running", "");
    assert_string_equal(s.barrier_phase, "running");
    assert_true(s.n_arrived == 2 && s.n_missing == 0);
}

static void test_another_pod(void **state)
{
    struct wire_msg waiting = {.kind = WIRE_WAITING};

    (void)state;
    make(1, 2, false);
    look(2, "waiting", "node rank 0 at z:1 not reached yet");
    assert_true(s.has_link && !s.has_barrier && !s.was_heard);
    assert_string_equal(s.link, "connecting");
    pod_link_down(&p, 3, "connection refused");
    look(4, "waiting", "node rank 0 at z:1 not reached yet");
    assert_string_equal(s.link, "down");
    assert_string_equal(s.link_error, "connection refused");
    pod_link_up(&p, 5);
    hear(6, (struct wire_msg){.kind = WIRE_WELCOME, .incarnation = 1,
                              .node_rank = 1});
    look(106, "waiting", "node rank 0 has yet to start");
    assert_string_equal(s.link, "admitted");
    assert_int_equal(s.heard_ms, 100);
    (void)snprintf(waiting.text, sizeof waiting.text, "node rank 2 staging");
    hear(107, waiting);
    look(108, "waiting", "node rank 2 staging");
    hear(109, (struct wire_msg){.kind = WIRE_START, .rank_base = 2,
                                .world_size = 4, .group_rank = 1,
                                .group_size = 2});
    look(110, "running", "");
    ends(111, 0, 0);
    ends(112, 1, 0);
    pod_swept(&p, 112, 0, false);
    look(113, "finished", "the workers of other pods still run");
    assert_false(s.is_ready);
}

static void test_a_rank_that_is_not_known(void **state)
{
    (void)state;
    make(WIRE_ANY_RANK, 2, false);
    look(2, "waiting", "node rank 0 at z:1 not reached yet");
    assert_int_equal(s.node_rank, STATUS_UNKNOWN);
}

static void test_a_pod_that_fails(void **state)
{
    (void)state;
    make(1, 2, true);
    pod_fault(&p, 3, ERR_DATA, "file a is cut");
    look(4, "failing", "");
    assert_non_null(strstr(s.cause, "file a is cut"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alone),
        cmocka_unit_test(test_pod_0_of_two),
        cmocka_unit_test(test_another_pod),
        cmocka_unit_test(test_a_rank_that_is_not_known),
        cmocka_unit_test(test_a_pod_that_fails),
    };

    return cmocka_run_group_tests_name("status_pod", tests, NULL, NULL);
}
