/* pod: see pod.h. This file has the states and the signals; pod_worker.c has
 * the workers, pod_link.c pod 0 as all see it, pod_zero.c pod 0 itself,
 * pod_time.c the clock. */
#include "agent/pod.h"

#include "agent/pod_parts.h"
#include "base/text.h"

#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

void pod_say(const struct pod *p, enum log_level level, const char *fmt, ...)
{
    char text[2 * WIRE_TEXT_MAX];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    p->out.log(p->out.ctx, level, text);
}

/* A step of the machine, for -v. */
void pod_move(struct pod *p, enum pod_state to)
{
    static const char *const names[] = {
        "STAGING",  "PREPARING", "WAITING", "RUNNING", "FINISHED",
        "STOPPING", "FAILING",   "LEAVING", "GONE"};

    if (p->state != to)
        pod_say(p, LOG_DEBUG, "pod: %s -> %s, round %u", names[p->state],
                names[to], p->round);
    p->state = to;
}

static bool stops_with(const struct pod *p, int signo)
{
    return signo > 0 && signo < 64 && (p->cfg.stop_with >> signo & 1);
}

static void sup_kill(void *ctx, uint32_t worker, int signo)
{
    struct pod *p = ctx;

    if (signo == SIGTERM && stops_with(p, p->stop_signo))
        signo = p->stop_signo;
    p->out.kill(p->out.ctx, worker, signo);
}

static void sup_sweep(void *ctx, int signo)
{
    struct pod *p = ctx;

    p->out.sweep(p->out.ctx, signo);
}

void pod_init(struct pod *p, const struct pod_config *cfg,
              const struct pod_out *out, uint64_t now_ms)
{
    struct sup_out sup = {.ctx = p, .kill = sup_kill, .sweep = sup_sweep};

    p->cfg = *cfg;
    p->out = *out;
    p->start_ms = now_ms;
    p->heard_ms = now_ms;
    p->say_ms = now_ms + BARRIER_SUMMARY_MS;
    p->retry_step_ms = POD_RETRY_MIN_MS;
    supervisor_init(&p->sup, &sup, cfg->nproc + cfg->n_servers, cfg->grace_ms);
}

void pod_gone(struct pod *p)
{
    pod_move(p, POD_GONE);
}

/* Nothing runs and nothing will: say so, close, and go. */
void pod_leave(struct pod *p, uint64_t now_ms)
{
    struct wire_msg bye;

    wire_begin(&bye, WIRE_BYE, p->round);
    pod_move(p, POD_LEAVING);
    p->leave_ms = now_ms;
    p->say_ms = now_ms + POD_LEFT_MS;
    if (p->stop_signo && !p->ended) {
        p->exit_code = 128 + p->stop_signo;
        if (p->bar || p->link != LINK_ADMITTED) {
            pod_gone(p);
            return;
        }
        pod_tell(p, now_ms, &bye);
    } else {
        pod_tell(p, now_ms, &bye);
        if (!p->bar && p->link != LINK_ADMITTED)
            pod_gone(p);
    }
    if (!p->bar && p->state != POD_GONE)
        p->out.link_close(p->out.ctx, false);
}

void pod_nothing_runs(struct pod *p, uint64_t now_ms)
{
    bool ran = p->runs;

    p->settle_ms = 0;
    if (p->runs)
        p->round++;
    p->runs = false;
    pod_drop_silent(p, now_ms);
    if (p->ended || p->stop_signo) {
        pod_leave(p, now_ms);
        return;
    }
    if (ran && p->out.tidy)
        p->out.tidy(p->out.ctx);
    pod_get_ready(p, now_ms);
}

/* All workers have ended with 0. Where the whole job has, too, the servers
 * mostly end by themselves. */
static void stop_servers(struct pod *p, uint64_t now_ms)
{
    if (p->sup.state == SUP_IDLE) {
        pod_nothing_runs(p, now_ms);
        return;
    }
    pod_move(p, POD_STOPPING);
    if (p->ended && p->exit_code == 0)
        supervisor_dismiss(&p->sup, now_ms);
    else
        supervisor_stop(&p->sup, now_ms);
}

void pod_stop_workers(struct pod *p, uint64_t now_ms)
{
    p->asks = false;
    p->hang_ms = 0;
    pod_hold_none(p);
    switch (p->state) {
    case POD_RUNNING:
    case POD_PREPARING:
        pod_move(p, POD_STOPPING);
        pod_say_stopping(p);
        supervisor_stop(&p->sup, now_ms);
        if (p->sup.state == SUP_IDLE)
            pod_nothing_runs(p, now_ms);
        break;
    case POD_STAGING:
        p->out.stage_kill(p->out.ctx);
        pod_nothing_runs(p, now_ms);
        break;
    case POD_FINISHED:
        stop_servers(p, now_ms);
        break;
    case POD_WAITING:
    case POD_FAILING:
        pod_nothing_runs(p, now_ms);
        break;
    case POD_STOPPING:
    case POD_LEAVING:
    case POD_GONE:
        break;
    }
}

void pod_end(struct pod *p, uint64_t now_ms, int code,
             const struct failure *cause)
{
    if (p->ended || p->state == POD_GONE)
        return;
    if (p->stop_signo) {
        /* It was told to stop before the job's end: that is its verdict. */
        if (p->state == POD_LEAVING)
            pod_gone(p);
        return;
    }
    p->ended = true;
    p->exit_code = code;
    p->cause = *cause;
    pod_say_slow_end(p);
    pod_stop_workers(p, now_ms);
}

const char *pod_budget(const struct pod *p, char buf[POD_BUDGET_MAX])
{
    struct text t;

    text_init(&t, buf, POD_BUDGET_MAX);
    verdict_restarts(&t, p->n_restarts, p->cfg.max_restarts,
                     p->cfg.restart_period_ms);
    return buf;
}

void pod_begin_round(struct pod *p, uint64_t now_ms, const struct wire_msg *m)
{
    enum sup_news news;
    char budget[POD_BUDGET_MAX];
    /* A pod whose workers ended with pod 0's got no STOP to say so. */
    bool lost = p->n_rounds > 0 &&
                m->past.zero_losses > p->past.past.zero_losses;

    pod_past_take(p, now_ms, m);
    p->past.round_open = true;
    p->past.open_ms = now_ms;
    p->world_size = m->world_size;
    p->round = m->round;
    p->runs = true;
    p->older_silent = false; /* Pod 0 has waited for it. */
    p->n_rounds++;
    p->failure.kind = FAILURE_NONE;
    p->hang_ms = 0;
    p->waiting[0] = '\0';
    p->at.round = m->round;
    p->at.rank_base = m->rank_base;
    p->at.world_size = m->world_size;
    p->at.master_port = m->master_port;
    p->at.group_rank = m->group_rank;
    p->at.group_size = m->group_size;
    (void)text_copy(p->at.hosts, sizeof p->at.hosts, m->hosts);
    if (p->n_rounds > 1 || p->round > 0)
        pod_say(p, LOG_INFO, "round %u starts%s; %s", p->round,
                lost ? ", for node rank 0 was lost" : "",
                pod_budget(p, budget));
    pod_mesh_close(p);
    pod_move(p, POD_RUNNING);
    p->prepared = false;
    news = supervisor_start(&p->sup, p->cfg.nproc + p->cfg.n_servers,
                            p->cfg.n_servers);
    p->out.spawn(p->out.ctx, &p->at);
    pod_take_news(p, now_ms, news);
}

void pod_fault(struct pod *p, uint64_t now_ms, int code, const char *text)
{
    struct failure *f = &p->failure;

    if (p->ended || p->stop_signo || p->state == POD_GONE ||
        p->state == POD_FAILING)
        return;
    memset(f, 0, sizeof *f);
    f->kind = FAILURE_AGENT;
    f->code = code;
    f->node_rank = p->cfg.node_rank;
    f->round = p->round;
    (void)text_copy(f->host, sizeof f->host, p->cfg.host);
    (void)text_copy(f->text, sizeof f->text, text);
    pod_move(p, POD_FAILING);
    p->leave_ms = now_ms;
    if (p->cfg.nnodes > 1)
        pod_say(p, LOG_ERROR, "%s; telling the other pods", text);
    p->end_told = p->cfg.nnodes > 1;
    pod_report(p, now_ms);
    pod_take_queue(p, now_ms);
}

void pod_stage_progress(struct pod *p, uint64_t now_ms, unsigned percent)
{
    struct wire_msg m;

    p->percent = (uint8_t)(percent > 100 ? 100 : percent);
    wire_begin(&m, WIRE_PROGRESS, 0);
    m.percent = p->percent;
    if (p->state == POD_STAGING)
        pod_tell(p, now_ms, &m);
}

void pod_stage_done(struct pod *p, uint64_t now_ms,
                    const uint8_t digest[WIRE_DIGEST])
{
    if (p->state != POD_STAGING)
        return;
    p->staged = true;
    memcpy(p->digest, digest, WIRE_DIGEST);
    pod_get_ready(p, now_ms);
    pod_take_queue(p, now_ms);
}

static bool is_stop(int signo)
{
    return signo == SIGTERM || signo == SIGINT || signo == SIGHUP ||
           signo == SIGQUIT;
}

static void told_to_stop(struct pod *p, uint64_t now_ms, int signo)
{
    struct failure *f = &p->cause;
    char name[16];

    p->stop_signo = signo;
    p->stop_ms = now_ms;
    pod_say_told(p, now_ms, verdict_signal_name(signo, name));
    memset(f, 0, sizeof *f);
    f->kind = FAILURE_STOPPED;
    f->code = 128 + signo;
    f->signo = signo;
    f->node_rank = p->cfg.node_rank;
    f->round = p->round;
    (void)text_copy(f->host, sizeof f->host, p->cfg.host);
    (void)snprintf(f->text, sizeof f->text, "%s from outside", name);
    pod_report(p, now_ms);
    supervisor_soon(&p->sup);
    pod_stop_workers(p, now_ms);
}

/* The job has ended, and its workers are being stopped: they keep the rest of
 * the grace, or who saves its state would lose it. */
static void told_late(struct pod *p, uint64_t now_ms, int signo)
{
    char name[16];

    p->told_late = true;
    pod_say_told(p, now_ms, verdict_signal_name(signo, name));
    supervisor_soon(&p->sup);
}

static void hurry(struct pod *p, uint64_t now_ms, int signo)
{
    char name[16];

    if (p->sup.n_alive > 0 && !p->sup.killed && !p->hurried)
        pod_say(p, LOG_INFO, "got %s, too: that ends the grace",
                verdict_signal_name(signo, name));
    p->hurried = true;
    supervisor_hurry(&p->sup, now_ms);
}

void pod_signal(struct pod *p, uint64_t now_ms, int signo)
{
    if (!is_stop(signo) && !stops_with(p, signo)) {
        /* They are for workers: --pre-start, a shell, would die of most. */
        for (uint32_t i = 0; !p->prepares && i < p->sup.n_workers; i++)
            if (p->sup.state != SUP_IDLE && p->sup.alive[i])
                p->out.kill(p->out.ctx, i, signo);
        return;
    }
    if (p->state == POD_LEAVING || p->state == POD_FAILING) {
        /* The end is known; only the last words are waited for. */
        if (!p->ended)
            p->exit_code = p->stop_signo ? 128 + p->stop_signo
                                         : p->failure.code;
        if (!p->ended && !p->stop_signo)
            p->cause = p->failure;
        pod_gone(p);
        return;
    }
    if (p->stop_signo || p->told_late)
        hurry(p, now_ms, signo);
    else if (p->ended)
        told_late(p, now_ms, signo);
    else
        told_to_stop(p, now_ms, signo);
    pod_take_queue(p, now_ms);
}

void pod_verdict(const struct pod *p, uint64_t now_ms, struct verdict *ret)
{
    memset(ret, 0, sizeof *ret);
    ret->exit_code = p->exit_code;
    ret->cause = p->cause;
    ret->nnodes = p->at.group_size ? p->at.group_size : p->cfg.nnodes;
    ret->world_size = p->world_size;
    ret->node_rank = p->cfg.node_rank;
    ret->n_restarts = p->n_restarts;
    ret->max_restarts = p->cfg.max_restarts;
    ret->restart_period_ms = p->cfg.restart_period_ms;
    ret->n_rounds = p->n_rounds;
    ret->job_ms = now_ms - p->start_ms;
    ret->told_ms = p->stop_signo ? p->stop_ms - p->start_ms : ret->job_ms;
    ret->why = p->why;
}

void pod_timeout(struct pod *p, uint64_t now_ms)
{
    if (p->state == POD_GONE)
        return;
    if (p->settle_ms && now_ms >= p->settle_ms)
        pod_settle(p, now_ms);
    pod_hang_timeout(p, now_ms);
    if (now_ms >= supervisor_deadline(&p->sup)) {
        bool killed = p->sup.killed;

        pod_take_news(p, now_ms, supervisor_timeout(&p->sup, now_ms));
        if (p->sup.killed && !killed)
            pod_say_kill(p);
        pod_say_slow_end(p);
    }
    if (p->bar && now_ms >= barrier_deadline(p->bar))
        barrier_timeout(p->bar, now_ms);
    pod_take_queue(p, now_ms);
    pod_say_stays(p, now_ms);
    pod_check_time(p, now_ms);
    pod_take_queue(p, now_ms);
}
