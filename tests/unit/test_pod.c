/* pod: the life of one pod, told by what it asks for. */
#include "agent/pod.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct pod p;
static struct barrier bar;
static struct bar_peer peers[2];
static struct bar_conn conns[4];
static char story[2048];
static struct wire_msg sent; /* The last frame to pod 0. */

static void add(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void add(const char *fmt, ...)
{
    size_t len = strlen(story);
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(story + len, sizeof story - len, fmt, ap);
    va_end(ap);
}

static void on_log(void *c, enum log_level l, const char *t)
{
    (void)c;
    (void)l;
    (void)t;
}
static void on_stage(void *c)
{
    (void)c;
    add("stage ");
}
static void on_stage_kill(void *c)
{
    (void)c;
    add("unstage ");
}
static void on_spawn(void *c, const struct pod_round *r)
{
    (void)c;
    add("spawn%u ", r->round);
}
static void on_kill(void *c, uint32_t w, int signo)
{
    (void)c;
    add("kill%u:%d ", w, signo);
}
static void on_sweep(void *c, int signo)
{
    (void)c;
    add("sweep:%d ", signo);
}
static void on_connect(void *c)
{
    (void)c;
    add("connect ");
}
static void on_send(void *c, const struct wire_msg *m)
{
    (void)c;
    sent = *m;
    add("%s ", wire_name(m->kind));
}
static void on_close(void *c, bool abort)
{
    (void)c;
    add(abort ? "abort " : "close ");
}
static void on_conn_send(void *c, uint32_t conn, const struct wire_msg *m)
{
    (void)c;
    add("%u:%s ", conn, wire_name(m->kind));
}
static void on_conn_close(void *c, uint32_t conn, bool abort)
{
    (void)c;
    (void)conn;
    (void)abort;
}

static const struct pod_out out = {
    .log = on_log, .stage = on_stage, .stage_kill = on_stage_kill,
    .spawn = on_spawn, .kill = on_kill, .sweep = on_sweep,
    .connect = on_connect, .link_send = on_send, .link_close = on_close,
    .conn_send = on_conn_send, .conn_close = on_conn_close};

static void told(const char *want)
{
    assert_string_equal(story, want);
    story[0] = '\0';
}

static void make(uint32_t rank, uint32_t nnodes, bool stage)
{
    struct pod_config cfg = {.node_rank = rank, .nnodes = nnodes, .nproc = 2,
                             .max_restarts = 1, .incarnation = 9,
                             .barrier_timeout_ms = 60000,
                             .rejoin_timeout_ms = 30000, .grace_ms = 1000,
                             .has_stage = stage, .job_id = "j", .host = "h",
                             .zero = "z:1"};
    struct barrier_config bc = {.incarnation = 9, .seed = 3, .nnodes = nnodes,
                                .job_id = "j", .barrier_timeout_ms = 60000,
                                .rejoin_timeout_ms = 30000, .grace_ms = 1000,
                                .backoff_min_ms = 100, .backoff_max_ms = 100,
                                .restart_reset_ms = 600000, .max_restarts = 1,
                                .master_port = 1};

    story[0] = '\0';
    pod_init(&p, &cfg, &out, 1);
    if (rank == 0)
        pod_own_barrier(&p, &bar, &bc, peers, conns, 4, 1);
    pod_start(&p, 1);
}

static void ends(uint64_t now, uint32_t worker, int code)
{
    struct pod_exit x = {.worker = worker, .pid = 7, .code = code,
                         .signo = code > 128 ? code - 128 : 0, .ran_ms = 5,
                         .hint = "", .tail = ""};

    pod_worker_exit(&p, now, &x);
}

static void hear(uint64_t now, struct wire_msg m)
{
    pod_link_message(&p, now, &m);
}

/* Pod 1 of two, admitted, its workers of round 0 running. */
static void member_runs(void)
{
    make(1, 2, false);
    pod_link_up(&p, 2);
    hear(3, (struct wire_msg){.kind = WIRE_WELCOME, .incarnation = 1,
                              .node_rank = 1});
    hear(4, (struct wire_msg){.kind = WIRE_START, .rank_base = 2,
                              .world_size = 4, .group_rank = 1,
                              .group_size = 2});
    told("connect HELLO ARRIVED spawn0 ");
}

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

static void test_failure_and_restart(void **state)
{
    (void)state;
    make(0, 1, false);
    ends(10, 1, 3);
    told("spawn0 kill0:15 sweep:15 ");
    ends(12, 0, 143); /* Agent's own TERM is no cause. */
    pod_swept(&p, 13, 0, false);
    pod_swept(&p, 13, 0, false);
    assert_int_equal(p.state, POD_WAITING);
    pod_timeout(&p, 113);
    told("spawn1 ");
    ends(120, 0, 3);
    ends(121, 1, 143);
    pod_swept(&p, 122, 0, false);
    pod_swept(&p, 122, 0, false);
    assert_int_equal(p.state, POD_GONE);
    assert_int_equal(p.exit_code, 3);
    assert_int_equal(p.cause.local_rank, 0);
}

static void test_a_kill_beats_its_consequence(void **state)
{
    (void)state;
    member_runs();
    ends(10, 0, 1);
    told("kill1:15 sweep:15 "); /* Stopped at once, told when settled. */
    ends(11, 1, 137);
    told("FAILED ");
    assert_int_equal(sent.failure.code, 137);
    assert_int_equal(sent.failure.rank, 3);
}

static void test_failure_settles_in_time(void **state)
{
    (void)state;
    member_runs();
    ends(10, 0, 1);
    story[0] = '\0';
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
    (void)state;
    member_runs();
    pod_signal(&p, 10, SIGUSR1);
    told("kill0:10 kill1:10 ");
    pod_signal(&p, 20, SIGTERM);
    told("FAILED kill0:15 kill1:15 sweep:15 ");
    assert_int_equal(sent.failure.kind, FAILURE_STOPPED);
    pod_swept(&p, 20, 0, false);
    pod_signal(&p, 30, SIGTERM); /* Ends the grace. */
    pod_timeout(&p, 30);
    told("kill0:9 kill1:9 sweep:9 ");
    ends(31, 0, 137);
    ends(31, 1, 137);
    pod_swept(&p, 31, 0, false);
    pod_swept(&p, 32, 0, false);
    told("close ");
    pod_link_down(&p, 33, "closed");
    assert_int_equal(p.state, POD_GONE);
    assert_int_equal(p.exit_code, 143);
}

static void test_term_and_a_process_that_outlives_kill(void **state)
{
    (void)state;
    member_runs();
    pod_signal(&p, 10, SIGTERM);
    pod_swept(&p, 10, 0, false);
    for (uint64_t t = 1010; t < 1010 + SUP_STUCK_MS; t += 50) {
        pod_timeout(&p, t);
        pod_swept(&p, t, 1, false);
    }
    pod_timeout(&p, 1010 + SUP_STUCK_MS);
    assert_int_equal(p.state, POD_LEAVING);
    assert_int_equal(p.exit_code, 143);
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
    pod_timeout(&p, 4 + 30000);
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
    assert_string_equal(p.cause.text, "not all pods arrived in time: node rank "
                                      "0 at z:1 was not reached: connection "
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
        cmocka_unit_test(test_failure_and_restart),
        cmocka_unit_test(test_a_kill_beats_its_consequence),
        cmocka_unit_test(test_failure_settles_in_time),
        cmocka_unit_test(test_no_failure_is_lost),
        cmocka_unit_test(test_term),
        cmocka_unit_test(test_term_and_a_process_that_outlives_kill),
        cmocka_unit_test(test_bad_data_is_told),
        cmocka_unit_test(test_the_lease),
        cmocka_unit_test(test_pod_0_is_never_reached),
        cmocka_unit_test(test_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
