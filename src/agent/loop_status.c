/* loop_status: what is answered to who asks: the snapshot of status.h from the
 * loop's own state. */
#include "agent/loop_ask.h"

#include <stdlib.h>
#include <string.h>

#define PAGE_FIRST 16384u /* Bytes to begin with, */
#define PAGE_WORKER 768u  /* and for each worker. */
#define PAGE_MAX (16u << 20)

/* Memory for the answers; false where there is none. */
static bool make_room(struct loop *l)
{
    struct asks *all = l->asks;
    size_t n = l->plan->n_procs + 1; /* Never none. */

    if (!all->workers)
        all->workers = calloc(n, sizeof *all->workers);
    if (!all->usage)
        all->usage = calloc(n, sizeof *all->usage);
    if (!all->sessions)
        all->sessions = calloc(n, sizeof *all->sessions);
    return all->workers && all->usage && all->sessions;
}

static void take_usage(struct loop *l, uint64_t now_ms)
{
    struct asks *all = l->asks;

    if (all->usage_ms && now_ms - all->usage_ms < ASK_USAGE_MS)
        return;
    for (uint32_t i = 0; i < l->plan->n_procs; i++)
        all->sessions[i] = l->workers[i].pid;
    /* On the user's terminal it shares the session with whatever runs there. */
    if (l->tty.on)
        usage_read_trees(all->sessions, l->plan->n_procs, all->usage);
    else
        usage_read(all->sessions, l->plan->n_procs, all->usage);
    all->usage_ms = now_ms;
}

static void take_output(const struct worker *w, uint64_t now_ms,
                        struct status_worker *ret)
{
    /* The stream that was read last. */
    const struct stream *s = w->err.n_read > w->out.n_read ? &w->err : &w->out;

    if (s->n_read == 0)
        return;
    ret->has_output = true;
    ret->silent_ms = now_ms > s->read_ms ? now_ms - s->read_ms : 0;
    (void)tail_text(s->tail, 1, ret->line, sizeof ret->line);
}

static void take_role(const struct loop *l, uint32_t i,
                      struct status_worker *ret)
{
    struct pod_exit x;

    if (i < l->plan->nproc)
        return;
    loop_name_process(l, i, &x);
    ret->role = x.role == PROC_SERVER ? "server" : "scheduler";
    ret->index = x.index;
}

static void take_worker(const struct loop *l, uint32_t i, uint64_t now_ms,
                        struct status_worker *ret)
{
    const struct worker *w = &l->workers[i];
    const struct usage *u = &l->asks->usage[i];
    const struct pod *p = &l->pod;

    memset(ret, 0, sizeof *ret);
    take_role(l, i, ret);
    ret->rank = p->n_rounds > 0 ? p->at.rank_base + i : STATUS_UNKNOWN;
    ret->n_starts = w->n_starts;
    ret->pid = w->pid > 0 ? (uint32_t)w->pid : 0;
    if (w->n_starts == 0)
        return;
    loop_log_stats(l, i, false, &ret->out);
    loop_log_stats(l, i, true, &ret->err);
    ret->state = w->pid <= 0                  ? STATUS_EXITED
                 : p->sup.state == SUP_STOPPING ? STATUS_STOPPING
                                                : STATUS_RUNNING;
    ret->up_ms = (w->pid > 0 ? now_ms : w->end_ms) - w->start_ms;
    ret->code = w->code;
    ret->signo = w->signo;
    if (w->pid > 0 && l->asks->sessions[i] == w->pid && u->n_procs > 0) {
        ret->has_usage = true;
        ret->cpu_ms = u->cpu_ms;
        ret->rss_bytes = u->rss_bytes;
        ret->n_procs = u->n_procs;
    }
    take_output(w, now_ms, ret);
}

static bool take_snapshot(struct loop *l, bool with_workers,
                          struct status *ret)
{
    uint64_t now = loop_now();

    status_of_pod(ret, &l->pod, now);
    ret->version = AGENT_VERSION;
    ret->agent_pid = (uint32_t)getpid();
    if (!with_workers)
        return true;
    if (!make_room(l))
        return false;
    take_usage(l, now);
    for (uint32_t i = 0; i < l->plan->n_procs; i++)
        take_worker(l, i, now, &l->asks->workers[i]);
    ret->workers = l->asks->workers;
    return true;
}

/* Head and body in one piece. */
static char *join(int status, const struct http_request *r, const char *body,
                  size_t len, size_t *ret_len)
{
    size_t cap = HTTP_REPLY_HEAD_MAX + len;
    char *all = malloc(cap);
    struct text t;

    if (!all)
        return NULL;
    text_init(&t, all, HTTP_REPLY_HEAD_MAX);
    http_answer(&t, status, r->page, len);
    if (!r->is_head)
        memcpy(all + t.len, body, len);
    *ret_len = t.len + (r->is_head ? 0 : len);
    return all;
}

/* A page that may be long: again, with more room, where it did not fit. */
static char *write_status(const struct http_request *r, const struct status *s,
                          size_t *ret_len)
{
    size_t cap = PAGE_FIRST + (s->nproc + s->n_servers) * PAGE_WORKER;
    char *all = NULL;
    struct text t = {.cut = true};

    for (; t.cut && cap <= PAGE_MAX; cap *= 2) {
        char *body = malloc(cap);

        if (!body)
            return NULL;
        text_init(&t, body, cap);
        if (r->page == HTTP_STATUS)
            status_json(&t, s);
        else
            status_table(&t, s);
        if (!t.cut)
            all = join(200, r, body, t.len, ret_len);
        free(body);
    }
    return all;
}

char *loop_page(struct loop *l, int status, const struct http_request *r,
                size_t *ret_len)
{
    char line[STATUS_TEXT_MAX + 256];
    const char *body = http_error_text(status);
    struct status s;
    struct text t;

    if (status == 200) {
        bool is_long = r->page == HTTP_STATUS || r->page == HTTP_STATUS_TEXT;

        if (!take_snapshot(l, is_long, &s))
            return NULL;
        if (is_long)
            return write_status(r, &s, ret_len);
        text_init(&t, line, sizeof line);
        if (r->page == HTTP_READYZ) {
            status_ready(&t, &s);
            status = s.is_ready ? 200 : 503;
        } else {
            text_add(&t, "ok\n");
        }
        body = line;
    }
    return join(status, r, body, strlen(body), ret_len);
}
