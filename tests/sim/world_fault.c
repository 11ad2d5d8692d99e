/* world_fault: what goes wrong in a job, and when. */
#include "world.h"

#include <signal.h>
#include <string.h>

static void signal_pod(struct world *w, uint32_t i)
{
    if (!w->pods[i].exists)
        return;
    world_say(w, "pod %u gets SIGTERM", i);
    world_count(w, FAULT_TERM);
    w->pods[i].was_termed = true;
    pod_signal(&w->pods[i].pod, world_clock(w, i), SIGTERM);
}

static void lasts_until(struct world *w, uint64_t at)
{
    if (at != FOREVER && at > w->history.last_fault_ms)
        w->history.last_fault_ms = at;
}

/* Its agent must be back within 2 s, or it is taken for dead. */
static bool was_cut(const struct world *w, uint32_t i)
{
    uint64_t ms = w->pods[i].rank == 0 ? w->history.cut_ms : w->pods[i].cut_ms;

    return ms && w->now < ms + BARRIER_RESUME_MS + 1000;
}

static void partition(struct world *w, uint32_t i, uint64_t ms, int ways)
{
    struct sim_pod *p = &w->pods[i];
    uint64_t until = ms == FOREVER ? FOREVER : w->now + ms;

    if (!p->exists || p->out_until > w->now || p->in_until > w->now ||
        p->frozen_until > w->now || was_cut(w, i))
        return;
    world_say(w, "pod %u is cut off for %lld ms:%s%s%s", i, (long long)ms,
              ways & WAY_OUT ? " out" : "", ways & WAY_IN ? " in" : "",
              ways & WAY_DROP ? " drop" : "");
    world_count(w, (ways & WAY_OUT) && (ways & WAY_IN) ? FAULT_PART
                                                       : FAULT_ONE_WAY);
    lasts_until(w, until);
    p->out_until = ways & WAY_OUT ? until : 0;
    p->in_until = ways & WAY_IN ? until : 0;
    p->drops = ways & WAY_DROP;
}

/* Another pod claims the rank; `cut_off`: because this one's node is gone. */
static void claim(struct world *w, uint32_t i, bool cut_off, uint64_t ms)
{
    uint32_t j = w->n_places;
    uint64_t at = w->now + world_draw(w, cut_off ? 40000 : 1000);
    bool zero = w->pods[i].rank == 0;
    unsigned storage = zero ? world_free_zero(w) : 0;

    if (j == WORLD_PLACES || (cut_off && !w->pods[i].exists) ||
        storage == WORLD_ZEROS)
        return;
    /* Or pod 0 would only be cut off from its new self. */
    if (zero && (w->pods[i].replaced || was_cut(w, i) ||
                 w->pods[i].frozen_until > w->now ||
                 w->pods[i].out_until > w->now ||
                 w->pods[i].in_until > w->now))
        return;
    world_count(w, zero      ? FAULT_NEW_ZERO
                   : cut_off ? FAULT_REPLACED
                             : FAULT_CLAIM);
    w->pods[i].replaced = zero;
    w->has_new_zero = w->has_new_zero || zero;
    /* Until the others have gone to the new one. */
    if (zero && ms != FOREVER)
        ms += at - w->now + 2 * BARRIER_SILENCE_MS + w->grace_ms;
    if (cut_off)
        partition(w, i, ms,
                  (zero && world_chance(w, 30) ? 0 : WAY_OUT) | WAY_IN |
                      (world_chance(w, 50) ? WAY_DROP : 0));
    w->n_places++;
    w->has_claims = w->has_claims || !zero;
    world_add_pod(w, j, w->pods[i].rank, w->pods[i].n_workers);
    w->pods[j].zero = storage;
    (void)world_plan(w, at, EV_BOOT, j);
    lasts_until(w, at);
}

static int some_ways(struct world *w)
{
    static const int ways[] = {WAY_OUT, WAY_IN, WAY_OUT | WAY_IN,
                               WAY_OUT | WAY_IN};

    return ways[world_draw(w, 4)] | (world_chance(w, 40) ? WAY_DROP : 0);
}

/* Faults that come together: with pod 0 another pod goes, or is cut off. */
void world_with_zero(struct world *w)
{
    uint32_t other = 1 + (uint32_t)world_draw(w, w->n_ranks);
    struct event *e;

    if (w->kind != JOB_WILD || other >= w->n_ranks)
        return;
    if (world_chance(w, 40))
        (void)world_plan(w, w->now + world_draw(w, 2000), EV_KILL, other);
    if (!world_chance(w, world_is_elastic(w) ? 60 : 20))
        return;
    e = world_plan(w, w->now, EV_PART, other);
    e->ms = 20000 + world_draw(w, 60000);
    e->code = some_ways(w);
}

/* The clock of pod 0 is set forward while it waits for a lease. */
void world_tempt(struct world *w)
{
    const struct sim_pod *zero = world_zero(w);
    uint64_t now = world_clock(w, w->zero);

    if (w->kind != JOB_WILD || !zero->exists ||
        w->tempted_ms == world_barrier(w)->not_before_ms ||
        world_barrier(w)->not_before_ms < now + BARRIER_SILENCE_MS)
        return;
    w->tempted_ms = world_barrier(w)->not_before_ms;
    if (world_chance(w, 80))
        world_plan(w, w->now + world_draw(w, 3000), EV_JUMP, w->zero)->ms =
            20000 + world_draw(w, 60000);
}

void world_fault_event(struct world *w, const struct event *e)
{
    struct sim_pod *p = &w->pods[e->place], *zero = world_zero(w);

    /* The end is being told: whom it no longer reaches fails by himself. */
    if (w->kind == JOB_GENTLE &&
        (zero->over ||
         (zero->exists && world_barrier(w)->phase >= BAR_ENDING)))
        w->kind = JOB_WILD;
    switch (e->what) {
    case EV_KILL:
        world_kill(w, e->place);
        break;
    case EV_TERM:
        signal_pod(w, e->place);
        break;
    case EV_CUT:
        world_cut(w, e->place);
        break;
    case EV_PART:
        partition(w, e->place, e->ms, e->code);
        break;
    case EV_FREEZE:
        /* A node that is cut off and stands still stops nothing. */
        if (!p->exists || p->frozen_until > w->now || was_cut(w, e->place) ||
            p->out_until || p->in_until || zero->out_until || zero->in_until)
            break;
        world_say(w, "pod %u is frozen%s", e->place,
                  e->code ? ", and its workers" : "");
        world_count(w, e->code ? FAULT_SUSPEND : FAULT_FREEZE);
        p->frozen_until = w->now + e->ms;
        if (e->code)
            p->thaw_ms = p->frozen_until;
        lasts_until(w, p->frozen_until);
        break;
    case EV_JUMP:
        world_say(w, "the clock of pod %u is set forward by %llu ms", e->place,
                  (unsigned long long)e->ms);
        world_count(w, FAULT_JUMP);
        p->ahead_ms += e->ms;
        break;
    case EV_CLAIM:
        claim(w, e->code && e->place == 0 ? w->zero : e->place, e->code,
              e->ms);
        break;
    case EV_BOOT:
    case EV_CONNECT:
    case EV_ACCEPT:
    case EV_TO_ZERO:
    case EV_TO_POD:
    case EV_FIN_ZERO:
    case EV_FIN_POD:
    case EV_STAGED:
    case EV_SWEPT:
    case EV_EXIT:
    case EV_REAP:
    case EV_HANG:
    case EV_STRANGER:
    case EV_MESHED:
        break;
    }
}

static uint64_t some_time(struct world *w)
{
    return world_draw(w, 30000) +
           world_draw(w, world_chance(w, 50) ? 2000 : 120000);
}

/* Pod 0 and a pod that was cut off must not be replaced together, nor may a
 * rank be claimed twice before a new pod 0: it could not know of the other
 * one. So a job has either. */
static void plan_fault(struct world *w, bool replaces)
{
    uint64_t at = some_time(w);
    uint32_t place = (uint32_t)world_draw(w, w->n_ranks);
    uint32_t other = w->n_ranks > 1
                         ? 1 + (uint32_t)world_draw(w, w->n_ranks - 1)
                         : 0;
    struct event *e;

    switch (world_draw(w, w->kind == JOB_GENTLE ? 10 : 12)) {
    case 0:
    case 1:
        if (!replaces || place)
            (void)world_plan(w, at, EV_KILL, place);
        break;
    case 2:
    case 3:
        (void)world_plan(w, at, EV_CUT, place);
        break;
    case 4:
    case 5:
        e = world_plan(w, at, EV_PART, place);
        e->ms = 1 + world_draw(w, world_chance(w, 50) ? 8000 : 90000);
        e->code = some_ways(w);
        break;
    case 6:
        e = world_plan(w, at, EV_FREEZE, place);
        e->ms = 1 + world_draw(w, replaces ? 13000 : 20000);
        break;
    case 7:
        /* A pod 0 that is cut off and enough by itself goes on. */
        if (!replaces && w->n_ranks > 1 && w->min_nodes > 1) {
            e = world_plan(w, at, EV_CLAIM, 0);
            e->code = 1;
            e->ms = world_chance(w, 30) ? FOREVER : 1 + world_draw(w, 90000);
            break;
        }
        /* Who takes any rank is refused while all are held. */
        if (!replaces || !other || (w->is_auto && w->kind == JOB_GENTLE))
            break;
        e = world_plan(w, at, EV_CLAIM, other);
        e->code = 1;
        e->ms = world_chance(w, 30) ? FOREVER : 1 + world_draw(w, 90000);
        break;
    case 8:
        world_plan(w, at, EV_JUMP, place)->ms =
            1 + world_draw(w, world_chance(w, 50) ? 10000 : 150000);
        break;
    case 9:
        e = world_plan(w, at, EV_FREEZE, place);
        e->ms = 1 + world_draw(w, world_chance(w, 50) ? 12000 : 150000);
        e->code = 1;
        break;
    case 10:
        (void)world_plan(w, at, EV_TERM, place);
        break;
    case 11:
        if (other && replaces)
            (void)world_plan(w, at, EV_CLAIM, other);
        break;
    }
}

/* Only workers fail; pods may disagree, which ends in one way. */
static void plan_quiet(struct world *w)
{
    uint32_t i = (uint32_t)world_draw(w, w->n_ranks);

    if (w->n_ranks == 1)
        return;
    if (!world_is_elastic(w) && world_chance(w, 10)) {
        w->pods[i].nnodes++;
        w->history.n[FAULT_WRONG]++;
    } else if (i > 0 && world_chance(w, 10)) {
        (void)world_plan(w, world_draw(w, 30000), EV_CLAIM, i);
    }
}

void world_plan_faults(struct world *w)
{
    unsigned n = (unsigned)world_draw(w, world_chance(w, 30) ? 16 : 4);
    bool replaces = world_chance(w, 30);

    if (w->kind == JOB_QUIET) {
        plan_quiet(w);
        return;
    }
    if (w->kind == JOB_GENTLE)
        n = 1;
    for (unsigned i = 0; i < n; i++)
        plan_fault(w, replaces);
    if (w->kind == JOB_WILD && !replaces && world_chance(w, 50))
        w->kill_zero_step = 1 + world_draw(w, 200 * (uint64_t)w->n_ranks);
}
