/* world: see world.h. This file has the clock and the run of a job. */
#include "world.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIMIT_STEPS 2000000

uint64_t world_draw(struct world *w, uint64_t below)
{
    w->rng ^= w->rng << 13;
    w->rng ^= w->rng >> 7;
    w->rng ^= w->rng << 17;
    return (w->rng >> 11) % below;
}

bool world_chance(struct world *w, unsigned percent)
{
    return world_draw(w, 100) < percent;
}

void world_say(struct world *w, const char *fmt, ...)
{
    va_list ap;

    if (!w->trace)
        return;
    printf("[%9" PRIu64 "] ", w->now);
    va_start(ap, fmt);
    (void)vprintf(fmt, ap);
    va_end(ap);
    printf("\n");
}

void world_fail(struct world *w, const char *fmt, ...)
{
    va_list ap;

    if (w->fault[0])
        return;
    va_start(ap, fmt);
    (void)vsnprintf(w->fault, sizeof w->fault, fmt, ap);
    va_end(ap);
    world_say(w, "FAULT: %s", w->fault);
}

void world_count(struct world *w, enum fault f)
{
    w->history.n[f]++;
    if (w->now > w->history.last_fault_ms)
        w->history.last_fault_ms = w->now;
}

uint64_t world_clock(const struct world *w, uint32_t place)
{
    return w->now + w->pods[place].ahead_ms;
}

/* --- the heap of events --- */

static bool before(const struct event *a, const struct event *b)
{
    return a->at < b->at || (a->at == b->at && a->seq < b->seq);
}

static void push(struct world *w, struct event *e)
{
    unsigned i = w->n_heap++;

    if (i == WORLD_EVENTS) {
        fprintf(stderr, "sim: too many events\n");
        exit(1);
    }
    while (i > 0 && before(e, w->heap[(i - 1) / 2])) {
        w->heap[i] = w->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    w->heap[i] = e;
}

struct event *world_plan(struct world *w, uint64_t at, enum what what,
                         uint32_t place)
{
    bool frame = what == EV_TO_ZERO || what == EV_TO_POD || what == EV_MESHED;
    struct event *e = malloc(sizeof *e + (frame ? WIRE_FRAME_MAX : 0));

    if (!e) {
        fprintf(stderr, "sim: no memory\n");
        exit(1);
    }
    memset(e, 0, sizeof *e);
    e->at = at;
    e->seq = ++w->seq;
    e->what = what;
    e->place = place;
    push(w, e);
    return e;
}

static struct event *next_event(struct world *w)
{
    struct event *first = w->heap[0], *last = w->heap[--w->n_heap];
    unsigned i = 0, c;

    while ((c = 2 * i + 1) < w->n_heap) {
        if (c + 1 < w->n_heap && before(w->heap[c + 1], w->heap[c]))
            c++;
        if (!before(w->heap[c], last))
            break;
        w->heap[i] = w->heap[c];
        i = c;
    }
    w->heap[i] = last;
    return first;
}

/* --- what happens --- */

/* The place whose agent must run for this event to be seen. */
static const struct sim_pod *seen_by(const struct world *w,
                                     const struct event *e)
{
    switch (e->what) {
    case EV_TO_ZERO:
    case EV_FIN_ZERO:
    case EV_ACCEPT:
        return &w->pods[w->links[e->link].zero];
    case EV_TO_POD:
    case EV_FIN_POD:
    case EV_CONNECT:
    case EV_STAGED:
    case EV_SWEPT:
    case EV_REAP:
    case EV_HANG:
    case EV_TERM:
    case EV_MESHED:
        return &w->pods[e->place];
    case EV_BOOT:
    case EV_EXIT:
    case EV_KILL:
    case EV_CUT:
    case EV_PART:
    case EV_FREEZE:
    case EV_JUMP:
    case EV_CLAIM:
    case EV_STRANGER:
        break;
    }
    return NULL;
}

static void happen(struct world *w, const struct event *e)
{
    switch (e->what) {
    case EV_BOOT:
    case EV_STAGED:
    case EV_SWEPT:
    case EV_EXIT:
    case EV_REAP:
    case EV_HANG:
        world_pod_event(w, e);
        break;
    case EV_CONNECT:
    case EV_ACCEPT:
    case EV_TO_ZERO:
    case EV_TO_POD:
    case EV_FIN_ZERO:
    case EV_FIN_POD:
        world_net_event(w, e);
        break;
    case EV_KILL:
    case EV_TERM:
    case EV_CUT:
    case EV_PART:
    case EV_FREEZE:
    case EV_JUMP:
    case EV_CLAIM:
        world_fault_event(w, e);
        break;
    case EV_STRANGER:
        world_stranger(w);
        break;
    case EV_MESHED:
        world_mesh_event(w, e);
        break;
    }
}

/* A pod that is gone has exited: its connections end with it. */
static void bury(struct world *w)
{
    for (uint32_t i = 0; i < w->n_places; i++) {
        struct sim_pod *p = &w->pods[i];

        if (!p->exists || p->pod.state != POD_GONE)
            continue;
        world_say(w, "pod %u exits with %d", i, p->pod.exit_code);
        p->exists = false;
        p->over = true;
        if (w->zero_returns && p->was_termed) {
            p->over = p->was_termed = false;
            (void)world_plan(w, w->now + p->boot_ms, EV_BOOT, i);
        }
        p->exit_code = p->pod.exit_code;
        world_check_exit(w, i);
        world_close_all(w, i);
        world_check_memory(w);
    }
}

/* A third of the jobs may be smaller than all, a third has ranks by arrival.
 * How long pods are waited for. */
static void plan_group(struct world *w)
{
    bool hurried = w->kind != JOB_GENTLE && world_chance(w, 40);

    w->is_auto = world_chance(w, 33);
    w->min_nodes = w->n_ranks;
    if (world_chance(w, 33))
        w->min_nodes = 1 + (uint32_t)world_draw(w, w->n_ranks);
    w->last_call_ms = world_draw(w, world_chance(w, 50) ? 5000 : 60000);
    w->barrier_timeout_ms = hurried ? 60000 + world_draw(w, 100000) : 600000;
    w->rejoin_timeout_ms = hurried ? 20000 + world_draw(w, 100000) : 300000;
}

static void begin(struct world *w, uint64_t seed, bool trace)
{
    memset(w, 0, offsetof(struct world, pods));
    w->seed = seed;
    w->trace = trace;
    w->now = 1; /* 0 is for never. */
    w->rng = seed * 0x9e3779b97f4a7c15u | 1;
    for (int i = 0; i < 8; i++)
        (void)world_draw(w, 2);
}

static void set_up(struct world *w, uint64_t seed, bool trace)
{
    static const enum job_kind kinds[] = {JOB_WILD, JOB_WILD, JOB_WILD,
                                          JOB_QUIET, JOB_QUIET, JOB_GENTLE};
    uint32_t same;

    begin(w, seed, trace);
    w->n_ranks = 1 + (uint32_t)world_draw(
                         w, world_chance(w, 85)   ? 4
                            : world_chance(w, 90) ? 12
                                                  : WORLD_RANKS);
    w->n_places = w->n_ranks;
    w->grace_ms = 1000 + world_draw(w, 25000);
    w->max_restarts = (uint32_t)world_draw(w, 4);
    w->kind = kinds[world_draw(w, 6)];
    plan_group(w);
    w->never = w->kind != JOB_GENTLE && world_chance(w, 10);
    w->has_stage = world_chance(w, 50);
    w->has_token = world_chance(w, 50);
    w->has_pre = world_chance(w, 30);
    w->scope_worker = world_chance(w, 40);
    w->always = w->kind != JOB_GENTLE && world_chance(w, 10);
    w->buggy = w->kind != JOB_GENTLE && world_chance(w, 15);
    w->same_limit = world_chance(w, w->buggy ? 80 : 20)
                        ? 1 + (uint32_t)world_draw(w, 3)
                        : 0;
    /* Not drawn: the other jobs stay what they were. */
    w->hangs = w->kind != JOB_GENTLE && w->same_limit == 0 &&
               !w->scope_worker && w->seed % 20 == 7;
    w->fail_percent = w->kind == JOB_GENTLE || world_chance(w, 20)
                          ? 0
                          : (unsigned)world_draw(w, 40);
    if (w->kind == JOB_WILD && world_chance(w, 15))
        w->outlive_percent = 40;
    w->ignore_percent = world_chance(w, 40) ? 70 : 10;
    same = world_chance(w, 60) ? 1 + (uint32_t)world_draw(w, WORLD_WORKERS)
                               : 0;
    for (uint32_t i = 0; i < w->n_ranks; i++) {
        world_add_pod(w, i, i > 0 && w->is_auto ? WIRE_ANY_RANK : i,
                      same ? same
                           : 1 + (uint32_t)world_draw(w, WORLD_WORKERS));
        (void)world_plan(w, world_draw(w, 20000), EV_BOOT, i);
    }
    world_plan_faults(w);
    world_plan_mesh(w);
    for (uint64_t n = w->has_token ? world_draw(w, 20) : 0; n > 0; n--)
        (void)world_plan(w, world_draw(w, 120000), EV_STRANGER,
                         WORLD_STRANGER);
}

static uint64_t deadline(const struct sim_pod *p)
{
    uint64_t d = p->exists ? pod_deadline(&p->pod) : UINT64_MAX;

    if (d != UINT64_MAX)
        d = d > p->ahead_ms ? d - p->ahead_ms : 0;
    /* After a freeze the timer or what came meanwhile may be seen first. */
    return d < p->frozen_until ? p->frozen_until - p->life % 2 : d;
}

/* Advance to the next event or deadline; false where nothing is to come. */
static bool step(struct world *w)
{
    uint64_t at = w->n_heap ? w->heap[0]->at : UINT64_MAX;
    const struct sim_pod *by;
    struct sim_pod *due = NULL;
    struct event *e;

    for (uint32_t i = 0; i < w->n_places; i++) {
        uint64_t d = deadline(&w->pods[i]);

        if (d < at) {
            at = d;
            due = &w->pods[i];
        }
    }
    if (at == UINT64_MAX)
        return false;
    if (at > w->now)
        w->now = at;
    if (due) {
        pod_timeout(&due->pod, w->now + due->ahead_ms);
    } else {
        e = next_event(w);
        by = seen_by(w, e);
        if (by && by->exists && by->frozen_until > w->now) {
            e->at = by->frozen_until;
            push(w, e);
            return true;
        }
        happen(w, e);
        free(e);
    }
    world_check_step(w);
    world_tempt(w);
    bury(w);
    return !w->fault[0];
}

static bool all_over(const struct world *w)
{
    for (uint32_t i = 0; i < w->n_places; i++)
        if (!w->pods[i].over)
            return false;
    return true;
}

static bool run(struct world *w)
{
    unsigned n = 0;

    while (!all_over(w) && step(w)) {
        if (++n == w->kill_zero_step && world_zero(w)->exists) {
            world_count(w, FAULT_KILL_AT_STEP);
            world_kill(w, w->zero);
        }
        if (n > LIMIT_STEPS ||
            w->now > w->history.last_fault_ms + world_patience(w))
            world_fail(w, "no end after %u steps, %" PRIu64 " ms; the last "
                       "fault was at %" PRIu64 " ms", n, w->now,
                       w->history.last_fault_ms);
    }
    if (!all_over(w))
        world_fail(w, "nothing is to come, and not all pods are gone: pod 0 is "
                   "in state %u, its barrier in phase %u",
                   (unsigned)world_zero(w)->pod.state,
                   (unsigned)world_barrier(w)->phase);
    world_check_end(w);
    while (w->n_heap > 0)
        free(next_event(w));
    return !w->fault[0];
}

bool world_run(struct world *w, uint64_t seed, bool trace)
{
    set_up(w, seed, trace);
    return run(w);
}

bool world_run_scenario(struct world *w, unsigned scenario, bool trace)
{
    begin(w, 1000 + scenario, trace);
    w->scenario = scenario;
    world_plan_scenario(w, scenario);
    return run(w);
}
