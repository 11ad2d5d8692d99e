/* pod_link: a pod and pod 0: connecting, what is told, what is heard. */
#include "agent/pod.h"

#include "agent/pod_parts.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>

void pod_tell(struct pod *p, uint64_t now_ms, const struct wire_msg *m)
{
    if (p->bar) {
        barrier_message(p->bar, now_ms, BARRIER_LOCAL, m);
    } else if (p->link == LINK_ADMITTED || m->kind == WIRE_HELLO) {
        p->out.link_send(p->out.ctx, m);
        p->ping_ms = now_ms + POD_PING_MS;
    }
}

void pod_say_hello(struct pod *p, uint64_t now_ms)
{
    struct wire_msg m;

    wire_begin(&m, WIRE_HELLO, p->round);
    m.incarnation = p->cfg.incarnation;
    m.node_rank = p->cfg.node_rank;
    m.any_rank = p->cfg.any_rank;
    m.nnodes = p->cfg.nnodes;
    m.nproc = p->cfg.nproc;
    m.running = p->runs ? p->round : WIRE_NO_ROUND;
    m.command_hash = p->cfg.command_hash;
    m.last_zero = p->zero_incarnation;
    m.last_end = p->older_silent ? WIRE_END_SILENT : p->zero_end;
    pod_past_tell(p, now_ms, &m);
    (void)text_copy(m.job_id, sizeof m.job_id, p->cfg.job_id);
    (void)text_copy(m.host, sizeof m.host, p->cfg.host);
    pod_auth_begin(p, &m);
    pod_tell(p, now_ms, &m);
}

void pod_start(struct pod *p, uint64_t now_ms)
{
    if (p->cfg.has_stage) {
        pod_move(p, POD_STAGING);
        p->out.stage(p->out.ctx);
    } else {
        p->staged = true;
        pod_get_ready(p, now_ms);
    }
    if (p->bar) {
        p->link = LINK_UP;
        pod_say_hello(p, now_ms);
    } else {
        p->link = LINK_CONNECTING;
        p->out.connect(p->out.ctx);
    }
    pod_take_queue(p, now_ms);
}

/* Until pod 0 has said that it knows (STOP, END), and not before it is clear
 * which failure came first. */
static void report_failure(struct pod *p, uint64_t now_ms)
{
    struct wire_msg m;

    if (p->failure.kind == FAILURE_NONE || p->settle_ms || p->stop_signo ||
        p->ended)
        return;
    wire_begin(&m, WIRE_FAILED, p->failure.round);
    m.failure = p->failure;
    m.failure.node_rank = p->cfg.node_rank; /* It may be known since. */
    pod_tell(p, now_ms, &m);
}

void pod_report(struct pod *p, uint64_t now_ms)
{
    struct wire_msg m;

    if (p->link != LINK_ADMITTED)
        return;
    wire_begin(&m, WIRE_DONE, p->round);
    if (p->stop_signo && !p->ended) {
        m.kind = WIRE_FAILED;
        m.failure = p->cause;
        pod_tell(p, now_ms, &m);
        return;
    }
    switch (p->state) {
    case POD_STAGING:
        m.kind = WIRE_PROGRESS;
        m.percent = p->percent;
        break;
    case POD_PREPARING:
        report_failure(p, now_ms);
        m.kind = WIRE_PROGRESS;
        m.percent = WIRE_PREPARING;
        pod_tell(p, now_ms, &m);
        pod_ask_again(p, now_ms);
        return;
    case POD_WAITING:
        report_failure(p, now_ms);
        m.kind = WIRE_ARRIVED;
        memcpy(m.digest, p->digest, sizeof m.digest);
        if (!pod_mesh_open(p, now_ms, &m))
            return;
        break;
    case POD_FINISHED:
        m.kind = WIRE_DONE;
        break;
    case POD_STOPPING:
    case POD_FAILING:
        report_failure(p, now_ms);
        return;
    case POD_RUNNING:
        pod_ask_again(p, now_ms);
        return;
    case POD_LEAVING:
    case POD_GONE:
        return;
    }
    pod_tell(p, now_ms, &m);
}

void pod_link_up(struct pod *p, uint64_t now_ms)
{
    p->link = LINK_UP;
    p->up_ms = now_ms;
    pod_say_hello(p, now_ms);
}

/* Whether the pod 0 that this pod knows may be alive: a next one must know.
 * It closes by itself what it takes for lost, which it says, and what has not
 * said HELLO in time. */
static void note_end(struct pod *p, uint64_t now_ms)
{
    uint64_t since = p->link == LINK_UP ? p->up_ms : p->heard_ms;
    bool silent = now_ms - since >= BARRIER_SILENCE_MS ||
                  p->zero_dropped || p->stale_ms;

    if (!p->was_admitted || p->zero_end == WIRE_END_SILENT)
        return;
    if (p->link == LINK_ADMITTED)
        p->zero_end = silent ? WIRE_END_SILENT : WIRE_END_CLOSED;
    else if (p->link == LINK_UP && now_ms - since >= BARRIER_HELLO_MS / 2)
        p->zero_end = WIRE_END_SILENT;
}

void pod_link_down(struct pod *p, uint64_t now_ms, const char *why)
{
    if (p->state == POD_LEAVING)
        pod_gone(p);
    if (p->state == POD_GONE || p->link == LINK_DOWN)
        return;
    note_end(p, now_ms);
    p->stale_ms = 0;
    if (p->link == LINK_ADMITTED) {
        p->retry_step_ms = POD_RETRY_MIN_MS;
        p->lost_ms = now_ms;
    }
    p->link = LINK_DOWN;
    if (strcmp(why, p->link_error) != 0) {
        (void)text_copy(p->link_error, sizeof p->link_error, why);
        pod_say(p, LOG_INFO, "node rank 0 at %s: %s, retrying", p->cfg.zero,
                why);
    }
    p->retry_ms = now_ms + p->retry_step_ms;
    p->retry_step_ms *= 2;
    if (p->retry_step_ms > POD_RETRY_MAX_MS)
        p->retry_step_ms = POD_RETRY_MAX_MS;
}

static void on_welcome(struct pod *p, uint64_t now_ms,
                       const struct wire_msg *m)
{
    pod_past_welcome(p, m);
    if (p->was_admitted && p->zero_incarnation != m->incarnation)
        pod_say(p, LOG_WARNING, "node rank 0 is a new agent now");
    if (p->zero_incarnation != m->incarnation) {
        p->zero_stop.kind = FAILURE_NONE;
        if (p->zero_end == WIRE_END_SILENT)
            p->older_silent = true;
    }
    if (p->cfg.node_rank != m->node_rank)
        pod_say(p, LOG_INFO, "this pod is node rank %u", m->node_rank);
    p->cfg.node_rank = m->node_rank;
    p->cfg.max_restarts = m->max_restarts; /* Of the job, not of this pod. */
    p->cfg.restart_period_ms = m->restart_period_ms;
    p->zero_incarnation = m->incarnation;
    p->zero_end = WIRE_END_NONE;
    p->zero_dropped = false;
    p->link = LINK_ADMITTED;
    p->was_admitted = true;
    p->link_error[0] = '\0';
    p->ping_ms = now_ms + POD_PING_MS;
    if (!p->runs && m->round > p->round)
        p->round = m->round; /* Never back: that round is over here. */
    pod_report(p, now_ms);
}

/* What is said besides the end of a round: that this pod was taken for lost,
 * or that pod 0 leaves. */
static void note_news(struct pod *p, const struct failure *f, bool of_round)
{
    char buf[WIRE_TEXT_MAX];
    struct text t;

    if (f->kind == FAILURE_LOST && f->node_rank == p->cfg.node_rank)
        p->zero_dropped = true;
    if (f->kind != FAILURE_STOPPED || f->node_rank != 0 || p->bar)
        return;
    p->zero_stop = *f;
    if (of_round || p->ended || p->stop_signo)
        return;
    text_init(&t, buf, sizeof buf);
    verdict_cause_line(&t, f);
    pod_say(p, LOG_WARNING, "%s", buf);
}

void pod_say_hint(const struct pod *p, const struct failure *f)
{
    bool is_of_process = f->kind == FAILURE_WORKER ||
                         f->kind == FAILURE_PREPARE;

    if (is_of_process && f->text[0])
        pod_say(p, LOG_INFO, "hint: %s", f->text);
}

static void say_stop(const struct pod *p, const struct wire_msg *m)
{
    bool failed = m->failure.kind != FAILURE_NONE; /* Else its text says all. */
    bool stops = failed && (p->world_size != 1 || p->cfg.n_servers > 0);
    char buf[2 * WIRE_TEXT_MAX];
    struct text t;

    text_init(&t, buf, sizeof buf);
    if (failed)
        verdict_cause_line(&t, &m->failure);
    else
        text_add(&t, "%s", m->failure.text);
    if (stops)
        text_add(&t, "; stopping all workers");
    if (m->delay_ms > 0) {
        text_add(&t, "%s next round in ", stops ? "," : ";");
        text_add_duration(&t, m->delay_ms);
    }
    if (m->text[0])
        text_add(&t, " (%s)", m->text);
    pod_say(p, failed ? LOG_WARNING : LOG_INFO, "%s", buf);
    pod_say_hint(p, &m->failure);
}

static void on_stop(struct pod *p, uint64_t now_ms, const struct wire_msg *m)
{
    /* Of the round that runs, or that just ended here by its own failure. */
    bool of_round = p->n_rounds > 0 && m->round == p->at.round;

    note_news(p, &m->failure, of_round);
    pod_past_take(p, now_ms, m);
    if (of_round)
        p->past.round_open = false;
    if (!of_round || p->ended || p->stop_signo)
        return;
    say_stop(p, m);
    p->cause = m->failure;
    if (p->failure.kind == FAILURE_WORKER)
        p->failure.kind = FAILURE_NONE; /* Heard: need not be told again. */
    if (p->runs)
        pod_stop_workers(p, now_ms);
    else
        pod_report(p, now_ms); /* It was told when it did not matter yet. */
}

static void on_refuse(struct pod *p, uint64_t now_ms,
                      const struct wire_msg *m)
{
    struct failure f = {.kind = FAILURE_AGENT, .code = m->code};

    f.node_rank = p->cfg.node_rank;
    f.round = p->round;
    (void)text_copy(f.host, sizeof f.host, p->cfg.host);
    (void)snprintf(f.text, sizeof f.text, "node rank 0 at %s refuses this pod: "
                   "%.400s", p->cfg.zero, m->text);
    pod_end(p, now_ms, m->code, &f);
}

/* Nothing was heard for so long that pod 0 may have taken this pod for lost:
 * what comes now, of a network or machine that stood still, may be old. An end
 * counts, but no start; and then the pod connects anew. */
static void note_stale(struct pod *p, uint64_t now_ms)
{
    if (!p->bar && p->link == LINK_ADMITTED && !p->stale_ms &&
        now_ms - p->heard_ms >= BARRIER_SILENCE_MS)
        p->stale_ms = now_ms + POD_STALE_MS;
}

static void on_waiting(struct pod *p, const struct wire_msg *m)
{
    static const char *const options[] = {
        [WIRE_BARRIER_TIMEOUT] = "--barrier-timeout",
        [WIRE_REJOIN_TIMEOUT] = "--rejoin-timeout"};
    char buf[2 * WIRE_TEXT_MAX];
    struct text t;

    (void)text_copy(p->waiting, sizeof p->waiting, m->text);
    if (p->state == POD_RUNNING)
        return;
    text_init(&t, buf, sizeof buf);
    text_add(&t, "waiting: %s", m->text);
    if (m->bound != WIRE_NO_BOUND && m->bound <= WIRE_REJOIN_TIMEOUT)
        pod_add_left(&t, m->delay_ms, options[m->bound]);
    pod_say(p, LOG_INFO, "%s", buf);
}

void pod_link_message(struct pod *p, uint64_t now_ms, const struct wire_msg *m)
{
    static const struct wire_msg pong = {.kind = WIRE_PING};

    if (!pod_auth_trusts(p, now_ms, m))
        return;
    note_stale(p, now_ms);
    p->heard_ms = now_ms;
    switch (m->kind) {
    case WIRE_WELCOME:
        on_welcome(p, now_ms, m);
        break;
    case WIRE_REFUSE:
        on_refuse(p, now_ms, m);
        break;
    case WIRE_WAITING:
        on_waiting(p, m);
        break;
    case WIRE_START:
        if (p->state == POD_WAITING && !p->stale_ms)
            pod_begin_round(p, now_ms, m);
        break;
    case WIRE_MESH:
        if (p->state == POD_WAITING && p->cfg.mesh)
            p->out.mesh_test(p->out.ctx, m);
        break;
    case WIRE_STOP:
        on_stop(p, now_ms, m);
        break;
    case WIRE_AGAIN:
        pod_on_again(p, now_ms, m);
        break;
    case WIRE_END:
        p->past.round_open = false;
        p->n_restarts = m->n_restarts;
        if (m->world_size)
            p->world_size = m->world_size;
        if (!p->ended)
            (void)text_copy(p->why, sizeof p->why, m->text);
        pod_end(p, now_ms, m->code, &m->failure);
        break;
    case WIRE_PING:
        pod_tell(p, now_ms, &pong);
        break;
    case WIRE_HELLO:
    case WIRE_PROGRESS:
    case WIRE_ARRIVED:
    case WIRE_FAILED:
    case WIRE_DONE:
    case WIRE_BYE:
    case WIRE_CHALLENGE:
    case WIRE_PROOF:
    case WIRE_MESHED:
        break;
    }
    if (!p->bar)
        pod_take_queue(p, now_ms);
}
