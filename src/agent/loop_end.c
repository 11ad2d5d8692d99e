/* loop_end: the end: verdict, output, exit status. */
#include "agent/loop_parts.h"

#include "agent/last_words.h"
#include "base/log.h"
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

/* For the report: what became of each worker's output. */
static struct log_stats *take_output(const struct loop *l, unsigned *ret_n)
{
    unsigned n = l->plan->o->report && l->workers ? l->plan->nproc : 0;
    struct log_stats *all = n ? calloc(n, sizeof *all) : NULL;

    *ret_n = all ? n : 0;
    for (unsigned i = 0; i < *ret_n; i++) {
        struct log_stats err;

        loop_log_stats(l, i, false, &all[i]);
        loop_log_stats(l, i, true, &err);
        all[i].bytes += err.bytes;
        all[i].lines += err.lines;
        all[i].dropped_bytes += err.dropped_bytes;
        all[i].dropped_lines += err.dropped_lines;
        all[i].file_dropped += err.file_dropped;
    }
    return all;
}

int loop_end(struct loop *l)
{
    struct log_stats *output;
    unsigned n_output;
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
    v.map = &l->plan->o->exit_map;
    text_init(&t, text, sizeof text);
    verdict_write(&t, &v);
    output = take_output(l, &n_output);
    last_words_write(l->plan->o, &v, l->plan->host, output, n_output);
    free(output);
    loop_logs_end(l, say_verdict, text);
    return verdict_code(&v);
}
