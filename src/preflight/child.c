/* child: see child.h. */
#include "preflight/child.h"

#include "base/log.h"
#include "base/pipe_child.h"
#include "preflight/check.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static void send_finding(void *ctx, const struct preflight_finding *f)
{
    const int *fd = ctx;

    if (write(*fd, f, sizeof *f) != (ssize_t)sizeof *f)
        _exit(ERR_AGENT); /* agent is gone. */
}

static void on_over(void *ctx, enum preflight_check check,
                    enum preflight_level worst, uint64_t ms)
{
    (void)ctx;
    (void)check;
    (void)worst;
    (void)ms;
}

static void __attribute__((noreturn))
child_main(const struct preflight_job *job, int fd)
{
    struct preflight_out out = {.ctx = &fd, .finding = send_finding,
                                .over = on_over};
    struct preflight_finding over = finding_new(PREFLIGHT_PASS);

    log_set_sink(NULL, NULL); /* The parent's queue is not ours. */
    (void)preflight_run(job, &out);
    over.level = PREFLIGHT_CHILD_OVER;
    send_finding(&fd, &over);
    _exit(0);
}

pid_t preflight_child_start(const struct preflight_job *job, int *ret_fd,
                            struct err *e)
{
    pid_t pid = pipe_child_start(ret_fd);

    if (pid == 0)
        child_main(job, *ret_fd);
    if (pid < 0)
        return err_set(e, ERR_RESOURCE, "no process for preflight: %s",
                       strerror(-pid));
    return pid;
}

enum preflight_got preflight_child_read(struct preflight_reader *r, int fd)
{
    struct preflight_finding *f = &r->finding;

    while (r->got < sizeof *f) {
        ssize_t n = read(fd, (char *)f + r->got, sizeof *f - r->got);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return PREFLIGHT_GOT_NOTHING;
        if (n <= 0)
            return PREFLIGHT_GOT_END;
        r->got += (size_t)n;
    }
    r->got = 0;
    finding_end(f);
    return PREFLIGHT_GOT_ONE;
}
