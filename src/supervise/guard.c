/* guard: see guard.h. */
#include "supervise/guard.h"

#include "base/mem.h"
#include "supervise/brand.h"
#include "supervise/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define GUARD_SESSIONS_MAX 2048 /* The newest are kept. */
#define GUARD_ROUNDS 200        /* Of 10 ms. */
#define FAREWELL 0
#define FORGET (-1)

static void kill_what_is_left(const char *cookie, uint64_t brand,
                              const pid_t *sessions, unsigned n)
{
    pid_t me = getpid(), one;
    struct proc_query q = {.cookie = cookie,
                           .brand = brand,
                           .brand_ignore = BRAND_WORKER_MASK,
                           .skip = &me,
                           .n_skip = 1,
                           .sessions = sessions,
                           .n_sessions = n};
    unsigned quiet = 0;

    /* Each leads a group, too: that needs no /proc. */
    for (unsigned i = 0; i < n; i++)
        (void)kill(-sessions[i], SIGKILL);
    /* Twice in a row nothing: a process that was just forked is seen too. */
    for (unsigned i = 0; i < GUARD_ROUNDS && quiet < 2; i++) {
        quiet = proc_signal_left(&q, SIGKILL, &one) == 0 ? quiet + 1 : 0;
        (void)nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
}

static void __attribute__((noreturn))
guard_main(int fd, const char *cookie, uint64_t brand,
           const struct guard_last *last, pid_t agent)
{
    pid_t sessions[GUARD_SESSIONS_MAX], pid;
    unsigned n = 0;
    ssize_t r;

    (void)setsid();
    (void)prctl(PR_SET_NAME, "agent-guard");
    if (fd != 0) {
        (void)dup2(fd, 0);
        (void)close(fd);
    }
    if (syscall(SYS_close_range, 1U, ~0U, 0U) != 0)
        for (int i = 1; i < 1024; i++)
            (void)close(i);
    for (;;) {
        r = read(0, &pid, sizeof pid);
        if (r < 0 && errno == EINTR)
            continue;
        if (r != (ssize_t)sizeof pid)
            break;
        if (pid == FAREWELL)
            _exit(0);
        if (pid == FORGET) {
            n = 0;
            continue;
        }
        sessions[n++ % GUARD_SESSIONS_MAX] = pid;
    }
    kill_what_is_left(cookie, brand, sessions,
                      n < GUARD_SESSIONS_MAX ? n : GUARD_SESSIONS_MAX);
    last->run(last->ctx, agent);
    _exit(0);
}

pid_t guard_start(const char *cookie, uint64_t brand,
                  const struct guard_last *last, int *ret_fd)
{
    int fds[2];
    pid_t agent = getpid(), pid;

    if (pipe2(fds, O_CLOEXEC) != 0)
        return -errno;
    pid = fork();
    if (pid == 0) {
        (void)close(fds[1]);
        guard_main(fds[0], cookie, brand, last, agent);
    }
    (void)close(fds[0]);
    if (pid < 0) {
        (void)close(fds[1]);
        return -errno;
    }
    (void)fcntl(fds[1], F_SETFL, O_NONBLOCK); /* Never wait for it. */
    *ret_fd = fds[1];
    return pid;
}

void guard_add(int fd, pid_t worker)
{
    if (fd >= 0)
        (void)!write(fd, &worker, sizeof worker);
}

void guard_forget(int fd)
{
    guard_add(fd, FORGET);
}

void guard_end(int *fd, pid_t pid)
{
    pid_t farewell = FAREWELL;

    if (*fd < 0)
        return;
    (void)!write(*fd, &farewell, sizeof farewell);
    (void)close(steal_fd(fd));
    (void)kill(pid, SIGKILL); /* It has nothing left to do. */
    (void)waitpid(pid, NULL, 0);
}
