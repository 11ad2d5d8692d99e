/* barrier_start: whether enough pods are there, and the start of a round. */
#include "rendezvous/barrier_round.h"

void bar_send_start(const struct barrier *b, uint64_t now_ms, uint32_t rank)
{
    struct wire_msg m;

    wire_begin(&m, WIRE_START, b->round);
    for (uint32_t i = 0; i < rank; i++)
        if (b->peers[i].member) {
            m.rank_base += b->peers[i].hello.nproc;
            m.group_rank++;
        }
    m.group_size = b->n_members;
    m.world_size = b->world_size;
    m.master_port = b->cfg.master_port;
    bar_tell_past(b, now_ms, &m);
    (void)bar_list_hosts(b, m.hosts);
    bar_send(b, &b->peers[rank], &m);
}

/* Differing command lines are worth one warning, no more. */
static void warn_commands(const struct barrier *b)
{
    for (uint32_t i = 1; i < b->cfg.nnodes; i++)
        if (b->peers[i].member && b->peers[i].hello.command_hash !=
                                      b->peers[0].hello.command_hash) {
            bar_say(b, LOG_WARNING,
                    "node rank %u runs another command line than node rank 0, "
                    "going on",
                    i);
            return;
        }
}

uint64_t bar_lease_ms(const struct barrier *b)
{
    return BARRIER_SILENCE_MS + b->cfg.grace_ms + BARRIER_LATE_MS;
}

void bar_woken(struct barrier *b, uint64_t now_ms)
{
    uint64_t late;

    if (now_ms < b->wake_ms + BARRIER_STILL_MS || b->phase == BAR_OVER)
        return;
    /* Its machine was suspended, or its clock was set forward. Elsewhere
     * perhaps no time has passed; and what the pods have said meanwhile is
     * still to be read. */
    late = now_ms - b->wake_ms;
    if (b->not_before_ms > b->wake_ms)
        b->not_before_ms += late;
    if (b->fence_ms > b->wake_ms)
        b->fence_ms += late;
    b->begin_ms += late;
    for (uint32_t i = 0; i < b->cfg.nnodes; i++) {
        if (b->peers[i].down_ms)
            b->peers[i].down_ms += late;
        b->peers[i].challenge_ms += late;
    }
    b->wake_ms = now_ms;
}

void bar_fence(struct barrier *b, uint64_t until_ms)
{
    if (until_ms > b->fence_ms)
        b->fence_ms = until_ms;
    if (until_ms > b->not_before_ms)
        b->not_before_ms = until_ms;
}

bool bar_is_elastic(const struct barrier *b)
{
    return b->cfg.min_nodes > 0 && b->cfg.min_nodes < b->cfg.nnodes;
}

/* Its workers may run, and it is not a pod that has arrived. */
static bool may_run(const struct bar_peer *p)
{
    return p->down_ms ||
           (p->state == PEER_LEFT && p->conn != BARRIER_NO_CONN);
}

/* Pod 0 must be one of them, and nobody may still be stopping or be in the
 * time in which it may come back. */
bool bar_has_enough(const struct barrier *b)
{
    if (b->counts[PEER_ARRIVED] == b->cfg.nnodes)
        return true;
    if (!bar_is_elastic(b) || b->counts[PEER_ARRIVED] < b->cfg.min_nodes ||
        b->peers[0].state != PEER_ARRIVED || b->counts[PEER_STOPPING] > 0)
        return false;
    for (uint32_t i = 0; i < b->cfg.nnodes; i++)
        if (may_run(&b->peers[i]))
            return false;
    return true;
}

/* With less than all, the last call must be over. */
static bool is_last_call_over(struct barrier *b, uint64_t now_ms)
{
    if (b->counts[PEER_ARRIVED] == b->cfg.nnodes)
        return true;
    if (b->enough_ms == 0)
        b->enough_ms = now_ms ? now_ms : 1;
    if (now_ms - b->enough_ms >= b->cfg.last_call_ms)
        return true;
    bar_wake(b, b->enough_ms + b->cfg.last_call_ms);
    return false;
}

/* A new pod 0 does not know who had workers under the last one. Who is missing
 * stops them within the lease that it had from that one. */
uint64_t bar_missing_until(const struct barrier *b)
{
    if (b->counts[PEER_ARRIVED] == b->cfg.nnodes || b->last_zero == 0)
        return 0;
    return b->begin_ms + bar_lease_ms(b);
}

static bool are_missing_over(struct barrier *b, uint64_t now_ms)
{
    uint64_t until = bar_missing_until(b);

    if (now_ms >= until)
        return true;
    bar_wake_often(b, now_ms, until);
    return false;
}

/* Those that have arrived are the members. */
static void form_group(struct barrier *b)
{
    b->world_size = 0;
    b->n_members = 0;
    for (uint32_t i = 0; i < b->cfg.nnodes; i++) {
        struct bar_peer *p = &b->peers[i];

        p->member = p->state == PEER_ARRIVED;
        if (!p->member)
            continue;
        b->world_size += p->hello.nproc;
        b->n_members++;
    }
}

void bar_try_start(struct barrier *b, uint64_t now_ms)
{
    struct wire_msg m;
    bool first = !b->started;

    if (b->phase != BAR_GATHER)
        return;
    if (!bar_has_enough(b)) {
        b->enough_ms = 0;
        return;
    }
    if (!is_last_call_over(b, now_ms) || !are_missing_over(b, now_ms) ||
        !mesh_is_over(b, now_ms))
        return;
    if (now_ms < b->not_before_ms) {
        bar_wake_often(b, now_ms, b->not_before_ms);
        return;
    }
    form_group(b);
    bar_forget_news(b);
    if (first)
        warn_commands(b);
    bar_phase(b, BAR_RUN);
    b->started = true;
    b->round_ms = now_ms;
    b->enough_ms = 0;
    if (b->n_members < b->cfg.nnodes)
        bar_say(b, LOG_INFO, "starting with %u of %u pods", b->n_members,
                b->cfg.nnodes);
    wire_begin(&m, WIRE_START, b->round);
    m.world_size = b->world_size;
    m.master_port = b->cfg.master_port;
    bar_tell_past(b, now_ms, &m);
    if (!bar_list_hosts(b, m.hosts) && first && b->cfg.tell_hosts)
        bar_say(b, LOG_WARNING, "--offline: the names of %u pods do not fit "
                "in %d bytes, so workers reach other pods by HTTP under names "
                "in .svc, .cluster.local or --offline-allow only; going on",
                b->n_members, WIRE_HOSTS_MAX);
    /* Pod 0's own side last: it forks at once, and the others should not
     * wait for that. */
    m.rank_base = b->world_size;
    m.group_rank = m.group_size = b->n_members;
    for (uint32_t i = b->cfg.nnodes; i-- > 0;) {
        if (!b->peers[i].member)
            continue;
        m.group_rank--;
        m.rank_base -= b->peers[i].hello.nproc;
        b->peers[i].next_round = b->round + 1;
        bar_move(b, &b->peers[i], PEER_RUNNING);
        bar_send(b, &b->peers[i], &m);
    }
}
