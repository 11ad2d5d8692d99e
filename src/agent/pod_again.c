/* pod_again: what is run again in this pod alone: --pre-start before a round,
 * and with --restart-scope worker a worker that failed. Pod 0 is asked by
 * FAILED with a serial number, one question at a time, and answers AGAIN. */
#include "agent/pod_parts.h"

#include "base/text.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#define PRE_START UINT32_MAX /* In place of a worker. */

void pod_hold_workers(struct pod *p, struct pod_held *held)
{
    p->held = held;
}

/* --- --pre-start --- */

static void prepare(struct pod *p)
{
    p->prepares = true;
    p->prepare_ms = 0;
    pod_say(p, LOG_DEBUG, "--pre-start runs, for round %u", p->round);
    (void)supervisor_start(&p->sup, 1, 0);
    p->out.pre_start(p->out.ctx, p->round);
}

static void ask(struct pod *p, uint64_t now_ms, uint32_t worker)
{
    p->asks = true;
    p->asks_worker = worker;
    p->serial++;
    pod_ask_again(p, now_ms);
}

void pod_get_ready(struct pod *p, uint64_t now_ms)
{
    bool failed = p->prepares && !p->prepared;

    p->prepares = false;
    if (!p->cfg.has_pre_start || p->prepared) {
        pod_move(p, POD_WAITING);
        p->say_ms = now_ms + BARRIER_SUMMARY_MS;
        pod_report(p, now_ms);
        return;
    }
    pod_move(p, POD_PREPARING);
    pod_report(p, now_ms);
    if (failed)
        ask(p, now_ms, PRE_START);
    else
        prepare(p);
}

static void count_failure(const struct pod_exit *x, uint32_t *in_a_row,
                          uint32_t *same, int *last_code)
{
    bool early = x->ran_ms < BARRIER_SAME_MS;

    ++*in_a_row;
    *same = !early ? 0 : *last_code == x->code ? *same + 1 : 1;
    *last_code = x->code;
}

void pod_prepare_ended(struct pod *p, uint64_t now_ms,
                       const struct pod_exit *x)
{
    bool ok = x->code == 0;

    if (!ok && p->state == POD_PREPARING) {
        pod_describe_exit(p, x, &p->prepare_failure);
        p->prepare_failure.kind = FAILURE_PREPARE;
        p->prepare_failure.rank = p->prepare_failure.local_rank = 0;
        count_failure(x, &p->in_a_row, &p->same, &p->last_code);
    } else if (ok) {
        p->in_a_row = p->same = 0;
    }
    pod_take_news(p, now_ms, supervisor_exited(&p->sup, now_ms, 0, ok));
}

/* --- a worker --- */

static void sweep(struct pod *p, uint32_t worker, int signo)
{
    struct pod_held *h = &p->held[worker];

    h->sweeping = true;
    h->poll_ms = UINT64_MAX;
    p->out.sweep_worker(p->out.ctx, worker, signo);
}

/* The next one that pod 0 has not been asked about. */
static void ask_next(struct pod *p, uint64_t now_ms)
{
    for (uint32_t i = 0; !p->asks && p->n_held > 0 && i < p->cfg.nproc; i++)
        if (p->held[i].held && !p->held[i].told) {
            p->held[i].told = true;
            ask(p, now_ms, i);
        }
}

bool pod_hold(struct pod *p, uint64_t now_ms, const struct pod_exit *x)
{
    struct pod_held *h = p->held && x->worker < p->cfg.nproc
                             ? &p->held[x->worker]
                             : NULL; /* A server is of all workers. */

    if (!h || p->state != POD_RUNNING || !p->sup.alive[x->worker] ||
        (x->code == 0 && !p->cfg.restart_always))
        return false;
    pod_describe_exit(p, x, &h->failure);
    if (x->ran_ms >= p->cfg.restart_reset_ms)
        h->in_a_row = 0;
    count_failure(x, &h->in_a_row, &h->same, &h->last_code);
    h->held = true;
    h->clean = h->told = h->allowed = h->killed = h->left_told = false;
    h->look_ms = 0;
    h->kill_ms = now_ms + p->cfg.grace_ms;
    h->poll_step_ms = SUP_POLL_MS;
    p->n_held++;
    supervisor_hold(&p->sup, x->worker);
    sweep(p, x->worker, SIGTERM);
    ask_next(p, now_ms);
    return true;
}

void pod_hold_none(struct pod *p)
{
    for (uint32_t i = 0; p->n_held > 0 && i < p->cfg.nproc; i++)
        p->held[i].held = false;
    p->n_held = 0;
}

static void let_go(struct pod *p, uint32_t worker)
{
    p->held[worker].held = false;
    p->n_held--;
}

/* Start it where all conditions hold. */
static void try_again(struct pod *p, uint64_t now_ms, uint32_t worker)
{
    struct pod_held *h = &p->held[worker];
    char budget[POD_BUDGET_MAX];

    if (!h->held || !h->clean || !h->allowed || now_ms < h->start_ms)
        return;
    let_go(p, worker);
    h->n_starts++;
    pod_say(p, LOG_INFO, "rank %u starts again, alone; %s",
            p->at.rank_base + worker, pod_budget(p, budget));
    supervisor_again(&p->sup, worker);
    p->out.spawn_again(p->out.ctx, &p->at, worker, p->at.round + h->n_starts);
}

void pod_worker_swept(struct pod *p, uint64_t now_ms, uint32_t worker,
                      uint32_t n_left)
{
    struct pod_held *h = &p->held[worker];
    char who[32];

    h->sweeping = false;
    if (!h->held)
        return;
    h->clean = n_left == 0;
    if (!h->clean && !h->left_told && !h->killed && h->kill_ms > now_ms) {
        (void)snprintf(who, sizeof who, "rank %u", p->at.rank_base + worker);
        h->left_told = pod_say_left(p, h->kill_ms - now_ms, n_left, who);
    }
    if (!h->clean) {
        h->poll_ms = now_ms + h->poll_step_ms;
        if (h->poll_step_ms < SUP_POLL_MAX_MS)
            h->poll_step_ms *= 2;
    }
    try_again(p, now_ms, worker);
    pod_take_queue(p, now_ms);
}

/* --- what both ask --- */

void pod_ask_again(struct pod *p, uint64_t now_ms)
{
    struct wire_msg m = {.kind = WIRE_FAILED, .serial = p->serial};
    const struct pod_held *h;

    if (!p->asks || p->stop_signo || p->ended)
        return;
    if (p->asks_worker == PRE_START) {
        m.round = p->round;
        m.failure = p->prepare_failure;
        m.in_a_row = p->in_a_row;
        m.same = p->same;
    } else {
        h = &p->held[p->asks_worker];
        m.round = p->at.round;
        m.failure = h->failure;
        m.in_a_row = h->in_a_row;
        m.same = h->same;
    }
    m.failure.node_rank = p->cfg.node_rank; /* It may be known since. */
    pod_tell(p, now_ms, &m);
}

static void say_again(const struct pod *p, const struct failure *f,
                      const struct wire_msg *m)
{
    char buf[2 * WIRE_TEXT_MAX];
    struct text t;

    text_init(&t, buf, sizeof buf);
    verdict_cause_line(&t, f);
    if (!m->go) {
        text_add(&t, "; it is not started again");
    } else {
        text_add(&t, "; it is tried again in ");
        text_add_duration(&t, m->delay_ms);
        if (m->text[0])
            text_add(&t, " (%s)", m->text);
    }
    pod_say(p, f->code ? LOG_WARNING : LOG_INFO, "%s", buf);
    if (m->go)
        pod_say_hint(p, f);
}

void pod_on_again(struct pod *p, uint64_t now_ms, const struct wire_msg *m)
{
    struct pod_held *h;
    uint64_t at = now_ms + m->delay_ms;

    if (m->serial == 0) { /* It was another pod that asked. */
        pod_past_again(p, now_ms, m);
        return;
    }
    if (!p->asks || m->serial != p->serial || p->ended || p->stop_signo)
        return;
    p->asks = false;
    pod_past_again(p, now_ms, m);
    if (p->asks_worker == PRE_START) {
        if (p->state != POD_PREPARING)
            return;
        say_again(p, &p->prepare_failure, m);
        p->prepare_ms = at ? at : 1;
        return;
    }
    h = &p->held[p->asks_worker];
    say_again(p, &h->failure, m);
    if (m->go) {
        h->allowed = true;
        h->start_ms = at;
        try_again(p, now_ms, p->asks_worker);
    } else {
        let_go(p, p->asks_worker);
        pod_take_news(p, now_ms, supervisor_drop(&p->sup, now_ms));
    }
    ask_next(p, now_ms);
}

static uint64_t stuck_ms(const struct pod_held *h)
{
    return supervisor_stuck_ms(h->kill_ms, h->look_ms, false);
}

/* What one worker left is still there: look again, KILL, give up. */
static void check_held(struct pod *p, uint64_t now_ms, uint32_t worker)
{
    struct pod_held *h = &p->held[worker];

    if (!h->clean && !h->killed && now_ms >= h->kill_ms) {
        h->killed = true;
        h->kill_ms = now_ms;
        sweep(p, worker, SIGKILL);
    } else if (!h->clean && h->killed && now_ms >= stuck_ms(h)) {
        if (h->look_ms == 0) {
            h->look_ms = now_ms;
            if (!h->sweeping)
                sweep(p, worker, SIGKILL);
            return;
        }
        pod_say(p, LOG_ERROR, "what rank %u left behind outlives SIGKILL; "
                "stopping all workers of this pod",
                p->at.rank_base + worker);
        pod_stop_workers(p, now_ms);
    } else if (!h->clean && !h->sweeping && now_ms >= h->poll_ms) {
        sweep(p, worker, h->killed ? SIGKILL : 0);
    } else {
        try_again(p, now_ms, worker);
    }
}

void pod_again_timeout(struct pod *p, uint64_t now_ms)
{
    if (p->prepare_ms && now_ms >= p->prepare_ms) {
        p->prepare_ms = 0;
        if (p->state == POD_PREPARING)
            prepare(p);
    }
    for (uint32_t i = 0; p->n_held > 0 && i < p->cfg.nproc; i++)
        if (p->held[i].held)
            check_held(p, now_ms, i);
}

uint64_t pod_again_deadline(const struct pod *p)
{
    uint64_t at = p->prepare_ms ? p->prepare_ms : UINT64_MAX;

    for (uint32_t i = 0; p->n_held > 0 && i < p->cfg.nproc; i++) {
        const struct pod_held *h = &p->held[i];
        uint64_t next = h->killed ? stuck_ms(h) : h->kill_ms;

        if (!h->held)
            continue;
        if (h->clean)
            next = h->allowed ? h->start_ms : UINT64_MAX;
        else if (!h->sweeping && h->poll_ms < next)
            next = h->poll_ms;
        if (next < at)
            at = next;
    }
    return at;
}
