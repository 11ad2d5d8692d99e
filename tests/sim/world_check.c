/* world_check: what must hold, whatever happens. */
#include "world.h"

#include <stdio.h>

/* A new pod 0 that hears of no older one takes the job for a new one. It
 * starts without those that it could have heard it from, where less than all
 * pods will do or all the others are new, too: behind a partition their lease
 * may not be over yet. */
static bool is_anew(const struct world *w)
{
    return (world_is_elastic(w) || w->has_new_zero) &&
           w->history.heard_life != w->pods[w->zero].life;
}

static bool is_unheard(const struct world *w, uint32_t place)
{
    return is_anew(w) &&
           w->pods[place].pod.zero_incarnation != w->pods[w->zero].life;
}

/* Nothing can be done about a process in the kernel whose agent has given up,
 * or which pod 0 can hear no more of. */
static bool is_excused(const struct world *w, const struct sim_pod *p,
                       const struct sim_worker *k)
{
    /* Its machine was suspended: its agent stops it when it goes on. */
    if (k->start_ms < p->thaw_ms && w->now <= p->thaw_ms + w->grace_ms + 2000)
        return true;
    return k->outlives_kill && k->killed &&
           (p->over || !p->link || p->pod.link != LINK_ADMITTED ||
            p->pod.stop_signo || p->pod.ended || p->out_until ||
            w->now + p->ahead_ms - p->pod.heard_ms >= BARRIER_SILENCE_MS);
}

/* The failures of rounds in a row, as pod 0 told them: a job that goes on must
 * not have had too many that are the same. */
static void check_causes(struct world *w, uint32_t place)
{
    const struct failure *f = &world_zero(w)->pod.cause;
    bool early = f->kind == FAILURE_WORKER && f->ran_ms < BARRIER_SAME_MS;

    if (w->kind != JOB_QUIET || place != w->zero || w->scope_worker)
        return;
    if (!early)
        w->causes.n = 0;
    else if (w->causes.n > 0 && w->causes.code == f->code &&
             w->cause_rank == f->rank)
        w->causes.n++;
    else
        w->causes = (struct sim_streak){f->code, 1};
    w->cause_rank = f->rank;
    if (w->same_limit && w->causes.n >= w->same_limit)
        world_fail(w, "a round starts after %u same failures", w->causes.n);
}

/* Whether the job ended early since one failure came again and again. */
static bool is_same_again(struct world *w)
{
    const struct failure *f = &world_barrier(w)->end.failure;
    uint32_t i = f->kind == FAILURE_PREPARE ? WORLD_PRE : f->local_rank;

    /* A round that ends for a pod that joins is none in the row. */
    if (w->same_limit && world_is_elastic(w))
        return true;
    for (uint32_t k = 0; w->same_limit && k < w->n_places; k++) {
        const struct sim_streak *x = &w->pods[k].streaks[i];

        if (world_rank(&w->pods[k]) != f->node_rank || x->n < w->same_limit ||
            x->code != f->code)
            continue;
        w->history.n[FAULT_SAME]++;
        return true;
    }
    return false;
}

/* At a spawn no worker of another round lives anywhere, and no worker of this
 * rank. */
void world_check_spawn(struct world *w, uint32_t place,
                       const struct pod_round *r)
{
    const struct sim_pod *p = &w->pods[place];
    uint32_t round = r->round;

    for (uint32_t i = 0; i < w->n_places; i++)
        for (uint32_t k = 0; k < w->pods[i].n_workers; k++) {
            const struct sim_worker *x = &w->pods[i].workers[k];

            if (!x->alive || is_excused(w, &w->pods[i], x) || is_unheard(w, i))
                continue;
            /* Of a pod 0 that is cut off, and cannot know of the other. */
            if (w->has_new_zero && x->zero_life != p->pod.zero_incarnation &&
                p->pod.zero_incarnation != w->pods[w->zero].life)
                continue;
            if (x->node_rank == world_rank(&w->pods[place]))
                world_fail(w, "two processes for rank %u of pod %u", k, place);
            else if (x->round != round ||
                     x->zero_life != w->pods[place].pod.zero_incarnation)
                world_fail(w, "pod %u starts round %u while a worker of round "
                           "%u lives on pod %u", place, round, x->round, i);
        }
    if (w->kind == JOB_QUIET && w->mesh_reach && w->n_ranks > 1 &&
        !world_is_elastic(w) &&
        (w->pods[place].n_mesh != 1 || world_mesh_refuses(w)))
        world_fail(w, "pod %u starts, with %u mesh tests", place,
                   w->pods[place].n_mesh);
    check_causes(w, place);
    if (w->has_pre && !w->pods[place].prepared)
        world_fail(w, "pod %u starts round %u without --pre-start", place,
                   round);
    w->pods[place].prepared = false;
    for (uint32_t i = 0; w->kind == JOB_QUIET && !w->has_claims &&
                         !world_is_elastic(w) && i < w->n_places; i++)
        if (w->pods[i].workers[WORLD_PRE].alive &&
            w->pods[i].workers[WORLD_PRE].round <= round)
            world_fail(w, "pod %u starts while --pre-start runs on pod %u",
                       place, i);
    if (p->has_rank && round <= p->last_round)
        world_fail(w, "pod %u starts round %u after round %u itself", place,
                   round, p->last_round);
    if (round < w->history.least_round && !is_anew(w))
        world_fail(w, "pod %u starts round %u after round %u", place, round,
                   w->history.least_round);
    w->history.least_round = round;
    if (round + 1 > w->history.n_rounds)
        w->history.n_rounds = round + 1;
}

void world_check_again(struct world *w, uint32_t place, uint32_t worker,
                       uint32_t attempt)
{
    struct sim_pod *p = &w->pods[place];

    world_count(w, FAULT_AGAIN);
    if (!w->scope_worker)
        world_fail(w, "pod %u starts one worker again", place);
    for (uint32_t i = 0; i < w->n_places; i++)
        if (world_rank(&w->pods[i]) == world_rank(p) &&
            w->pods[i].workers[worker].alive &&
            !is_excused(w, &w->pods[i], &w->pods[i].workers[worker]))
            world_fail(w, "two processes for worker %u of rank %u", worker,
                       world_rank(p));
    if (p->pod.stop_signo || p->pod.ended || p->pod.state != POD_RUNNING)
        world_fail(w, "pod %u starts a worker while it stops", place);
    if (attempt <= p->attempts[worker])
        world_fail(w, "pod %u: attempt %u after %u", place, attempt,
                   p->attempts[worker]);
    p->attempts[worker] = attempt;
    if (w->kind == JOB_QUIET && w->same_limit && !world_is_elastic(w) &&
        p->streaks[worker].n >= w->same_limit)
        world_fail(w, "pod %u: worker %u starts again after %u same failures",
                   place, worker, p->streaks[worker].n);
}

void world_check_prepare(struct world *w, uint32_t place)
{
    const struct sim_pod *p = &w->pods[place];

    for (uint32_t k = 0; k <= WORLD_PRE; k++)
        if (p->workers[k].alive && !is_excused(w, p, &p->workers[k]))
            world_fail(w, "pod %u: --pre-start while worker %u lives", place,
                       k);
    if (w->kind == JOB_QUIET && w->same_limit &&
        p->streaks[WORLD_PRE].n >= w->same_limit)
        world_fail(w, "pod %u: --pre-start again after %u same failures",
                   place, p->streaks[WORLD_PRE].n);
}

/* With --restart-scope worker nobody is stopped before the end. */
void world_check_kill(struct world *w, uint32_t place)
{
    const struct pod *p = &w->pods[place].pod;

    if (w->kind == JOB_QUIET && w->scope_worker && !p->ended &&
        !world_is_elastic(w))
        world_fail(w, "pod %u stops workers, and only one of them failed",
                   place);
}

void world_note_end(struct world *w, uint32_t place, uint32_t worker, int code)
{
    struct sim_pod *p = &w->pods[place];
    const struct sim_worker *k = &p->workers[worker];
    struct sim_streak *s = &p->streaks[worker];

    if (worker == WORLD_PRE) {
        p->prepared = code == 0 && !k->stopped;
        if (code != 0 && !k->stopped)
            world_count(w, FAULT_PRE_FAILED);
    }
    if (code == 0 || code == 128 + 15 || k->killed ||
        w->now - k->start_ms >= BARRIER_SAME_MS)
        s->n = 0;
    else if (s->n > 0 && s->code == code)
        s->n++;
    else
        *s = (struct sim_streak){code, 1};
}

void world_check_memory(struct world *w)
{
    uint32_t known = 0;

    for (uint32_t i = 0; i < w->n_places; i++)
        /* Who was cut off and replaced tells nobody what it knows. */
        if (w->pods[i].exists && !w->pods[i].replaced &&
            w->pods[i].pod.round > known)
            known = w->pods[i].pod.round;
    if (known < w->history.least_round)
        w->history.least_round = known;
}

void world_check_exit(struct world *w, uint32_t place)
{
    const struct sim_pod *p = &w->pods[place];

    for (uint32_t k = 0; k <= WORLD_PRE; k++)
        if (p->workers[k].alive &&
            !(p->workers[k].outlives_kill && p->workers[k].killed))
            world_fail(w, "pod %u exits, worker %u lives", place, k);
}

static bool has_succeeded(const struct world *w, uint32_t rank)
{
    for (uint32_t i = 0; i < w->n_places; i++) {
        const struct sim_pod *p = &w->pods[i];
        bool ok = p->life > 0;

        for (uint32_t k = 0; ok && k < p->n_workers; k++)
            ok = p->workers[k].life && p->workers[k].ok &&
                 p->workers[k].node_rank == rank &&
                 p->workers[k].round == world_barrier(w)->round;
        if (ok)
            return true;
    }
    return false;
}

static bool hears_zero(const struct world *w, const struct sim_pod *p)
{
    return p->exists && p->pod.link == LINK_ADMITTED &&
           (p->rank == 0 || (p->link && w->links[p->link].zero == w->zero));
}

/* Pods were waited for in vain: for as long as was asked for, and there were
 * not enough without them. */
static void check_not_too_early(struct world *w, const struct barrier *b)
{
    uint64_t since = world_clock(w, w->zero) - b->gather_ms;

    if (since < w->rejoin_timeout_ms)
        world_fail(w, "201 after %llu ms", (unsigned long long)since);
    if (w->history.enough_ms)
        world_fail(w, "201 with enough pods");
}

/* Pod 0 has just decided how the job ends. */
static void check_decision(struct world *w)
{
    const struct barrier *b = world_barrier(w);
    struct history *h = &w->history;
    int code = b->end.code;

    h->end_life = world_zero(w)->life;
    h->ended_with[code] = true;
    for (uint32_t i = 0; i < w->n_places; i++)
        w->pods[i].missed = !hears_zero(w, &w->pods[i]);
    if (code == ERR_PEER && !world_ends_by_zero(w) && h->phase == BAR_GATHER)
        check_not_too_early(w, b);
    for (uint32_t i = 0; code == 0 && i < w->n_ranks; i++)
        if (b->peers[i].member && !has_succeeded(w, i))
            world_fail(w, "success, but not all workers of rank %u succeeded",
                       i);
    /* Whom the end does not reach in time fails by himself. */
    if (w->kind == JOB_GENTLE && w->now < h->last_fault_ms + 60000 &&
        h->last_fault_ms > 0 && code == 0)
        w->kind = JOB_WILD;
}

/* A pod 0 that is cut off may yet be heard by the pods that it had. */
static void note_old_end(struct world *w)
{
    for (uint32_t i = 0; w->has_new_zero && i < w->n_places; i++) {
        const struct sim_pod *p = &w->pods[i];
        const struct barrier *b = &w->zeros[p->zero].barrier;

        if (p->replaced && p->exists && b->phase >= BAR_ENDING)
            w->history.ended_with[b->end.code] = true;
    }
}

void world_check_step(struct world *w)
{
    const struct sim_pod *zero = world_zero(w);
    const struct barrier *b = world_barrier(w);

    if (zero->exists && b->n_restarts > w->max_restarts &&
        w->restart_period_ms == 0)
        world_fail(w, "%u restarts, %u allowed", b->n_restarts,
                   w->max_restarts);
    if (zero->exists && b->phase >= BAR_ENDING &&
        w->history.end_life != zero->life)
        check_decision(w);
    world_check_gathering(w);
    world_check_budget(w);
    note_old_end(w);
    for (uint32_t i = 0; i < w->n_places; i++)
        if (w->pods[i].exists &&
            w->pods[i].pod.n_queue == POD_QUEUE_MAX)
            world_fail(w, "the queue of pod %u is full", i);
}

uint64_t world_patience(const struct world *w)
{
    uint64_t round = 60000 + 30000 + 40000 + 2 * w->grace_ms + 45000;
    /* Each pod that comes late may begin another round. */
    uint64_t n = w->max_restarts + 2 +
                 (world_is_elastic(w) ? w->n_places : 0);

    return 20000 + w->barrier_timeout_ms + w->rejoin_timeout_ms +
           n * (round + w->last_call_ms);
}

/* The pod that a rank was first given to and the one that claimed it too. */
static bool is_claimed(const struct world *w, uint32_t rank)
{
    if (w->is_auto)
        return w->has_claims && rank != 0;
    if (rank == 0)
        return false;
    for (uint32_t i = w->n_ranks; i < w->n_places; i++)
        if (w->pods[i].rank == rank)
            return true;
    return false;
}

/* It came when the job was over without it. */
static bool came_late(const struct world *w, const struct sim_pod *p)
{
    return world_is_elastic(w) && p->missed &&
           (p->exit_code == ERR_BARRIER || p->exit_code == ERR_PEER);
}

/* Of two with one rank one is refused, alone; of one too many, too. */
static void check_claims(struct world *w, int code)
{
    bool strict = !w->is_auto && !world_is_elastic(w);
    uint32_t n = 0;

    for (uint32_t i = 0; i < w->n_places; i++)
        n += w->pods[i].exit_code != code && !came_late(w, &w->pods[i]);
    if (n > w->n_places - w->n_ranks)
        world_fail(w, "%u of %u pods do not exit with %d", n, w->n_places,
                   code);
    for (uint32_t i = w->n_ranks; i < w->n_places; i++) {
        int a = w->pods[strict ? w->pods[i].rank : 0].exit_code;
        int b = w->pods[i].exit_code;
        int other = a == code ? b : a;

        /* 200: it came when the job was over. */
        if ((a != code && b != code) ||
            (other != code && other != ERR_MISMATCH && other != ERR_BARRIER))
            world_fail(w, "pod 0 exits with %d, two of one rank with %d and "
                       "%d", code, a, b);
    }
}

static void check_restarts(struct world *w, int code)
{
    uint32_t n = world_barrier(w)->n_restarts, n_rounds = w->history.n_rounds;

    if (code != 0 && code != ERR_NOTFOUND && !w->never &&
        n != w->max_restarts && !is_same_again(w))
        world_fail(w, "failed with %d after %u of %u restarts", code, n,
                   w->max_restarts);
    if (w->fail_percent == 0 && n > 0 && !w->always && !w->buggy &&
        !w->history.n[FAULT_HANG])
        world_fail(w, "%u restarts, and no worker failed", n);
    if (w->scope_worker ? n_rounds > 1 && !world_is_elastic(w)
                        : (n_rounds < n + 1 && !w->has_pre) ||
                              (n_rounds > n + 1 && !world_is_elastic(w)))
        world_fail(w, "%u rounds with %u restarts", n_rounds, n);
}

/* Only workers failed: all pods end alike. */
static void check_quiet(struct world *w)
{
    int code = world_zero(w)->exit_code;
    const struct history *h = &w->history;

    if (h->n[FAULT_WRONG] &&
        world_barrier(w)->end.failure.kind == FAILURE_PREPARE)
        return; /* That came first. */
    if (h->n[FAULT_WRONG])
        for (uint32_t i = 0; i < w->n_ranks; i++)
            if (w->pods[i].exit_code != ERR_MISMATCH)
                world_fail(w, "wrong nnodes, and pod %u exits with %d", i,
                           w->pods[i].exit_code);
    for (uint32_t i = 1; i < w->n_ranks; i++)
        if (w->pods[i].exit_code != code && !came_late(w, &w->pods[i]) &&
            !is_claimed(w, w->pods[i].rank))
            world_fail(w, "pod 0 exits with %d, pod %u with %d", code, i,
                       w->pods[i].exit_code);
    check_claims(w, code);
    if (h->n[FAULT_WRONG])
        return;
    if (world_mesh_refuses(w) != (code == ERR_BARRIER) &&
        world_barrier(w)->end.failure.kind != FAILURE_PREPARE)
        world_fail(w, "exit code %d, %s", code, code == ERR_BARRIER
                                                    ? "all pairs are fine"
                                                    : "with a bad pair");
    if (code == ERR_BARRIER)
        return;
    if (code != 0 && !h->failed_with[code])
        world_fail(w, "exit code %d, but no worker failed with it", code);
    check_restarts(w, code);
}

static const bool explains[FAULTS] = {
#define X(name, words, is) is,
    FAULT_TABLE(X)
#undef X
};

/* What a pod may exit with where pods were killed, cut off and stopped. */
static bool may_exit_with(const struct world *w, uint32_t i, int code)
{
    const struct history *h = &w->history;
    const struct sim_pod *p = &w->pods[i];
    unsigned n = 0;

    if (h->ended_with[code & 255]) /* And that END has a reason: below. */
        return code == 0 || i > 0 || h->failed_with[code & 255] ||
               code == ERR_PEER || code == ERR_BARRIER ||
               (code == ERR_DATA && h->n[FAULT_DATA]) ||
               (code == ERR_RESOURCE && h->n[FAULT_OUTLIVED]) ||
               (code == 128 + 15 && p->was_termed);
    if (code == 128 + 15)
        return p->was_termed;
    if (code == ERR_DATA)
        return p->bad_data;
    if (code == ERR_RESOURCE)
        return p->was_stuck;
    /* By arrival, the rank of a pod that died without a word is held until
     * that is noticed. */
    if (code == ERR_MISMATCH)
        return is_claimed(w, p->rank) ||
               (p->rank == WIRE_ANY_RANK &&
                h->n[FAULT_PART] + h->n[FAULT_ONE_WAY] > 0);
    for (unsigned f = 0; f < FAULTS; f++)
        n += explains[f] ? h->n[f] : 0;
    if (came_late(w, p))
        return true;
    if (code == ERR_BARRIER && world_mesh_refuses(w))
        return true;
    /* A lost pod comes back only while the others still wait for it. */
    return (code == ERR_PEER || code == ERR_BARRIER) && n > 0;
}

void world_check_end(struct world *w)
{
    if (w->fault[0])
        return;
    if (w->kind == JOB_QUIET) {
        check_quiet(w);
        return;
    }
    if (w->kind == JOB_PLANNED) {
        world_check_scenario(w, w->scenario);
        return;
    }
    if (w->kind == JOB_GENTLE && world_barrier(w)->n_restarts > 0)
        world_fail(w, "one fault, and %u restarts",
                   world_barrier(w)->n_restarts);
    for (uint32_t i = 0; i < w->n_places; i++) {
        if (w->pods[i].replaced)
            continue; /* It is alone in its world. */
        if (w->kind == JOB_GENTLE && w->has_new_zero && i >= w->n_ranks &&
            w->history.ended_with[0])
            continue; /* The old pod 0 ended the job before. */
        if (w->kind == JOB_GENTLE && w->pods[i].exit_code != 0 &&
            !came_late(w, &w->pods[i]) && !is_claimed(w, w->pods[i].rank))
            world_fail(w, "one fault that must be survived, and pod %u exits "
                       "with %d", i, w->pods[i].exit_code);
        if (!may_exit_with(w, i, w->pods[i].exit_code))
            world_fail(w, "pod %u exits with %d, and nothing explains it", i,
                       w->pods[i].exit_code);
    }
}
