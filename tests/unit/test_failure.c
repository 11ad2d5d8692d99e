/* Tests of supervise/failure: which of two failures is the cause. */
#include "supervise/failure.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static struct failure worker(int code, int signo, const char *tail)
{
    struct failure f = {.kind = FAILURE_WORKER, .code = code, .signo = signo};

    (void)snprintf(f.tail, sizeof f.tail, "%s", tail);
    return f;
}

static void assert_beats(const struct failure *a, const struct failure *b)
{
    assert_true(failure_beats(a, b));
    assert_false(failure_beats(b, a));
}

static void assert_first_counts(const struct failure *a,
                                const struct failure *b)
{
    assert_false(failure_beats(a, b));
    assert_false(failure_beats(b, a));
}

static void test_kills_and_crashes(void **state)
{
    struct failure plain = worker(7, 0, ""), aborts = worker(134, SIGABRT, "");
    struct failure killed = worker(137, SIGKILL, "");
    struct failure crashed = worker(139, SIGSEGV, "");
    struct failure lost = {.kind = FAILURE_LOST};
    struct failure hung = worker(203, 0, "");

    (void)state;
    hung.hung = true;
    assert_beats(&plain, &lost);
    assert_beats(&killed, &plain);
    assert_beats(&crashed, &plain);
    assert_beats(&hung, &killed);
    assert_first_counts(&plain, &aborts);
    assert_true(failure_is_death(&crashed));
    assert_false(failure_is_death(&aborts));
    assert_first_counts(&killed, &crashed);
}

/* A rank whose peer is gone raises, and crashes in gloo's threads as it ends:
 * that is no better a cause than any end of another rank. */
static void test_a_crash_that_follows(void **state)
{
    static const char *const tails[] = {
        "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:"
        "553] Connection closed by peer [127.0.0.1]:37265. This is typically",
        "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:"
        "534] Read error [127.0.0.1]:37265: Connection reset by peer",
        "torch.distributed.DistBackendError: NCCL error in: x.cpp:1, "
        "ncclRemoteError: A call failed possibly due to a network error",
        "socketProgress: Connection closed by remote peer w0<45678>",
        "ddp: all_reduce (call 7): rank 2 died or failed: its connection "
        "was closed",
    };
    struct failure plain = worker(7, 0, "");
    struct failure lost = {.kind = FAILURE_LOST};

    (void)state;
    assert_false(failure_follows(&plain));
    for (unsigned i = 0; i < sizeof tails / sizeof tails[0]; i++) {
        struct failure follows = worker(139, SIGSEGV, tails[i]);
        struct failure exits = worker(1, 0, tails[i]);
        struct failure killed = worker(137, SIGKILL, tails[i]);

        assert_true(failure_follows(&follows));
        assert_false(failure_is_death(&follows));
        assert_false(failure_follows(&killed));
        assert_beats(&plain, &follows);
        assert_beats(&plain, &exits);
        assert_first_counts(&exits, &follows);
        assert_beats(&exits, &lost);
        assert_beats(&killed, &plain);
    }
}

/* Words that are not those of its end. */
static void test_other_words(void **state)
{
    static const char *const not_peers[] = {
        "loaded gloo/transport/tcp plugin\nurllib3: Connection reset by peer, "
        "again\nValueError: bad configuration",
        "warning: ncclRemoteError seen in an earlier try\n"
        "torch.OutOfMemoryError: CUDA out of memory.",
        "ncclRemoteError\nValueError: of its own",
        "",
    };
    struct failure f = worker(134, SIGABRT, "RuntimeError: [/gloo/transport/"
                              "tcp/pair.cc:553] Connection closed by peer [x]\n"
                              "terminate called without an active exception\n"
                              "Fatal Python error: Aborted\n");

    (void)state;
    assert_true(failure_follows(&f));
    for (unsigned i = 0; i < sizeof not_peers / sizeof not_peers[0]; i++) {
        f = worker(1, 0, not_peers[i]);
        assert_false(failure_follows(&f));
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kills_and_crashes),
        cmocka_unit_test(test_a_crash_that_follows),
        cmocka_unit_test(test_other_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
