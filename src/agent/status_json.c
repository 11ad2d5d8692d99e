/* status_json: the snapshot of status.h as one JSON object. */
#include "agent/status.h"

#include "supervise/verdict.h"

#include <inttypes.h>
#include <string.h>

const char *status_state_word(enum status_state state)
{
    static const char *const words[STATUS_STATES] = {"waiting", "running",
                                                     "stopping", "exited"};

    return words[state];
}

static void add_key(struct text *t, const char *key)
{
    bool first = t->len > 0 && (t->at[t->len - 1] == '{');

    text_add(t, "%s\"%s\":", first ? "" : ",", key);
}

static void add_string(struct text *t, const char *key, const char *value)
{
    char buf[STATUS_TEXT_MAX];
    size_t plain;

    add_key(t, key);
    if (!value || !value[0]) {
        text_add(t, "null");
        return;
    }
    (void)text_copy(buf, sizeof buf, value);
    (void)text_make_utf8(buf, sizeof buf - 1);
    text_add(t, "\"");
    for (const char *s = buf; *s; s += plain) {
        plain = strcspn(s, "\"\\\n\t");
        if (plain == 0) {
            text_add(t, "\\%c", *s == '\n' ? 'n' : *s == '\t' ? 't' : *s);
            plain = 1;
        } else {
            text_add(t, "%.*s", (int)plain, s);
        }
    }
    text_add(t, "\"");
}

static void add_number(struct text *t, const char *key, uint64_t value)
{
    add_key(t, key);
    text_add(t, "%" PRIu64, value);
}

/* null where it is not known. */
static void add_known(struct text *t, const char *key, bool known,
                      uint64_t value)
{
    if (known) {
        add_number(t, key, value);
        return;
    }
    add_key(t, key);
    text_add(t, "null");
}

static void add_signal(struct text *t, const char *key, int signo)
{
    char name[16];

    add_string(t, key, signo ? verdict_signal_name(signo, name) : NULL);
}

static void add_stream(struct text *t, const char *key,
                       const struct log_stats *s)
{
    add_key(t, key);
    text_add(t, "{");
    add_number(t, "bytes", s->bytes);
    add_number(t, "lines", s->lines);
    add_number(t, "dropped_lines", s->dropped_lines);
    add_number(t, "dropped_bytes", s->dropped_bytes);
    add_number(t, "file_dropped_bytes", s->file_dropped);
    text_add(t, "}");
}

static void add_worker(struct text *t, const struct status_worker *w,
                       uint32_t local_rank)
{
    bool ended = w->state == STATUS_EXITED;

    text_add(t, "%s{", local_rank ? "," : "");
    if (w->role) {
        add_string(t, "role", w->role);
        add_number(t, "index", w->index);
    } else {
        add_known(t, "rank", w->rank != STATUS_UNKNOWN, w->rank);
        add_number(t, "local_rank", local_rank);
    }
    add_string(t, "state", status_state_word(w->state));
    add_known(t, "pid", w->pid > 0, w->pid);
    add_number(t, "starts", w->n_starts);
    add_known(t, "uptime_ms", w->state != STATUS_NEVER, w->up_ms);
    add_known(t, "exit_code", ended, (uint64_t)(unsigned)w->code);
    add_signal(t, "signal", ended ? w->signo : 0);
    add_known(t, "cpu_ms", w->has_usage, w->cpu_ms);
    add_known(t, "rss_bytes", w->has_usage, w->rss_bytes);
    add_known(t, "processes", w->has_usage, w->n_procs);
    add_known(t, "silent_ms", w->has_output, w->silent_ms);
    add_string(t, "last_line", w->has_output ? w->line : NULL);
    add_stream(t, "stdout", &w->out);
    add_stream(t, "stderr", &w->err);
    text_add(t, "}");
}

static void add_barrier(struct text *t, const struct status *s)
{
    add_key(t, "barrier");
    if (!s->has_barrier) {
        text_add(t, "null");
        return;
    }
    text_add(t, "{");
    add_string(t, "phase", s->barrier_phase);
    add_number(t, "arrived", s->n_arrived);
    add_number(t, "n_missing", s->n_missing);
    add_key(t, "missing");
    text_add(t, "[");
    for (uint32_t i = 0; i < s->n_missing && i < STATUS_PODS_MAX; i++) {
        text_add(t, "%s{", i ? "," : "");
        add_number(t, "node_rank", s->missing[i].node_rank);
        add_string(t, "state", s->missing[i].state);
        add_known(t, "percent", strcmp(s->missing[i].state, "staging") == 0,
                  s->missing[i].percent);
        add_string(t, "host", s->missing[i].host);
        text_add(t, "}");
    }
    text_add(t, "]}");
}

static void add_link(struct text *t, const struct status *s)
{
    add_key(t, "link");
    if (!s->has_link) {
        text_add(t, "null");
        return;
    }
    text_add(t, "{");
    add_string(t, "state", s->link);
    add_string(t, "address", s->zero);
    add_known(t, "heard_ms", s->was_heard, s->heard_ms);
    add_string(t, "error", s->link_error);
    text_add(t, "}");
}

void status_json(struct text *t, const struct status *s)
{
    text_add(t, "{");
    add_number(t, "schema", STATUS_SCHEMA);
    add_string(t, "version", s->version);
    add_number(t, "agent_pid", s->agent_pid);
    add_number(t, "uptime_ms", s->up_ms);
    add_string(t, "host", s->host);
    add_string(t, "job_id", s->job_id);
    add_known(t, "node_rank", s->node_rank != STATUS_UNKNOWN, s->node_rank);
    add_number(t, "nnodes", s->nnodes);
    add_number(t, "min_nodes", s->min_nodes);
    add_number(t, "nproc", s->nproc);
    add_known(t, "world_size", s->world_size > 0, s->world_size);
    add_string(t, "phase", s->phase);
    add_key(t, "ready");
    text_add(t, s->is_ready ? "true" : "false");
    add_number(t, "round", s->round);
    add_number(t, "rounds", s->n_rounds);
    add_number(t, "restarts_used", s->n_restarts);
    add_number(t, "max_restarts", s->max_restarts);
    add_known(t, "staging_percent", s->is_staging, s->percent);
    add_string(t, "waiting", s->waiting);
    add_string(t, "last_failure", s->cause);
    add_signal(t, "stop_signal", s->stop_signo);
    add_known(t, "exit_code", s->exit_code >= 0,
              (uint64_t)(unsigned)s->exit_code);
    add_barrier(t, s);
    add_link(t, s);
    add_key(t, "workers");
    text_add(t, "[");
    for (uint32_t i = 0; i < s->nproc; i++)
        add_worker(t, &s->workers[i], i);
    text_add(t, "]");
    add_key(t, "servers");
    text_add(t, "[");
    for (uint32_t i = 0; i < s->n_servers; i++)
        add_worker(t, &s->workers[s->nproc + i], i);
    text_add(t, "]}\n");
}
