/* status_pod: what the pure parts know, as a snapshot of status.h. */
#include "agent/status.h"

#include "supervise/verdict.h"

#include <string.h>

static const char *phase_word(enum pod_state state)
{
    switch (state) {
    case POD_STAGING:
        return "staging";
    case POD_WAITING:
        return "waiting";
    case POD_PREPARING:
        return "preparing";
    case POD_RUNNING:
        return "running";
    case POD_FINISHED:
        return "finished";
    case POD_STOPPING:
        return "stopping";
    case POD_FAILING:
        return "failing";
    case POD_LEAVING:
    case POD_GONE:
        break;
    }
    return "leaving";
}

static const char *barrier_word(enum barrier_phase phase)
{
    switch (phase) {
    case BAR_GATHER:
        return "gathering";
    case BAR_RUN:
        return "running";
    case BAR_ENDING:
    case BAR_OVER:
        break;
    }
    return "ending";
}

static const char *link_word(enum pod_link link)
{
    switch (link) {
    case LINK_DOWN:
        return "down";
    case LINK_CONNECTING:
        return "connecting";
    case LINK_UP:
        return "connected";
    case LINK_ADMITTED:
        break;
    }
    return "admitted";
}

/* NULL: it is where it should be. */
static const char *missing_word(enum bar_state state)
{
    switch (state) {
    case PEER_UNSEEN:
        return "unseen";
    case PEER_STAGING:
        return "staging";
    case PEER_STOPPING:
        return "stopping";
    case PEER_LOST:
        return "lost";
    case PEER_LEFT:
        return "left";
    case PEER_ARRIVED:
    case PEER_RUNNING:
    case PEER_DONE:
    case PEER_BYE:
    case PEER_STATES:
        break;
    }
    return NULL;
}

static void take_barrier(struct status *s, const struct barrier *b)
{
    s->has_barrier = true;
    s->barrier_phase = barrier_word(b->phase);
    s->n_arrived = b->counts[PEER_ARRIVED] + b->counts[PEER_RUNNING] +
                   b->counts[PEER_DONE];
    for (uint32_t i = 0; b->phase == BAR_GATHER && i < b->cfg.nnodes; i++) {
        const struct bar_peer *p = &b->peers[i];
        const char *word = missing_word(p->state);
        uint32_t at = s->n_missing;

        if (!word)
            continue;
        s->n_missing++;
        if (at < STATUS_PODS_MAX)
            s->missing[at] = (struct status_pod){
                .node_rank = i,
                .state = word,
                .host = p->state == PEER_UNSEEN ? "" : p->hello.host,
                .percent = p->percent};
    }
}

static void take_link(struct status *s, const struct pod *p, uint64_t now_ms)
{
    s->has_link = true;
    s->link = link_word(p->link);
    s->zero = p->cfg.zero;
    s->link_error = p->link_error;
    s->was_heard = p->was_admitted;
    s->heard_ms = now_ms > p->heard_ms ? now_ms - p->heard_ms : 0;
}

/* Who or what this pod waits for. */
static void take_waiting(struct status *s, const struct pod *p,
                         uint64_t now_ms)
{
    const struct barrier *b = p->bar;
    struct text t;

    text_init(&t, s->waiting, sizeof s->waiting);
    if (p->state == POD_FINISHED && p->cfg.nnodes > 1) {
        text_add(&t, "the workers of other pods still run");
        return;
    }
    if (p->state != POD_WAITING && p->state != POD_STAGING)
        return;
    if (!b && p->link != LINK_ADMITTED) {
        text_add(&t, "node rank 0 at %s %s", p->cfg.zero,
                 p->was_admitted ? "seen and lost" : "not reached yet");
    } else if (!b) {
        text_add(&t, "%s", p->waiting[0] ? p->waiting
                                         : "node rank 0 has yet to start");
    } else if (b->phase == BAR_GATHER && s->n_missing > 0 &&
               p->cfg.nnodes > 1) {
        barrier_describe(b, now_ms, s->waiting, sizeof s->waiting);
    } else if (b->phase == BAR_GATHER && b->not_before_ms > now_ms) {
        text_add(&t, "the next round starts in ");
        text_add_duration(&t, b->not_before_ms - now_ms);
    }
}

void status_of_pod(struct status *s, const struct pod *p, uint64_t now_ms)
{
    struct text t;

    memset(s, 0, sizeof *s);
    s->host = p->cfg.host;
    s->job_id = p->cfg.job_id;
    s->up_ms = now_ms - p->start_ms;
    s->node_rank = p->cfg.node_rank == WIRE_ANY_RANK ? STATUS_UNKNOWN
                                                     : p->cfg.node_rank;
    s->nnodes = s->min_nodes = p->cfg.nnodes;
    if (p->bar)
        s->min_nodes = p->bar->cfg.min_nodes;
    s->nproc = p->cfg.nproc;
    s->n_servers = p->cfg.n_servers;
    s->world_size = p->world_size;
    s->phase = phase_word(p->state);
    s->round = p->round;
    s->n_rounds = p->n_rounds;
    s->n_restarts = p->n_restarts;
    s->max_restarts = p->cfg.max_restarts;
    s->restart_period_ms = p->cfg.restart_period_ms;
    s->is_staging = p->state == POD_STAGING;
    s->percent = p->percent;
    s->stop_signo = p->stop_signo;
    s->exit_code = p->ended || p->state == POD_LEAVING ? p->exit_code : -1;
    s->is_ready = p->state == POD_RUNNING && p->sup.n_alive > 0;
    /* Of FAILING, what pod 0 is told; else what it has said. */
    text_init(&t, s->cause, sizeof s->cause);
    if (p->state == POD_FAILING)
        verdict_cause_line(&t, &p->failure);
    else if (p->cause.kind != FAILURE_NONE)
        verdict_cause_line(&t, &p->cause);
    if (p->bar)
        take_barrier(s, p->bar);
    else
        take_link(s, p, now_ms);
    take_waiting(s, p, now_ms);
}
