/* world_scenario: jobs whose faults are planned one by one, for what seeds
 * reach too rarely. They draw from seeds of their own. */
#include "world.h"

#include <stddef.h>
#include <string.h>

#define S 1000u /* Milliseconds. */

static void kill_at(struct world *w, uint64_t at, uint32_t place)
{
    (void)world_plan(w, at, EV_KILL, place);
}

static void part(struct world *w, uint64_t at, uint32_t place, uint64_t ms,
                 int ways)
{
    struct event *e = world_plan(w, at, EV_PART, place);

    e->ms = ms;
    e->code = ways;
}

/* A pod that no longer hears pod 0, and is heard, stops its workers, and they
 * take all of their grace. Until then nobody may start without it. */
static void deaf_pod(struct world *w)
{
    w->min_nodes = 2;
    w->pods[2].stubborn = true;
    part(w, 30 * S, 2, 120 * S, WAY_IN);
}

/* Each loss from the second on costs a restart; the last one is too much. */
static void zero_again(struct world *w)
{
    for (uint64_t i = 1; i <= 4; i++)
        kill_at(w, i * 30 * S, 0);
}

/* The same, and with each of them another pod goes that knew of those before;
 * there are restarts enough. */
static void zero_and_others(struct world *w)
{
    for (uint64_t i = 1; i <= 4; i++) {
        kill_at(w, i * 30 * S, 0);
        kill_at(w, i * 30 * S + 10, 1 + (uint32_t)i % 2);
    }
}

/* The new pod 0 is lost itself before all are there: that is no loss of a
 * round, and the one before it is still known. It comes when the last pod that
 * knows it has stopped its workers by itself, and tells that pod nothing. */
static void zero_in_between(struct world *w)
{
    w->pods[0].boot_ms = 20 * S;
    w->pods[2].boot_ms = 60 * S;
    for (uint64_t at = 30 * S; at <= 130 * S; at += 100 * S) {
        kill_at(w, at, 0);
        kill_at(w, at, 2);
        kill_at(w, at + 25 * S, 0);
    }
}

/* Its losses are long apart. */
static void zero_seldom(struct world *w)
{
    w->work_ms = 1000 * S;
    for (uint64_t i = 1; i <= 3; i++)
        kill_at(w, i * 700 * S, 0);
}

/* Between two losses of another pod it is lost itself. */
static void other_again(struct world *w)
{
    kill_at(w, 30 * S, 1);
    kill_at(w, 60 * S, 0);
    kill_at(w, 90 * S, 1);
}

/* Told to stop, it is not lost, however often. */
static void zero_told(struct world *w)
{
    for (uint64_t i = 1; i <= 4; i++)
        (void)world_plan(w, i * 30 * S, EV_TERM, 0);
    w->zero_returns = true;
}

/* With --max-restarts N/PERIOD a next pod 0 knows when the restarts were. */
static void zero_in_period(struct world *w)
{
    w->restart_period_ms = 600 * S;
    zero_again(w);
}

static void zero_beyond_period(struct world *w)
{
    w->restart_period_ms = 50 * S;
    zero_again(w);
}

/* Its own worker has used up restarts, alone, before it is lost. */
static void zero_after_again(struct world *w)
{
    w->scope_worker = true;
    w->n_bugs = 2;
    w->max_restarts = 3;
    kill_at(w, 70 * S, 0);
    kill_at(w, 120 * S, 0);
}

static void zero_never(struct world *w)
{
    w->never = true;
    kill_at(w, 30 * S, 0);
}

static const struct scenario {
    const char *name;
    void (*plan)(struct world *w);
    int code; /* Of all pods. */
    uint32_t n_restarts, n_losses; /* In the end. */
} scenarios[] = {
    {"a pod that does not hear", deaf_pod, 0, 0, 0},
    {"pod 0 lost again and again", zero_again, ERR_PEER, 2, 4},
    {"pod 0 and others lost together", zero_and_others, 0, 3, 4},
    {"pod 0 lost before it could start", zero_in_between, 0, 1, 2},
    {"pod 0 lost between losses of another", other_again, 0, 1, 1},
    {"pod 0 lost now and then", zero_seldom, 0, 0, 3},
    {"pod 0 told to stop again and again", zero_told, 0, 0, 0},
    {"pod 0 lost too often in a period", zero_in_period, ERR_PEER, 2, 4},
    {"pod 0 lost in several periods", zero_beyond_period, 0, 3, 4},
    {"pod 0 lost after its worker alone", zero_after_again, 0, 3, 2},
    {"pod 0 lost, and no restarts", zero_never, ERR_PEER, 0, 1},
};

const char *world_scenario(unsigned i)
{
    return i < sizeof scenarios / sizeof scenarios[0] ? scenarios[i].name
                                                      : NULL;
}

void world_plan_scenario(struct world *w, unsigned i)
{
    const struct scenario *s = &scenarios[i];

    w->kind = JOB_PLANNED;
    w->n_ranks = w->n_places = w->min_nodes = 3;
    w->grace_ms = 25 * S;
    w->max_restarts = s->plan == zero_and_others ? 3 : 2;
    w->barrier_timeout_ms = 600 * S;
    w->rejoin_timeout_ms = 300 * S;
    w->work_ms = 300 * S;
    for (uint32_t k = 0; k < w->n_ranks; k++) {
        world_add_pod(w, k, k, 2);
        w->pods[k].boot_ms = 2 * S;
        (void)world_plan(w, k * 100, EV_BOOT, k);
    }
    s->plan(w);
}

void world_check_scenario(struct world *w, unsigned k)
{
    const struct scenario *s = &scenarios[k];
    const struct barrier *b = world_barrier(w);

    for (uint32_t i = 0; i < w->n_places; i++)
        if (w->pods[i].exit_code != s->code)
            world_fail(w, "pod %u exits with %d, and not with %d", i,
                       w->pods[i].exit_code, s->code);
    if (b->n_restarts != s->n_restarts || b->zero.n != s->n_losses)
        world_fail(w, "%u restarts and %u losses of pod 0; %u and %u are right",
                   b->n_restarts, b->zero.n, s->n_restarts, s->n_losses);
}
