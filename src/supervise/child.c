/* child: see child.h. */
#include "supervise/child.h"

#include "base/cgroup.h"
#include "base/mem.h"
#include "supervise/brand.h"
#include "supervise/tty.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Every descriptor from 3 on goes away at exec, inherited ones too. */
static void close_the_rest_at_exec(void)
{
    struct rlimit r;
    long end = 1024;

    if (syscall(SYS_close_range, 3U, ~0U, CLOSE_RANGE_CLOEXEC) == 0)
        return;
    if (getrlimit(RLIMIT_NOFILE, &r) == 0 && r.rlim_cur < 65536)
        end = (long)r.rlim_cur;
    for (int fd = 3; fd < end; fd++)
        (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
}

/* glibc keeps 32 and 33 for itself, and some parents leave them ignored: so
 * without it, with the kernel's struct, whose first word is the handler. */
uint64_t child_ignored(void)
{
    uint64_t mask = 0;

    for (int s = 1; s <= 64; s++) {
        uintptr_t old[8] = {0};

        if (syscall(SYS_rt_sigaction, s, NULL, old, 8) == 0 &&
            old[0] == (uintptr_t)SIG_IGN)
            mask |= UINT64_C(1) << (s - 1);
    }
    return mask;
}

/* exec itself resets those that have a handler. */
static void default_signals(uint64_t ignored)
{
    static const char default_action[64]; /* The kernel's struct, all zero. */

    for (int s = 1; s <= 64; s++)
        if (ignored & UINT64_C(1) << (s - 1))
            (void)syscall(SYS_rt_sigaction, s, default_action, NULL, 8);
}

/* Only async-signal-safe calls from here to exec. */

/* agent's own helper programs need not be in PATH. */
static void exec_beside(const struct child_spec *spec)
{
    const char *name = spec->argv[0];
    size_t len = strlen(name);
    char path[PATH_MAX];
    ssize_t n;
    char *slash;

    if (errno != ENOENT || strncmp(name, "agent-", 6) != 0 || len > NAME_MAX ||
        strchr(name, '/'))
        return;
    n = readlink("/proc/self/exe", path, sizeof path - NAME_MAX - 1);
    path[n > 0 ? n : 0] = '\0';
    slash = strrchr(path, '/');
    errno = ENOENT;
    if (!slash)
        return;
    memcpy(slash + 1, name, len + 1);
    (void)execve(path, spec->argv, spec->envp);
}

/* The heartbeat pipe, which the worker keeps. */
static int keep_beat_fd(int fd, int *report)
{
    if (*report == CHILD_BEAT_FD)
        *report = fcntl(*report, F_DUPFD_CLOEXEC, CHILD_BEAT_FD + 1);
    if (fd == CHILD_BEAT_FD)
        return fcntl(fd, F_SETFD, 0);
    return dup2(fd, CHILD_BEAT_FD);
}

static void __attribute__((noreturn))
run_child(const struct child_spec *spec, int out, int err, int report,
          pid_t parent)
{
    struct rlimit files;
    sigset_t none;
    int saved;

    if (spec->tty)
        tty_enter(spec->tty);
    else
        (void)setsid();
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(128 + SIGKILL); /* agent died before the line above. */
    if (!spec->tty && (dup2(spec->stdin_fd, 0) < 0 || dup2(out, 1) < 0 ||
                       dup2(err, 2) < 0))
        goto fail;
    brand_put(spec->brand);
    if (spec->cpus_size > 0) /* The caller sees whether it is so. */
        (void)syscall(SYS_sched_setaffinity, 0, spec->cpus_size, spec->cpus);
    close_the_rest_at_exec();
    if (spec->beat_fd > 2 && keep_beat_fd(spec->beat_fd, &report) < 0)
        goto fail;
    if (spec->max_files > 0 && getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = spec->max_files; /* What agent itself was given. */
        (void)setrlimit(RLIMIT_NOFILE, &files);
    }
    default_signals(spec->ignored);
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)execvpe(spec->argv[0], spec->argv, spec->envp);
    exec_beside(spec);
fail:
    saved = errno;
    (void)!write(report, &saved, sizeof saved);
    _exit(saved == ENOENT ? ERR_NOTFOUND : ERR_NOEXEC);
}

/* A pipe whose write end the child inherits and whose read end never blocks. */
static int make_pipe(int fds[2])
{
    if (pipe2(fds, O_CLOEXEC) != 0)
        return -errno;
    (void)fcntl(fds[0], F_SETFL, O_NONBLOCK);
    return 0;
}

/* vfork: no page tables to copy, and no faults on them afterwards; the parent
 * waits until the exec is done. The child runs on the parent's stack, so it
 * must not return, and it changes nothing that the parent reads later. */
static pid_t __attribute__((noinline))
start(const struct child_spec *spec, int out, int err, int report)
{
    pid_t parent = getpid(), pid = vfork();

    if (pid == 0)
        run_child(spec, out, err, report, parent);
    return pid;
}

static int no_fork(struct err *e)
{
    uint64_t max, used;
    char room[64] = "";
    int saved = errno;

    if (saved == EAGAIN && cgroup_tightest("", CGROUP_PIDS, &max, &used))
        (void)snprintf(room, sizeof room, ", which is %llu, of which %llu are "
                       "used", (unsigned long long)max,
                       (unsigned long long)used);
    return err_set(e, ERR_RESOURCE, "fork: %s (limits: ulimit -u; the cgroup's "
                   "pids.max%s; memory)", strerror(saved), room);
}

int child_spawn(const struct child_spec *spec, struct child *ret,
                struct err *e)
{
    int out[2] = {-1, -1}, err[2] = {-1, -1}, report[2] = {-1, -1};
    pid_t pid;
    int r = 0;

    if ((!spec->tty && (make_pipe(out) != 0 || make_pipe(err) != 0)) ||
        make_pipe(report) != 0)
        r = err_set(e, ERR_RESOURCE, "pipe: %s (descriptor limit: ulimit -n)",
                    strerror(errno));
    pid = r == 0 ? start(spec, out[1], err[1], report[1]) : -1;
    if (r == 0 && pid < 0)
        r = no_fork(e);
    mem_close_at(&out[1]);
    mem_close_at(&err[1]);
    mem_close_at(&report[1]);
    if (r != 0) {
        mem_close_at(&out[0]);
        mem_close_at(&err[0]);
        mem_close_at(&report[0]);
        return r;
    }
    *ret = (struct child){
        .pid = pid, .out_fd = out[0], .err_fd = err[0], .exec_fd = report[0]};
    return 0;
}

int child_exec_errno(int *exec_fd)
{
    int code = 0;

    if (*exec_fd < 0)
        return 0;
    if (read(*exec_fd, &code, sizeof code) != (ssize_t)sizeof code)
        code = 0;
    (void)close(steal_fd(exec_fd));
    return code;
}

int child_open_stdin(void)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    int fds[2];

    if (fd >= 0)
        return fd;
    if (pipe2(fds, O_CLOEXEC) != 0)
        return -errno;
    (void)close(fds[1]);
    return fds[0];
}

int child_code(int wait_status, int *ret_signo)
{
    *ret_signo = WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) : 0;
    return *ret_signo ? 128 + *ret_signo : WEXITSTATUS(wait_status);
}
