/* world_pod: an agent of the world, its workers and its data. */
#include "world.h"

#include <signal.h>
#include <string.h>

static struct sim_ctx ctxs[WORLD_PLACES];

void world_add_pod(struct world *w, uint32_t i, uint32_t rank,
                   uint32_t n_workers)
{
    struct sim_pod *p = &w->pods[i];

    memset(p, 0, sizeof *p);
    p->rank = rank;
    p->nnodes = w->n_ranks;
    p->n_workers = n_workers;
}

uint32_t world_rank(const struct sim_pod *p)
{
    return p->life ? p->pod.cfg.node_rank : p->rank;
}

struct sim_pod *world_zero(struct world *w)
{
    return &w->pods[w->zero];
}

const struct barrier *world_barrier(const struct world *w)
{
    return &w->zeros[w->pods[w->zero].zero].barrier;
}

bool world_is_elastic(const struct world *w)
{
    return w->min_nodes < w->n_ranks;
}

static void act_log(void *c, enum log_level level, const char *text)
{
    const struct sim_ctx *x = c;

    world_say(x->w, "pod %u: %s%s", x->i, level <= LOG_WARNING ? "! " : "",
              text);
}

static void act_stage(void *c)
{
    struct sim_ctx *x = c;
    struct event *e = world_plan(x->w, x->w->now + world_draw(x->w, 20000),
                                 EV_STAGED, x->i);

    e->life = x->w->pods[x->i].life;
    e->code = x->w->kind == JOB_WILD && world_chance(x->w, 3) ? ERR_DATA : 0;
}

static void act_nothing(void *c)
{
    (void)c;
}

static void plan_exit(struct world *w, uint32_t place, uint32_t i, uint64_t at,
                      int code)
{
    struct event *e = world_plan(w, at, EV_EXIT, place);

    e->worker = i;
    e->life = w->pods[place].workers[i].life;
    e->code = code;
}

static const int codes[] = {1, 2, 3, 42, 127, 134, 137, 139, 255};

static void start(struct world *w, uint32_t place, uint32_t i, uint32_t round)
{
    struct sim_worker *k = &w->pods[place].workers[i];
    int code = world_chance(w, w->fail_percent) ? codes[world_draw(w, 9)] : 0;
    uint64_t ms = 1 + world_draw(w, world_chance(w, 20) ? 50 : 60000);

    if (w->buggy && w->pods[place].rank == 0 && i == 0) {
        code = 42;
        ms = 1 + world_draw(w, 5000);
    }
    if (w->work_ms)
        ms = w->work_ms;
    if (w->n_bugs > 0 && w->pods[place].rank == 0 && i == 0) {
        w->n_bugs--;
        code = 42;
        ms = 20000;
    }
    memset(k, 0, sizeof *k);
    k->alive = true;
    k->round = round;
    k->node_rank = world_rank(&w->pods[place]);
    k->zero_life = w->pods[place].pod.zero_incarnation;
    k->life = ++w->lives;
    k->start_ms = w->now;
    k->ignores_term = world_chance(w, w->ignore_percent) ||
                      w->pods[place].stubborn;
    k->outlives_kill = world_chance(w, w->outlive_percent);
    if (i == WORLD_PRE) {
        ms = 1 + world_draw(w, 10000);
        k->outlives_kill = false;
    }
    plan_exit(w, place, i, w->now + ms, code);
}

static void act_pre_start(void *c, uint32_t round)
{
    struct sim_ctx *x = c;

    world_say(x->w, "pod %u: --pre-start for round %u", x->i, round);
    world_check_prepare(x->w, x->i);
    start(x->w, x->i, WORLD_PRE, round);
}

static void act_spawn_again(void *c, const struct pod_round *round,
                            uint32_t worker, uint32_t attempt)
{
    struct sim_ctx *x = c;

    world_say(x->w, "pod %u starts worker %u again, attempt %u", x->i, worker,
              attempt);
    world_check_again(x->w, x->i, worker, attempt);
    start(x->w, x->i, worker, round->round);
}

static void act_sweep_worker(void *c, uint32_t worker, int signo)
{
    struct sim_ctx *x = c;
    struct event *e = world_plan(x->w, x->w->now, EV_SWEPT, x->i);

    e->life = x->w->pods[x->i].life;
    e->worker = worker;
    e->code = 1 + (signo != SIGKILL && world_chance(x->w, 30));
}

static void act_spawn(void *c, const struct pod_round *round)
{
    struct sim_ctx *x = c;
    struct world *w = x->w;
    struct sim_pod *p = &w->pods[x->i];

    world_say(w, "pod %u spawns round %u, ranks from %u of %u", x->i,
              round->round, round->rank_base, round->world_size);
    world_check_spawn(w, x->i, round);
    world_check_past(w, x->i);
    world_check_group(w, x->i, round);
    for (uint32_t i = 0; i < p->n_workers; i++)
        start(w, x->i, i, round->round);
    if (w->hangs && world_chance(w, 10)) {
        struct event *e = world_plan(w, w->now + 5000 + world_draw(w, 30000),
                                     EV_HANG, x->i);

        e->life = p->life;
        e->ms = round->round;
    }
}

/* They do nothing more by themselves. */
static void hang(struct world *w, const struct event *e)
{
    struct sim_pod *p = &w->pods[e->place];
    uint32_t first = WORLD_WORKERS;

    if (p->pod.state != POD_RUNNING || p->pod.at.round != e->ms ||
        p->pod.n_held > 0)
        return;
    for (uint32_t i = p->n_workers; i-- > 0;)
        if (p->workers[i].alive && p->pod.sup.alive[i])
            first = i;
    if (first == WORLD_WORKERS)
        return;
    world_say(w, "pod %u hangs", e->place);
    world_count(w, FAULT_HANG);
    w->history.failed_with[ERR_HANG] = true;
    if (w->now > w->history.last_fault_ms)
        w->history.last_fault_ms = w->now;
    for (uint32_t i = 0; i < p->n_workers; i++) {
        p->workers[i].life = p->workers[i].alive ? ++w->lives
                                                 : p->workers[i].life;
        p->workers[i].hung = true;
    }
    pod_hang(&p->pod, world_clock(w, e->place), first);
    if (p->pod.hang_ms == 0)
        world_fail(w, "pod %u hangs, and nobody is told", e->place);
}

static void act_kill(void *c, uint32_t worker, int signo)
{
    struct sim_ctx *x = c;
    struct world *w = x->w;
    struct sim_worker *k;

    if (w->pods[x->i].pod.prepares)
        worker = WORLD_PRE;
    else
        world_check_kill(w, x->i);
    k = &w->pods[x->i].workers[worker];
    if (!k->alive)
        return;
    k->stopped = true;
    if (signo == SIGTERM && k->ignores_term) {
        w->history.n[FAULT_IGNORED]++;
    } else if (signo == SIGKILL && k->outlives_kill) {
        world_count(w, FAULT_OUTLIVED);
        k->killed = true;
        w->pods[x->i].was_stuck = true;
        plan_exit(w, x->i, worker, w->now + world_draw(w, 40000), 137);
    } else if (signo == SIGUSR1) { /* Some die of it. */
        if (world_chance(w, 40))
            plan_exit(w, x->i, worker, w->now + world_draw(w, 7000), 138);
    } else if (signo == SIGKILL || signo == SIGTERM) {
        k->killed = signo == SIGKILL;
        plan_exit(w, x->i, worker, w->now +
                  (signo == SIGKILL ? 1 : 1 + world_draw(w, 500)),
                  128 + signo);
    }
}

static void act_sweep(void *c, int signo)
{
    struct sim_ctx *x = c;
    struct event *e = world_plan(x->w, x->w->now, EV_SWEPT, x->i);

    (void)signo;
    e->life = x->w->pods[x->i].life;
}

unsigned world_free_zero(const struct world *w)
{
    unsigned i = 0;

    for (uint32_t k = 0; k < w->n_places; k++)
        if (w->pods[k].rank == 0 && w->pods[k].zero >= i)
            i = w->pods[k].zero + 1;
    return i;
}

void world_boot(struct world *w, uint32_t i)
{
    struct pod_out out = {.ctx = &ctxs[i],
                          .log = act_log,
                          .stage = act_stage,
                          .stage_kill = act_nothing,
                          .spawn = act_spawn,
                          .spawn_again = act_spawn_again,
                          .pre_start = act_pre_start,
                          .sweep_worker = act_sweep_worker,
                          .kill = act_kill,
                          .sweep = act_sweep,
                          .connect = world_connect,
                          .link_send = world_link_send,
                          .link_close = world_link_close,
                          .conn_send = world_conn_send,
                          .conn_close = world_conn_close,
                          .conn_admit = world_conn_admit,
                          .mesh_open = world_mesh_open,
                          .mesh_test = world_mesh_test,
                          .mesh_close = world_mesh_close};
    struct sim_pod *p = &w->pods[i];
    uint64_t now = world_clock(w, i);
    struct pod_config cfg = {.node_rank = p->rank,
                             .nnodes = p->nnodes,
                             .any_rank = p->rank == WIRE_ANY_RANK,
                             .nproc = p->n_workers,
                             .max_restarts = w->max_restarts,
                             .restart_period_ms = w->restart_period_ms,
                             .barrier_timeout_ms = w->barrier_timeout_ms,
                             .rejoin_timeout_ms = w->rejoin_timeout_ms,
                             .grace_ms = w->grace_ms,
                             .has_stage = w->has_stage,
                             .has_pre_start = w->has_pre,
                             .restart_always = w->always,
                             .restart_reset_ms = 600000,
                             .hang_signal = SIGUSR1,
                             .job_id = "sim",
                             .host = "host",
                             .zero = "zero:1",
                             .mesh = w->mesh_reach > 0 && p->nnodes > 1};
    struct sim_zero *zero = &w->zeros[p->zero];
    struct barrier_config bar = {.nnodes = p->nnodes,
                                 .min_nodes = w->min_nodes,
                                 .last_call_ms = w->last_call_ms,
                                 .job_id = "sim",
                                 .seed = w->seed,
                                 .guests = zero->guests,
                                 .n_guests = WORLD_GUESTS,
                                 .barrier_timeout_ms = w->barrier_timeout_ms,
                                 .rejoin_timeout_ms = w->rejoin_timeout_ms,
                                 .grace_ms = w->grace_ms,
                                 .backoff_min_ms = 1000,
                                 .backoff_max_ms = 30000,
                                 .restart_reset_ms = 600000,
                                 .max_restarts = w->max_restarts,
                                 .restart_period_ms = w->restart_period_ms,
                                 .restart_never = w->never,
                                 .restart_always = w->always,
                                 .scope_worker = w->scope_worker,
                                 .same_limit = w->same_limit,
                                 .master_port = 29500,
                                 .mesh_reach = w->mesh_reach,
                                 .mesh_strict = w->mesh_strict};

    p->exists = true;
    p->frozen_until = p->thaw_ms = p->mesh_nonce = p->n_mesh = 0;
    p->mesh_open = p->has_rank = false;
    p->again_zero = p->open_zero = 0;
    p->told_losses = p->told_restarts = 0;
    p->zero_lost = false;
    p->life = ++w->lives;
    p->prepared = false;
    memset(p->streaks, 0, sizeof p->streaks);
    memset(p->held, 0, sizeof p->held);
    memset(p->attempts, 0, sizeof p->attempts);
    cfg.incarnation = bar.incarnation = p->life;
    world_make_token(w, &cfg.auth);
    bar.auth = cfg.auth;
    ctxs[i] = (struct sim_ctx){w, i};
    world_say(w, "pod %u boots as rank %u of %u", i, p->rank, p->nnodes);
    /* All but the queue, which is large. */
    memset(&p->pod, 0, offsetof(struct pod, queue));
    pod_init(&p->pod, &cfg, &out, now);
    if (w->scope_worker)
        pod_hold_workers(&p->pod, p->held);
    if (p->rank == 0) {
        w->zero = i;
        memset(zero->link_of, 0, sizeof zero->link_of);
        memset(zero->last_of, 0, sizeof zero->last_of);
        pod_own_barrier(&p->pod, &zero->barrier, &bar, zero->peers,
                        zero->conns, WORLD_CONNS, now);
    }
    pod_start(&p->pod, now);
}

void world_kill(struct world *w, uint32_t i)
{
    struct sim_pod *p = &w->pods[i];
    uint64_t boot_ms;

    if (!p->exists || p->over)
        return;
    world_say(w, "pod %u is killed", i);
    world_count(w, p->rank == 0 ? FAULT_KILL_ZERO : FAULT_KILL);
    p->exists = false;
    for (uint32_t k = 0; k <= WORLD_PRE; k++)
        p->workers[k].alive = false;
    world_close_all(w, i);
    world_check_memory(w);
    if (p->rank == 0)
        world_with_zero(w);
    p->over = p->replaced; /* Nobody starts it again. */
    boot_ms = 100 + world_draw(w, 20000);
    (void)world_plan(w, w->now + (p->boot_ms ? p->boot_ms : boot_ms), EV_BOOT,
                     i);
}

/* Dead at once; a frozen agent learns of it later. */
static void worker_ends(struct world *w, const struct event *e)
{
    struct sim_worker *k = &w->pods[e->place].workers[e->worker];
    struct event *reap;

    if (!k->alive || k->life != e->life)
        return;
    if (w->pods[e->place].thaw_ms > w->now) { /* It stands still. */
        plan_exit(w, e->place, e->worker, w->pods[e->place].thaw_ms + 1,
                  e->code);
        return;
    }
    k->alive = false;
    k->ok = e->code == 0;
    world_note_end(w, e->place, e->worker, e->code);
    if (e->code != 128 + SIGTERM && e->code != 0 && !k->hung) {
        w->history.failed_with[e->code] = true;
        if (w->now > w->history.last_fault_ms)
            w->history.last_fault_ms = w->now;
    }
    world_say(w, "pod %u: worker %u ends with %d", e->place, e->worker,
              e->code);
    reap = world_plan(w, w->now, EV_REAP, e->place);
    reap->worker = e->worker;
    reap->life = w->pods[e->place].life;
    reap->code = e->code;
    reap->ms = w->now - k->start_ms;
}

static void reap(struct world *w, const struct event *e)
{
    bool pre = e->worker == WORLD_PRE;
    struct pod_exit x = {.worker = pre ? 0 : e->worker, .pid = 1,
                         .code = e->code, .hint = "", .tail = ""};

    x.ran_ms = e->ms;
    x.signo = e->code > 128 && e->code < 160 ? e->code - 128 : 0;
    pod_worker_exit(&w->pods[e->place].pod, world_clock(w, e->place), &x);
}

void world_pod_event(struct world *w, const struct event *e)
{
    static const uint8_t digest[WIRE_DIGEST] = {1};
    struct sim_pod *p = &w->pods[e->place];

    if (e->what == EV_BOOT) {
        if (!p->exists && !p->over)
            world_boot(w, e->place);
    } else if (e->what == EV_EXIT) {
        worker_ends(w, e);
    } else if (!p->exists || p->life != e->life) {
        return;
    } else if (e->what == EV_HANG) {
        hang(w, e);
    } else if (e->what == EV_REAP) {
        reap(w, e);
    } else if (e->what == EV_SWEPT && e->code) {
        pod_worker_swept(&p->pod, world_clock(w, e->place), e->worker,
                         e->code == 2);
    } else if (e->what == EV_SWEPT) {
        pod_swept(&p->pod, world_clock(w, e->place), 0, false);
    } else if (e->code) {
        world_count(w, FAULT_DATA);
        p->bad_data = true;
        pod_fault(&p->pod, world_clock(w, e->place), e->code, "bad data");
    } else {
        pod_stage_done(&p->pod, world_clock(w, e->place), digest);
    }
}
