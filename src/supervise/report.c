/* report: see report.h. */
#include "supervise/report.h"

#include "base/err.h"
#include "base/jsonw.h"

#include <string.h>

static const char *kind_word(enum failure_kind kind)
{
    static const char *const words[] = {
        [FAILURE_NONE] = "none",       [FAILURE_WORKER] = "worker",
        [FAILURE_AGENT] = "agent",     [FAILURE_LOST] = "lost",
        [FAILURE_STOPPED] = "stopped", [FAILURE_PREPARE] = "pre-start",
    };

    return words[kind];
}

static void add_lines(struct jsonw *j, const char *name, const char *s)
{
    jsonw_open(j, name, '[');
    while (*s) {
        size_t n = strcspn(s, "\n");

        jsonw_string_n(j, NULL, s, n);
        s += n + (s[n] == '\n');
    }
    jsonw_close(j, ']');
}

/* What a process that the user gave did. */
static void add_process(struct jsonw *j, const struct failure *f)
{
    char name[16];

    if (f->kind == FAILURE_WORKER && f->role == PROC_WORKER) {
        jsonw_int(j, "rank", f->rank);
        jsonw_int(j, "local_rank", f->local_rank);
    } else if (f->kind == FAILURE_WORKER) {
        jsonw_string(j, "role", f->role == PROC_SERVER ? "server"
                                                       : "scheduler");
        jsonw_int(j, "index", f->rank);
    }
    if (f->pid)
        jsonw_int(j, "pid", f->pid);
    else
        jsonw_null(j, "pid");
    jsonw_int(j, "exit_code", f->code);
    if (f->signo)
        jsonw_string(j, "signal", verdict_signal_name(f->signo, name));
    else
        jsonw_null(j, "signal");
    jsonw_int(j, "round", f->round);
    jsonw_seconds(j, "ran_s", f->ran_ms);
    jsonw_string(j, "hint", f->text);
    add_lines(j, f->from_file ? "error_file" : "stderr", f->tail);
}

static void add_cause(struct jsonw *j, const struct verdict *v)
{
    const struct failure *f = &v->cause;
    char buf[FAILURE_TEXT_MAX + 256], name[16];
    struct text line;

    if (f->kind == FAILURE_NONE) {
        jsonw_null(j, "cause");
        return;
    }
    jsonw_open(j, "cause", '{');
    jsonw_string(j, "kind", f->hung ? "hang" : kind_word(f->kind));
    text_init(&line, buf, sizeof buf);
    verdict_cause_line(&line, f);
    jsonw_string(j, "text", buf);
    jsonw_int(j, "node_rank", f->node_rank);
    jsonw_string(j, "host", f->host);
    if (f->kind == FAILURE_WORKER || f->kind == FAILURE_PREPARE)
        add_process(j, f);
    else if (f->kind == FAILURE_STOPPED && f->signo)
        jsonw_string(j, "signal", verdict_signal_name(f->signo, name));
    else
        jsonw_string(j, "detail", f->text);
    jsonw_close(j, '}');
}

/* Whether a new try may go better, by the table of exit codes; of a worker's
 * own code that is the user's to know. */
static void add_retry(struct jsonw *j, const struct verdict *v)
{
    const struct err_row *row = err_row(v->exit_code);
    unsigned class = verdict_class(v);

    if (class == EXIT_CLASS_OK)
        jsonw_bool(j, "retryable", false);
    else if (class == EXIT_CLASS_STOPPED)
        jsonw_bool(j, "retryable", true);
    else if (class == EXIT_CLASS_WORKER || !row)
        jsonw_null(j, "retryable");
    else
        jsonw_bool(j, "retryable", row->retry);
}

static void add_summary(struct jsonw *j, const struct verdict *v)
{
    char buf[VERDICT_MAX];
    struct text t;

    text_init(&t, buf, sizeof buf);
    verdict_write(&t, v);
    jsonw_string_n(j, "summary", buf, strcspn(buf, "\n"));
}

static void add_stats(struct jsonw *j, const struct log_stats *s)
{
    jsonw_int(j, "bytes", (int64_t)s->bytes);
    jsonw_int(j, "lines", (int64_t)s->lines);
    jsonw_int(j, "dropped_bytes", (int64_t)s->dropped_bytes);
    jsonw_int(j, "dropped_lines", (int64_t)s->dropped_lines);
    jsonw_int(j, "file_dropped_bytes", (int64_t)s->file_dropped);
}

static void add_server(struct jsonw *j, const struct report_server *s)
{
    char name[16];

    jsonw_open(j, NULL, '{');
    jsonw_string(j, "role", s->role);
    jsonw_int(j, "index", s->index);
    jsonw_int(j, "starts", s->n_starts);
    if (s->ended)
        jsonw_int(j, "exit_code", s->code);
    else
        jsonw_null(j, "exit_code");
    if (s->ended && s->signo)
        jsonw_string(j, "signal", verdict_signal_name(s->signo, name));
    else
        jsonw_null(j, "signal");
    add_stats(j, &s->output);
    jsonw_close(j, '}');
}

static void add_output(struct jsonw *j, const struct report *r)
{
    const struct report_output *o = r->output;

    jsonw_open(j, "output", '[');
    for (unsigned i = 0; o && i < o->n_workers; i++) {
        jsonw_open(j, NULL, '{');
        jsonw_int(j, "local_rank", i);
        add_stats(j, &o->workers[i]);
        jsonw_close(j, '}');
    }
    jsonw_close(j, ']');
    jsonw_open(j, "servers", '[');
    for (unsigned i = 0; o && i < o->n_servers; i++)
        add_server(j, &o->servers[i]);
    jsonw_close(j, ']');
}

void report_write(struct text *t, const struct report *r)
{
    const struct verdict *v = r->verdict;
    struct jsonw j;

    jsonw_begin(&j, t);
    jsonw_int(&j, "report", REPORT_VERSION);
    jsonw_string(&j, "agent", r->agent_version);
    jsonw_int(&j, "exit_code", verdict_code(v));
    jsonw_int(&j, "class_code", v->exit_code);
    jsonw_string(&j, "class", exit_class_word(verdict_class(v)));
    add_retry(&j, v);
    add_summary(&j, v);
    jsonw_string(&j, "job_id", r->job_id);
    jsonw_int(&j, "node_rank", v->node_rank);
    jsonw_string(&j, "host", r->host);
    jsonw_int(&j, "nnodes", v->nnodes);
    jsonw_int(&j, "world_size", v->world_size);
    jsonw_int(&j, "rounds", v->n_rounds);
    jsonw_int(&j, "restarts_used", v->n_restarts);
    jsonw_int(&j, "restarts_allowed", v->max_restarts);
    jsonw_string(&j, "no_restart", v->why ? v->why : "");
    jsonw_int(&j, "orphans_reaped", v->n_reaped);
    jsonw_seconds(&j, "ended_unix_s", r->end_unix_ms);
    jsonw_seconds(&j, "duration_s", v->job_ms);
    add_output(&j, r);
    add_cause(&j, v);
    jsonw_close(&j, '}');
    text_add(t, "\n");
}
