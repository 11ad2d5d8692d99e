/* pod: stories of two pods, from what both ask for. */
#include "pod_pair_fixture.h"

static void test_happy(void **state)
{
    (void)state;
    run_both();
    ends(0, 0);
    assert_int_equal(sides[0].pod.state, POD_FINISHED);
    ends(1, 0);
    told("");
    gone(0, 0);
    gone(1, 0);
}

/* Both tell the same verdict. */
static void test_failure_restart_failure(void **state)
{
    struct verdict v[2];

    (void)state;
    run_both();
    ends(1, 3);
    pass(now + BARRIER_SETTLE_MS);
    told("0:kill15 ");
    ends(0, 143);
    pass(now + 100);
    told("0:spawn1 1:spawn1 ");
    ends(1, 5);
    pass(now + BARRIER_SETTLE_MS);
    told("0:kill15 ");
    ends(0, 143);
    gone(0, 5);
    gone(1, 5);
    for (unsigned i = 0; i < 2; i++) {
        pod_verdict(&sides[i].pod, now, &v[i]);
        assert_int_equal(v[i].exit_code, 5);
        assert_int_equal(v[i].cause.rank, 1);
        assert_int_equal(v[i].cause.node_rank, 1);
        assert_string_equal(v[i].cause.host, "w1");
        assert_string_equal(v[i].cause.tail, "its last words");
        assert_int_equal(v[i].n_restarts, 1);
        assert_int_equal(v[i].n_rounds, 2);
        assert_int_equal(v[i].nnodes, 2);
        assert_int_equal(v[i].world_size, 2);
        assert_int_equal(v[i].job_ms, now - 1000);
    }
}

static void test_pod_1_is_evicted_and_comes_back(void **state)
{
    (void)state;
    run_both();
    pod_signal(&sides[1].pod, now, SIGTERM);
    pump();
    told("1:kill15 0:kill15 ");
    ends(1, 143);
    gone(1, 143);
    ends(0, 143);
    pass(now + 5000);
    begin_pod(1, false);
    plug();
    told("1:connect0 0:spawn1 1:spawn1 ");
    assert_int_equal(sides[0].pod.n_restarts, 0);
    ends(1, 0);
    ends(0, 0);
    gone(0, 0);
    gone(1, 0);
}

static void test_pod_1_is_evicted_for_good(void **state)
{
    (void)state;
    run_both();
    pod_signal(&sides[1].pod, now, SIGTERM);
    pump();
    ends(1, 143);
    ends(0, 143);
    pass(now + 29999);
    assert_int_equal(sides[0].pod.state, POD_WAITING);
    pass(now + 1);
    gone(0, 201);
}

static void test_pod_0_is_evicted(void **state)
{
    (void)state;
    run_both();
    pod_signal(&sides[0].pod, now, SIGTERM);
    pump();
    told("0:kill15 1:kill15 ");
    ends(0, 143);
    gone(0, 143);
    ends(1, 143);
    assert_int_equal(sides[1].pod.state, POD_WAITING);
    cut();
    begin_pod(0, false); /* A new one: it goes on from where pod 1 is. */
    pass(now + POD_RETRY_MIN_MS);
    plug();
    told("1:connect0 0:spawn1 1:spawn1 ");
    assert_int_equal(sides[0].pod.n_restarts, 0);
}

/* Cut and back within two seconds: nobody need know. */
static void test_short_cut(void **state)
{
    (void)state;
    run_both();
    cut();
    pass(now + POD_RETRY_MIN_MS);
    told("1:connect0 ");
    plug();
    pass(now + 14000);
    told("");
    ends(0, 0);
    ends(1, 0);
    gone(0, 0);
    gone(1, 0);
}

/* Pod 1's worker fails while it is cut off: it is told afterwards. */
static void test_failure_while_cut_off(void **state)
{
    (void)state;
    run_both();
    cut();
    ends(1, 9);
    pass(now + POD_RETRY_MIN_MS);
    plug();
    pass(now + BARRIER_SETTLE_MS);
    told("1:connect0 0:kill15 ");
    assert_int_equal(sides[0].pod.cause.kind, FAILURE_WORKER);
    assert_int_equal(sides[0].pod.cause.code, 9);
    ends(0, 143);
    pass(now + 200);
    told("0:spawn1 1:spawn1 ");
}

/* Cut for good: pod 0 stops at once, pod 1 at the end of its lease. */
static void test_long_cut(void **state)
{
    uint64_t start;

    (void)state;
    run_both();
    start = now;
    cut();
    pass(start + BARRIER_RESUME_MS);
    assert_non_null(strstr(story, "0:kill15"));
    assert_null(strstr(story, "1:kill15"));
    ends(0, 143);
    pass(start + BARRIER_SILENCE_MS - 1);
    assert_null(strstr(story, "1:kill15"));
    pass(start + BARRIER_SILENCE_MS);
    assert_non_null(strstr(story, "1:kill15"));
    ends(1, 143);
    pass(start + BARRIER_RESUME_MS + 30000);
    gone(0, 201);
    gone(1, 201);
}

static void test_bad_data(void **state)
{
    (void)state;
    begin(true);
    plug();
    told("0:stage0 1:stage0 1:connect0 ");
    pod_fault(&sides[1].pod, now, 65, "x is wrong");
    pump();
    gone(0, 65);
    gone(1, 65);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(sides[i].pod.cause.node_rank, 1);
        assert_string_equal(sides[i].pod.cause.text, "x is wrong");
    }
}

static void test_other_data(void **state)
{
    static const uint8_t digests[2][WIRE_DIGEST] = {{1}, {2}};

    (void)state;
    begin(true);
    plug();
    pod_stage_done(&sides[0].pod, now, digests[0]);
    pod_stage_done(&sides[1].pod, now, digests[1]);
    pump();
    gone(0, 78);
    gone(1, 78);
    assert_string_equal(sides[1].pod.cause.text, sides[0].pod.cause.text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_happy),
        cmocka_unit_test(test_failure_restart_failure),
        cmocka_unit_test(test_pod_1_is_evicted_and_comes_back),
        cmocka_unit_test(test_pod_1_is_evicted_for_good),
        cmocka_unit_test(test_pod_0_is_evicted),
        cmocka_unit_test(test_short_cut),
        cmocka_unit_test(test_failure_while_cut_off),
        cmocka_unit_test(test_long_cut),
        cmocka_unit_test(test_bad_data),
        cmocka_unit_test(test_other_data),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
