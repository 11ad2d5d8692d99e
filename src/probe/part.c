/* part: one part of the probe, in a process of its own with a deadline. */
#include "probe/probe.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static uint64_t now_ms(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* What libraries print goes to stderr: stdout is for JSON. */
static void run(probe_fill *fill, int fd)
{
    json_t *part = json_object();
    char *text;
    size_t len, at = 0;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)dup2(STDERR_FILENO, STDOUT_FILENO);
    if (part)
        fill(part);
    text = part ? json_dumps(part, JSON_COMPACT) : NULL;
    len = text ? strlen(text) : 0;
    while (at < len) {
        ssize_t n = write(fd, text + at, len - at);

        if (n < 0 && errno != EINTR)
            break;
        at += n > 0 ? (size_t)n : 0;
    }
    _exit(at == len && len > 0 ? 0 : 1);
}

/* Until the end of the pipe: true. At the deadline: false. */
static bool collect(int fd, char *bytes, size_t *len, uint64_t until_ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    for (;;) {
        uint64_t now = now_ms();
        ssize_t n;

        if (now >= until_ms)
            return false;
        if (poll(&p, 1, (int)(until_ms - now)) <= 0)
            continue;
        if (*len == PROBE_BYTES_MAX)
            return true; /* Too much: it will not parse. */
        n = read(fd, bytes + *len, PROBE_BYTES_MAX - *len);
        if (n == 0 || (n < 0 && errno != EINTR))
            return true;
        *len += n > 0 ? (size_t)n : 0;
    }
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

json_t *probe_part(probe_fill *fill, unsigned timeout_ms)
{
    char *bytes = malloc(PROBE_BYTES_MAX);
    size_t len = 0;
    int fds[2], status = 0;
    bool in_time;
    json_t *part = NULL;
    pid_t pid;

    if (!bytes || pipe(fds) != 0) {
        free(bytes);
        return NULL;
    }
    pid = fork();
    if (pid == 0) {
        (void)close(fds[0]);
        run(fill, fds[1]);
    }
    (void)close(fds[1]);
    in_time = pid > 0 && collect(fds[0], bytes, &len, now_ms() + timeout_ms);
    (void)close(fds[0]);
    if (pid > 0) {
        (void)kill(pid, SIGKILL); /* What it had to say is said. */
        /* A process that hangs in the kernel is left to itself. */
        (void)waitpid(pid, &status, in_time ? 0 : WNOHANG);
    }
    if (in_time && len > 0)
        part = json_loadb(bytes, len, 0, NULL);
    free(bytes);
    return part ? part : fault(in_time, status, timeout_ms);
}
