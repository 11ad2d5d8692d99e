/* loop_stage: the stager's lines become events of the pod. */
#include "agent/loop_parts.h"

#include "base/log.h"
#include "base/text.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* A bar, or lines; the console's queue has it, as all that is written. */
static void put_bar(void *ctx, const char *text, size_t len)
{
    struct loop *l = ctx;

    if (out_room(l->stderr_q, OUT_AGENT) >= len)
        out_put(l->stderr_q, text, len);
}

static void begin_telling(struct loop *l)
{
    const struct options *o = l->plan->o;

    telling_begin(&l->telling, o->quiet == 0);
    l->telling.show.put = put_bar;
    l->telling.show.ctx = l;
    if (o->log_format == LOG_FORMAT_JSON)
        l->telling.show.is_terminal = false;
}

int loop_stage_new(struct loop *l, struct err *e)
{
    const struct options *o = l->plan->o;
    unsigned n = o->n_datasets;

    l->stage_fd = -1;
    begin_telling(l);
    if (n == 0)
        return 0;
    l->sets = calloc(n, sizeof *l->sets);
    l->datasets = calloc(n, sizeof *l->datasets);
    l->requests = calloc(n, sizeof *l->requests);
    if (!l->sets || !l->datasets || !l->requests)
        return err_set(e, ERR_AGENT, "no memory for %u data sets", n);
    for (unsigned i = 0; i < n; i++) {
        l->datasets[i].name = l->sets[i].name;
        l->datasets[i].dir = l->sets[i].dir;
        l->requests[i].manifest = o->datasets[i];
        l->requests[i].source = i < o->n_sources ? o->sources[i] : NULL;
        l->requests[i].stage_dir = o->stage;
        l->requests[i].reverify = o->reverify;
        l->requests[i].silent_ms = o->stage_lease_ms;
    }
    return 0;
}

static void say_set(const struct stage_result *set)
{
    char buf[PATH_MAX + STAGE_NAME_MAX + 128];
    struct text t;

    text_init(&t, buf, sizeof buf);
    text_add(&t, "data set %s: %llu file%s, %llu byte%s %s in %s, digest ",
             set->name, (unsigned long long)set->n_files,
             text_plural(set->n_files), (unsigned long long)set->n_bytes,
             text_plural(set->n_bytes),
             set->reused ? "found verified" : "verified", set->dir);
    for (unsigned i = 0; i < 8; i++)
        text_add(&t, "%02x", set->digest[i]);
    log_info("%s", buf);
}

/* Workers would not find the second one by its name. */
static void warn_of_one_name(const struct loop *l)
{
    for (unsigned i = 1; i < l->plan->o->n_datasets; i++)
        for (unsigned k = 0; k < i; k++)
            if (contract_same_variable(l->sets[i].name, l->sets[k].name)) {
                log_warning("data sets '%s' and '%s' have one variable, "
                            "AGENT_DATASET_DIR_<NAME>, and it holds the "
                            "first: %s; workers do not see %s; give them "
                            "other names (agent manifest --name), going on",
                            l->sets[k].name, l->sets[i].name, l->sets[k].dir,
                            l->sets[i].dir);
                break;
            }
}

static void stage_over(struct loop *l)
{
    uint8_t digest[WIRE_DIGEST];

    l->stage_over = true;
    warn_of_one_name(l);
    stager_digest(l->sets, l->plan->o->n_datasets, digest);
    pod_stage_done(&l->pod, loop_now(), digest);
}

static void take_line(struct loop *l, const char *line)
{
    static struct stager_line s; /* Large; main thread only. */

    if (l->stage_over || !stager_parse(line, &s))
        return;
    switch (s.kind) {
    case STAGER_PROGRESS:
        if (telling_tell_at(&l->telling, &s.now, loop_now()))
            pod_stage_progress(&l->pod, loop_now(), s.percent);
        break;
    case STAGER_SET:
        if (s.index >= l->plan->o->n_datasets)
            break;
        l->sets[s.index] = s.set;
        say_set(&s.set);
        if (s.index + 1 == l->plan->o->n_datasets)
            stage_over(l);
        break;
    case STAGER_ERROR:
        l->stage_over = true;
        pod_fault(&l->pod, loop_now(), s.err.code, s.err.text);
        break;
    }
}

static void stage_close(struct loop *l)
{
    if (!l->stage_watch)
        return;
    watch_free(l->stage_watch);
    l->stage_watch = NULL;
    (void)close(l->stage_fd);
    l->stage_fd = -1;
}

static void stage_read(struct loop *l)
{
    for (;;) {
        size_t room = sizeof l->stage_line - 1 - l->stage_len;
        ssize_t n;
        char *end;

        if (!l->stage_watch)
            return;
        n = read(l->stage_fd, l->stage_line + l->stage_len, room);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n <= 0) {
            stage_close(l);
            return;
        }
        l->stage_len += (size_t)n;
        l->stage_line[l->stage_len] = '\0';
        while ((end = strchr(l->stage_line, '\n')) != NULL) {
            size_t used = (size_t)(end - l->stage_line) + 1;

            *end = '\0';
            take_line(l, l->stage_line);
            l->stage_len -= used;
            memmove(l->stage_line, end + 1, l->stage_len + 1);
        }
        if (l->stage_len == sizeof l->stage_line - 1)
            l->stage_len = 0; /* No line is that long: not one of ours. */
    }
}

static void on_stage(uv_poll_t *poll, int status, int events)
{
    struct loop *l = poll->data;

    (void)status;
    (void)events;
    stage_read(l);
    loop_after(l);
}

void loop_stage(struct loop *l)
{
    struct err e;
    pid_t pid = stager_start(l->requests, l->plan->o->n_datasets,
                             &l->stage_fd, &e);

    if (pid < 0) {
        /* Reported as an event: this is a call of the pod's. */
        l->stage_over = true;
        log_error("%s", e.text);
        l->stage_pid = -1;
        return;
    }
    l->stage_pid = pid;
    l->stage_watch = watch_new(l, l->stage_fd, on_stage, NULL);
}

void loop_stage_kill(struct loop *l)
{
    l->stage_over = true;
    if (l->stage_pid > 0)
        (void)kill(l->stage_pid, SIGKILL);
}

bool loop_stage_died(struct loop *l, pid_t pid, int status)
{
    char text[FAILURE_TEXT_MAX], name[16];

    if (l->stage_pid <= 0 || pid != l->stage_pid)
        return false;
    stage_read(l);
    l->stage_pid = 0;
    if (l->stage_over)
        return true;
    l->stage_over = true;
    if (WIFSIGNALED(status))
        (void)snprintf(text, sizeof text,
                       "the stager was killed by %s while it verified the "
                       "data set%s",
                       verdict_signal_name(WTERMSIG(status), name),
                       WTERMSIG(status) == SIGKILL
                           ? ": is the pod's memory limit too small?" : "");
    else
        (void)snprintf(text, sizeof text,
                       "the stager ended with %d and no word",
                       WEXITSTATUS(status));
    pod_fault(&l->pod, loop_now(), ERR_RESOURCE, text);
    return true;
}
