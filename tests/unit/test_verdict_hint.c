/* Tests of a verdict's hints, supervise/verdict_hint.c. */
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
    struct failure f = {.kind = FAILURE_WORKER, .code = code, .signo = signo};

    return f;
}

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
        {137, SIGKILL, {.oom_kills = 1, .memory_limit = 64 * MIB}, NULL,
         {"the memory limit of 64 MiB was reached"}},
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
        {152, SIGXCPU, {0}, NULL, {"ulimit -t"}},
        {153, SIGXFSZ, {0}, NULL, {"ulimit -f"}},
        {152, SIGXCPU, {.cpu_ms = 3400, .cpu_soft_s = 4, .cpu_hard_s = 9},
         NULL, {"limit of CPU time", "4 s"}},
        {152, SIGXCPU, {.cpu_ms = 1000, .cpu_soft_s = 4}, NULL,
         {"of the process was reached"}},
        {137, SIGKILL, {.cpu_ms = 9000, .cpu_soft_s = 4, .cpu_hard_s = 9},
         NULL, {"limit of CPU time", "9 s", "ulimit -t unlimited"}},
        {137, 0, {.cpu_ms = 9000, .cpu_hard_s = 9}, NULL,
         {"137 is what a shell returns", "limit of CPU time"}},
        {152, 0, {.cpu_ms = 9000, .cpu_soft_s = 9}, NULL,
         {"152 is what a shell returns", "limit of CPU time"}},
        {137, SIGKILL, {.cpu_ms = 4000, .cpu_soft_s = 4, .cpu_hard_s = 9},
         NULL, {"kill -9"}},
        {137, SIGKILL, {.cpu_ms = 9000}, NULL, {"kill -9"}},
        {138, SIGUSR1, {0}, NULL, {NULL}},
        {255, 0, {0}, NULL, {NULL}},
        {143, 0, {0}, NULL, {NULL}},
    };

    (void)state;
    assert_hints(cases, sizeof cases / sizeof cases[0]);
}

/* What this machine knows is told with them. */
static void test_hints_with_facts(void **state)
{
    static const struct hint_case cases[] = {
        {137, SIGKILL, {.node_oom_kills = 2}, NULL,
         {"own memory limit was not hit", "2 kills meanwhile", "dmesg"}},
        {137, SIGKILL, {.node_oom_kills = 2, .oom_kills = 1}, NULL,
         {"OOM killer was at work in this pod"}},
        {1, 0, {.port = 29500, .port_holder = "pid 7 (python)"},
         "OSError: [Errno 98] Address already in use",
         {"a port is taken", "port 29500 is held by pid 7 (python)"}},
        {1, 0, {.full = "/tmp has 0 KiB free of 64 MiB"},
         "OSError: [Errno 28] No space left on device: 'x'",
         {"is full", "/tmp has 0 KiB free"}},
        {2, 0, {.cwd_gone = true}, "python3: can't open file 'x': [Errno 2] No "
         "such file or directory", {"working directory of agent"}},
        {127, 0, {.cwd_gone = true, .exec_errno = ENOENT, .command = "./x"},
         NULL, {"working directory of agent"}},
        {1, 0, {.cwd_gone = true}, "ValueError: x", {NULL}},
        {126, 0, {.exec_errno = ENOEXEC, .exec_text = "'x' is for s390x"},
         NULL, {"'x' is for s390x"}},
    };

    (void)state;
    assert_hints(cases, sizeof cases / sizeof cases[0]);
}

/* A row for each kind of last line that was seen in the field. */
static void test_hints_of_more_lines(void **state)
{
    static const struct hint_case cases[] = {
        {1, 0, {0}, "ImportError: cannot import name 'x' from 'torch'",
         {"another version"}},
        {1, 0, {0}, "ImportError: /x.so: undefined symbol: _ZN3c10",
         {"not built for each other"}},
        {1, 0, {0}, "RuntimeError: CUDA error: device-side assert triggered",
         {"own check failed", "CUDA_LAUNCH_BLOCKING"}},
        {1, 0, {0}, "RuntimeError: CUDA error: an illegal memory access was "
         "encountered", {"CUDA_LAUNCH_BLOCKING"}},
        {1, 0, {0}, "CUDA error: uncorrectable ECC error encountered",
         {"faulty", "drain"}},
        {1, 0, {0}, "Failed to initialize NVML: Driver/library version "
         "mismatch", {"restart"}},
        {1, 0, {0}, "RuntimeError: CUBLAS_STATUS_ALLOC_FAILED when calling",
         {"GPU's memory is full"}},
        {1, 0, {0}, "RuntimeError: [enforce fail at alloc_cpu.cpp:75] . "
         "DefaultCPUAllocator: can't allocate memory", {"limits.memory"}},
        {1, 0, {.shm_bytes = 64 * MIB, .shm_used = MIB}, "RuntimeError: "
         "DataLoader worker (pid(s) 12) exited unexpectedly",
         {"num_workers=0", "/dev/shm has 64 MiB"}},
        {1, 0, {0}, "torch.distributed.DistStoreError: Timed out after 61 "
         "seconds waiting for clients. 1/2 clients joined.",
         {"not all ranks came"}},
        {1, 0, {0}, "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/"
         "tcp/pair.cc:553] Connection closed by peer [127.0.0.1]:37265. This "
         "is typically caused by a remote worker crashing.",
         {"another rank's process", "other ranks' last lines"}},
        {2, 0, {0}, "train.py: error: unrecognized arguments: --nproc 4",
         {"before the command"}},
        {127, 0, {0}, "/usr/bin/env: 'python\\r': No such file or directory",
         {"Windows line ends"}},
        {127, 0, {0}, "/usr/bin/env: 'pyhton': No such file or directory",
         {"not in PATH"}},
        {1, 0, {0}, "OpenBLAS blas_thread_init: pthread_create failed for "
         "thread 1 of 8: Operation not permitted", {"seccomp profile"}},
        {0, SIGABRT, {0},
         "terminate called without an active exception\n"
         "Fatal Python error: Aborted\n\n"
         "Thread 0x00007f752be6db80 (most recent call first):\n"
         "  <no Python frame>\n",
         {"C++ thread was still at work", "an exception came before",
          "os._exit(0) after"}},
    };

    (void)state;
    assert_hints(cases, sizeof cases / sizeof cases[0]);
}

static void test_hints_of_exec(void **state)
{
    static const struct hint_case cases[] = {
        {127, 0, {.exec_errno = ENOENT, .command = "trian.py"}, NULL,
         {"'trian.py' was not found in PATH"}},
        {127, 0, {.exec_errno = ENOENT, .command = "--nproc"}, NULL,
         {"'--nproc' was not found in PATH; options go before --"}},
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
        {2, 0, {0},
         "UserWarning: Failed to initialize NumPy: No module named 'numpy'\n"
         "train.py: error: no data: give --data", {NULL}},
        {2, 0, {0}, "python3: can't open file '/app/x.py': [Errno 2] No such",
         {"script is not there"}},
        {1, 0, {0},
         "torch.distributed.DistNetworkError: The server socket has failed to "
         "listen on any local network address. port: 29500, useIpv6: false, "
         "code: -98, name: EADDRINUSE, message: address already in use",
         {"port is taken", "--master-port"}},
        {1, 0, {0}, "EOFError: EOF when reading a line",
         {"workers' stdin is /dev/null", "option"}},
        {1, 0, {0}, "EOFError: Ran out of input", {NULL}}, /* Of pickle. */
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
        {1, 0, {.oom_kills = 1},
         "subprocess.CalledProcessError: Command '['x']' died with "
         "<Signals.SIGKILL: 9>.", {"program started was killed", "OOM killer"}},
        /* What is not known, while the OOM killer was there. */
        {1, 0, {.oom_kills = 1},
         "concurrent.futures.process.BrokenProcessPool: A process in the "
         "process pool was terminated abruptly", {"likely", "OOM killer"}},
        {7, 0, {.oom_kills = 1}, "Killed", {"likely killed", "OOM killer"}},
        {1, 0, {.oom_kills = 1}, "ValueError: bad axis", {NULL}},
        {139, SIGSEGV, {.oom_kills = 1}, "x", {"native code"}},
        {1, 0, {0},
         "RuntimeError: unable to open shared memory object </torch_1> in "
         "read-write mode: Too many open files (24)", {"open files"}},
        {1, 0, {.pids_max = 100}, "RuntimeError: can't start new thread",
         {"could not be started", "podPidsLimit", "(pids.max) is 100"}},
        {2, 0, {0}, "sh: 1: Cannot fork", {"--pids-limit", "ulimit -u"}},
        {1, 0, {0}, "bash: fork: retry: Resource temporarily unavailable",
         {"could not be started"}},
        {1, 0, {0}, "libgomp: Thread creation failed: Resource temporarily "
         "unavailable", {"OMP_NUM_THREADS"}},
        {1, 0, {0}, "BlockingIOError: [Errno 11] Resource temporarily "
         "unavailable", {"could not be started"}},
        {1, 0, {0}, "read: Resource temporarily unavailable", {NULL}},
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
        cmocka_unit_test(test_hints_of_signals),
        cmocka_unit_test(test_hints_of_exec),
        cmocka_unit_test(test_hints_with_facts),
        cmocka_unit_test(test_hints_of_more_lines),
        cmocka_unit_test(test_hints_of_last_lines),
        cmocka_unit_test(test_a_hint_is_cut_to_its_room),
    };

    return cmocka_run_group_tests_name("verdict_hint", tests, NULL, NULL);
}
