/* Tests of supervise/verdict and its hints. */
#include "supervise/verdict.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define MIB ((uint64_t)1 << 20)

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
    v.cause.pid = 0;
    assert_verdict(&v, "failed with exit code 137: rank 2 (local rank 2, node "
                       "rank 0) was killed by SIGKILL after 3 min 20 s in "
                       "round 3; 0 of 3 restarts used");
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

static void test_a_fault_of_a_pod(void **state)
{
    struct failure f = {.kind = FAILURE_AGENT, .code = 65, .host = "w0",
                        .text = "raw/t10k: 5 bytes, not 7"};
    struct verdict v = verdict_of(65, &f);

    (void)state;
    v.n_rounds = 0;
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
                       "used");
    v.cause.text[0] = '\0';
    assert_verdict(&v, "failed with exit code 201 (peer): node rank 2 (host "
                       "w2) was lost; 3 of 3 restarts used");
}

static void test_stopped_from_outside(void **state)
{
    struct failure f = {.kind = FAILURE_STOPPED, .code = 143,
                        .signo = SIGTERM, .host = "w0",
                        .text = "SIGTERM from outside"};
    struct verdict v = verdict_of(143, &f);

    (void)state;
    v.n_restarts = 0;
    assert_verdict(&v, "stopped by SIGTERM from outside: this pod (node rank "
                       "0, host w0) was told to stop after 3.2 s; exit code "
                       "143; 0 of 3 restarts used");
    v.node_rank = 1;
    v.exit_code = 201;
    assert_verdict(&v, "failed with exit code 201 (peer): node rank 0 (host "
                       "w0) was told to stop from outside (SIGTERM) and did "
                       "not come back; 0 of 3 restarts used");
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

/* --- hints --------------------------------------------------------------- */

struct hint_case {
    int code, signo;
    struct verdict_facts facts;
    const char *tail;
    const char *want[3]; /* All of these, in this order; "" for no hint. */
};

static void assert_hints(const struct hint_case *cases, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        struct failure f = worker(cases[i].code, cases[i].signo);
        char hint[FAILURE_TEXT_MAX];
        const char *at = hint;

        (void)text_copy(f.tail, sizeof f.tail,
                        cases[i].tail ? cases[i].tail : "");
        verdict_hint(hint, sizeof hint, &f, &cases[i].facts);
        assert_null(strchr(hint, '\n'));
        assert_true(strlen(hint) < sizeof hint - 1); /* Not cut. */
        if (cases[i].want[0] == NULL && hint[0] != '\0')
            fail_msg("case %u: hint \"%s\" for nothing known", i, hint);
        for (unsigned k = 0; k < 3 && cases[i].want[k]; k++) {
            at = strstr(at, cases[i].want[k]);
            if (!at)
                fail_msg("case %u: no \"%s\" in \"%s\"", i, cases[i].want[k],
                         hint);
        }
    }
}

static void test_hints_of_signals(void **state)
{
    static const struct hint_case cases[] = {
        {137, SIGKILL, {.oom_kills = 1}, NULL,
         {"OOM killer", "1 kill since", "limits.memory"}},
        {137, SIGKILL, {.oom_kills = 3}, "Connection refused",
         {"OOM killer", "3 kills", "docker"}},
        {137, SIGKILL, {0}, "Connection refused", {"kill -9", "dmesg"}},
        {137, 0, {.oom_kills = 1}, NULL,
         {"137 is what a shell returns", "SIGKILL", "OOM killer"}},
        {135, SIGBUS, {.shm_bytes = 64 * MIB, .shm_used = 63 * MIB}, NULL,
         {"medium: Memory", "--shm-size", "/dev/shm has 64 MiB, 98 % used"}},
        {135, SIGBUS, {.shm_bytes = 32 * 1024 * MIB}, NULL,
         {"has 32 GiB, 0 % used"}},
        {135, SIGBUS, {.shm_bytes = 4096 , .shm_used = 4096}, NULL,
         {"has 4 KiB, 100 % used"}},
        {135, SIGBUS, {0}, NULL, {"/dev/shm", "mapped file"}},
        {143, SIGTERM, {0}, NULL, {"agent did not send it"}},
        {130, SIGINT, {0}, NULL, {"agent did not send it"}},
        {139, SIGSEGV, {0}, NULL, {"PYTHONFAULTHANDLER"}},
        {139, 0, {0}, NULL, {"SIGSEGV", "PYTHONFAULTHANDLER"}},
        {134, SIGABRT, {0}, "terminate called", {"aborted by itself"}},
        {134, SIGABRT, {0}, "  what():  CUDA out of memory", {"GPU's memory"}},
        {132, SIGILL, {0}, NULL, {"newer CPU"}},
        {136, SIGFPE, {0}, NULL, {"division by zero"}},
        {159, SIGSYS, {0}, NULL, {"seccomp"}},
        {152, SIGXCPU, {0}, NULL, {"ulimit"}},
        {138, SIGUSR1, {0}, NULL, {NULL}},
        {255, 0, {0}, NULL, {NULL}},
        {143, 0, {0}, NULL, {NULL}},
    };

    (void)state;
    assert_hints(cases, sizeof cases / sizeof cases[0]);
}

static void test_hints_of_exec(void **state)
{
    static const struct hint_case cases[] = {
        {127, 0, {.exec_errno = ENOENT, .command = "trian.py"}, NULL,
         {"'trian.py' was not found in PATH"}},
        {127, 0, {.exec_errno = ENOENT, .command = "./train.py"}, NULL,
         {"'./train.py' was not found", "#! line", "loader"}},
        {126, 0, {.exec_errno = EACCES, .command = "./train.py"}, NULL,
         {"no execute permission", "chmod +x", "noexec"}},
        {126, 0, {.exec_errno = ENOEXEC, .command = "x"}, NULL,
         {"architecture", "#! line"}},
        {126, 0, {.exec_errno = E2BIG, .command = "x"}, NULL,
         {"too large", "enableServiceLinks"}},
        {126, 0, {.exec_errno = ELOOP, .command = "x"}, NULL,
         {"'x' could not be started: ", "symbolic links"}},
        {127, 0, {.exec_errno = ENOENT}, NULL, {"the command"}},
        {127, 0, {0}, "sh: 1: trian: not found", {"a shell did not find"}},
        {126, 0, {0}, NULL, {"a shell found"}},
        {127, 0, {0},
         "x: error while loading shared libraries: libfoo.so.1: cannot open "
         "shared object file: No such file or directory", {"loader"}},
    };

    (void)state;
    assert_hints(cases, sizeof cases / sizeof cases[0]);
}

static void test_hints_of_last_lines(void **state)
{
    static const struct hint_case cases[] = {
        {1, 0, {0}, "ModuleNotFoundError: No module named 'torch'",
         {"does not find the module"}},
        {2, 0, {0}, "python3: can't open file '/app/x.py': [Errno 2] No such",
         {"script is not there"}},
        {1, 0, {0},
         "torch.distributed.DistNetworkError: The server socket has failed to "
         "listen on any local network address. port: 29500, useIpv6: false, "
         "code: -98, name: EADDRINUSE, message: address already in use",
         {"port is taken", "--master-port"}},
        {1, 0, {0}, "OSError: [Errno 98] Address already in use",
         {"port is taken"}},
        {1, 0, {0},
         "[rank2]: torch.OutOfMemoryError: CUDA out of memory. Tried to",
         {"GPU's memory is full"}},
        {1, 0, {0},
         "torch.distributed.DistBackendError: NCCL error in: x.cpp:219\n"
         "ncclInternalError: Internal check failed.\nLast error:\n",
         {"NCCL failed inside", "NCCL_DEBUG=INFO"}},
        {1, 0, {.shm_bytes = 64 * MIB, .shm_used = 60 * MIB},
         "ncclSystemError: System call (e.g. socket, malloc) failed",
         {"system call of NCCL", "/dev/shm has 64 MiB, 93 % used"}},
        {1, 0, {.shm_bytes = 64 * MIB, .shm_used = 1 * MIB},
         "Error while creating shared memory segment /dev/shm/nccl-a (size 9)",
         {"may be too small", "/dev/shm has 64 MiB, 1 % used"}},
        {1, 0, {0}, "RuntimeError: NCCL error: unhandled cuda error",
         {"NCCL failed"}},
        {1, 0, {0},
         "[W socket.cpp:663] [c10d] The client socket has failed to connect to "
         "[localhost]:29500 (errno: 111 - Connection refused).",
         {"rendezvous at MASTER_ADDR", "127.0.0.1"}},
        {1, 0, {0}, "ConnectionRefusedError: [Errno 111] Connection refused",
         {"nobody listened"}},
        {1, 0, {0}, "OSError: [Errno 28] No space left on device: '/out/a'",
         {"df -h"}},
        {1, 0, {.shm_bytes = 64 * MIB, .shm_used = 64 * MIB},
         "RuntimeError: unable to write to file </torch_9_1_0>: No space left "
         "on device (28)", {"shared memory is full", "100 % used"}},
        {1, 0, {.shm_bytes = 64 * MIB, .shm_used = 64 * MIB},
         "RuntimeError: DataLoader worker (pid 9) is killed by signal: Bus "
         "error. It is possible that dataloader's workers are out of shared "
         "memory.", {"data worker", "medium: Memory", "64 MiB"}},
        {1, 0, {.oom_kills = 1},
         "RuntimeError: DataLoader worker (pid 9) is killed by signal: "
         "Killed.", {"data worker was killed", "OOM killer"}},
        {1, 0, {0},
         "RuntimeError: unable to open shared memory object </torch_1> in "
         "read-write mode: Too many open files (24)", {"open files"}},
        {1, 0, {0}, "PermissionError: [Errno 13] Permission denied: '/data'",
         {"may not use that path"}},
        {1, 0, {0}, "RuntimeError: Dataset not found. You can use download=",
         {"AGENT_DATASET_DIR"}},
        {1, 0, {0}, "_pickle.UnpicklingError: invalid load key, 'v'.",
         {"Git LFS pointer"}},
        {1, 0, {0}, "RuntimeError: CUDA error: invalid device ordinal",
         {"LOCAL_RANK"}},
        /* An exception that is not known speaks for itself. */
        {1, 0, {0}, "Connection refused, trying again\nValueError: bad axis",
         {NULL}},
        {1, 0, {0}, "Connection refused\n[rank0]: KeyError: 'lr'", {NULL}},
        {1, 0, {0}, "Connection refused\nmodel.ShapeError", {NULL}},
        /* What is no exception's head does not stand in the way. */
        {1, 0, {0}, "NCCL error in x\nLast error:\nsomething", {"NCCL"}},
        {1, 0, {0}, "Connection refused\n\n\n", {"nobody listened"}},
        {1, 0, {0}, "[rank0]", {NULL}},
        /* The last known line counts. */
        {1, 0, {0}, "Connection refused\nError: Permission denied",
         {"may not use that path"}},
        {1, 0, {0}, "out of resource: shared memory, Required: 9", {NULL}},
        {3, 0, {0}, "all is well", {NULL}},
    };

    (void)state;
    assert_hints(cases, sizeof cases / sizeof cases[0]);
}

static void test_a_hint_is_cut_to_its_room(void **state)
{
    struct failure f = worker(137, SIGKILL);
    struct verdict_facts facts = {.oom_kills = 1};
    char hint[20];

    (void)state;
    verdict_hint(hint, sizeof hint, &f, &facts);
    assert_string_equal(hint, "the kernel's OOM ki");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_signal_names),
        cmocka_unit_test(test_success),
        cmocka_unit_test(test_a_worker_failed),
        cmocka_unit_test(test_a_worker_with_a_code_of_agent),
        cmocka_unit_test(test_a_worker_of_another_pod),
        cmocka_unit_test(test_hint_and_tail_follow),
        cmocka_unit_test(test_a_fault_of_a_pod),
        cmocka_unit_test(test_a_barrier_that_timed_out),
        cmocka_unit_test(test_a_lost_pod),
        cmocka_unit_test(test_stopped_from_outside),
        cmocka_unit_test(test_no_cause),
        cmocka_unit_test(test_the_tail_is_cut_first),
        cmocka_unit_test(test_a_long_last_line_keeps_its_beginning),
        cmocka_unit_test(test_it_is_valid_utf8),
        cmocka_unit_test(test_hints_of_signals),
        cmocka_unit_test(test_hints_of_exec),
        cmocka_unit_test(test_hints_of_last_lines),
        cmocka_unit_test(test_a_hint_is_cut_to_its_room),
    };

    return cmocka_run_group_tests_name("verdict", tests, NULL, NULL);
}
