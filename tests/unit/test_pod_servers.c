/* pod, supervisor: servers beside the workers, as mxnet has them. */
#include "pod_fixture.h"

static void supervise(uint32_t n_workers, uint32_t n_servers, uint64_t grace,
                      struct supervisor *s)
{
    struct sup_out sup = {.kill = on_kill, .sweep = on_sweep};

    supervisor_init(s, &sup, n_workers + n_servers, grace);
    assert_int_equal(supervisor_start(s, n_workers + n_servers, n_servers),
                     n_workers ? SUP_QUIET : SUP_SERVES);
    story[0] = '\0';
}

/* Two workers, then a server. */
static void test_servers_serve_on(void **state)
{
    struct supervisor s;

    (void)state;
    supervise(2, 1, 1000, &s);
    assert_int_equal(supervisor_exited(&s, 1, 0, true), SUP_QUIET);
    assert_int_equal(supervisor_exited(&s, 2, 1, true), SUP_SERVES);
    assert_int_equal(s.state, SUP_SERVING);
    assert_int_equal(supervisor_deadline(&s), UINT64_MAX);
    told(""); /* What the workers left may be the server's. */
    supervisor_dismiss(&s, 10);
    told("");
    assert_int_equal(supervisor_deadline(&s), 510); /* Half of the grace. */
    assert_int_equal(supervisor_exited(&s, 20, 2, true), SUP_QUIET);
    told("sweep:15 ");
    assert_int_equal(supervisor_swept(&s, 21, 0, false), SUP_DONE);
}

static void test_dismissed_servers_have_one_grace(void **state)
{
    struct supervisor s;

    (void)state;
    supervise(0, 2, 60000, &s);
    supervisor_dismiss(&s, 0);
    assert_int_equal(supervisor_deadline(&s), SUP_DISMISS_MS);
    (void)supervisor_timeout(&s, SUP_DISMISS_MS);
    told("kill0:15 kill1:15 sweep:15 ");
    assert_int_equal(supervisor_exited(&s, 2100, 0, false), SUP_QUIET);
    assert_int_equal(supervisor_swept(&s, 2100, 0, false), SUP_QUIET);
    assert_int_equal(supervisor_deadline(&s), 60000);
    (void)supervisor_timeout(&s, 60000);
    told("kill1:9 sweep:9 ");
    assert_int_equal(supervisor_exited(&s, 60001, 1, false), SUP_QUIET);
    assert_int_equal(supervisor_swept(&s, 60002, 0, false), SUP_DONE);
}

static void test_without_grace_they_are_killed(void **state)
{
    struct supervisor s;

    (void)state;
    supervise(0, 1, 0, &s);
    supervisor_dismiss(&s, 0);
    assert_int_equal(supervisor_deadline(&s), 0);
    (void)supervisor_timeout(&s, 0);
    told("kill0:9 sweep:9 ");
}

static void test_servers_that_go_first(void **state)
{
    struct supervisor s;

    (void)state;
    supervise(1, 1, 1000, &s);
    assert_int_equal(supervisor_exited(&s, 1, 1, true), SUP_QUIET);
    assert_int_equal(supervisor_exited(&s, 2, 0, true), SUP_QUIET);
    told("sweep:15 ");
    assert_int_equal(supervisor_swept(&s, 3, 0, false), SUP_DONE);
}

static void test_a_server_that_fails(void **state)
{
    struct supervisor s;

    (void)state;
    for (unsigned serving = 0; serving < 2; serving++) {
        supervise(1, 2, 1000, &s);
        if (serving)
            (void)supervisor_exited(&s, 1, 0, true);
        assert_int_equal(supervisor_exited(&s, 2, 1, false), SUP_FAILED);
        told(serving ? "kill2:15 " : "kill0:15 kill2:15 ");
    }
}

/* Pod 1 of two: two workers of its own, and a server. */
static void member_with_server(uint32_t nproc)
{
    struct pod_config cfg;

    make(1, 2, false);
    cfg = p.cfg;
    cfg.nproc = nproc;
    cfg.n_servers = 1;
    story[0] = '\0';
    memset(&p, 0, sizeof p);
    pod_init(&p, &cfg, &out, 1);
    pod_start(&p, 1);
    pod_link_up(&p, 2);
    assert_int_equal(sent.nproc, nproc);
    hear(3, (struct wire_msg){.kind = WIRE_WELCOME, .incarnation = 1,
                              .node_rank = 1});
    hear(4, (struct wire_msg){.kind = WIRE_START, .rank_base = 2,
                              .world_size = 2 + nproc, .group_rank = 1,
                              .group_size = 2});
    told(nproc ? "connect HELLO ARRIVED spawn0 "
               : "connect HELLO ARRIVED spawn0 DONE ");
}

static void test_done_with_a_server(void **state)
{
    (void)state;
    member_with_server(2);
    ends(10, 0, 0);
    ends(11, 1, 0);
    told("DONE ");
    assert_int_equal(p.state, POD_FINISHED);
    hear(20, (struct wire_msg){.kind = WIRE_END});
    told(""); /* It ends by itself, or in a while. */
    assert_int_equal(p.state, POD_STOPPING);
    pod_timeout(&p, 20 + 500);
    told("kill2:15 sweep:15 ");
    ends(600, 2, 143);
    pod_swept(&p, 600, 0, false);
    pod_swept(&p, 601, 0, false);
    told("BYE close ");
    pod_link_down(&p, 602, "closed");
    assert_int_equal(p.exit_code, 0);
}

static void test_a_pod_of_servers(void **state)
{
    (void)state;
    member_with_server(0);
    hear(20, (struct wire_msg){.kind = WIRE_STOP, .delay_ms = 5});
    told("kill0:15 "); /* The other pod's worker failed. */
    ends(30, 0, 143);
    pod_swept(&p, 30, 0, false);
    told("sweep:15 ARRIVED ");
    hear(40, (struct wire_msg){.kind = WIRE_START, .round = 1});
    told("spawn1 DONE ");
}

static void test_a_server_fails_after_done(void **state)
{
    struct pod_exit x = {.worker = 2, .pid = 7, .code = 3, .hint = "",
                         .tail = "", .role = PROC_SERVER, .index = 1};

    (void)state;
    member_with_server(2);
    ends(10, 0, 0);
    ends(11, 1, 0);
    pod_worker_exit(&p, 12, &x);
    told("DONE sweep:15 FAILED ");
    assert_int_equal(sent.failure.role, PROC_SERVER);
    assert_int_equal(sent.failure.rank, 1);
    assert_int_equal(sent.failure.code, 3);
}

/* Pod 0 is silent while the server serves. */
static void test_the_lease_of_servers(void **state)
{
    (void)state;
    member_with_server(0);
    pod_timeout(&p, 4 + BARRIER_SILENCE_MS);
    assert_non_null(strstr(story, "kill0:15"));
    assert_int_equal(p.state, POD_STOPPING);
}

static void test_one_pod_with_servers(void **state)
{
    struct pod_config cfg;
    struct barrier_config bc;

    (void)state;
    make(0, 1, false);
    cfg = p.cfg;
    bc = bar.cfg;
    cfg.n_servers = 1;
    story[0] = '\0';
    memset(&p, 0, sizeof p);
    pod_init(&p, &cfg, &out, 1);
    pod_own_barrier(&p, &bar, &bc, peers, conns, 4, 1);
    pod_start(&p, 1);
    told("spawn0 ");
    ends(10, 0, 0);
    ends(10, 1, 0);
    told("");
    ends(12, 2, 9); /* Nobody needs it any more. */
    told("sweep:15 ");
    pod_swept(&p, 12, 0, false);
    assert_int_equal(p.state, POD_GONE);
    assert_int_equal(p.exit_code, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_servers_serve_on),
        cmocka_unit_test(test_dismissed_servers_have_one_grace),
        cmocka_unit_test(test_without_grace_they_are_killed),
        cmocka_unit_test(test_servers_that_go_first),
        cmocka_unit_test(test_a_server_that_fails),
        cmocka_unit_test(test_done_with_a_server),
        cmocka_unit_test(test_a_pod_of_servers),
        cmocka_unit_test(test_a_server_fails_after_done),
        cmocka_unit_test(test_the_lease_of_servers),
        cmocka_unit_test(test_one_pod_with_servers),
    };

    return cmocka_run_group_tests_name("pod_servers", tests, NULL, NULL);
}
