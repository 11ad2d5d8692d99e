/* loop_hang: --hang-timeout: looks at the workers now and then, and has their
 * heartbeats. Whether they hang is decided in supervise/hang.h, and what comes
 * of it in pod_hang.c. */
#include "agent/loop_parts.h"

#include "base/log.h"
#include "base/text.h"
#include "supervise/hang.h"
#include "supervise/proc.h"
#include "supervise/usage.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define TAIL_LINES 8

struct hang_watch {
    struct hang hang;
    uv_timer_t timer;
    bool has_timer;
    struct hang_seen *seen; /* One for each worker, as all of these. */
    struct usage *usage;
    pid_t *leaders;
    char tail[FAILURE_TAIL_MAX];
};

int loop_hang_new(struct loop *l, struct err *e)
{
    const struct plan *p = l->plan;
    size_t n = p->nproc;
    struct hang_worker *workers;
    struct hang_watch *w;

    if (!p->o->hang_timeout_ms || n == 0)
        return 0;
    w = calloc(1, sizeof *w);
    workers = calloc(n, sizeof *workers);
    if (w) {
        w->seen = calloc(n, sizeof *w->seen);
        w->usage = calloc(n, sizeof *w->usage);
        w->leaders = calloc(n, sizeof *w->leaders);
    }
    if (!w || !workers || !w->seen || !w->usage || !w->leaders)
        return err_set(e, ERR_AGENT, "no memory to watch %zu worker%s", n,
                       text_plural(n));
    hang_init(&w->hang, p->o->hang_timeout_ms, workers, p->nproc);
    l->hang = w;
    if (!proc_is_own())
        log_warning("--hang-timeout: without /proc nobody knows who computes, "
                    "so only those hang that send no more heartbeats; going "
                    "on");
    return 0;
}

static void see(const struct loop *l, uint32_t i)
{
    const struct worker *w = &l->workers[i];
    const struct hang_watch *h = l->hang;
    uint64_t out = w->out.n_read ? w->out.read_ms : 0;
    uint64_t err = w->err.n_read ? w->err.read_ms : 0;

    h->seen[i] = (struct hang_seen){
        .is_alive = w->pid > 0,
        .start_ms = w->start_ms,
        .output_ms = out > err ? out : err,
        .is_stalled = stream_waits(&w->out) || stream_waits(&w->err),
        .beats = w->beats,
        .beat_ms = w->beat_ms,
        .has_cpu = h->usage[i].n_procs > 0,
        .cpu_ms = h->usage[i].cpu_ms};
}

static void look(struct loop *l)
{
    struct hang_watch *h = l->hang;
    uint32_t n = l->plan->nproc, first = n;

    for (uint32_t i = n; i-- > 0;) {
        h->leaders[i] = l->workers[i].pid;
        if (h->leaders[i] > 0)
            first = i;
    }
    usage_read_trees(h->leaders, n, h->usage);
    for (uint32_t i = 0; i < n; i++)
        see(l, i);
    if (hang_look(&h->hang, loop_now(), h->seen) && first < n)
        pod_hang(&l->pod, loop_now(), first);
}

static void on_hang_timer(uv_timer_t *t)
{
    struct loop *l = t->data;

    if (l->pod.state != POD_RUNNING) {
        (void)uv_timer_stop(t); /* The next round starts it. */
        return;
    }
    look(l);
    loop_after(l);
}

void loop_hang_begin(struct loop *l)
{
    struct hang_watch *h = l->hang;
    uint64_t step;

    if (!h || loop_uv_open(l) != 0)
        return;
    if (!h->has_timer) {
        (void)uv_timer_init(&l->uv, &h->timer);
        h->timer.data = l;
        h->has_timer = true;
    }
    hang_begin(&h->hang, loop_now());
    step = hang_step_ms(&h->hang);
    (void)uv_timer_start(&h->timer, on_hang_timer, step, step);
}

/* --- heartbeats --- */

static void on_beat(uv_poll_t *poll, int status, int events)
{
    struct stream_watch *watch = (struct stream_watch *)poll;
    struct loop *l = poll->data;
    char bytes[4096];
    ssize_t n;

    (void)status;
    (void)events;
    for (uint32_t i = 0; watch->stream && i < l->plan->nproc; i++) {
        struct worker *w = &l->workers[i];

        if (w->beat_watch != watch)
            continue;
        n = read(w->beat_fd, bytes, sizeof bytes);
        if (n > 0) {
            w->beats = true;
            w->beat_ms = loop_now();
        } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
            w->beats = false; /* It sends no more: as without. */
            loop_beat_close(l, i);
        }
        return;
    }
}

int loop_beat_open(struct loop *l, uint32_t i)
{
    struct worker *w = &l->workers[i];
    int fds[2];

    loop_beat_close(l, i); /* Of the one before. */
    w->beats = false;
    if (!l->hang || i >= l->plan->nproc || pipe2(fds, O_CLOEXEC) != 0)
        return -1;
    (void)fcntl(fds[0], F_SETFL, O_NONBLOCK);
    w->beat_watch = watch_new(l, fds[0], on_beat, &w->out);
    if (!w->beat_watch) {
        (void)close(fds[0]);
        (void)close(fds[1]);
        return -1;
    }
    w->beat_fd = fds[0];
    return fds[1];
}

void loop_beat_close(struct loop *l, uint32_t i)
{
    struct worker *w = &l->workers[i];

    if (!w->beat_watch)
        return;
    watch_free(w->beat_watch);
    w->beat_watch = NULL;
    (void)close(w->beat_fd);
}

/* --- the pod's action --- */

static void act_describe(void *ctx, uint32_t i, struct pod_exit *ret)
{
    struct loop *l = ctx;
    struct worker *w = &l->workers[i];

    stream_drain(&w->err, false);
    ret->pid = (uint32_t)w->last_pid;
    ret->ran_ms = (w->pid > 0 ? loop_now() : w->end_ms) - w->start_ms;
    (void)tail_text(&w->tail, TAIL_LINES, l->hang->tail,
                    sizeof l->hang->tail);
    ret->tail = l->hang->tail;
}

void loop_hang_actions(struct pod_out *out)
{
    out->describe = act_describe;
}
