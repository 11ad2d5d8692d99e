/* guard: whom it kills once agent is dead, and whom not any more. */
#include "supervise/guard.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void after(void *ctx, pid_t agent)
{
    (void)ctx;
    (void)agent;
}

/* A process in a session of its own, as a worker is. */
static pid_t leader(void)
{
    int fds[2];
    char c;
    pid_t pid;

    assert_int_equal(pipe(fds), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)setsid();
        (void)close(fds[0]);
        (void)!write(fds[1], "x", 1);
        (void)close(fds[1]);
        for (;;)
            (void)pause();
    }
    (void)close(fds[1]);
    assert_int_equal(read(fds[0], &c, 1), 1);
    (void)close(fds[0]);
    return pid;
}

/* The signal that ended it, 0: it lives. */
static int ended_by(pid_t pid)
{
    int status = 0;
    pid_t r = waitpid(pid, &status, WNOHANG);

    assert_true(r == 0 || r == pid);
    return r == 0 ? 0 : WTERMSIG(status);
}

static void test_whom_it_kills(void **state)
{
    pid_t before = leader(), now = leader(), guard;
    int fd;

    (void)state;
    guard = guard_start("AGENT_COOKIE=of-no-process", 0,
                        &(struct guard_last){.run = after}, &fd);
    assert_true(guard > 0);
    guard_add(fd, before);
    guard_forget(fd); /* The next round. */
    guard_add(fd, now);
    (void)close(fd); /* Agent is dead. */
    assert_int_equal(waitpid(guard, NULL, 0), guard);
    assert_int_equal(ended_by(now), SIGKILL);
    assert_int_equal(ended_by(before), 0);
    (void)kill(before, SIGKILL);
    (void)waitpid(before, NULL, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_whom_it_kills)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
