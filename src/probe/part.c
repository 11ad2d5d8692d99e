/* part: one part of the probe, in a process of its own with a deadline. */
#include "probe/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define DEAD_WAIT_MS 1000 /* From KILL: else it sits in the kernel. */

static uint64_t now_ms(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* What libraries print goes to stderr: stdout is for JSON. */
static void __attribute__((noreturn))
run(probe_fill *fill, int fd, pid_t parent)
{
    json_t *part = json_object();
    char *text;
    size_t len, at = 0;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1); /* It was dead before the line above. */
    (void)dup2(STDERR_FILENO, STDOUT_FILENO);
    if (part)
        fill(part);
    text = part ? json_dumps(part, JSON_COMPACT) : NULL;
    len = text ? strlen(text) + 1 : 0; /* The NUL is its end. */
    while (at < len) {
        ssize_t n = write(fd, text + at, len - at);

        if (n < 0 && errno != EINTR)
            break;
        at += n > 0 ? (size_t)n : 0;
    }
    _exit(at == len && len > 0 ? 0 : 1);
}

struct child {
    pid_t pid;
    int fd;    /* What it answers. */
    int pidfd; /* Readable when it is dead; -1 on a kernel before 5.3. */
    char *bytes;
    size_t len;
    bool has_answered; /* All of it is there. */
};

static void take(struct child *c, size_t n)
{
    const char *end = memchr(c->bytes + c->len, '\0', n);

    c->has_answered = end != NULL;
    c->len = end ? (size_t)(end - c->bytes) : c->len + n;
}

/* Until its answer is there, or it is dead: true. At the deadline: false. The
 * end of the pipe tells neither: a process that a library has started may hold
 * it for as long as it likes. */
static bool collect(struct child *c, uint64_t until_ms)
{
    /* In this order: what a dead one wrote is seen in the same call. */
    struct pollfd p[2] = {{.fd = c->pidfd, .events = POLLIN},
                          {.fd = c->fd, .events = POLLIN}};

    while (!c->has_answered) {
        uint64_t now = now_ms();
        ssize_t n;

        if (now >= until_ms)
            return false;
        if (poll(p, 2, (int)(until_ms - now)) <= 0)
            continue;
        if (p[1].revents == 0 || c->len == PROBE_BYTES_MAX)
            return true; /* Dead, or too much: it will not parse. */
        n = read(c->fd, c->bytes + c->len, PROBE_BYTES_MAX - c->len);
        if (n == 0 || (n < 0 && errno != EINTR))
            return true;
        if (n > 0)
            take(c, (size_t)n);
    }
    return true;
}

/* Its status, where that says why there is no answer. One that hangs in the
 * kernel is left to itself. */
static int end(const struct child *c, bool in_time)
{
    struct pollfd p = {.fd = c->pidfd, .events = POLLIN};
    int status = 0;

    (void)kill(c->pid, SIGKILL); /* What it had to say is said. */
    if (in_time && !c->has_answered && c->pidfd >= 0)
        (void)poll(&p, 1, DEAD_WAIT_MS);
    (void)waitpid(c->pid, &status,
                  in_time && !c->has_answered && c->pidfd < 0 ? 0 : WNOHANG);
    return status;
}

/* Why there is no JSON. */
static json_t *fault(bool in_time, int status, unsigned timeout_ms)
{
    json_t *part = json_object();

    if (!part)
        return NULL;
    if (!in_time) {
        probe_missing(part, true, "no answer within %u ms: the driver or its "
                      "library hangs", timeout_ms);
        (void)json_object_set_new(part, "hangs", json_true());
    } else if (WIFSIGNALED(status))
        probe_missing(part, true, "the library crashes: %s",
                      strsignal(WTERMSIG(status)));
    else
        probe_missing(part, true, "the library ended the process with %d",
                      WEXITSTATUS(status));
    return part;
}

static bool start(struct child *c, probe_fill *fill)
{
    pid_t parent = getpid();
    int fds[2];

    if (pipe2(fds, O_CLOEXEC) != 0)
        return false;
    c->pid = fork();
    if (c->pid == 0) {
        (void)close(fds[0]);
        run(fill, fds[1], parent);
    }
    (void)close(fds[1]);
    c->fd = fds[0];
    if (c->pid < 0)
        (void)close(c->fd);
    else
        c->pidfd = (int)syscall(SYS_pidfd_open, c->pid, 0);
    return c->pid > 0;
}

json_t *probe_part(probe_fill *fill, unsigned timeout_ms)
{
    struct child c = {.bytes = malloc(PROBE_BYTES_MAX)};
    json_t *part = NULL;
    bool in_time;
    int status;

    if (!c.bytes || !start(&c, fill)) {
        free(c.bytes);
        return NULL;
    }
    in_time = collect(&c, now_ms() + timeout_ms);
    status = end(&c, in_time);
    if (c.has_answered)
        part = json_loadb(c.bytes, c.len, 0, NULL);
    (void)close(c.fd);
    if (c.pidfd >= 0)
        (void)close(c.pidfd);
    free(c.bytes);
    return part ? part : fault(in_time, status, timeout_ms);
}
