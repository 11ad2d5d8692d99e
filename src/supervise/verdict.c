/* verdict: see verdict.h. Hints are in verdict_hint.c. */
#include "supervise/verdict.h"

#include "base/err.h"

#include <stdio.h>
#include <string.h>

const char *verdict_signal_name(int signo, char *buf)
{
    const char *name = sigabbrev_np(signo);

    if (name)
        (void)snprintf(buf, 16, "SIG%s", name);
    else
        (void)snprintf(buf, 16, "signal %d", signo % 100000);
    return buf;
}

/* The exit status of a process that agent ran for the user. */
static bool is_of_process(const struct failure *f)
{
    return f->kind == FAILURE_WORKER || f->kind == FAILURE_PREPARE;
}

unsigned verdict_class(const struct verdict *v)
{
    const struct failure *f = &v->cause;

    if (f->kind == FAILURE_NONE && v->exit_code == 0)
        return EXIT_CLASS_OK;
    if (f->kind == FAILURE_STOPPED && f->node_rank == v->node_rank)
        return EXIT_CLASS_STOPPED;
    if (is_of_process(f) && !f->hung && v->exit_code != ERR_NOTFOUND &&
        v->exit_code != ERR_NOEXEC)
        return EXIT_CLASS_WORKER;
    return exit_class_of(v->exit_code);
}

int verdict_code(const struct verdict *v)
{
    if (!v->map)
        return v->exit_code;
    return exit_map_code(v->map, verdict_class(v), v->exit_code);
}

/* With --exit-map: what the code was before. */
static void add_mapped(struct text *t, const struct verdict *v)
{
    int code = verdict_code(v);

    if (code != v->exit_code)
        text_add(t, "; --exit-map makes %s %d", exit_class_word(
                     verdict_class(v)), code);
}

/* "node rank 1 (host w1)" */
static void add_pod(struct text *t, const struct failure *f)
{
    text_add(t, "node rank %u", f->node_rank);
    if (f->host[0])
        text_add(t, " (host %s)", f->host);
}

/* "exited with 3 after 5 s in round 0" */
static void add_end(struct text *t, const struct failure *f)
{
    char name[16];

    if (f->hung) {
        text_add(t, "hung, as all of this pod; it was stopped after ");
        text_add_duration(t, f->ran_ms);
        text_add(t, " in round %u", f->round);
        return;
    }
    if (!f->pid) {
        text_add(t, "could not be started in round %u", f->round);
        return;
    }
    if (f->signo)
        text_add(t, "was killed by %s after ",
                 verdict_signal_name(f->signo, name));
    else
        text_add(t, "exited with %d after ", f->code);
    text_add_duration(t, f->ran_ms);
    text_add(t, " in round %u", f->round);
}

/* "rank 3", "server 0", "the scheduler" */
static const char *process(char buf[32], const struct failure *f)
{
    if (f->role == PROC_SCHEDULER)
        return "the scheduler";
    (void)snprintf(buf, 32, "%s %u",
                   f->role == PROC_SERVER ? "server" : "rank", f->rank);
    return buf;
}

static void add_worker(struct text *t, const struct failure *f)
{
    char buf[32];

    text_add(t, "%s (", process(buf, f));
    if (f->role == PROC_WORKER)
        text_add(t, "local rank %u, ", f->local_rank);
    text_add(t, "node rank %u", f->node_rank);
    if (f->host[0])
        text_add(t, ", host %s", f->host);
    if (f->pid)
        text_add(t, ", pid %u", f->pid);
    text_add(t, ") ");
    add_end(t, f);
}

/* What follows the first line of `s`, or "". */
static const char *after_line(const char *s)
{
    const char *newline = strchr(s, '\n');

    return newline ? newline + 1 : "";
}

static void add_first_line(struct text *t, const char *s)
{
    text_add(t, "%.*s", (int)strcspn(s, "\n"), s);
}

void verdict_cause_line(struct text *t, const struct failure *f)
{
    char name[16];

    switch (f->kind) {
    case FAILURE_NONE:
        text_add(t, "nothing failed");
        break;
    case FAILURE_WORKER:
        add_worker(t, f);
        break;
    case FAILURE_PREPARE:
        add_pod(t, f);
        text_add(t, ": --pre-start ");
        add_end(t, f);
        break;
    case FAILURE_AGENT:
        add_pod(t, f);
        text_add(t, ": ");
        add_first_line(t, f->text);
        break;
    case FAILURE_LOST:
        if (f->text[0]) { /* It names the pod itself. */
            add_first_line(t, f->text);
        } else {
            add_pod(t, f);
            text_add(t, " was lost");
        }
        break;
    case FAILURE_STOPPED:
        add_pod(t, f);
        text_add(t, " was told to stop from outside");
        if (f->signo)
            text_add(t, " (%s)", verdict_signal_name(f->signo, name));
        break;
    }
}

/* "failed with exit code 65 (data): ". The class word belongs to agent's own
 * codes only: a worker may exit with 65 for reasons of its own. */
static void add_failed(struct text *t, const struct verdict *v)
{
    const struct err_row *row = err_row(v->exit_code);

    text_add(t, "failed with exit code %d", v->exit_code);
    if (row && (!is_of_process(&v->cause) || v->cause.hung))
        text_add(t, " (%s)", row->word);
    text_add(t, ": ");
}

static void add_finished(struct text *t, const struct verdict *v)
{
    if (v->world_size == 0) /* Left before the workers were counted. */
        text_add(t, "finished in ");
    else if (v->world_size == 1)
        text_add(t, "finished: the worker ended with 0 in ");
    else
        text_add(t, "finished: all %u workers of %u pod%s ended with 0 in ",
                 v->world_size, v->nnodes, text_plural(v->nnodes));
    text_add_duration(t, v->job_ms);
    if (v->n_restarts > 0)
        text_add(t, "; %u restart%s used", v->n_restarts,
                 text_plural(v->n_restarts));
}

/* Which wait was too short, where the text says so. */
static void add_back(struct text *t, const struct failure *f)
{
    static const char words[] = "did not come back";

    text_add(t, " and ");
    if (strncmp(f->text, words, sizeof words - 1) == 0)
        add_first_line(t, f->text);
    else
        text_add(t, "%s", words);
}

static void add_stopped(struct text *t, const struct verdict *v)
{
    const struct failure *f = &v->cause;
    char name[16];

    if (f->node_rank != v->node_rank) {
        add_failed(t, v);
        verdict_cause_line(t, f);
        if (v->exit_code == ERR_PEER)
            add_back(t, f);
        return;
    }
    text_add(t, "stopped by %s from outside: this pod (node rank %u",
             f->signo ? verdict_signal_name(f->signo, name) : "a request",
             f->node_rank);
    if (f->host[0])
        text_add(t, ", host %s", f->host);
    text_add(t, ") was told to stop after ");
    text_add_duration(t, v->told_ms);
    text_add(t, "; exit code %d", v->exit_code);
}

static void add_cause(struct text *t, const struct verdict *v)
{
    const struct failure *f = &v->cause;
    bool here = f->node_rank == v->node_rank;

    if (f->kind == FAILURE_STOPPED) {
        add_stopped(t, v);
        return;
    }
    add_failed(t, v);
    if (f->kind == FAILURE_NONE) {
        text_add(t, "no cause is known");
    } else if (f->kind == FAILURE_AGENT && here) {
        add_first_line(t, f->text);
    } else {
        if (is_of_process(f) && !here)
            text_add(t, "on another pod, ");
        verdict_cause_line(t, f);
    }
}

void verdict_restarts(struct text *t, uint32_t used, uint32_t budget,
                      uint64_t period_ms)
{
    if (period_ms == 0) {
        text_add(t, "%u of %u restarts used", used, budget);
        return;
    }
    text_add(t, "%u restart%s used, at most %u within ", used,
             text_plural(used), budget);
    text_add_duration(t, period_ms);
}

static void add_restarts(struct text *t, const struct verdict *v)
{
    text_add(t, "; ");
    verdict_restarts(t, v->n_restarts, v->max_restarts, v->restart_period_ms);
}

static void add_story(struct text *t, const struct verdict *v)
{
    if (v->exit_code == 0 && v->cause.kind == FAILURE_NONE) {
        add_finished(t, v);
    } else {
        add_cause(t, v);
        if (v->n_rounds > 0 || v->n_restarts > 0 ||
            v->cause.kind == FAILURE_PREPARE)
            add_restarts(t, v);
        if (v->n_rounds == 0)
            text_add(t, "; no worker was started%s",
                     v->nnodes > 1 ? " on this pod" : "");
        if (v->why && v->why[0])
            text_add(t, "; no restart: %s", v->why);
    }
    add_mapped(t, v);
    if (v->n_reaped > 0)
        text_add(t, "; %u orphan%s reaped", v->n_reaped,
                 text_plural(v->n_reaped));
}

/* Each line of `s` on a line of its own, indented. */
static void add_indented(struct text *t, const char *s)
{
    while (*s) {
        text_add(t, "\n  ");
        add_first_line(t, s);
        s = after_line(s);
    }
}

/* Bytes that add_indented() needs. */
static size_t indented_len(const char *s)
{
    size_t n = 0;

    for (; *s; s = after_line(s))
        n += 3 + strcspn(s, "\n");
    return n;
}

/* The tail, without its oldest lines where it does not fit; of a last line
 * that does not fit alone, the beginning. */
static void add_tail(struct text *t, const struct failure *f)
{
    const char *tail = f->tail;
    char head[96], buf[32];
    size_t head_len, need = indented_len(tail), room = t->cap - 1 - t->len;

    if (f->from_file)
        (void)snprintf(head, sizeof head, "\n%s's error file says:",
                       process(buf, f));
    else if (f->kind == FAILURE_PREPARE)
        (void)snprintf(head, sizeof head, "\nlast lines of its stderr:");
    else
        (void)snprintf(head, sizeof head, "\nlast lines of %s's stderr:",
                       process(buf, f));
    head_len = strlen(head);
    if (tail[0] == '\0' || head_len + 8 > room)
        return;
    while (head_len + need > room && *after_line(tail)) {
        need -= 3 + strcspn(tail, "\n");
        tail = after_line(tail);
    }
    text_add(t, "%s", head);
    add_indented(t, tail);
}

void verdict_write(struct text *t, const struct verdict *v)
{
    const struct failure *f = &v->cause;
    size_t start = t->len;

    add_story(t, v);
    if (is_of_process(f)) {
        if (f->text[0])
            text_add(t, "\nhint: ");
        add_first_line(t, f->text);
        add_indented(t, after_line(f->text));
        add_tail(t, f);
        if (v->silent && f->tail[0] == '\0')
            text_add(t, "\nit wrote nothing to stderr");
    } else {
        add_indented(t, after_line(f->text));
        if (f->kind == FAILURE_LOST && v->exit_code == ERR_PEER)
            text_add(t, "\nhint: a pod that says nothing before it is gone was "
                     "often killed as a whole: out of memory "
                     "(memory.oom.group), evicted, or its node is down; see "
                     "kubectl describe pod, kubectl get events");
    }
    t->len = start + text_make_utf8(t->at + start, t->len - start);
}
