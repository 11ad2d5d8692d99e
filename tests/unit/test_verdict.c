/* Tests of supervise/verdict; of its hints in test_verdict_hint.c. */
#include "supervise/verdict.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct failure worker(int code, int signo)
{
    struct failure f = {.kind = FAILURE_WORKER, .code = code, .signo = signo,
                        .rank = 2, .local_rank = 2, .pid = 123, .round = 3,
                        .ran_ms = 312, .host = "w0"};

    return f;
}

static struct verdict verdict_of(int exit_code, const struct failure *f)
{
    struct verdict v = {.exit_code = exit_code, .nnodes = 1, .world_size = 4,
                        .n_restarts = 3, .max_restarts = 3, .n_rounds = 4,
                        .job_ms = 3249};

    if (f)
        v.cause = *f;
    return v;
}

static void assert_verdict(const struct verdict *v, const char *want)
{
    char buf[VERDICT_MAX + 1];
    struct text t;

    text_init(&t, buf, sizeof buf);
    verdict_write(&t, v);
    assert_string_equal(buf, want);
    assert_int_equal(t.len, strlen(want));
}

static void test_signal_names(void **state)
{
    static const struct {
        int signo;
        const char *want;
    } cases[] = {
        {SIGKILL, "SIGKILL"}, {SIGTERM, "SIGTERM"}, {SIGBUS, "SIGBUS"},
        {SIGSTKFLT, "SIGSTKFLT"}, {64, "signal 64"}, {0, "signal 0"},
        {-2147483647, "signal -83647"},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char buf[16];

        assert_ptr_equal(verdict_signal_name(cases[i].signo, buf), buf);
        assert_string_equal(buf, cases[i].want);
    }
}

static void test_a_hang(void **state)
{
    struct failure f = worker(203, 0);
    struct verdict v;

    (void)state;
    f.hung = true;
    (void)snprintf(f.text, sizeof f.text, "all were silent");
    (void)snprintf(f.tail, sizeof f.tail, "in all_reduce");
    v = verdict_of(203, &f);
    assert_verdict(&v, "failed with exit code 203 (hang): rank 2 (local rank "
                   "2, node rank 0, host w0, pid 123) hung, as all of this "
                   "pod; it was stopped after 312 ms in round 3; 3 of 3 "
                   "restarts used\nhint: all were silent\nlast lines of rank "
                   "2's stderr:\n  in all_reduce");
    assert_string_equal(exit_class_word(verdict_class(&v)), "hang");
    f.hung = false; /* A worker's own 203 is no class of agent's. */
    v = verdict_of(203, &f);
    assert_string_equal(exit_class_word(verdict_class(&v)), "worker");
}

static void test_success(void **state)
{
    struct verdict v = verdict_of(0, NULL);

    (void)state;
    v.n_restarts = 1;
    assert_verdict(&v, "finished: all 4 workers of 1 pod ended with 0 in "
                       "3.2 s; 1 restart used");
    v.n_restarts = 0;
    v.nnodes = 2;
    v.n_reaped = 5;
    assert_verdict(&v, "finished: all 4 workers of 2 pods ended with 0 in "
                       "3.2 s; 5 orphans reaped");
    v.nnodes = v.world_size = 1;
    v.n_restarts = 2;
    v.n_reaped = 1;
    assert_verdict(&v, "finished: the worker ended with 0 in 3.2 s; "
                       "2 restarts used; 1 orphan reaped");
    v.world_size = 0;
    v.n_restarts = v.n_reaped = 0;
    assert_verdict(&v, "finished in 3.2 s");
}

/* With a period more may be used in all than the budget says. */
static void test_restarts(void **state)
{
    static const struct {
        uint32_t used, budget;
        uint64_t period_ms;
        const char *want;
    } cases[] = {
        {0, 3, 0, "0 of 3 restarts used"},
        {1, 3, 0, "1 of 3 restarts used"},
        {1, 1, 2000, "1 restart used, at most 1 within 2 s"},
        {7, 2, 3600000, "7 restarts used, at most 2 within 60 min"},
        {2, 1, 0, "2 of 1 restarts used"}, /* A new pod 0 allows fewer. */
    };

    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char buf[128];
        struct text t;

        text_init(&t, buf, sizeof buf);
        verdict_restarts(&t, cases[i].used, cases[i].budget,
                         cases[i].period_ms);
        assert_string_equal(buf, cases[i].want);
    }
}

static void test_a_worker_failed(void **state)
{
    struct failure f = worker(1, 0);
    struct verdict v = verdict_of(1, &f);

    (void)state;
    assert_verdict(&v, "failed with exit code 1: rank 2 (local rank 2, node "
                       "rank 0, host w0, pid 123) exited with 1 after 312 ms "
                       "in round 3; 3 of 3 restarts used");
    v.cause = worker(137, SIGKILL);
    v.exit_code = 137;
    v.n_restarts = 0;
    v.cause.ran_ms = 200000;
    v.cause.host[0] = '\0';
    assert_verdict(&v, "failed with exit code 137: rank 2 (local rank 2, node "
                       "rank 0, pid 123) was killed by SIGKILL after 3 min 20 "
                       "s in round 3; 0 of 3 restarts used");
    v.cause = worker(202, 0);
    v.exit_code = 202;
    v.cause.pid = 0;
    assert_verdict(&v, "failed with exit code 202: rank 2 (local rank 2, node "
                       "rank 0, host w0) could not be started in round 3; 0 of "
                       "3 restarts used");
}

static void test_why_and_map(void **state)
{
    struct failure f = worker(77, 0);
    struct verdict v = verdict_of(77, &f);
    struct exit_map map = {{[EXIT_CLASS_WORKER] = 10,
                            [EXIT_CLASS_STOPPED] = 1}};

    (void)state;
    v.n_restarts = 0;
    v.why = "--no-restart-on has 77";
    v.map = &map;
    assert_int_equal(verdict_code(&v), 9);
    assert_verdict(&v, "failed with exit code 77: rank 2 (local rank 2, node "
                       "rank 0, host w0, pid 123) exited with 77 after 312 ms "
                       "in round 3; 0 of 3 restarts used; no restart: "
                       "--no-restart-on has 77; --exit-map makes worker 9");
    map.code_plus_1[EXIT_CLASS_WORKER] = 78; /* What it is anyway. */
    v.why = "";
    assert_verdict(&v, "failed with exit code 77: rank 2 (local rank 2, node "
                       "rank 0, host w0, pid 123) exited with 77 after 312 ms "
                       "in round 3; 0 of 3 restarts used");
}

static void test_classes(void **state)
{
    static const struct {
        enum failure_kind kind;
        int code;
        uint32_t node_rank;
        const char *word;
    } cases[] = {
        {FAILURE_NONE, 0, 0, "ok"}, {FAILURE_WORKER, 1, 1, "worker"},
        {FAILURE_WORKER, 137, 0, "worker"}, {FAILURE_WORKER, 127, 0, "exec"},
        {FAILURE_WORKER, 65, 0, "worker"}, {FAILURE_AGENT, 65, 0, "data"},
        {FAILURE_STOPPED, 143, 0, "stopped"},
        {FAILURE_STOPPED, 201, 1, "peer"}, {FAILURE_LOST, 201, 1, "peer"},
        {FAILURE_AGENT, 126, 0, "exec"}, {FAILURE_AGENT, 202, 0, "resource"},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct failure f = {.kind = cases[i].kind,
                            .node_rank = cases[i].node_rank};
        struct verdict v = verdict_of(cases[i].code, &f);

        assert_string_equal(exit_class_word(verdict_class(&v)),
                            cases[i].word);
    }
}

static void test_pre_start(void **state)
{
    struct failure f = worker(5, 0);
    struct verdict v = verdict_of(5, &f);

    (void)state;
    v.cause.kind = FAILURE_PREPARE;
    v.n_rounds = 0;
    (void)text_copy(v.cause.tail, sizeof v.cause.tail, "oops");
    assert_verdict(&v, "failed with exit code 5: node rank 0 (host w0): "
                       "--pre-start exited with 5 after 312 ms in round 3; "
                       "3 of 3 restarts used; no worker was started\n"
                       "last lines of its stderr:\n  oops");
    assert_int_equal(verdict_class(&v), EXIT_CLASS_WORKER);
}

/* A worker's own 65 is not agent's class. */
static void test_a_worker_with_a_code_of_agent(void **state)
{
    struct failure f = worker(65, 0);
    struct verdict v = verdict_of(65, &f);
    char buf[VERDICT_MAX + 1];
    struct text t;

    (void)state;
    text_init(&t, buf, sizeof buf);
    verdict_write(&t, &v);
    assert_null(strstr(buf, "data"));
}

static void test_a_worker_of_another_pod(void **state)
{
    struct failure f = worker(1, 0);
    struct verdict v;

    (void)state;
    f.node_rank = 1;
    f.rank = 6;
    v = verdict_of(1, &f);
    v.nnodes = 2;
    assert_verdict(&v, "failed with exit code 1: on another pod, rank 6 "
                       "(local rank 2, node rank 1, host w0, pid 123) exited "
                       "with 1 after 312 ms in round 3; 3 of 3 restarts used");
}

static void test_hint_and_tail_follow(void **state)
{
    struct failure f = worker(1, 0);
    struct verdict v;

    (void)state;
    (void)text_copy(f.text, sizeof f.text, "raise it");
    (void)text_copy(f.tail, sizeof f.tail, "Traceback:\n  File x\n\nError: y");
    v = verdict_of(1, &f);
    assert_verdict(&v, "failed with exit code 1: rank 2 (local rank 2, node "
                       "rank 0, host w0, pid 123) exited with 1 after 312 ms "
                       "in round 3; 3 of 3 restarts used\n"
                       "hint: raise it\n"
                       "last lines of rank 2's stderr:\n"
                       "  Traceback:\n"
                       "    File x\n"
                       "  \n"
                       "  Error: y");
}

static void test_nothing_was_written(void **state)
{
    struct failure f = worker(1, 0);
    struct verdict v = verdict_of(1, &f);
    static const char first[] =
        "failed with exit code 1: rank 2 (local rank 2, node rank 0, host w0, "
        "pid 123) exited with 1 after 312 ms in round 3; 3 of 3 restarts used";
    char want[512];

    (void)state;
    v.silent = true;
    (void)text_copy(v.cause.text, sizeof v.cause.text, "raise it");
    (void)snprintf(want, sizeof want, "%s\nhint: raise it\nit wrote nothing to "
                   "stderr", first);
    assert_verdict(&v, want);
    (void)text_copy(v.cause.tail, sizeof v.cause.tail, "of its error file");
    v.cause.from_file = true;
    (void)snprintf(want, sizeof want, "%s\nhint: raise it\nrank 2's error file "
                   "says:\n  of its error file", first);
    assert_verdict(&v, want);
}

static void test_a_fault_of_a_pod(void **state)
{
    struct failure f = {.kind = FAILURE_AGENT, .code = 65, .host = "w0",
                        .text = "raw/t10k: 5 bytes, not 7"};
    struct verdict v = verdict_of(65, &f);

    (void)state;
    v.n_rounds = 0;
    assert_verdict(&v, "failed with exit code 65 (data): raw/t10k: 5 bytes, "
                       "not 7; 3 of 3 restarts used; no worker was started");
    v.n_restarts = 0;
    assert_verdict(&v, "failed with exit code 65 (data): raw/t10k: 5 bytes, "
                       "not 7; no worker was started");
    v.cause.node_rank = 1;
    v.nnodes = 2;
    assert_verdict(&v, "failed with exit code 65 (data): node rank 1 (host "
                       "w0): raw/t10k: 5 bytes, not 7; no worker was started "
                       "on this pod");
    (void)text_copy(v.cause.text, sizeof v.cause.text, "two files\na\nb\n");
    v.cause.node_rank = 0;
    assert_verdict(&v, "failed with exit code 65 (data): two files; no worker "
                       "was started on this pod\n  a\n  b");
}

static void test_a_barrier_that_timed_out(void **state)
{
    struct failure f = {.kind = FAILURE_AGENT, .code = 200, .text =
                        "not all pods arrived in time: node ranks 3-7"};
    struct verdict v = verdict_of(200, &f);

    (void)state;
    v.n_restarts = 1;
    assert_verdict(&v, "failed with exit code 200 (barrier): not all pods "
                       "arrived in time: node ranks 3-7; 1 of 3 restarts "
                       "used");
}

#define LOST_HINT                                                              \
    "hint: a pod that says nothing before it is gone was often killed as a "  \
    "whole: out of memory (memory.oom.group), evicted, or its node is down; " \
    "see kubectl describe pod, kubectl get events"

static void test_a_lost_pod(void **state)
{
    struct failure f = {.kind = FAILURE_LOST, .code = 201, .node_rank = 2,
                        .host = "w2", .text =
                        "node rank 2 (w2, 10.0.0.3:1) was silent for 15 s"};
    struct verdict v = verdict_of(201, &f);

    (void)state;
    v.nnodes = 3;
    assert_verdict(&v, "failed with exit code 201 (peer): node rank 2 (w2, "
                       "10.0.0.3:1) was silent for 15 s; 3 of 3 restarts "
                       "used\n" LOST_HINT);
    v.cause.text[0] = '\0';
    assert_verdict(&v, "failed with exit code 201 (peer): node rank 2 (host "
                       "w2) was lost; 3 of 3 restarts used\n" LOST_HINT);
}

static void test_stopped_from_outside(void **state)
{
    struct failure f = {.kind = FAILURE_STOPPED, .code = 143,
                        .signo = SIGTERM, .host = "w0",
                        .text = "SIGTERM from outside"};
    struct verdict v = verdict_of(143, &f);

    (void)state;
    v.n_restarts = 0;
    v.job_ms = 99000; /* It took long to stop. */
    v.told_ms = 3249;
    assert_verdict(&v, "stopped by SIGTERM from outside: this pod (node rank "
                       "0, host w0) was told to stop after 3.2 s; exit code "
                       "143; 0 of 3 restarts used");
    v.node_rank = 1;
    v.exit_code = 201;
    assert_verdict(&v, "failed with exit code 201 (peer): node rank 0 (host "
                       "w0) was told to stop from outside (SIGTERM) and did "
                       "not come back; 0 of 3 restarts used");
    (void)snprintf(v.cause.text, sizeof v.cause.text, "did not come back in "
                   "time (--rejoin-timeout 9 s)");
    assert_verdict(&v, "failed with exit code 201 (peer): node rank 0 (host "
                       "w0) was told to stop from outside (SIGTERM) and did "
                       "not come back in time (--rejoin-timeout 9 s); 0 of 3 "
                       "restarts used");
    v.exit_code = 143;
    v.cause.signo = 0;
    v.cause.host[0] = '\0';
    assert_verdict(&v, "failed with exit code 143: node rank 0 was told to "
                       "stop from outside; 0 of 3 restarts used");
    v.node_rank = 0;
    assert_verdict(&v, "stopped by a request from outside: this pod (node "
                       "rank 0) was told to stop after 3.2 s; exit code 143; "
                       "0 of 3 restarts used");
}

static void test_no_cause(void **state)
{
    struct verdict v = verdict_of(125, NULL);
    char buf[64];
    struct text t;

    (void)state;
    assert_verdict(&v, "failed with exit code 125 (agent): no cause is known; "
                       "3 of 3 restarts used");
    text_init(&t, buf, sizeof buf);
    verdict_cause_line(&t, &v.cause);
    assert_string_equal(buf, "nothing failed");
}

/* With all fields full it still fits in a termination log, and what does not
 * fit is the oldest of the tail. */
static void test_the_tail_is_cut_first(void **state)
{
    struct failure f = worker(1, 0);
    struct verdict v;
    char buf[VERDICT_MAX + 1];
    struct text t;
    size_t full;

    (void)state;
    memset(f.text, 'h', sizeof f.text - 1);
    memset(f.host, 'o', sizeof f.host - 1);
    for (size_t i = 0; i + 2 < sizeof f.tail; i += 2)
        memcpy(f.tail + i, i + 4 < sizeof f.tail ? "t\n" : "e\n", 2);
    v = verdict_of(1, &f);
    text_init(&t, buf, sizeof buf);
    verdict_write(&t, &v);
    full = t.len;
    assert_true(full < sizeof buf);
    assert_int_equal(t.len, strlen(buf));
    assert_string_equal(buf + full - 4, "\n  e");

    for (size_t cap = 1; cap <= full; cap++) {
        char less[VERDICT_MAX + 1];

        text_init(&t, less, cap);
        verdict_write(&t, &v);
        assert_int_equal(t.len, strlen(less));
        assert_true(t.len < cap);
        if (strstr(less, "stderr:")) {
            assert_false(t.cut);
            assert_string_equal(less + t.len - 4, "\n  e");
            assert_non_null(strstr(less, "hhh\nlast lines"));
        } else {
            assert_memory_equal(less, buf, t.len);
        }
    }
}

static void test_a_long_last_line_keeps_its_beginning(void **state)
{
    struct failure f = worker(1, 0);
    struct verdict v;
    char buf[256];
    struct text t;

    (void)state;
    memset(f.tail, 'x', sizeof f.tail - 1);
    memcpy(f.tail, "old\nError: ", 11);
    v = verdict_of(1, &f);
    text_init(&t, buf, sizeof buf);
    verdict_write(&t, &v);
    assert_non_null(strstr(buf, "stderr:\n  Error: xxx"));
    assert_true(t.cut);
}

static void test_it_is_valid_utf8(void **state)
{
    struct failure f = worker(1, 0);
    struct verdict v;
    char buf[VERDICT_MAX + 1];
    struct text t;

    (void)state;
    (void)text_copy(f.host, sizeof f.host, "h\xff");
    (void)text_copy(f.text, sizeof f.text, "\033[31mred");
    (void)text_copy(f.tail, sizeof f.tail, "caf\xc3\xa9 \xe2\x82");
    v = verdict_of(1, &f);
    text_init(&t, buf, sizeof buf);
    text_add(&t, "> ");
    verdict_write(&t, &v);
    assert_non_null(strstr(buf, "host h?, pid"));
    assert_non_null(strstr(buf, "hint: ?[31mred\n"));
    assert_non_null(strstr(buf, "  caf\xc3\xa9 ??"));
    assert_memory_equal(buf, "> failed", 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_signal_names),
        cmocka_unit_test(test_a_hang),
        cmocka_unit_test(test_success),
        cmocka_unit_test(test_restarts),
        cmocka_unit_test(test_a_worker_failed),
        cmocka_unit_test(test_pre_start),
        cmocka_unit_test(test_why_and_map),
        cmocka_unit_test(test_classes),
        cmocka_unit_test(test_a_worker_with_a_code_of_agent),
        cmocka_unit_test(test_a_worker_of_another_pod),
        cmocka_unit_test(test_hint_and_tail_follow),
        cmocka_unit_test(test_nothing_was_written),
        cmocka_unit_test(test_a_fault_of_a_pod),
        cmocka_unit_test(test_a_barrier_that_timed_out),
        cmocka_unit_test(test_a_lost_pod),
        cmocka_unit_test(test_stopped_from_outside),
        cmocka_unit_test(test_no_cause),
        cmocka_unit_test(test_the_tail_is_cut_first),
        cmocka_unit_test(test_a_long_last_line_keeps_its_beginning),
        cmocka_unit_test(test_it_is_valid_utf8),
    };

    return cmocka_run_group_tests_name("verdict", tests, NULL, NULL);
}
