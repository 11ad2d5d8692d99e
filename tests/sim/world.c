/* world: see world.h. */
#include "world.h"

#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIMIT_MS (4u * 3600 * 1000) /* Of virtual time. */
#define LIMIT_STEPS 200000

static uint64_t draw(struct world *w, uint64_t below)
{
    w->rng ^= w->rng << 13;
    w->rng ^= w->rng >> 7;
    w->rng ^= w->rng << 17;
    return (w->rng >> 11) % below;
}

static bool chance(struct world *w, unsigned percent)
{
    return draw(w, 100) < percent;
}

static void __attribute__((format(printf, 2, 3)))
say(struct world *w, const char *fmt, ...)
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
    say(w, "FAULT: %s", w->fault);
}

/* --- the heap of events --- */

static bool before(const struct event *a, const struct event *b)
{
    return a->at < b->at || (a->at == b->at && a->seq < b->seq);
}

static struct event *plan_event(struct world *w, uint64_t at, enum what what,
                                uint32_t pod)
{
    struct event *e = calloc(1, sizeof *e);
    unsigned i = w->n_heap;

    if (!e || w->n_heap == WORLD_EVENTS) {
        fprintf(stderr, "sim: too many events\n");
        exit(1);
    }
    e->at = at;
    e->seq = ++w->seq;
    e->what = what;
    e->pod = pod;
    w->n_heap++;
    while (i > 0 && before(e, w->heap[(i - 1) / 2])) {
        w->heap[i] = w->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    w->heap[i] = e;
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

/* --- what the pods ask for --- */

struct ctx { /* One a pod: what `out.ctx` is. */
    struct world *w;
    uint32_t i;
};
static struct ctx ctxs[WORLD_PODS];

static void act_log(void *c, enum log_level level, const char *text)
{
    const struct ctx *x = c;

    say(x->w, "pod %u: %s%s", x->i, level <= LOG_WARNING ? "! " : "", text);
}

static void act_stage(void *c)
{
    struct ctx *x = c;
    struct event *e = plan_event(x->w, x->w->now + draw(x->w, 20000),
                                 EV_STAGED, x->i);

    e->life = x->w->pods[x->i].life;
    e->code = !x->w->quiet_job && chance(x->w, 3) ? ERR_DATA : 0;
}

static void act_nothing(void *c)
{
    (void)c;
}

static void plan_exit(struct world *w, uint32_t pod, uint32_t i, uint64_t at,
                      int code)
{
    struct event *e = plan_event(w, at, EV_EXIT, pod);

    e->worker = i;
    e->life = w->pods[pod].workers[i].life;
    e->code = code;
}

static const int codes[] = {1, 2, 3, 42, 127, 134, 137, 139, 255};

static void act_spawn(void *c, const struct pod_round *round)
{
    struct ctx *x = c;
    struct world *w = x->w;
    struct sim_pod *p = &w->pods[x->i];

    say(w, "pod %u spawns round %u, ranks from %u of %u", x->i, round->round,
        round->rank_base, round->world_size);
    world_check_spawn(w, x->i, round->round);
    if (round->rank_base != x->i * w->n_workers ||
        round->world_size != w->n_pods * w->n_workers)
        world_fail(w, "pod %u got rank base %u of %u", x->i, round->rank_base,
                   round->world_size);
    for (uint32_t i = 0; i < w->n_workers; i++) {
        struct sim_worker *k = &p->workers[i];
        int code = chance(w, w->fail_percent) ? codes[draw(w, 9)] : 0;

        k->alive = true;
        k->round = round->round;
        k->life = ++w->lives;
        k->ignores_term = chance(w, 10);
        plan_exit(w, x->i, i, w->now + 1 + draw(w, chance(w, 20) ? 50 : 60000),
                  code);
    }
}

static void act_kill(void *c, uint32_t worker, int signo)
{
    struct ctx *x = c;
    struct sim_worker *k = &x->w->pods[x->i].workers[worker];

    if (!k->alive)
        return;
    if (signo == SIGTERM && k->ignores_term)
        x->w->history.n_ignored_terms++;
    else if (signo == SIGKILL || signo == SIGTERM)
        plan_exit(x->w, x->i, worker,
                  x->w->now + (signo == SIGKILL ? 1 : 1 + draw(x->w, 500)),
                  128 + signo);
}

static void act_sweep(void *c, int signo)
{
    struct ctx *x = c;
    struct event *e = plan_event(x->w, x->w->now, EV_SWEPT, x->i);

    (void)signo;
    e->life = x->w->pods[x->i].life;
}

static void act_connect(void *c)
{
    struct ctx *x = c;
    struct event *e = plan_event(x->w, x->w->now + 1 + draw(x->w, 200),
                                 EV_CONNECT, x->i);

    e->life = x->w->pods[x->i].life;
}

/* A frame or an end on its way; nothing overtakes in one direction. */
static struct event *plan_net(struct world *w, uint32_t link, enum what what)
{
    struct sim_link *c = &w->links[link];
    bool up = what == EV_TO_ZERO || what == EV_FIN_ZERO;
    uint64_t *last = up ? &c->to_zero_ms : &c->to_pod_ms;
    uint64_t at = w->now + draw(w, chance(w, 5) ? 1500 : 20);
    struct event *e;

    if (at < *last)
        at = *last;
    *last = at;
    e = plan_event(w, at, what, c->pod);
    e->link = link;
    return e;
}

static void act_link_send(void *c, const struct wire_msg *m)
{
    struct ctx *x = c;
    struct event *e;

    if (!x->w->pods[x->i].link)
        return;
    e = plan_net(x->w, x->w->pods[x->i].link, EV_TO_ZERO);
    e->len = (uint16_t)wire_encode(m, e->frame);
}

static void act_link_close(void *c, bool abort)
{
    struct ctx *x = c;
    struct sim_pod *p = &x->w->pods[x->i];

    if (!p->link)
        return;
    (void)plan_net(x->w, p->link, EV_FIN_ZERO);
    if (abort) {
        x->w->links[p->link].pod_open = false;
        p->link = 0;
    } else {
        (void)plan_net(x->w, p->link, EV_FIN_POD);
    }
}

static void cut(struct world *w, uint32_t pod)
{
    uint32_t link = w->pods[pod].link;

    if (!link)
        return;
    say(w, "the connection of pod %u is cut", pod);
    w->history.n_cuts++;
    (void)plan_net(w, link, EV_FIN_POD);
    (void)plan_net(w, link, EV_FIN_ZERO);
}

/* Pod 0's connection with this number; 0 for none. */
static uint32_t link_of_conn(const struct world *w, uint32_t conn)
{
    for (uint32_t i = w->n_links; i > 0; i--)
        if (w->links[i].zero_open && w->links[i].conn == conn)
            return i;
    return 0;
}

static void act_conn_send(void *c, uint32_t conn, const struct wire_msg *m)
{
    struct ctx *x = c;
    uint32_t link = link_of_conn(x->w, conn);
    struct event *e;

    if (!link)
        return;
    /* A cut just before a frame that matters, so that it is lost. */
    if (!x->w->quiet_job && m->kind != WIRE_PING && chance(x->w, 2))
        cut(x->w, x->w->links[link].pod);
    e = plan_net(x->w, link, EV_TO_POD);
    e->len = (uint16_t)wire_encode(m, e->frame);
}

static void act_conn_close(void *c, uint32_t conn, bool abort)
{
    struct ctx *x = c;
    uint32_t link = link_of_conn(x->w, conn);

    (void)abort;
    if (!link)
        return;
    (void)plan_net(x->w, link, EV_FIN_POD);
    (void)plan_net(x->w, link, EV_FIN_ZERO);
}

/* --- what happens --- */

static void boot(struct world *w, uint32_t i)
{
    static const struct pod_out out = {.log = act_log,
                                       .stage = act_stage,
                                       .stage_kill = act_nothing,
                                       .spawn = act_spawn,
                                       .kill = act_kill,
                                       .sweep = act_sweep,
                                       .connect = act_connect,
                                       .link_send = act_link_send,
                                       .link_close = act_link_close,
                                       .conn_send = act_conn_send,
                                       .conn_close = act_conn_close};
    struct pod_out mine = out;
    struct sim_pod *p = &w->pods[i];
    struct pod_config cfg = {.node_rank = i,
                             .nnodes = w->n_pods,
                             .nproc = w->n_workers,
                             .max_restarts = w->max_restarts,
                             .barrier_timeout_ms = 600000,
                             .rejoin_timeout_ms = 300000,
                             .grace_ms = w->grace_ms,
                             .has_stage = w->has_stage,
                             .job_id = "sim",
                             .host = "host",
                             .zero = "zero:1"};
    struct barrier_config bar = {.nnodes = w->n_pods,
                                 .job_id = "sim",
                                 .barrier_timeout_ms = 600000,
                                 .rejoin_timeout_ms = 300000,
                                 .grace_ms = w->grace_ms,
                                 .backoff_min_ms = 1000,
                                 .backoff_max_ms = 30000,
                                 .restart_reset_ms = 600000,
                                 .max_restarts = w->max_restarts,
                                 .restart_never = w->never,
                                 .master_port = 29500};

    p->exists = true;
    p->life = ++w->lives;
    cfg.incarnation = bar.incarnation = p->life;
    bar.seed = w->seed;
    ctxs[i] = (struct ctx){w, i};
    mine.ctx = &ctxs[i];
    say(w, "pod %u boots", i);
    pod_init(&p->pod, &cfg, &mine, w->now);
    if (i == 0) {
        pod_own_barrier(&p->pod, &w->barrier, &bar, w->bar_peers, w->bar_conns,
                        WORLD_CONNS, w->now);
    }
    pod_start(&p->pod, w->now);
}

/* The kernel closes every connection of a pod whose agent is dead. */
static void close_all(struct world *w, uint32_t i)
{
    struct sim_pod *p = &w->pods[i];

    if (p->link) {
        w->links[p->link].pod_open = false;
        (void)plan_net(w, p->link, EV_FIN_ZERO);
        p->link = 0;
    }
    for (uint32_t k = 1; i == 0 && k <= w->n_links; k++)
        if (w->links[k].zero_open) {
            w->links[k].zero_open = false;
            (void)plan_net(w, k, EV_FIN_POD);
        }
}

static void kill_pod(struct world *w, uint32_t i)
{
    struct sim_pod *p = &w->pods[i];

    if (!p->exists || p->over)
        return;
    say(w, "pod %u is killed", i);
    w->history.n_kills++;
    p->exists = false;
    for (uint32_t k = 0; k < w->n_workers; k++)
        p->workers[k].alive = false;
    close_all(w, i);
    world_check_memory(w);
    (void)plan_event(w, w->now + 100 + draw(w, 20000), EV_BOOT, i);
}

static void connect_done(struct world *w, const struct event *e)
{
    struct sim_pod *p = &w->pods[e->pod];
    uint32_t conn = 1;
    struct sim_link *c;

    while (conn < WORLD_CONNS && link_of_conn(w, conn))
        conn++;
    if (!w->pods[0].exists || conn == WORLD_CONNS ||
        w->n_links + 1 == WORLD_LINKS) {
        pod_link_down(&p->pod, w->now, "connection refused");
        return;
    }
    p->link = ++w->n_links;
    c = &w->links[p->link];
    *c = (struct sim_link){.pod = e->pod, .conn = conn, .pod_life = p->life,
                           .zero_life = w->pods[0].life, .pod_open = true,
                           .zero_open = true, .to_zero_ms = w->now,
                           .to_pod_ms = w->now};
    pod_conn_open(&w->pods[0].pod, w->now, conn, "addr");
    pod_link_up(&p->pod, w->now);
}

static void deliver(struct world *w, const struct event *e)
{
    struct sim_pod *p = &w->pods[e->pod];
    const char *why;
    unsigned version;
    struct wire_msg m;

    if (wire_decode(e->frame, e->len, &m, &why, &version) != (int)e->len) {
        world_fail(w, "a frame does not decode: %s", why);
        return;
    }
    say(w, "pod %u %s %s, round %u", e->pod,
        e->what == EV_TO_ZERO ? "says" : "hears", wire_name(m.kind), m.round);
    if (e->what == EV_TO_ZERO)
        pod_conn_message(&w->pods[0].pod, w->now, w->links[e->link].conn, &m);
    else
        pod_link_message(&p->pod, w->now, &m);
}

static void worker_exit(struct world *w, const struct event *e)
{
    struct sim_worker *k = &w->pods[e->pod].workers[e->worker];
    struct pod_exit x = {.worker = e->worker, .pid = 1, .code = e->code,
                         .hint = "", .tail = ""};

    if (!k->alive || k->life != e->life)
        return;
    k->alive = false;
    x.signo = e->code > 128 && e->code < 160 ? e->code - 128 : 0;
    if (e->code != 128 + SIGTERM && e->code != 0)
        w->history.failed_with[e->code] = true;
    say(w, "pod %u: worker %u ends with %d", e->pod, e->worker, e->code);
    pod_worker_exit(&w->pods[e->pod].pod, w->now, &x);
}

static void happen_to_pod(struct world *w, const struct event *e)
{
    static const uint8_t digest[WIRE_DIGEST] = {1};
    struct sim_pod *p = &w->pods[e->pod];

    if (!p->exists || p->life != e->life)
        return;
    if (e->what == EV_CONNECT) {
        connect_done(w, e);
    } else if (e->what == EV_SWEPT) {
        pod_swept(&p->pod, w->now, 0, false);
    } else if (e->code) {
        w->history.n_stage_faults++;
        pod_fault(&p->pod, w->now, e->code, "bad data");
    } else {
        pod_stage_done(&p->pod, w->now, digest);
    }
}

static void happen_on_net(struct world *w, const struct event *e)
{
    struct sim_link *c = &w->links[e->link];
    struct sim_pod *p = &w->pods[c->pod], *zero = &w->pods[0];
    bool zero_end = zero->exists && zero->life == c->zero_life && c->zero_open;
    bool pod_end = p->exists && p->life == c->pod_life && c->pod_open;

    if (e->what == EV_TO_ZERO && zero_end) {
        deliver(w, e);
    } else if (e->what == EV_TO_POD && pod_end) {
        deliver(w, e);
    } else if (e->what == EV_FIN_ZERO && zero_end) {
        c->zero_open = false;
        pod_conn_closed(&zero->pod, w->now, c->conn);
    } else if (e->what == EV_FIN_POD && pod_end) {
        c->pod_open = false;
        p->link = 0;
        pod_link_down(&p->pod, w->now, "closed");
    }
}

static void happen(struct world *w, const struct event *e)
{
    struct sim_pod *p = &w->pods[e->pod];

    switch (e->what) {
    case EV_BOOT:
        if (!p->exists && !p->over)
            boot(w, e->pod);
        break;
    case EV_EXIT:
        worker_exit(w, e);
        break;
    case EV_KILL_POD:
        kill_pod(w, e->pod);
        break;
    case EV_TERM_POD:
        if (!p->exists)
            break;
        say(w, "pod %u gets SIGTERM", e->pod);
        w->history.n_terms++;
        p->was_termed = true;
        pod_signal(&p->pod, w->now, SIGTERM);
        break;
    case EV_CUT:
        cut(w, e->pod);
        break;
    case EV_CONNECT:
    case EV_STAGED:
    case EV_SWEPT:
        happen_to_pod(w, e);
        break;
    case EV_TO_ZERO:
    case EV_TO_POD:
    case EV_FIN_ZERO:
    case EV_FIN_POD:
        happen_on_net(w, e);
        break;
    }
}

/* A pod that is gone has exited: its connections end with it. */
static void bury(struct world *w)
{
    for (uint32_t i = 0; i < w->n_pods; i++) {
        struct sim_pod *p = &w->pods[i];

        if (!p->exists || p->pod.state != POD_GONE)
            continue;
        say(w, "pod %u exits with %d", i, p->pod.exit_code);
        p->exists = false;
        p->over = true;
        p->exit_code = p->pod.exit_code;
        for (uint32_t k = 0; k < w->n_workers; k++)
            if (p->workers[k].alive)
                world_fail(w, "pod %u exits, worker %u lives", i, k);
        close_all(w, i);
        world_check_memory(w);
    }
}

static void plan_faults(struct world *w)
{
    unsigned n = w->quiet_job ? 0 : (unsigned)draw(w, chance(w, 30) ? 16 : 4);

    for (unsigned i = 0; i < n; i++) {
        uint64_t at = draw(w, 30000) + draw(w, chance(w, 50) ? 2000 : 120000);
        uint32_t pod = (uint32_t)draw(w, w->n_pods);

        switch (draw(w, 8)) {
        case 0:
            (void)plan_event(w, at, EV_TERM_POD, pod);
            break;
        case 1:
        case 2:
            (void)plan_event(w, at, EV_KILL_POD, pod);
            break;
        default:
            (void)plan_event(w, at, EV_CUT, pod);
            break;
        }
    }
}

static void set_up(struct world *w, uint64_t seed, bool trace)
{
    memset(w, 0, sizeof *w);
    w->seed = seed;
    w->trace = trace;
    w->rng = seed * 0x9e3779b97f4a7c15u | 1;
    for (int i = 0; i < 8; i++)
        (void)draw(w, 2);
    w->n_pods = 1 + (uint32_t)draw(w, chance(w, 80) ? 4 : WORLD_PODS);
    w->n_workers = 1 + (uint32_t)draw(w, WORLD_WORKERS);
    w->grace_ms = 1000 + draw(w, 25000);
    w->max_restarts = (uint32_t)draw(w, 4);
    w->never = chance(w, 10);
    w->has_stage = chance(w, 50);
    w->quiet_job = chance(w, 40);
    w->fail_percent = chance(w, 20) ? 0 : (unsigned)draw(w, 40);
    for (uint32_t i = 0; i < w->n_pods; i++)
        (void)plan_event(w, draw(w, 30000), EV_BOOT, i);
    plan_faults(w);
}

/* Advance to the next event or deadline; false where nothing is to come. */
static bool step(struct world *w)
{
    uint64_t at = w->n_heap ? w->heap[0]->at : UINT64_MAX;
    struct sim_pod *due = NULL;
    struct event *e;

    for (uint32_t i = 0; i < w->n_pods; i++) {
        struct sim_pod *p = &w->pods[i];
        uint64_t d = p->exists ? pod_deadline(&p->pod) : UINT64_MAX;

        if (d < at) {
            at = d;
            due = p;
        }
    }
    if (at == UINT64_MAX)
        return false;
    if (at > w->now)
        w->now = at;
    if (due) {
        pod_timeout(&due->pod, w->now);
    } else {
        e = next_event(w);
        happen(w, e);
        free(e);
    }
    bury(w);
    world_check_step(w);
    return !w->fault[0];
}

bool world_run(struct world *w, uint64_t seed, bool trace)
{
    bool all_over = false;

    set_up(w, seed, trace);
    for (unsigned n = 0; !all_over && step(w); n++) {
        all_over = true;
        for (uint32_t i = 0; i < w->n_pods; i++)
            all_over = all_over && w->pods[i].over;
        if (n > LIMIT_STEPS || w->now > LIMIT_MS)
            world_fail(w, "no end after %u steps, %" PRIu64 " ms", n, w->now);
    }
    if (!all_over)
        world_fail(w, "nothing is to come, and not all pods are gone: pod 0 is "
                   "in state %u, its barrier in phase %u",
                   (unsigned)w->pods[0].pod.state, (unsigned)w->barrier.phase);
    world_check_end(w);
    while (w->n_heap > 0)
        free(next_event(w));
    return !w->fault[0];
}
