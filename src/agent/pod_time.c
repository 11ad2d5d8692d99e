/* pod_time: what a pod does because time has passed. */
#include "agent/pod.h"

#include "agent/pod_parts.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>

/* Rounded up: it is told some milliseconds after it was due. */
void pod_add_left(struct text *t, uint64_t ms, const char *option)
{
    text_add(t, "; for at most ");
    text_add_duration(t, (ms + 999) / 1000 * 1000);
    text_add(t, " more");
    if (option)
        text_add(t, " (%s)", option);
}

/* "--rejoin-timeout 10 min": how long pod 0 is waited for. */
static void limit_words(const struct pod *p, char buf[64])
{
    struct text t;

    text_init(&t, buf, 64);
    text_add(&t, "%s ", p->was_admitted ? "--rejoin-timeout"
                                        : "--barrier-timeout");
    text_add_duration(&t, p->was_admitted ? p->cfg.rejoin_timeout_ms
                                          : p->cfg.barrier_timeout_ms);
}

/* Pod 0 was not reached in time, or not heard any more: the job is over here.
 * The code is 200 before this pod was ever admitted, 201 after. */
static void give_up(struct pod *p, uint64_t now_ms)
{
    struct failure f = {.code = ERR_BARRIER, .kind = FAILURE_AGENT};
    const char *why = p->link_error[0] ? p->link_error : "no answer";
    char limit[64];

    limit_words(p, limit);
    f.node_rank = p->cfg.node_rank;
    f.round = p->round;
    if (p->zero_stop.kind == FAILURE_STOPPED) {
        f = p->zero_stop;
        f.code = ERR_PEER;
        (void)snprintf(f.text, sizeof f.text,
                       "did not come back in time (%s)", limit);
    } else if (p->was_admitted) {
        f.kind = FAILURE_LOST;
        f.code = ERR_PEER;
        f.node_rank = 0;
        (void)snprintf(f.text, sizeof f.text,
                       "node rank 0 at %s was lost and did not come back in "
                       "time (%s): %.300s", p->cfg.zero, limit, why);
    } else {
        (void)text_copy(f.host, sizeof f.host, p->cfg.host);
        (void)snprintf(f.text, sizeof f.text,
                       "not all pods arrived in time (%s): node rank 0 at %s "
                       "was not reached: %.300s", limit, p->cfg.zero, why);
    }
    if (p->failure.kind == FAILURE_AGENT)
        f = p->failure; /* Its own fault comes first. */
    pod_end(p, now_ms, f.code, &f);
}

void pod_say_stopping(const struct pod *p)
{
    char buf[96];
    struct text t;

    text_init(&t, buf, sizeof buf);
    text_add(&t, "TERM to %u worker%s and what they left, KILL in ",
             p->sup.n_alive, text_plural(p->sup.n_alive));
    text_add_duration(&t, p->cfg.grace_ms);
    pod_say(p, LOG_DEBUG, "%s", buf);
}

void pod_say_told(const struct pod *p, uint64_t now_ms, const char *signal)
{
    uint64_t left = supervisor_grace_left(&p->sup, now_ms);
    char buf[96];
    struct text t;

    text_init(&t, buf, sizeof buf);
    text_add(&t, "got %s: stopping", signal);
    if (left > 0) {
        text_add(&t, ", within ");
        text_add_duration(&t, left);
        text_add(&t, "; a second signal ends that");
    }
    pod_say(p, LOG_INFO, "%s", buf);
}

bool pod_say_left(const struct pod *p, uint64_t ms, uint32_t n_left,
                  const char *who)
{
    char buf[160];
    struct text t;

    if (n_left == 0 || ms == 0 || ms + POD_LEFT_MS > p->cfg.grace_ms)
        return false;
    text_init(&t, buf, sizeof buf);
    text_add(&t, "%u process%s that %s left behind run%s on", n_left,
             n_left == 1 ? "" : "es", who, n_left == 1 ? "s" : "");
    pod_add_left(&t, ms, "--grace");
    pod_say(p, LOG_INFO, "%s", buf);
    return true;
}

void pod_say_slow_end(struct pod *p)
{
    char buf[2 * WIRE_TEXT_MAX];
    struct text t;

    if (!p->ended || p->end_told || p->exit_code == 0 || p->sup.killed ||
        p->sup.state != SUP_STOPPING || p->sup.n_alive == 0)
        return;
    p->end_told = true;
    text_init(&t, buf, sizeof buf);
    verdict_cause_line(&t, &p->cause);
    text_add(&t, "; this ends the job: stopping all workers, within ");
    text_add_duration(&t, p->cfg.grace_ms);
    pod_say(p, LOG_WARNING, "%s", buf);
}

static bool is_rank_alive(const void *ctx, unsigned rank)
{
    const struct pod *p = ctx;

    return rank >= p->at.rank_base && p->sup.alive[rank - p->at.rank_base];
}

/* A worker that is killed has not saved its state, and cannot say so. */
void pod_say_kill(const struct pod *p)
{
    uint32_t n_ranks = p->sup.n_workers - p->sup.n_servers;
    uint32_t n = p->sup.n_working, n_servers = p->sup.n_alive - n;
    char buf[256];
    struct text t;

    text_init(&t, buf, sizeof buf);
    text_add(&t, "the grace ");
    if (!p->hurried) {
        text_add(&t, "of ");
        text_add_duration(&t, p->cfg.grace_ms);
        text_add(&t, " (--grace) ");
    }
    text_add(&t, "is over: KILL to ");
    if (n > 0 && p->prepares) {
        text_add(&t, "--pre-start");
    } else if (n > 0) {
        text_add(&t, "rank%s ", text_plural(n));
        text_add_ranges(&t, p->at.rank_base + n_ranks, is_rank_alive, p, 80);
    }
    if (n_servers > 0)
        text_add(&t, "%s%u server%s", n > 0 ? ", " : "", n_servers,
                 text_plural(n_servers));
    text_add(&t, "%swhat is left", n + n_servers > 0 ? " and " : "");
    /* --grace 0 asks for it. */
    pod_say(p, n + n_servers > 0 && (p->cfg.grace_ms > 0 || p->hurried)
            ? LOG_WARNING : LOG_DEBUG, "%s", buf);
}

static uint64_t give_up_ms(const struct pod *p)
{
    if (p->was_admitted) /* Not of the time that it took to see the loss. */
        return p->lost_ms + p->cfg.rejoin_timeout_ms;
    return p->start_ms + p->cfg.barrier_timeout_ms;
}

static void say_waiting(struct pod *p, uint64_t now_ms)
{
    uint64_t until = give_up_ms(p);
    const char *option = p->was_admitted ? "--rejoin-timeout"
                                         : "--barrier-timeout";
    char buf[WIRE_TEXT_MAX];
    struct text t;

    /* Its own failure is told for so long only. */
    if (p->state == POD_FAILING && until > p->leave_ms + POD_REPORT_MS) {
        until = p->leave_ms + POD_REPORT_MS;
        option = NULL;
    }
    p->say_ms = now_ms + BARRIER_SUMMARY_MS;
    text_init(&t, buf, sizeof buf);
    text_add(&t, "waiting: node rank 0 at %s %s: %.200s", p->cfg.zero,
             p->zero_stop.kind == FAILURE_STOPPED ? "told to stop from outside"
             : p->was_admitted ? "seen and lost" : "not reached yet",
             p->link_error[0] ? p->link_error : "no answer yet");
    pod_add_left(&t, until > now_ms ? until - now_ms : 0, option);
    pod_say(p, LOG_INFO, "%s", buf);
}

/* The lease: pod 0 may by now have given this pod's ranks away. */
static void lease_is_over(struct pod *p, uint64_t now_ms)
{
    if (p->state != POD_RUNNING && p->state != POD_FINISHED)
        return;
    pod_say(p, LOG_WARNING,
            "node rank 0 was not heard for 15 s; stopping the workers of "
            "round %u", p->round);
    pod_stop_workers(p, now_ms);
}

/* A connection that ends tells pod 0 that nothing runs here any more. So a
 * silent one stays until that is so. */
void pod_drop_silent(struct pod *p, uint64_t now_ms)
{
    uint64_t since = p->link == LINK_UP ? p->up_ms : p->heard_ms;
    bool stale = p->stale_ms && now_ms >= p->stale_ms;

    if (p->bar || p->runs || (p->link != LINK_ADMITTED && p->link != LINK_UP))
        return;
    if (now_ms - since < BARRIER_SILENCE_MS && !stale)
        return;
    p->out.link_close(p->out.ctx, true);
    pod_link_down(p, now_ms, "silent");
}

static void check_link(struct pod *p, uint64_t now_ms)
{
    static const struct wire_msg ping = {.kind = WIRE_PING};

    pod_drop_silent(p, now_ms);
    if (p->link == LINK_ADMITTED && now_ms >= p->ping_ms)
        pod_tell(p, now_ms, &ping);
    if (p->state == POD_GONE || p->state == POD_LEAVING || p->ended)
        return;
    /* Told to stop, too: while its workers stop, pod 0 must see that it
     * lives. */
    if (p->link == LINK_DOWN && now_ms >= p->retry_ms) {
        p->link = LINK_CONNECTING;
        p->out.connect(p->out.ctx);
    }
    if (p->stop_signo)
        return;
    if (now_ms - p->heard_ms >= BARRIER_SILENCE_MS && p->was_admitted)
        lease_is_over(p, now_ms);
    if (p->link == LINK_ADMITTED)
        return;
    if (now_ms >= give_up_ms(p))
        give_up(p, now_ms);
    else if (now_ms >= p->say_ms)
        say_waiting(p, now_ms);
}

void pod_check_time(struct pod *p, uint64_t now_ms)
{
    pod_again_timeout(p, now_ms);
    if (p->state == POD_FAILING && now_ms >= p->leave_ms + POD_REPORT_MS) {
        pod_end(p, now_ms, p->failure.code, &p->failure);
    } else if (p->state == POD_LEAVING && !p->bar &&
               now_ms >= p->leave_ms + POD_FLUSH_MS) {
        pod_gone(p);
    }
    if (!p->bar && p->state != POD_GONE)
        check_link(p, now_ms);
}

static void earliest(uint64_t *at, uint64_t candidate)
{
    if (candidate < *at)
        *at = candidate;
}

/* There is nothing to do about a silent connection yet. */
static bool may_keep_silent(const struct pod *p)
{
    return p->runs && p->state != POD_RUNNING && p->state != POD_FINISHED;
}

uint64_t pod_deadline(const struct pod *p)
{
    uint64_t at = supervisor_deadline(&p->sup);

    if (p->state == POD_GONE)
        return UINT64_MAX;
    if (p->settle_ms)
        earliest(&at, p->settle_ms);
    if (p->hang_ms)
        earliest(&at, p->hang_ms);
    earliest(&at, pod_again_deadline(p));
    if (p->bar) {
        earliest(&at, barrier_deadline(p->bar));
        if (p->state == POD_FAILING)
            earliest(&at, p->leave_ms + POD_REPORT_MS);
        return at;
    }
    if (p->state == POD_FAILING)
        earliest(&at, p->leave_ms + POD_REPORT_MS);
    if (p->state == POD_LEAVING)
        earliest(&at, p->leave_ms + POD_FLUSH_MS);
    if (p->link == LINK_ADMITTED) {
        earliest(&at, p->ping_ms);
        if (p->stale_ms && !p->runs)
            earliest(&at, p->stale_ms);
        if (!may_keep_silent(p))
            earliest(&at, p->heard_ms + BARRIER_SILENCE_MS);
        return at;
    }
    if (p->link == LINK_UP && !may_keep_silent(p))
        earliest(&at, p->up_ms + BARRIER_SILENCE_MS);
    if (p->state == POD_LEAVING || p->ended)
        return at;
    if (p->link == LINK_DOWN)
        earliest(&at, p->retry_ms);
    if (p->stop_signo)
        return at;
    earliest(&at, give_up_ms(p));
    earliest(&at, p->say_ms);
    if (p->was_admitted && (p->state == POD_RUNNING ||
                            p->state == POD_FINISHED))
        earliest(&at, p->heard_ms + BARRIER_SILENCE_MS);
    return at;
}
