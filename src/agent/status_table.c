/* status_table: the snapshot of status.h as lines for people. */
#include "agent/status.h"

#include "supervise/verdict.h"

#include <stdio.h>
#include <string.h>

/* As it may be shown: one line, no controls. */
static const char *shown(char *buf, size_t cap, const char *s)
{
    (void)text_copy(buf, cap, s);
    (void)text_make_utf8(buf, cap - 1);
    for (char *at = buf; *at; at++)
        if (*at == '\n' || *at == '\t')
            *at = ' ';
    return buf;
}

static void add_shown(struct text *t, const char *s)
{
    char buf[STATUS_TEXT_MAX];

    text_add(t, "%s", shown(buf, sizeof buf, s));
}

/* "816K", "1.2G": KiB, GiB; at most five columns up to 9999 TiB. */
static void write_bytes(struct text *t, uint64_t bytes)
{
    uint64_t tenths = bytes / 1024 * 10 + bytes % 1024 * 10 / 1024;
    unsigned unit = 0;

    while (tenths >= 10240 && unit < 3) {
        tenths /= 1024;
        unit++;
    }
    if (tenths < 100 && unit > 0)
        text_add(t, "%u.%u%c", (unsigned)tenths / 10, (unsigned)tenths % 10,
                 "KMGT"[unit]);
    else
        text_add(t, "%llu%c", (unsigned long long)tenths / 10, "KMGT"[unit]);
}

/* "250ms", "1.4s", "61s", "3m20s", "2h5m", "4d3h": six columns. */
static void write_duration(struct text *t, uint64_t ms)
{
    unsigned long long s = ms / 1000, h = s / 3600;

    if (ms < 1000)
        text_add(t, "%ums", (unsigned)ms);
    else if (s < 10)
        text_add(t, "%llu.%llus", s,
                 (unsigned long long)ms % 1000 / 100);
    else if (s < 120)
        text_add(t, "%llus", s);
    else if (s < 6000)
        text_add(t, "%llum%llus", s / 60, s % 60);
    else if (h < 100)
        text_add(t, "%lluh%llum", h, s / 60 % 60);
    else
        text_add(t, "%llud%lluh", h / 24, h % 24);
}

static void write_number(struct text *t, uint64_t n)
{
    text_add(t, "%llu", (unsigned long long)n);
}

/* In a column of `width`, and a blank; "-" where it is not known. */
static void add_cell(struct text *t, int width, bool known, uint64_t value,
                     void (*write)(struct text *t, uint64_t value))
{
    char buf[40] = "-";
    struct text b;

    if (known) {
        text_init(&b, buf, sizeof buf);
        write(&b, value);
    }
    text_add(t, "%*s ", width, buf);
}

static void add_state(struct text *t, const struct status_worker *w)
{
    char buf[16], name[16];

    if (w->state != STATUS_EXITED)
        (void)text_copy(buf, sizeof buf, status_state_word(w->state));
    else if (w->signo)
        (void)text_copy(buf, sizeof buf, verdict_signal_name(w->signo, name));
    else
        (void)snprintf(buf, sizeof buf, "exit %d", w->code);
    text_add(t, "%-8s ", buf);
}

#define TABLE_REST                                                             \
    "    pid state        up    cpu   rss procs starts silent last line\n"

static void add_row(struct text *t, const struct status_worker *w)
{
    char line[STATUS_LINE_MAX];

    if (w->role)
        text_add(t, "%-9s %3u ", w->role, w->index);
    else
        add_cell(t, 4, w->rank != STATUS_UNKNOWN, w->rank, write_number);
    add_cell(t, 7, w->pid > 0, w->pid, write_number);
    add_state(t, w);
    add_cell(t, 6, w->state != STATUS_NEVER, w->up_ms, write_duration);
    add_cell(t, 6, w->has_usage, w->cpu_ms, write_duration);
    add_cell(t, 5, w->has_usage, w->rss_bytes, write_bytes);
    add_cell(t, 5, w->has_usage, w->n_procs, write_number);
    add_cell(t, 6, true, w->n_starts, write_number);
    add_cell(t, 6, w->has_output, w->silent_ms, write_duration);
    text_add(t, "%s\n", w->has_output
                            ? shown(line, sizeof line, w->line) : "-");
}

static void add_head(struct text *t, const struct status *s)
{
    text_add(t, "agent %s, pid %u on ", s->version, s->agent_pid);
    add_shown(t, s->host);
    text_add(t, ", up ");
    text_add_duration(t, s->up_ms);
    text_add(t, "\n");
    if (s->node_rank == STATUS_UNKNOWN)
        text_add(t, "node rank not known yet");
    else
        text_add(t, "node rank %u", s->node_rank);
    text_add(t, " of ");
    if (s->min_nodes < s->nnodes)
        text_add(t, "%u to ", s->min_nodes);
    text_add(t, "%u, job ", s->nnodes);
    add_shown(t, s->job_id);
    text_add(t, ": %s", s->phase);
    if (s->is_staging)
        text_add(t, " (%u %%)", s->percent);
    if (s->n_rounds > 0)
        text_add(t, ", round %u", s->round);
    if (s->world_size > 0)
        text_add(t, ", world size %u", s->world_size);
    if (s->was_heard || !s->has_link) { /* Else only node rank 0 knows. */
        text_add(t, ", ");
        verdict_restarts(t, s->n_restarts, s->max_restarts,
                         s->restart_period_ms);
    }
    text_add(t, "\n");
}

static void add_link(struct text *t, const struct status *s)
{
    text_add(t, "node rank 0 at ");
    add_shown(t, s->zero);
    text_add(t, ": %s", s->link);
    if (s->link_error[0]) {
        text_add(t, ", ");
        add_shown(t, s->link_error);
    }
    if (s->was_heard) {
        text_add(t, ", heard ");
        text_add_duration(t, s->heard_ms);
        text_add(t, " ago");
    }
    text_add(t, "\n");
}

static void add_line(struct text *t, const char *what, const char *s)
{
    if (!s[0])
        return;
    text_add(t, "%s: ", what);
    add_shown(t, s);
    text_add(t, "\n");
}

void status_table(struct text *t, const struct status *s)
{
    char name[16];

    add_head(t, s);
    if (s->has_link)
        add_link(t, s);
    add_line(t, "waiting", s->waiting);
    add_line(t, "last failure", s->cause);
    if (s->stop_signo)
        text_add(t, "told to stop: %s\n",
                 verdict_signal_name(s->stop_signo, name));
    text_add(t, "\nrank " TABLE_REST);
    for (uint32_t i = 0; i < s->nproc; i++)
        add_row(t, &s->workers[i]);
    if (s->n_servers > 0)
        text_add(t, "\nserver    num " TABLE_REST);
    for (uint32_t i = 0; i < s->n_servers; i++)
        add_row(t, &s->workers[s->nproc + i]);
}

void status_ready(struct text *t, const struct status *s)
{
    text_add(t, "%s", s->phase);
    if (s->is_staging)
        text_add(t, " (%u %%)", s->percent);
    if (s->waiting[0]) {
        text_add(t, ": ");
        add_shown(t, s->waiting);
    }
    text_add(t, "\n");
}
