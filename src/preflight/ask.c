/* ask: see ask.h. */
#include "preflight/ask.h"

#include "base/mem.h"
#include "base/tool.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void __attribute__((noreturn))
exec_it(char *const *argv, char *const *envp, int out)
{
    sigset_t none;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)dup2(out, 1);
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)execve(argv[0], argv, envp ? envp : environ);
    _exit(errno == ENOENT ? 127 : 126);
}

static void read_out(int fd, char *buf, size_t cap)
{
    char rest[4096];
    size_t len = 0;

    for (;;) {
        size_t room = cap - 1 - len;
        ssize_t n = read(fd, room ? buf + len : rest,
                         room ? room : sizeof rest);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        len += room ? (size_t)n : 0;
    }
    buf[len] = '\0';
}

int ask_run(char *const *argv, char *const *envp, char *buf, size_t cap)
{
    int fds[2], status;
    pid_t pid;

    if (pipe2(fds, O_CLOEXEC) != 0)
        return -errno;
    pid = fork();
    if (pid == 0)
        exec_it(argv, envp, fds[1]);
    (void)close(fds[1]);
    if (pid < 0) {
        (void)close(fds[0]);
        return -EAGAIN;
    }
    read_out(fds[0], buf, cap);
    (void)close(fds[0]);
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -errno;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

bool ask_find(const struct preflight_sink *s, char *path, size_t cap)
{
    const char *tool = preflight_row(s->check)->tool;
    struct preflight_finding f;
    bool asked = s->job->asked >> s->check & 1;

    if (tool_find(tool, path, cap))
        return true;
    f = finding_new(asked ? PREFLIGHT_FATAL : PREFLIGHT_WARN);
    FINDING_SET(f.what, "%s is not installed: it is looked for beside agent "
                "and in PATH", tool);
    FINDING_SET(f.why, "agent itself opens no library, so it cannot tell");
    FINDING_SET(f.fix, "copy %s into the image, beside agent; or leave %s out "
                "of --preflight", tool, preflight_row(s->check)->word);
    finding_add(s, &f);
    return false;
}
