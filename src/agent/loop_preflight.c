/* loop_preflight: --preflight in `run`. A list that was given is run by a
 * child in the place of the stager, before it; by default this process looks
 * at what costs nothing, and warns. */
#include "agent/loop_parts.h"

#include "agent/preflight_job.h"
#include "base/log.h"
#include "base/text.h"
#include "preflight/child.h"
#include "preflight/show.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct loop_preflight {
    pid_t pid; /* 0: it is dead. */
    int fd;
    struct stream_watch *watch; /* NULL: all is read. */
    bool over;                  /* It said its last word, or is not to. */
    struct preflight_reader reader;
    struct preflight_finding worst; /* The first of the worst ones. */
    struct preflight_job job;
};

static void describe(const struct loop *l, struct preflight_job *job)
{
    const struct plan *p = l->plan;

    preflight_job_of(p->o, p->nproc,
                     p->o->nproc_kind != NPROC_NUMBER && p->has_gpus, p->envp,
                     job);
    job->coordinates = p->node_rank == 0;
    job->in_run = true;
    job->max_files = p->files.raised ? p->files.before : 0;
    job->checks = p->o->preflight;
}

static void say_finding(const struct preflight_finding *f, bool is_default)
{
    char buf[LOG_LINE_MAX / 2];
    struct text t;

    text_init(&t, buf, sizeof buf);
    show_line(&t, f);
    if (f->level == PREFLIGHT_PASS)
        log_debug("%s", buf);
    else if (f->level == PREFLIGHT_WARN || is_default)
        log_warning("%s, going on", buf);
    else
        log_error("%s", buf);
    for (const char *s = f->yaml; !is_default && *s;) {
        size_t len = strcspn(s, "\n");

        log_info("  | %.*s", (int)len, s);
        s += len + (s[len] == '\n');
    }
}

/* --- by default --- */

static void look_finding(void *ctx, const struct preflight_finding *f)
{
    (void)ctx;
    if (f->level != PREFLIGHT_PASS)
        say_finding(f, true);
}

void loop_preflight_look(struct loop *l)
{
    struct preflight_out out = {.finding = look_finding};
    struct preflight_job job;

    if (l->plan->o->preflight_given)
        return;
    describe(l, &job);
    (void)preflight_look(&job, &out);
}

/* --- a list that was given --- */

static void go_on(struct loop *l)
{
    static const uint8_t none[WIRE_DIGEST];

    if (l->plan->o->n_datasets > 0)
        loop_stage(l);
    else
        pod_stage_done(&l->pod, loop_now(), none);
}

static void finish(struct loop *l)
{
    struct loop_preflight *p = l->preflight;
    char text[FAILURE_TEXT_MAX];

    p->over = true;
    if (p->worst.level < PREFLIGHT_RETRY) {
        go_on(l);
        return;
    }
    (void)snprintf(text, sizeof text, "preflight: %s: %.300s; fix: %.160s",
                   preflight_row((enum preflight_check)p->worst.check)->word,
                   p->worst.what, p->worst.fix);
    pod_fault(&l->pod, loop_now(),
              p->worst.level == PREFLIGHT_FATAL ? ERR_PREFLIGHT
                                                : ERR_PREFLIGHT_RETRY, text);
}

static void close_pipe(struct loop_preflight *p)
{
    if (!p->watch)
        return;
    watch_free(p->watch);
    p->watch = NULL;
    (void)close(p->fd);
}

static void read_all(struct loop *l)
{
    struct loop_preflight *p = l->preflight;

    while (p->watch) {
        switch (preflight_child_read(&p->reader, p->fd)) {
        case PREFLIGHT_GOT_NOTHING:
            return;
        case PREFLIGHT_GOT_END:
            close_pipe(p);
            return;
        case PREFLIGHT_GOT_ONE:
            break;
        }
        if (p->over)
            continue;
        if (p->reader.finding.level == PREFLIGHT_CHILD_OVER) {
            finish(l);
            continue;
        }
        say_finding(&p->reader.finding, false);
        if (p->reader.finding.level > p->worst.level)
            p->worst = p->reader.finding;
    }
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    struct loop *l = poll->data;

    (void)status;
    (void)events;
    read_all(l);
    loop_after(l);
}

static void start(struct loop *l)
{
    struct loop_preflight *p = l->preflight;
    struct err e;

    if (p)
        p->pid = preflight_child_start(&p->job, &p->fd, &e);
    if (!p || p->pid < 0) {
        log_error("%s", p ? e.text : "no memory for preflight");
        if (p)
            p->pid = 0;
        l->stage_over = true;
        l->stage_pid = -1; /* As where the stager cannot start. */
        return;
    }
    p->watch = watch_new(l, p->fd, on_readable, NULL);
}

void loop_preflight(struct loop *l)
{
    struct loop_preflight *p;

    if (!l->plan->o->preflight_given || l->plan->o->preflight == 0) {
        loop_stage(l);
        return;
    }
    p = l->preflight = calloc(1, sizeof *p);
    if (p) {
        describe(l, &p->job);
        p->job.asked = p->job.checks;
    }
    start(l);
}

void loop_preflight_begun(struct loop *l)
{
    struct loop_preflight *p = l->preflight;
    uint32_t round = l->pod.bar ? l->pod.bar->round : l->pod.round;

    if (!p || p->over || p->pid <= 0 || round == 0 ||
        !(p->job.checks & PREFLIGHT_BIT(ALLREDUCE)))
        return;
    log_info("preflight: the job has begun: its other pods make no all-reduce "
             "any more, and this one makes none");
    p->job.checks &= ~PREFLIGHT_BIT(ALLREDUCE);
    (void)kill(p->pid, SIGKILL); /* And reaped as any other child. */
    p->pid = 0;
    close_pipe(p);
    p->reader.got = 0;
    p->worst.level = PREFLIGHT_PASS;
    if (p->job.checks)
        start(l); /* All the others anew. */
    else
        finish(l);
}

void loop_preflight_kill(struct loop *l)
{
    struct loop_preflight *p = l->preflight;

    if (!p)
        return;
    p->over = true;
    if (p->pid > 0)
        (void)kill(p->pid, SIGKILL);
}

bool loop_preflight_died(struct loop *l, pid_t pid, int status)
{
    struct loop_preflight *p = l->preflight;

    if (!p || p->pid <= 0 || pid != p->pid)
        return false;
    read_all(l);
    close_pipe(p);
    p->pid = 0;
    if (!p->over) {
        p->over = true;
        pod_fault(&l->pod, loop_now(), ERR_PREFLIGHT_RETRY,
                  WIFSIGNALED(status)
                      ? "preflight was killed from outside, or by the OOM "
                        "killer: is the pod's memory limit too small?"
                      : "preflight ended with no word");
    }
    return true;
}
