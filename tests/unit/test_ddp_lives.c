/* Tests of lives: whose end came first, seen by somebody who looks late. */
#include "ddp/lives.h"

#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define RANKS 5

static void expect_ended(struct ddp_lives *l, unsigned n, const int *want)
{
    assert_int_equal(ddp_lives_look(l), n);
    for (unsigned i = 0; i < n; i++)
        assert_int_equal(l->ended[i], want[i]);
}

static void test_connections(void **state)
{
    static const int want[] = {3, 1, 4};
    struct ddp_lives l;
    int ends[RANKS][2], twin[2];

    (void)state;
    ddp_lives_init(&l, RANKS);
    for (int i = 0; i < RANKS; i++) {
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends[i]), 0);
        if (i > 0) {
            assert_false(ddp_lives_knows_all(&l));
            ddp_lives_conn(&l, i, ends[i][0]);
        }
    }
    assert_true(ddp_lives_knows_all(&l)); /* But rank 0, which looks. */
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, twin), 0);
    ddp_lives_conn(&l, 3, twin[0]); /* Two connections, one rank. */
    expect_ended(&l, 0, want);
    /* Words are no end, even where they come first. */
    assert_int_equal(write(ends[2][1], "x", 1), 1);
    assert_int_equal(write(ends[4][1], "x", 1), 1);
    for (unsigned i = 0; i < 3; i++)
        (void)close(ends[want[i]][1]);
    (void)close(twin[1]);
    expect_ended(&l, 3, want);
    expect_ended(&l, 3, want); /* Once each. */
    (void)close(ends[2][0]);   /* Closed here: no end of the other's. */
    (void)close(ends[2][1]);
    expect_ended(&l, 3, want);
    ddp_lives_free(&l);
    (void)close(ends[0][0]);
    (void)close(ends[0][1]);
    for (unsigned i = 0; i < 3; i++)
        (void)close(ends[want[i]][0]);
    (void)close(twin[0]);
}

static pid_t start_child(void)
{
    pid_t pid = fork();

    if (pid == 0)
        for (;;)
            (void)poll(NULL, 0, -1);
    assert_true(pid > 0);
    return pid;
}

static void end_child(pid_t pid)
{
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static bool kernel_has_pidfd(void)
{
    int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);

    if (fd >= 0)
        (void)close(fd);
    return fd >= 0;
}

static void test_processes(void **state)
{
    static const int want[] = {2, 4, 1, 3};
    struct ddp_lives l;
    pid_t pids[RANKS];

    (void)state;
    ddp_lives_init(&l, RANKS);
    for (int i = 1; i < RANKS; i++)
        pids[i] = start_child();
    end_child(pids[2]); /* Before anybody looked. */
    ddp_lives_process(&l, 0, (uint32_t)getpid()); /* A thread: is no other. */
    for (int i = 1; i < RANKS; i++) {
        ddp_lives_process(&l, i, (uint32_t)pids[i]);
        ddp_lives_process(&l, i, (uint32_t)pids[i]);
    }
    if (!kernel_has_pidfd()) { /* Nothing is known, nothing fails. */
        for (unsigned i = 1; i < 4; i++)
            end_child(pids[want[i]]);
        expect_ended(&l, 0, want);
        ddp_lives_free(&l);
        return;
    }
    expect_ended(&l, 1, want);
    for (unsigned i = 1; i < 4; i++)
        end_child(pids[want[i]]);
    expect_ended(&l, 4, want);
    ddp_lives_free(&l);
}

/* Without descriptors, or after the end, all calls do nothing. */
static void test_nothing_to_watch_with(void **state)
{
    struct ddp_lives l;
    int ends[2];

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    ddp_lives_init(&l, RANKS);
    ddp_lives_conn(&l, RANKS, ends[0]); /* No such rank. */
    ddp_lives_conn(&l, -1, ends[0]);
    ddp_lives_conn(&l, 1, -1);
    ddp_lives_process(&l, 1, 0); /* It has not said. */
    assert_int_equal(l.n_watched, 0);
    ddp_lives_free(&l);
    ddp_lives_conn(&l, 1, ends[0]);
    ddp_lives_process(&l, 1, 1);
    (void)close(ends[1]);
    assert_int_equal(ddp_lives_look(&l), 0);
    ddp_lives_free(&l);
    (void)close(ends[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_connections),
        cmocka_unit_test(test_processes),
        cmocka_unit_test(test_nothing_to_watch_with),
    };

    return cmocka_run_group_tests_name("ddp_lives", tests, NULL, NULL);
}
