/* loop: see loop.h. Signals come by one signalfd; one timer is armed from
 * pod_deadline(). */
#include "agent/loop_parts.h"

#include "agent/last_words.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/stops.h"
#include "base/text.h"
#include "rendezvous/barrier.h"
#include "supervise/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define STOOD_STILL_MS 1000 /* As late no timer of a living agent is, */
#define STOOD_STILL_SAY_MS 5000 /* and so late even on a node that is full. */

uint64_t loop_now(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void say_stood_still(uint64_t ms)
{
    char buf[64];
    struct text t;

    text_init(&t, buf, sizeof buf);
    text_add_duration(&t, ms);
    log_warning("agent stood still for %s or more (SIGSTOP, a frozen cgroup, "
                "a paused machine, a file system that hangs); other pods take "
                "who is silent for %d s for lost", buf,
                BARRIER_SILENCE_MS / 1000);
}

/* How long the timer should have run ago; told where it is long. */
static uint64_t late_ms(struct loop *l, uint64_t now)
{
    uint64_t late = l->timer_due && now > l->timer_due ? now - l->timer_due : 0;

    if (late >= STOOD_STILL_SAY_MS) {
        say_stood_still(late);
        l->timer_due = now;
    }
    return late;
}

/* An agent that stood still (a frozen cgroup, a paused machine) has what the
 * other pods sent meanwhile in its sockets: it is read before their silence is
 * judged, or it would take itself for the only one that is left. */
static void on_timer(uv_timer_t *t)
{
    struct loop *l = t->data;
    uint64_t now = loop_now();

    if (!l->was_late && late_ms(l, now) >= STOOD_STILL_MS) {
        l->was_late = true;
        (void)uv_timer_start(t, on_timer, 1, 0); /* 0 would read nothing. */
        return;
    }
    l->was_late = false;
    pod_timeout(&l->pod, now);
    loop_after(l);
}

void loop_after(struct loop *l)
{
    uint64_t at, now;

    (void)late_ms(l, loop_now());
    loop_preflight_begun(l);
    while (l->n_unborn > 0 || l->sweep_asked || l->n_worker_sweeps > 0) {
        if (l->n_unborn > 0)
            loop_report_unborn(l);
        else if (l->n_worker_sweeps > 0)
            loop_sweep_workers(l);
        else
            loop_sweep(l);
    }
    if (l->stage_pid < 0) {
        l->stage_pid = 0;
        pod_fault(&l->pod, loop_now(), ERR_RESOURCE, "the stager cannot start");
    }
    if (l->pod.state == POD_GONE) {
        uv_stop(&l->uv);
        return;
    }
    if (l->pod.cfg.node_rank != l->said_rank) {
        l->said_rank = l->pod.cfg.node_rank; /* By arrival: now it is known. */
        log_setup_rank((int)l->said_rank);
    }
    at = pod_deadline(&l->pod);
    now = loop_now();
    l->timer_due = at > now ? at : now; /* What is due may be so for long. */
    if (at == UINT64_MAX)
        (void)uv_timer_stop(&l->timer);
    else
        (void)uv_timer_start(&l->timer, on_timer, l->timer_due - now, 0);
}

static bool is_passed_on(int signo)
{
    return signo == SIGUSR1 || signo == SIGUSR2 || signo == SIGWINCH ||
           signo == SIGCONT || signo == SIGALRM || signo >= SIGRTMIN ||
           signo == SIGTERM || signo == SIGINT || signo == SIGHUP ||
           signo == SIGQUIT;
}

static void on_signal(uv_poll_t *poll, int status, int events)
{
    struct loop *l = poll->data;
    struct signalfd_siginfo si;
    pid_t first = 0; /* To die. */

    (void)status;
    (void)events;
    while (read(l->signal_fd, &si, sizeof si) == (ssize_t)sizeof si) {
        if (si.ssi_signo == SIGCONT && l->tty.on)
            tty_continued(&l->tty, l->workers[0].pid);
        if (si.ssi_signo == SIGCHLD && first == 0)
            first = (pid_t)si.ssi_pid;
        else if (is_passed_on((int)si.ssi_signo))
            pod_signal(&l->pod, loop_now(), (int)si.ssi_signo);
    }
    if (first > 0)
        loop_reap(l, first);
    loop_after(l);
}

static void on_room(uv_poll_t *poll, int status, int events)
{
    struct loop *l = poll->data;

    (void)status;
    (void)events;
    loop_room(l);
    loop_say_missing(l);
    loop_after(l);
}

/* --- the pod's actions --- */

static void act_log(void *ctx, enum log_level level, const char *text)
{
    (void)ctx;
    log_line(level, "%s", text);
}

static void act_stage(void *ctx)
{
    loop_preflight(ctx);
}

static void act_stage_kill(void *ctx)
{
    loop_preflight_kill(ctx);
    loop_stage_kill(ctx);
}

static void act_spawn(void *ctx, const struct pod_round *round)
{
    loop_spawn(ctx, round);
}

static void act_kill(void *ctx, uint32_t worker, int signo)
{
    loop_kill(ctx, worker, signo);
}

static void act_sweep(void *ctx, int signo)
{
    struct loop *l = ctx;

    l->sweep_asked = true;
    l->sweep_signo = signo;
}

static void act_connect(void *ctx)
{
    peers_link_connect(((struct loop *)ctx)->peers);
}

static void act_link_send(void *ctx, const struct wire_msg *m)
{
    peers_link_send(((struct loop *)ctx)->peers, m);
}

static void act_link_close(void *ctx, bool abort)
{
    peers_link_close(((struct loop *)ctx)->peers, abort);
}

static void act_conn_send(void *ctx, uint32_t conn, const struct wire_msg *m)
{
    peers_send(((struct loop *)ctx)->peers, conn, m);
}

static void act_conn_close(void *ctx, uint32_t conn, bool abort)
{
    peers_close(((struct loop *)ctx)->peers, conn, abort);
}

static const struct pod_out actions = {
    .log = act_log,
    .stage = act_stage,
    .stage_kill = act_stage_kill,
    .spawn = act_spawn,
    .kill = act_kill,
    .sweep = act_sweep,
    .connect = act_connect,
    .link_send = act_link_send,
    .link_close = act_link_close,
    .conn_send = act_conn_send,
    .conn_close = act_conn_close,
    .conn_admit = loop_conn_admit,
};

static int no_descriptors(struct err *e)
{
    return err_set(e, ERR_AGENT, "no descriptors: %s", strerror(errno));
}

static void watch(struct loop *l, uv_poll_t *poll, int fd, uv_poll_cb cb)
{
    (void)uv_poll_init(&l->uv, poll, fd);
    poll->data = l;
    (void)uv_poll_start(poll, UV_READABLE, cb);
}

int loop_uv_open(struct loop *l)
{
    if (l->uv_is_open)
        return 0;
    if (uv_loop_init(&l->uv) != 0)
        return -1;
    l->uv_is_open = true;
    (void)uv_timer_init(&l->uv, &l->timer);
    (void)uv_timer_init(&l->uv, &l->guard_timer);
    (void)uv_timer_init(&l->uv, &l->settle_timer);
    (void)uv_timer_init(&l->uv, &l->bar_timer);
    l->guard_timer.data = l->settle_timer.data = l;
    l->timer.data = l;
    watch(l, &l->signals, l->signal_fd, on_signal);
    watch(l, &l->room, l->room_fd, on_room);
    return 0;
}

static int loop_open(struct loop *l, struct err *e)
{
    struct pod_config cfg;
    struct pod_out out = actions;
    sigset_t all, stops;
    int r;

    sigfillset(&all);
    stops_fill(&stops);
    if (!sigismember(&stops, SIGHUP))
        (void)sigdelset(&all, SIGHUP);
    l->signal_fd = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
    l->ignored = child_ignored();
    l->room_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    l->stdin_fd = child_open_stdin();
    l->guard_fd = l->folder.lock_fd = -1;
    l->folder.id = l->plan->incarnation;
    l->folder.job = scratch_job(l->plan->o->job_id, l->plan->zero,
                                 l->plan->o->nnodes, l->folder.id);
    /* What goes to files or is hidden is relayed; so is what is watched. */
    if (l->plan->n_procs == 1 && !l->plan->o->log_dir &&
        !l->plan->o->hang_timeout_ms && l->plan->o->log_ranks.n == 0 &&
        l->plan->o->torchrun.local_ranks.n == 0)
        tty_open(&l->tty);
    if (l->signal_fd < 0 || l->room_fd < 0 || l->stdin_fd < 0)
        return no_descriptors(e);
    out.ctx = l;
    loop_mesh_actions(&out);
    loop_again_actions(&out);
    loop_tidy_actions(&out);
    loop_hang_actions(&out);
    plan_pod(l->plan, &cfg);
    pod_init(&l->pod, &cfg, &out, loop_now());
    l->said_rank = cfg.node_rank;
    log_setup_rank((int)cfg.node_rank);
    r = loop_logs_new(l, e);
    if (r == 0)
        r = loop_stage_new(l, e);
    if (r == 0)
        r = loop_barrier_new(l, e);
    if (r == 0)
        r = loop_net_open(l, e);
    if (r == 0)
        r = loop_workers_new(l, e);
    if (r == 0)
        r = loop_files_new(l, e);
    if (r == 0)
        r = loop_hang_new(l, e);
    if (r == 0)
        r = loop_again_new(l, e);
    if (r == 0 && l->plan->o->http_port) /* Taken: nothing may start. */
        r = loop_asks_new(l, e);
    return r;
}

int loop_run(const struct plan *plan)
{
    static struct loop loop; /* Lives until exit. */
    struct loop *l = &loop;
    struct err e;
    int code;

    l->plan = plan;
    l->is_init = getpid() == 1;
    if (!l->is_init && prctl(PR_SET_CHILD_SUBREAPER, 1) != 0)
        log_warning("no child subreaper: what a worker leaves behind may "
                    "outlive it, going on");
    if (loop_open(l, &e) != 0) {
        log_set_sink(NULL, NULL);
        return last_words_early(plan->o, &e);
    }
    loop_say_plan(plan);
    if (!l->is_init)
        log_debug("not PID 1 but pid %d: orphans are adopted, and a guard "
                  "kills what is left if agent is killed", (int)getpid());
    pod_start(&l->pod, loop_now());
    loop_preflight_look(l);
    if ((loop_uv_open(l) != 0 && no_descriptors(&e)) ||
        (!l->asks && loop_asks_new(l, &e) != 0)) {
        log_set_sink(NULL, NULL); /* The workers die with this process. */
        log_error("%s", e.text);
        return ERR_AGENT;
    }
    loop_after(l);
    if (l->pod.state != POD_GONE)
        (void)uv_run(&l->uv, UV_RUN_DEFAULT);
    code = loop_end(l);
#ifdef AGENT_COVERAGE
    return code; /* exit() writes what was counted. */
#else
    _exit(code); /* exit() frees what goes with the process, for 30 us, and
                    waits for a name server that is still asked. */
#endif
}
