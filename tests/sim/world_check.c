/* world_check: what must hold, whatever happens. */
#include "world.h"

#include <stdio.h>

/* Nothing can be done about a process in the kernel whose agent has given up,
 * or which pod 0 can hear no more of. */
static bool is_excused(const struct sim_pod *p, const struct sim_worker *k)
{
    return k->outlives_kill && k->killed &&
           (p->over || !p->link || p->pod.link != LINK_ADMITTED ||
            p->pod.stop_signo || p->pod.ended || p->out_until);
}

/* The failures of rounds in a row, as pod 0 told them: a job that goes on must
 * not have had too many that are the same. */
static void check_causes(struct world *w, uint32_t place)
{
    const struct failure *f = &w->pods[0].pod.cause;
    bool early = f->kind == FAILURE_WORKER && f->ran_ms < BARRIER_SAME_MS;

    if (w->kind != JOB_QUIET || place != 0 || w->scope_worker)
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
    const struct failure *f = &w->barrier.end.failure;
    uint32_t i = f->kind == FAILURE_PREPARE ? WORLD_PRE : f->local_rank;

    for (uint32_t k = 0; w->same_limit && k < w->n_places; k++) {
        const struct sim_streak *x = &w->pods[k].streaks[i];

        if (w->pods[k].rank != f->node_rank || x->n < w->same_limit ||
            x->code != f->code)
            continue;
        w->history.n[FAULT_SAME]++;
        return true;
    }
    return false;
}

/* At a spawn no worker of another round lives anywhere, and no worker of this
 * rank. */
void world_check_spawn(struct world *w, uint32_t place, uint32_t round)
{
    for (uint32_t i = 0; i < w->n_places; i++)
        for (uint32_t k = 0; k < w->n_workers; k++) {
            const struct sim_worker *x = &w->pods[i].workers[k];

            if (!x->alive || is_excused(&w->pods[i], x))
                continue;
            if (w->pods[i].rank == w->pods[place].rank)
                world_fail(w, "two processes for rank %u of pod %u", k, place);
            else if (x->round != round)
                world_fail(w, "pod %u starts round %u while a worker of round "
                           "%u lives on pod %u", place, round, x->round, i);
        }
    if (w->kind == JOB_QUIET && w->mesh_reach && w->n_ranks > 1 &&
        (w->pods[place].n_mesh != 1 || world_mesh_refuses(w)))
        world_fail(w, "pod %u starts, with %u mesh tests", place,
                   w->pods[place].n_mesh);
    check_causes(w, place);
    if (w->has_pre && !w->pods[place].prepared)
        world_fail(w, "pod %u starts round %u without --pre-start", place,
                   round);
    w->pods[place].prepared = false;
    for (uint32_t i = 0; w->kind == JOB_QUIET && !w->has_claims &&
                         i < w->n_places; i++)
        if (w->pods[i].workers[WORLD_PRE].alive &&
            w->pods[i].workers[WORLD_PRE].round <= round)
            world_fail(w, "pod %u starts while --pre-start runs on pod %u",
                       place, i);
    if (round < w->history.least_round)
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
        if (w->pods[i].rank == p->rank && w->pods[i].workers[worker].alive &&
            !is_excused(&w->pods[i], &w->pods[i].workers[worker]))
            world_fail(w, "two processes for worker %u of rank %u", worker,
                       p->rank);
    if (p->pod.stop_signo || p->pod.ended || p->pod.state != POD_RUNNING)
        world_fail(w, "pod %u starts a worker while it stops", place);
    if (attempt <= p->attempts[worker])
        world_fail(w, "pod %u: attempt %u after %u", place, attempt,
                   p->attempts[worker]);
    p->attempts[worker] = attempt;
    if (w->kind == JOB_QUIET && w->same_limit &&
        p->streaks[worker].n >= w->same_limit)
        world_fail(w, "pod %u: worker %u starts again after %u same failures",
                   place, worker, p->streaks[worker].n);
}

void world_check_prepare(struct world *w, uint32_t place)
{
    const struct sim_pod *p = &w->pods[place];

    for (uint32_t k = 0; k <= WORLD_PRE; k++)
        if (p->workers[k].alive && !is_excused(p, &p->workers[k]))
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

    if (w->kind == JOB_QUIET && w->scope_worker && !p->ended)
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
    for (uint32_t i = 0; i < w->n_places; i++)
        if (w->pods[i].exists &&
            (w->pods[i].pod.round > 0 || w->pods[i].pod.runs))
            return;
    w->history.least_round = 0;
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
        bool ok = p->rank == rank;

        for (uint32_t k = 0; ok && k < w->n_workers; k++)
            ok = p->workers[k].life && p->workers[k].ok &&
                 p->workers[k].round == w->barrier.round;
        if (ok)
            return true;
    }
    return false;
}

/* Pod 0 has just decided how the job ends. */
static void check_decision(struct world *w)
{
    struct history *h = &w->history;
    int code = w->barrier.end.code;

    h->end_life = w->pods[0].life;
    h->ended_with[code] = true;
    for (uint32_t i = 0; code == 0 && i < w->n_ranks; i++)
        if (!has_succeeded(w, i))
            world_fail(w, "success, but not all workers of rank %u succeeded",
                       i);
    /* Whom the end does not reach in time fails by himself. */
    if (w->kind == JOB_GENTLE && w->now < h->last_fault_ms + 60000 &&
        h->last_fault_ms > 0 && code == 0)
        w->kind = JOB_WILD;
}

void world_check_step(struct world *w)
{
    const struct sim_pod *zero = &w->pods[0];

    if (zero->exists && w->barrier.n_restarts > w->max_restarts)
        world_fail(w, "%u restarts, %u allowed", w->barrier.n_restarts,
                   w->max_restarts);
    if (zero->exists && w->barrier.phase >= BAR_ENDING &&
        w->history.end_life != zero->life)
        check_decision(w);
    for (uint32_t i = 0; i < w->n_places; i++)
        if (w->pods[i].exists &&
            w->pods[i].pod.n_queue == POD_QUEUE_MAX)
            world_fail(w, "the queue of pod %u is full", i);
}

uint64_t world_patience(const struct world *w)
{
    uint64_t round = 60000 + 30000 + 40000 + 2 * w->grace_ms + 45000;

    return 20000 + 600000 + 300000 + (w->max_restarts + 2) * round;
}

/* The pod that a rank was first given to and the one that claimed it too. */
static bool is_claimed(const struct world *w, uint32_t rank)
{
    for (uint32_t i = w->n_ranks; i < w->n_places; i++)
        if (w->pods[i].rank == rank)
            return true;
    return false;
}

/* Only workers failed: all pods end alike. Of two with one rank one is
 * refused, alone. */
static void check_quiet(struct world *w)
{
    int code = w->pods[0].exit_code;
    const struct history *h = &w->history;

    if (h->n[FAULT_WRONG] && w->barrier.end.failure.kind == FAILURE_PREPARE)
        return; /* That came first. */
    if (h->n[FAULT_WRONG])
        for (uint32_t i = 0; i < w->n_ranks; i++)
            if (w->pods[i].exit_code != ERR_MISMATCH)
                world_fail(w, "wrong nnodes, and pod %u exits with %d", i,
                           w->pods[i].exit_code);
    for (uint32_t i = 1; i < w->n_ranks; i++)
        if (w->pods[i].exit_code != code && !is_claimed(w, w->pods[i].rank))
            world_fail(w, "pod 0 exits with %d, pod %u with %d", code, i,
                       w->pods[i].exit_code);
    for (uint32_t i = w->n_ranks; i < w->n_places; i++) {
        int a = w->pods[w->pods[i].rank].exit_code, b = w->pods[i].exit_code;
        int other = a == code ? b : a;

        /* 200: it came when the job was over. */
        if ((a != code && b != code) ||
            (other != ERR_MISMATCH && other != ERR_BARRIER && code == 0))
            world_fail(w, "pod 0 exits with %d, two of one rank with %d and "
                       "%d", code, a, b);
    }
    if (h->n[FAULT_WRONG])
        return;
    if (world_mesh_refuses(w) != (code == ERR_BARRIER) &&
        w->barrier.end.failure.kind != FAILURE_PREPARE)
        world_fail(w, "exit code %d, %s", code, code == ERR_BARRIER
                                                    ? "all pairs are fine"
                                                    : "with a bad pair");
    if (code == ERR_BARRIER)
        return;
    if (code != 0 && !h->failed_with[code])
        world_fail(w, "exit code %d, but no worker failed with it", code);
    if (code != 0 && code != ERR_NOTFOUND && !w->never &&
        w->barrier.n_restarts != w->max_restarts && !is_same_again(w))
        world_fail(w, "failed with %d after %u of %u restarts", code,
                   w->barrier.n_restarts, w->max_restarts);
    if (w->scope_worker ? h->n_rounds > 1
        : w->has_pre    ? h->n_rounds > w->barrier.n_restarts + 1
                        : h->n_rounds != w->barrier.n_restarts + 1)
        world_fail(w, "%u rounds with %u restarts", h->n_rounds,
                   w->barrier.n_restarts);
}

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
    if (code == ERR_MISMATCH)
        return is_claimed(w, p->rank);
    for (unsigned f = 0; f < FAULTS; f++)
        if (f != FAULT_IGNORED && f != FAULT_LATE && f != FAULT_STRANGER &&
            f != FAULT_BLOCKED && f < FAULT_PRE_FAILED)
            n += h->n[f];
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
    for (uint32_t i = 0; i < w->n_places; i++) {
        if (w->kind == JOB_GENTLE && w->pods[i].exit_code != 0 &&
            !is_claimed(w, w->pods[i].rank))
            world_fail(w, "one fault that must be survived, and pod %u exits "
                       "with %d", i, w->pods[i].exit_code);
        if (!may_exit_with(w, i, w->pods[i].exit_code))
            world_fail(w, "pod %u exits with %d, and nothing explains it", i,
                       w->pods[i].exit_code);
    }
}
