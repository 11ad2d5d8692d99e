/* loop_again: what runs again in this pod alone: --pre-start, and a worker of
 * --restart-scope worker with what it left behind. */
#include "agent/loop_parts.h"

#include "base/text.h"
#include "supervise/brand.h"
#include "supervise/proc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int loop_again_new(struct loop *l, struct err *e)
{
    if (l->plan->o->restart_scope != SCOPE_WORKER)
        return 0;
    l->held = calloc(l->plan->nproc, sizeof *l->held);
    if (!l->held)
        return err_set(e, ERR_AGENT, "no memory for %u worker%s",
                       l->plan->nproc, text_plural(l->plan->nproc));
    pod_hold_workers(&l->pod, l->held);
    return 0;
}

static void act_spawn_again(void *ctx, const struct pod_round *round,
                            uint32_t worker, uint32_t attempt)
{
    struct pod_round again = *round;

    again.round = attempt;
    loop_spawn_one(ctx, &again, worker);
}

static void act_pre_start(void *ctx, uint32_t round)
{
    struct loop *l = ctx;
    struct pod_round at = {.round = round,
                           .group_rank = l->pod.cfg.node_rank};

    l->round_ticks = proc_now_ticks();
    loop_spawn_one(l, &at, l->plan->n_procs);
}

static void act_sweep_worker(void *ctx, uint32_t worker, int signo)
{
    struct loop *l = ctx;

    l->workers[worker].sweep_asked = true;
    l->workers[worker].sweep_signo = signo;
    l->n_worker_sweeps++;
}

void loop_again_actions(struct pod_out *out)
{
    out->spawn_again = act_spawn_again;
    out->pre_start = act_pre_start;
    out->sweep_worker = act_sweep_worker;
}

/* What is in its session, or has its cookie. The members of the groups of
 * live workers are never meant. */
static void sweep_worker(struct loop *l, uint32_t worker)
{
    pid_t groups[SUP_MAX_WORKERS];
    char cookie[LOOP_COOKIE_MAX];
    struct worker *w = &l->workers[worker];
    struct proc_query q = {.cookie = cookie,
                           .brand = brand_of_worker(l->plan->brand, worker),
                           .groups = groups,
                           .sessions = &w->last_pid,
                           .n_sessions = w->last_pid > 0};
    unsigned left;

    (void)snprintf(cookie, sizeof cookie, "%s.%04u.", l->plan->own_cookie,
                   worker);
    for (uint32_t i = 0; i < l->plan->n_procs; i++)
        if (l->workers[i].pid > 0)
            groups[q.n_groups++] = l->workers[i].pid;
    left = proc_signal_left(&q, w->sweep_signo, &l->stuck_pid);
    stream_drain(&w->out, false);
    stream_drain(&w->err, false);
    pod_worker_swept(&l->pod, loop_now(), worker, left);
}

void loop_sweep_workers(struct loop *l)
{
    l->n_worker_sweeps = 0;
    for (uint32_t i = 0; i < l->plan->nproc; i++)
        if (l->workers[i].sweep_asked) {
            l->workers[i].sweep_asked = false;
            sweep_worker(l, i);
        }
}
