/* last_words: see last_words.h. */
#include "agent/last_words.h"

#include "agent/machine.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/result_file.h"
#include "supervise/report.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define TERMINATION_LOG "/dev/termination-log"

/* In one write, most important first; never made where the default is not
 * there. */
static void write_termination_log(const struct options *o, const char *text)
{
    const char *path = o->termination_log;
    int flags = O_WRONLY | O_TRUNC | O_CLOEXEC | O_NONBLOCK;
    int fd = path ? result_file_own(path) : -1;
    /* Among agent's own lines it ends as they do. */
    struct iovec v[2] = {{(void *)(uintptr_t)text, strlen(text)},
                         {(void *)(uintptr_t)"\n", fd < 0 ? 0 : 1}};

    if (fd < 0)
        fd = open(path ? path : TERMINATION_LOG, path ? flags | O_CREAT : flags,
                  0644);
    if (fd < 0) {
        if (path)
            log_warning("--termination-log %s: %s, going on", path,
                        strerror(errno));
        return;
    }
    if (writev(fd, v, 2) < 0 && path)
        log_warning("--termination-log %s: %s, going on", path,
                    strerror(errno));
    (void)close(fd);
}

static int write_file(const char *path, const char *text, size_t len)
{
    struct result_file f;
    int r = result_file_open(&f, path), end;

    if (r != 0)
        return r;
    r = result_file_write(&f, text, len);
    end = result_file_close(&f, r == 0);
    return r ? r : end;
}

void last_words_report(const struct options *o, const struct verdict *v,
                       const char *host, const struct report_output *output)
{
    struct report r = {.verdict = v,
                       .job_id = o->job_id ? o->job_id : "",
                       .host = host,
                       .agent_version = AGENT_VERSION,
                       .output = output};
    autofree char *buf = malloc(REPORT_MAX);
    struct timespec now;
    struct text t;
    int e;

    if (!buf)
        return;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    r.end_unix_ms = (uint64_t)now.tv_sec * 1000 +
                    (uint64_t)now.tv_nsec / 1000000;
    text_init(&t, buf, REPORT_MAX);
    report_write(&t, &r);
    e = write_file(o->report, buf, t.len);
    if (e != 0)
        log_warning("--report %s: %s, going on", o->report, strerror(-e));
}

void last_words_log(const struct options *o, const struct verdict *v)
{
    char text[VERDICT_MAX];
    struct text t;

    text_init(&t, text, sizeof text);
    verdict_write(&t, v);
    write_termination_log(o, text);
}

int last_words_early(const struct options *o, const struct err *e)
{
    struct verdict v = {.exit_code = e->code, .map = &o->exit_map,
                        .node_rank = o->node_rank, .nnodes = o->nnodes,
                        .max_restarts = o->max_restarts,
                        .restart_period_ms = o->restart_period_ms};
    char host[FAILURE_HOST_MAX];

    log_error("%s", e->text);
    if (o->command == CMD_RUN) {
        machine_host(host, sizeof host);
        v.cause.kind = FAILURE_AGENT;
        v.cause.code = e->code;
        v.cause.node_rank = o->node_rank;
        (void)text_copy(v.cause.host, sizeof v.cause.host, host);
        (void)text_copy(v.cause.text, sizeof v.cause.text, e->text);
        /* `kubectl exec pod agent --typo` must not speak for the container. */
        if (o->termination_log || getpid() == 1)
            last_words_log(o, &v);
        if (o->report)
            last_words_report(o, &v, host, NULL);
    }
    return verdict_code(&v);
}
