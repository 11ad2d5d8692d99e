/* world_check: what must hold, whatever happens. */
#include "world.h"

#include <stdio.h>

/* At a spawn no worker of another round lives anywhere, and no worker of this
 * rank. */
void world_check_spawn(struct world *w, uint32_t pod, uint32_t round)
{
    for (uint32_t i = 0; i < w->n_pods; i++)
        for (uint32_t k = 0; k < w->n_workers; k++) {
            const struct sim_worker *x = &w->pods[i].workers[k];

            if (!x->alive)
                continue;
            if (i == pod)
                world_fail(w, "two processes for rank %u of pod %u", k, pod);
            else if (x->round != round)
                world_fail(w, "pod %u starts round %u while a worker of round "
                           "%u lives on pod %u", pod, round, x->round, i);
        }
    if (round < w->history.least_round)
        world_fail(w, "pod %u starts round %u after round %u", pod, round,
                   w->history.least_round);
    w->history.least_round = round;
    if (round + 1 > w->history.n_rounds)
        w->history.n_rounds = round + 1;
}

void world_check_memory(struct world *w)
{
    for (uint32_t i = 0; i < w->n_pods; i++)
        if (w->pods[i].exists &&
            (w->pods[i].pod.round > 0 || w->pods[i].pod.runs))
            return;
    w->history.least_round = 0;
}

void world_check_step(struct world *w)
{
    if (w->pods[0].exists && w->barrier.n_restarts > w->max_restarts)
        world_fail(w, "%u restarts, %u allowed", w->barrier.n_restarts,
                   w->max_restarts);
    for (uint32_t i = 0; i < w->n_pods; i++)
        if (w->pods[i].exists &&
            w->pods[i].pod.n_queue == POD_QUEUE_MAX)
            world_fail(w, "the queue of pod %u is full", i);
}

/* The code that all pods must have where the only faults were workers' own. */
static void check_quiet(struct world *w)
{
    int code = w->pods[0].exit_code;
    const struct history *h = &w->history;

    for (uint32_t i = 1; i < w->n_pods; i++)
        if (w->pods[i].exit_code != code)
            world_fail(w, "pod 0 exits with %d, pod %u with %d", code, i,
                       w->pods[i].exit_code);
    if (code != 0 && !h->failed_with[code])
        world_fail(w, "exit code %d, but no worker failed with it", code);
    if (code != 0 && code != ERR_NOTFOUND && !w->never &&
        w->barrier.n_restarts != w->max_restarts)
        world_fail(w, "failed with %d after %u of %u restarts", code,
                   w->barrier.n_restarts, w->max_restarts);
    if (h->n_rounds != w->barrier.n_restarts + 1)
        world_fail(w, "%u rounds with %u restarts", h->n_rounds,
                   w->barrier.n_restarts);
}

/* What a pod may exit with where pods were killed, cut off and stopped. */
static bool may_exit_with(const struct world *w, uint32_t i, int code)
{
    const struct history *h = &w->history;

    if (code == 0 || h->failed_with[code & 255])
        return true;
    if (code == 128 + 15)
        return w->pods[i].was_termed;
    if (code == ERR_DATA)
        return h->n_stage_faults > 0;
    /* A lost pod comes back only while the others still wait for it. */
    return (code == ERR_PEER || code == ERR_BARRIER) &&
           (h->n_terms > 0 || h->n_kills > 0 || h->n_stage_faults > 0 ||
            h->n_cuts > 0);
}

void world_check_end(struct world *w)
{
    if (w->fault[0])
        return;
    if (w->quiet_job) {
        check_quiet(w);
        return;
    }
    /* Cut connections alone change nothing: they are made again. */
    for (uint32_t i = 1; i < w->n_pods; i++)
        if (w->history.n_terms + w->history.n_kills == 0 &&
            w->pods[i].exit_code != w->pods[0].exit_code)
            world_fail(w, "pod 0 exits with %d, pod %u with %d",
                       w->pods[0].exit_code, i, w->pods[i].exit_code);
    for (uint32_t i = 0; i < w->n_pods; i++)
        if (!may_exit_with(w, i, w->pods[i].exit_code))
            world_fail(w, "pod %u exits with %d, and nothing explains it", i,
                       w->pods[i].exit_code);
}
