/* pod_worker: a pod and its workers: how they end, and what follows. */
#include "agent/pod_parts.h"

#include "base/text.h"

#include <string.h>

void pod_settle(struct pod *p, uint64_t now_ms)
{
    p->settle_ms = 0;
    pod_report(p, now_ms);
}

void pod_take_news(struct pod *p, uint64_t now_ms, enum sup_news news)
{
    switch (news) {
    case SUP_QUIET:
        break;
    case SUP_FAILED:
        if (p->prepares)
            break; /* In PREPARING: what it left behind is stopped. */
        pod_move(p, POD_STOPPING);
        pod_say_stopping(p);
        if (p->link != LINK_ADMITTED)
            pod_say(p, LOG_WARNING, "a worker failed; stopping the others");
        p->settle_ms = now_ms + POD_SETTLE_MS;
        break;
    case SUP_STOPPED:
        pod_nothing_runs(p, now_ms);
        break;
    case SUP_SERVES:
        pod_move(p, POD_FINISHED);
        pod_report(p, now_ms);
        break;
    case SUP_DONE:
        p->prepared = p->prepares;
        if (p->prepares && p->state == POD_PREPARING) {
            pod_nothing_runs(p, now_ms);
        } else if (p->ended || p->stop_signo) {
            pod_nothing_runs(p, now_ms);
        } else if (p->state == POD_STOPPING) {
            pod_nothing_runs(p, now_ms); /* STOP came while it cleaned up. */
        } else {
            pod_move(p, POD_FINISHED);
            pod_report(p, now_ms);
        }
        break;
    case SUP_STUCK:
        p->runs = false;
        if (p->ended || p->stop_signo) {
            pod_say(p, LOG_ERROR, "a process of the workers outlives SIGKILL; "
                                  "the node may need a restart");
            pod_nothing_runs(p, now_ms);
            break;
        }
        pod_fault(p, now_ms, ERR_RESOURCE,
                  "a process of the workers outlives SIGKILL; the node may "
                  "need a restart (see the lines above for its pid)");
        break;
    }
}

void pod_describe_exit(const struct pod *p, const struct pod_exit *x,
                       struct failure *f)
{
    memset(f, 0, sizeof *f);
    f->kind = FAILURE_WORKER;
    f->code = x->code;
    f->signo = x->signo;
    f->node_rank = p->cfg.node_rank;
    f->role = x->role;
    f->rank = x->role == PROC_WORKER ? p->at.rank_base + x->worker : x->index;
    f->local_rank = x->role == PROC_WORKER ? x->worker : 0;
    f->pid = x->pid;
    f->round = p->round;
    f->ran_ms = x->ran_ms;
    f->from_file = x->from_file;
    (void)text_copy(f->host, sizeof f->host, p->cfg.host);
    (void)text_copy(f->text, sizeof f->text, x->hint);
    (void)text_copy(f->tail, sizeof f->tail, x->tail);
}

void pod_worker_exit(struct pod *p, uint64_t now_ms, const struct pod_exit *x)
{
    bool hung = p->hang_ms > 0, ok = x->code == 0;
    bool first = p->sup.state == SUP_RUNNING || p->sup.state == SUP_SERVING;
    struct failure f;

    if (p->prepares) {
        pod_prepare_ended(p, now_ms, x);
        pod_take_queue(p, now_ms);
        return;
    }
    if (hung) {
        ok = pod_hang_exit(p, x);
    } else if (first && pod_hold(p, now_ms, x)) {
        pod_take_queue(p, now_ms);
        return;
    }
    /* A KILL of agent's own is never a cause; nor are the other ways to end
     * of those that are stopped already. */
    if (!ok && !hung && (first || (p->settle_ms && !p->sup.killed))) {
        pod_describe_exit(p, x, &f);
        if (first || (failure_is_death(&f) && failure_beats(&f, &p->failure)))
            p->failure = f;
    }
    pod_take_news(p, now_ms,
                  supervisor_exited(&p->sup, now_ms, x->worker, ok));
    if (p->settle_ms && p->sup.n_alive == 0)
        pod_settle(p, now_ms); /* Nobody is left to be the cause. */
    pod_take_queue(p, now_ms);
}

void pod_swept(struct pod *p, uint64_t now_ms, uint32_t n_left,
               bool output_pending)
{
    uint64_t ms = supervisor_grace_left(&p->sup, now_ms);

    if (n_left == 0)
        p->left_told = false;
    else if (p->sup.n_alive == 0 && !p->left_told)
        p->left_told = pod_say_left(p, ms, n_left, p->prepares ? "--pre-start"
                                                               : "the workers");
    pod_take_news(p, now_ms, supervisor_swept(&p->sup, now_ms, n_left,
                                              output_pending));
    pod_take_queue(p, now_ms);
}
