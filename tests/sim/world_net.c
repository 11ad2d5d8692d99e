/* world_net: the connections of the world, as TCP gives them. Nothing
 * overtakes; what a partition holds comes after it, or never. */
#include "world.h"

#include <string.h>

/* How far the way of a frame is cut off; 0: it is open. */
static uint64_t closed_until(const struct world *w, uint32_t place,
                             uint32_t at, bool up)
{
    const struct sim_pod *p = &w->pods[place], *zero = &w->pods[at];
    uint64_t a = up ? p->out_until : p->in_until;
    uint64_t b = up ? zero->in_until : zero->out_until;
    uint64_t until = a > b ? a : b;

    return until > w->now ? until : 0;
}

/* What a pod says and hears to come back must fit in its 2 s, and so must a
 * PING and its answer in those of a newcomer; others may take longer. */
static uint64_t may_be_late(const struct wire_msg *m)
{
    if (!m || m->kind == WIRE_CHALLENGE || m->kind == WIRE_PROOF ||
        m->kind == WIRE_HELLO)
        return 300;
    return m->kind == WIRE_PING ? 900 : 1500;
}

/* What a partition held is sent again some time after it, all at once. */
static uint64_t held_until(struct world *w, uint64_t *held, uint64_t until)
{
    if (*held < until)
        *held = until + world_draw(w, world_chance(w, 70) ? 100 : 15000);
    return *held;
}

/* Words for the log while all have arrived and wait, and the restarts that
 * another pod has used: they change nothing, and so they draw nothing. */
static bool is_idle_talk(const struct world *w, uint32_t zero,
                         const struct wire_msg *m)
{
    const struct barrier *b = &w->zeros[w->pods[zero].zero].barrier;

    return m && ((m->kind == WIRE_WAITING &&
                  b->counts[PEER_ARRIVED] == b->cfg.nnodes) ||
                 (m->kind == WIRE_AGAIN && m->serial == 0));
}

/* A frame or an end on its way; false where it will never arrive. */
static bool plan_net(struct world *w, uint32_t link, enum what what,
                     const struct wire_msg *m)
{
    struct sim_link *c = &w->links[link];
    bool up = what == EV_TO_ZERO || what == EV_FIN_ZERO;
    bool idle = is_idle_talk(w, c->zero, m);
    bool late = !idle && world_chance(w, 5);
    uint64_t *last = up ? &c->to_zero_ms : &c->to_pod_ms;
    bool *dead = up ? &c->dead_up : &c->dead_down;
    uint64_t at = w->now +
                  (idle ? 1 : world_draw(w, !late ? 20 : may_be_late(m)));
    uint64_t until = closed_until(w, c->place, c->zero, up);
    struct event *e;

    if (until && (until == FOREVER || w->pods[c->place].drops ||
                  w->pods[c->zero].drops))
        *dead = true;
    if (*dead) {
        w->history.n[FAULT_DROPPED]++;
        return false;
    }
    w->history.n[FAULT_LATE] += late;
    w->history.n[FAULT_HELD] += until > 0;
    if (at < until)
        at = held_until(w, up ? &c->held_up : &c->held_down, until);
    if (at < *last)
        at = *last;
    *last = at;
    e = world_plan(w, at, what, c->place);
    e->link = link;
    e->code = until > 0;
    if (m)
        e->len = (uint16_t)wire_encode(m, e->frame);
    return true;
}

static void attempt(struct world *w, uint32_t place, uint64_t ms, int code)
{
    struct event *e = world_plan(w, w->now + ms, EV_CONNECT, place);

    e->life = w->pods[place].life;
    e->code = code;
}

void world_connect(void *c)
{
    struct sim_ctx *x = c;

    attempt(x->w, x->i, 1 + world_draw(x->w, 200), 0);
}

void world_link_send(void *c, const struct wire_msg *m)
{
    struct sim_ctx *x = c;
    uint32_t link = x->w->pods[x->i].link;

    if (!link)
        return;
    world_overhear(x->w, link, m);
    if (m->kind == WIRE_HELLO)
        world_note_hello(x->w, x->i, x->w->links[link].zero_life);
    (void)plan_net(x->w, link, EV_TO_ZERO, m);
}

void world_say_zero(struct world *w, uint32_t link, enum what what,
                    const struct wire_msg *m)
{
    (void)plan_net(w, link, what, m);
}

/* Then it is noticed with the next heartbeat. */
static void reset_is_lost(struct world *w, uint64_t *last)
{
    uint64_t at = w->now + world_draw(w, 7000);

    if (world_chance(w, 10) && at > *last)
        *last = at;
}

void world_link_close(void *c, bool abort)
{
    struct sim_ctx *x = c;
    struct sim_pod *p = &x->w->pods[x->i];

    if (!p->link)
        return;
    if (abort) {
        x->w->links[p->link].purged_up = true;
        reset_is_lost(x->w, &x->w->links[p->link].to_zero_ms);
    }
    (void)plan_net(x->w, p->link, EV_FIN_ZERO, NULL);
    if (abort) {
        x->w->links[p->link].pod_open = false;
        p->link = 0;
    } else {
        (void)plan_net(x->w, p->link, EV_FIN_POD, NULL);
    }
}

static bool cannot_act(const struct world *w, const struct sim_pod *p)
{
    return p->frozen_until > w->now || p->out_until > w->now ||
           p->in_until > w->now;
}

void world_cut(struct world *w, uint32_t place)
{
    uint32_t link = w->pods[place].link;
    const struct sim_pod *zero = &w->pods[w->links[link].zero];

    /* Who stands still or is cut off cannot come back at once. */
    if (!link || cannot_act(w, &w->pods[place]) || cannot_act(w, zero))
        return;
    w->pods[place].cut_ms = w->history.cut_ms = w->now;
    world_say(w, "the connection of pod %u is cut", place);
    world_count(w, FAULT_CUT);
    /* A reset overtakes what is on its way. */
    world_plan(w, w->now + world_draw(w, 20), EV_FIN_POD, place)->link = link;
    world_plan(w, w->now + world_draw(w, 20), EV_FIN_ZERO, place)->link = link;
}

/* Of this pod 0, by their numbers. */
static uint32_t *links_of(const struct sim_ctx *x)
{
    return x->w->zeros[x->w->pods[x->i].zero].link_of;
}

void world_conn_send(void *c, uint32_t conn, const struct wire_msg *m)
{
    struct sim_ctx *x = c;
    uint32_t link = links_of(x)[conn];

    if (!link)
        return;
    /* A cut just before a frame that matters, so that it is lost. */
    if (x->w->kind == JOB_WILD && m->kind != WIRE_PING &&
        m->kind != WIRE_CHALLENGE && m->kind != WIRE_PROOF &&
        !(m->kind == WIRE_AGAIN && m->serial == 0) && world_chance(x->w, 2))
        world_cut(x->w, x->w->links[link].place);
    (void)plan_net(x->w, link, EV_TO_POD, m);
}

static void zero_ends(struct world *w, struct sim_link *c)
{
    c->zero_open = false;
    w->zeros[w->pods[c->zero].zero].link_of[c->conn] = 0;
}

void world_conn_close(void *c, uint32_t conn, bool abort)
{
    struct sim_ctx *x = c;
    struct event *e;
    uint32_t link = links_of(x)[conn];

    if (!link)
        return;
    if (abort) {
        x->w->links[link].purged_down = true;
        reset_is_lost(x->w, &x->w->links[link].to_pod_ms);
    }
    (void)plan_net(x->w, link, EV_FIN_POD, NULL);
    /* The own end is closed whatever the network does. */
    if (abort) {
        zero_ends(x->w, &x->w->links[link]);
        return;
    }
    e = world_plan(x->w, x->w->now, EV_FIN_ZERO, x->w->links[link].place);
    e->link = link;
}

void world_close_all(struct world *w, uint32_t i)
{
    struct sim_pod *p = &w->pods[i];

    if (p->link) {
        w->links[p->link].pod_open = false;
        (void)plan_net(w, p->link, EV_FIN_ZERO, NULL);
        p->link = 0;
    }
    for (uint32_t k = 1; p->rank == 0 && k <= w->n_links; k++)
        if (w->links[k].zero_open && w->links[k].zero == i) {
            zero_ends(w, &w->links[k]);
            (void)plan_net(w, k, EV_FIN_POD, NULL);
        }
}

/* Something of who had the number before may still be on its way. */
static void note_number(struct world *w, uint32_t *last)
{
    const struct sim_link *old = &w->links[*last];

    w->history.n[FAULT_REUSED] += *last && (old->to_zero_ms > w->now ||
                                            old->to_pod_ms > w->now);
    *last = w->n_links;
}

uint32_t world_link(struct world *w, uint32_t place)
{
    const struct sim_pod *zero = world_zero(w);
    uint32_t *link_of = w->zeros[zero->zero].link_of, conn = 1;

    while (conn < WORLD_CONNS && link_of[conn])
        conn++;
    if (!zero->exists || conn == WORLD_CONNS || w->n_links + 1 == WORLD_LINKS)
        return 0;
    w->links[++w->n_links] = (struct sim_link){
        .place = place, .zero = w->zero, .conn = conn,
        .pod_life = w->pods[place].life, .zero_life = zero->life,
        .pod_open = true, .zero_open = true,
        .to_zero_ms = w->now, .to_pod_ms = w->now};
    link_of[conn] = w->n_links;
    note_number(w, &w->zeros[zero->zero].last_of[conn]);
    world_plan(w, w->now, EV_ACCEPT, place)->link = w->n_links;
    return w->n_links;
}

static void connect_done(struct world *w, const struct event *e)
{
    struct sim_pod *p = &w->pods[e->place];

    if (!p->exists || p->life != e->life)
        return;
    if (!e->code && (closed_until(w, e->place, w->zero, true) ||
                     closed_until(w, e->place, w->zero, false))) {
        attempt(w, e->place, 5000, 1);
        return;
    }
    p->link = e->code ? 0 : world_link(w, e->place);
    if (p->link)
        pod_link_up(&p->pod, world_clock(w, e->place));
    else
        pod_link_down(&p->pod, world_clock(w, e->place),
                      e->code ? "no answer" : "refused");
}

static void deliver(struct world *w, const struct event *e)
{
    const struct sim_link *c = &w->links[e->link];
    const char *why;
    unsigned version;
    struct wire_msg m;

    if (wire_decode(e->frame, e->len, &m, &why, &version) != (int)e->len) {
        world_fail(w, "a frame does not decode: %s", why);
        return;
    }
    world_say(w, "pod %u %s %s, round %u", e->place,
              e->what == EV_TO_ZERO ? "says" : "hears", wire_name(m.kind),
              m.round);
    if (e->what == EV_TO_ZERO && m.kind == WIRE_HELLO) {
        w->pods[e->place].claim = m.node_rank;
        w->pods[e->place].told_zero = m.last_zero;
        w->history.n[FAULT_FENCED] += e->place != WORLD_STRANGER &&
                                      m.last_zero != w->pods[c->zero].life &&
                                      m.last_end == WIRE_END_SILENT;
    }
    if (e->what == EV_TO_POD && m.kind == WIRE_WELCOME &&
        w->pods[e->place].pod.zero_incarnation == m.incarnation)
        w->pods[e->place].again_zero = m.incarnation;
    if (e->what == EV_TO_POD)
        world_note_heard(w, e->place, c->zero_life, &m);
    w->history.n[FAULT_OLD] += e->what == EV_TO_ZERO &&
                               w->pods[e->place].link &&
                               w->pods[e->place].link != e->link;
    if (e->what == EV_TO_ZERO)
        pod_conn_message(&w->pods[c->zero].pod, world_clock(w, c->zero),
                         c->conn, &m);
    else
        pod_link_message(&w->pods[e->place].pod, world_clock(w, e->place), &m);
}

void world_net_event(struct world *w, const struct event *e)
{
    struct sim_link *c = &w->links[e->link];
    struct sim_pod *p = &w->pods[e->place], *zero = &w->pods[c->zero];
    uint64_t now = world_clock(w, e->what == EV_FIN_POD ? e->place : c->zero);
    bool zero_end = zero->exists && zero->life == c->zero_life && c->zero_open;
    bool pod_end = p->exists && p->life == c->pod_life && c->pod_open;
    struct wire_addr here = world_mesh_here(c->zero);

    if (e->what == EV_CONNECT) {
        connect_done(w, e);
    } else if (e->what == EV_ACCEPT && zero_end) {
        pod_conn_open(&zero->pod, now, c->conn,
                      c->place == WORLD_STRANGER ? "stranger:1" : "addr:1");
        pod_conn_here(&zero->pod, c->conn, &here);
    } else if (e->code && (e->what == EV_TO_ZERO ? c->purged_up
                                                 : c->purged_down) &&
               e->len > 0) {
        return;
    } else if (e->what == EV_TO_ZERO && zero_end) {
        deliver(w, e);
    } else if (e->what == EV_TO_POD && pod_end) {
        deliver(w, e);
    } else if (e->what == EV_FIN_ZERO && zero_end) {
        zero_ends(w, c);
        pod_conn_closed(&zero->pod, now, c->conn);
    } else if (e->what == EV_FIN_POD && pod_end) {
        c->pod_open = false;
        p->link = 0;
        pod_link_down(&p->pod, now, "closed");
    }
}
