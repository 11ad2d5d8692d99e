/* loop_end: the end: verdict, output, exit status. */
#include "agent/loop_parts.h"

#include "agent/last_words.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "supervise/guard.h"
#include "supervise/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The verdict of a failure is shown whatever -q says. */
static void say_verdict(struct loop *l, char *text)
{
    bool failed = l->pod.exit_code != 0;
    char *line = text, *end;

    if (failed && !log_shows(LOG_INFO))
        log_setup((int)l->pod.cfg.node_rank, LOG_INFO);
    for (; line && *line; line = end) {
        end = strchr(line, '\n');
        if (end)
            *end++ = '\0';
        if (failed && line == text)
            log_error("%s", line);
        else
            log_info("%s", line);
    }
}

/* Which process it was that outlived KILL. */
static void say_stuck(const struct loop *l)
{
    bool is_fault = l->pod.cause.kind == FAILURE_AGENT &&
                    l->pod.exit_code == ERR_RESOURCE;
    pid_t pid = l->stuck_pid;
    char wchan[64];

    for (uint32_t i = 0; l->workers && i < l->n_slots && pid <= 0; i++)
        pid = l->workers[i].pid;
    if ((!l->pod.sup.stuck && !is_fault) || pid <= 0)
        return;
    proc_wchan(pid, wchan, sizeof wchan);
    log_error("pid %d outlives SIGKILL%s%s", (int)pid,
              wchan[0] ? ", it waits in " : "", wchan);
}

static struct log_stats both_streams(const struct loop *l, uint32_t i)
{
    struct log_stats all, err;

    loop_log_stats(l, i, false, &all);
    loop_log_stats(l, i, true, &err);
    all.bytes += err.bytes;
    all.lines += err.lines;
    all.dropped_bytes += err.dropped_bytes;
    all.dropped_lines += err.dropped_lines;
    all.file_dropped += err.file_dropped;
    return all;
}

static struct report_server take_server(const struct loop *l, uint32_t i)
{
    const struct worker *w = &l->workers[i];
    struct pod_exit x;

    loop_name_process(l, i, &x);
    return (struct report_server){
        .role = x.role == PROC_SERVER ? "server" : "scheduler",
        .index = x.index,
        .n_starts = w->n_starts,
        .ended = w->n_starts > 0 && w->pid <= 0,
        .code = w->code,
        .signo = w->signo,
        .output = both_streams(l, i)};
}

/* With what became of each process's output. */
static void write_report(const struct loop *l, const struct verdict *v)
{
    const struct plan *p = l->plan;
    unsigned n = p->o->report && l->workers ? p->n_procs : 0;
    autofree struct log_stats *workers = calloc(n + 1, sizeof *workers);
    autofree struct report_server *servers = calloc(n + 1, sizeof *servers);
    struct report_output out = {.workers = workers, .servers = servers};

    for (unsigned i = 0; workers && servers && i < n; i++)
        if (i < p->nproc)
            workers[out.n_workers++] = both_streams(l, i);
        else
            servers[out.n_servers++] = take_server(l, i);
    if (p->o->report)
        last_words_report(p->o, v, p->host, &out);
}

/* Of a program that could not be run that is plain; of a worker that had the
 * terminal itself it is not known. */
static bool wrote_nothing(const struct loop *l, const struct verdict *v)
{
    const struct failure *f = &v->cause;
    bool prepared = f->kind == FAILURE_PREPARE;
    uint32_t slot = prepared ? l->plan->n_procs : f->local_rank;

    return (prepared || (f->kind == FAILURE_WORKER && f->role == PROC_WORKER &&
                         slot < l->plan->nproc)) &&
           l->workers && !l->tty.on && f->node_rank == v->node_rank &&
           f->pid > 0 && f->code != ERR_NOTFOUND && f->code != ERR_NOEXEC &&
           l->workers[slot].last_pid == (pid_t)f->pid &&
           l->workers[slot].err.n_read == 0;
}

int loop_end(struct loop *l)
{
    char text[VERDICT_MAX];
    struct verdict v;
    struct text t;

    loop_asks_end(l);
    guard_end(&l->guard_fd, l->guard_pid);
    for (uint32_t i = 0; l->workers && i < l->n_slots; i++) {
        stream_close(&l->workers[i].out);
        stream_close(&l->workers[i].err);
    }
    say_stuck(l);
    pod_verdict(&l->pod, loop_now(), &v);
    loop_hand_on_error(l, &v);
    loop_forget_errors(l);
    scratch_end(&l->folder);
    v.n_reaped = l->n_reaped;
    v.silent = wrote_nothing(l, &v);
    v.map = &l->plan->o->exit_map;
    text_init(&t, text, sizeof text);
    verdict_write(&t, &v);
    last_words_log(l->plan->o, &v); /* Whoever reads the outputs. */
    loop_logs_settle(l);
    write_report(l, &v);
    loop_logs_end(l, say_verdict, text);
    return verdict_code(&v);
}
