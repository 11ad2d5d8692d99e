/* small: see small.h. */
#include "ddp/small.h"
#include "ddp/beside.h"
#include "ddp/blame.h"
#include "ddp/clock.h"
#include "ddp/double.h"
#include "ddp/reduce.h"
#include "ddp/tick.h"

#include <poll.h>
#include <string.h>

#define SMALL (16 * 1024) /* Measured: docs/benchmarks.md. */

enum { FD_WAKE, FD_RING, FD_WORLD = FD_RING + 2, FD_PAIRS = FD_WORLD + 2 };

struct small {
    struct ddp_comm *c;
    struct ddp_links *l; /* Whose pairs it goes over. */
    const struct ddp_request *q;
    struct ddp_error *err;
    struct ddp_frame mine;
    size_t bytes;
    struct ddp_beside ring;  /* Of the same ranks. */
    struct ddp_beside world; /* Of a part that goes over a rail. */
    uint64_t began, deadline, tick_ms, next_tick;
    struct ddp_pair *waits; /* For this one now, or NULL. */
    struct ddp_pair *lost;  /* Its elements ended: a FAULT may tell why, */
    uint64_t lost_until;    /* until then. */
};

bool ddp_small_fits(const struct ddp_links *l, const struct ddp_request *q)
{
    size_t most = l->seats == 2 ? DDP_SMALL_MAX : SMALL; /* Two: no detour. */

    return l->n_pairs > 0 && q->count <= most / q->width &&
           (q->what == DDP_ALL_REDUCE || q->what == DDP_BARRIER);
}

static int fail_lost(struct small *x, const struct ddp_pair *p)
{
    return ddp_blame_lost(x->c, x->q, x->err, p->rank, p->said_bye, p->error);
}

static int stray(struct small *x, int rank)
{
    return ddp_blame(x->c, x->q, x->err, DDP_EPEER, rank, "a frame that has "
                     "no place here came from another rank");
}

/* Take what is before the elements; whether they are complete: 1, 0, or an
 * error. */
static int hear_frames(struct small *x, struct ddp_pair *p)
{
    struct ddp_frame f;
    int n, rc;

    while ((n = ddp_pair_peek(p, &f)) > 0) {
        p->was_heard = true;
        if (f.kind == DDP_CALL) {
            rc = ddp_blame_difference(x->c, x->q, x->err, p->rank, &x->mine,
                                      &f);
            return rc ? rc : p->in_len >= (size_t)n + x->bytes;
        }
        if (f.kind == DDP_FAULT)
            return ddp_blame_by_frame(x->c, x->q, &f, p->rank, x->err);
        if (f.kind == DDP_PING)
            p->waits_for = (int)f.peer;
        else if (f.kind == DDP_BYE)
            p->said_bye = true;
        else
            return stray(x, p->rank);
        ddp_pair_take(p, (size_t)n);
    }
    return n < 0 ? stray(x, p->rank) : 0;
}

/* A rank is gone that this call needs. A FAULT may be about to come that tells
 * why, or of one that went before it. */
static int mourn(struct small *x, struct ddp_pair *p, uint64_t now)
{
    if ((p->said_bye || p->error == 0) && ddp_blame_knows(x->c))
        return fail_lost(x, p);
    if (!x->lost) {
        x->lost = p;
        x->lost_until = now + DDP_LOST_MS;
    }
    return 0;
}

/* Read from a pair whose elements are wanted: 1 once they are there. */
static int hear(struct small *x, struct ddp_pair *p, uint64_t now)
{
    int rc = hear_frames(x, p);

    while (rc == 0 && ddp_pair_read(p)) {
        p->heard = now;
        rc = hear_frames(x, p);
    }
    return rc || !p->is_gone ? rc : mourn(x, p, now);
}

/* The silent rank that this one waits for, as far as is known; -1: none. */
static int find_silent(const struct small *x, uint64_t now)
{
    const struct ddp_pair *p = x->waits;

    if (!p)
        return -1;
    if (now - p->heard > DDP_SILENT_TICKS * x->tick_ms)
        return p->rank;
    return p->waits_for == x->c->rank ? -1 : p->waits_for;
}

/* Tell all that this rank is here: also whom it has sent its part may wait for
 * it by now, in the next call. */
static int ping(struct small *x, uint64_t now)
{
    int peer = find_silent(x, now);

    ddp_beside_ping(&x->ring, peer);
    return ddp_beside_tick(&x->world, peer);
}

static int tick(struct small *x, uint64_t now)
{
    int peer = find_silent(x, now);

    if (x->lost && now >= x->lost_until)
        return fail_lost(x, x->lost);
    if (now >= x->deadline)
        return ddp_blame_late(x->c, x->q, x->err, peer,
                              !x->waits || x->waits->was_heard ||
                                  peer != x->waits->rank);
    if (now >= x->next_tick) {
        x->next_tick = now + x->tick_ms;
        return ping(x, now);
    }
    return 0;
}

/* Elements of this pair are to come, and are not complete. */
static short events(const struct small *x, const struct ddp_pair *p)
{
    struct ddp_frame f;
    int n;

    if (p->is_gone)
        return 0;
    n = p->is_wanted ? ddp_pair_peek(p, &f) : 0;
    return (short)((p->is_wanted && !(n > 0 && f.kind == DDP_CALL &&
                                      p->in_len >= (size_t)n + x->bytes)
                        ? POLLIN : 0) |
                   (p->out_len > 0 ? POLLOUT : 0));
}

/* Wait for any of the connections, and hear them. */
static int turn(struct small *x)
{
    struct ddp_links *l = x->l;
    struct pollfd p[FD_PAIRS + DDP_PAIRS_MAX];
    uint64_t now = ddp_now(), until = x->next_tick;
    int rc = 0;

    if (x->deadline < until)
        until = x->deadline;
    if (x->lost && x->lost_until < until)
        until = x->lost_until;
    p[FD_WAKE] = (struct pollfd){.fd = x->c->wake_fd, .events = POLLIN};
    ddp_beside_poll(&x->ring, p + FD_RING);
    ddp_beside_poll(&x->world, p + FD_WORLD);
    for (unsigned i = 0; i < l->n_pairs; i++) {
        short wants = events(x, &l->pairs[i]);

        p[FD_PAIRS + i] = (struct pollfd){
            .fd = wants ? l->pairs[i].fd : -1, .events = wants};
    }
    if (poll(p, FD_PAIRS + l->n_pairs,
             ddp_until(now, until, DDP_TICK_MAX_MS)) <= 0)
        memset(p, 0, sizeof p);
    now = ddp_now();
    if (p[FD_WAKE].revents)
        return ddp_blame_aborted(x->c, x->q, x->err);
    rc = ddp_beside_turn(&x->ring, p + FD_RING);
    if (!rc)
        rc = ddp_beside_turn(&x->world, p + FD_WORLD);
    for (unsigned i = 0; i < l->n_pairs && !rc; i++) {
        if (!p[FD_PAIRS + i].revents)
            continue;
        (void)ddp_pair_flush(&l->pairs[i]);
        if (l->pairs[i].is_wanted)
            rc = hear(x, &l->pairs[i], now);
        rc = rc < 0 ? rc : 0;
    }
    return rc ? rc : tick(x, now);
}

/* Wait for the elements of a pair, and take them in. */
static int receive(struct small *x, const struct ddp_step *s,
                   struct ddp_pair *p)
{
    const struct ddp_request *q = x->q;
    struct ddp_frame f;
    void *scratch = x->c->scratch;
    int rc = hear(x, p, x->began);

    x->waits = p;
    while (rc == 0) {
        rc = turn(x);
        if (rc == 0)
            rc = hear_frames(x, p);
    }
    x->waits = NULL;
    if (rc < 0)
        return rc;
    ddp_pair_take(p, (size_t)ddp_pair_peek(p, &f));
    memcpy(scratch, p->in, x->bytes); /* Aligned. */
    ddp_pair_take(p, x->bytes);
    p->is_wanted = false;
    if (!s->combines)
        memcpy(q->recv, scratch, x->bytes);
    else if (p->rank < x->c->rank)
        ddp_reduce(q->type, q->op, q->recv, scratch, q->recv, q->count);
    else
        ddp_reduce(q->type, q->op, q->recv, q->recv, scratch, q->count);
    return 0;
}

static int run_steps(struct small *x)
{
    struct ddp_step steps[DDP_STEPS_MAX];
    struct ddp_links *l = x->l;
    unsigned n = ddp_double_steps(l->seat, l->seats, steps);
    int rc = 0;

    for (unsigned i = 0; i < n; i++)
        if (steps[i].receives)
            l->pairs[steps[i].pair].is_wanted = true;
    for (unsigned i = 0; i < n && !rc; i++) {
        struct ddp_pair *p = &l->pairs[steps[i].pair];

        if (steps[i].sends) {
            if (ddp_pair_put(p, &x->mine, x->q->recv, x->bytes))
                rc = hear(x, p, x->began); /* A FAULT may have come first. */
            if (rc == 0 && p->is_gone)
                rc = mourn(x, p, ddp_now());
            rc = rc < 0 ? rc : 0;
            while (x->lost && !rc)
                rc = turn(x);
        }
        if (!rc && steps[i].receives)
            rc = receive(x, &steps[i], p);
    }
    for (unsigned i = 0; i < l->n_pairs && !rc; i++)
        while (!rc && l->pairs[i].out_len > 0 && !l->pairs[i].is_gone)
            rc = turn(x);
    return rc;
}

static struct ddp_beside beside(const struct small *x, struct ddp_links *l)
{
    return (struct ddp_beside){.c = x->c, .q = x->q, .err = x->err,
                               .mine = &x->mine, .l = l};
}

static void init(struct small *x, struct ddp_comm *c, struct ddp_links *l,
                 const struct ddp_request *q, struct ddp_error *err)
{
    memset(x, 0, sizeof *x);
    x->c = c;
    x->l = l;
    x->q = q;
    x->err = err;
    x->bytes = q->count * q->width;
    ddp_call_frame(c, q, &x->mine);
    x->began = ddp_now();
    x->deadline = q->whole ? q->deadline : x->began + c->timeout_ms;
    x->tick_ms = ddp_tick_ms(c->timeout_ms);
    x->next_tick = x->began + x->tick_ms;
    x->ring = beside(x, l);
    x->world = beside(x, l == &c->rail ? &c->links : NULL);
    for (unsigned i = 0; i < l->n_pairs; i++) {
        struct ddp_pair *p = &l->pairs[i];

        p->is_wanted = p->was_heard = false;
        p->heard = x->began;
        p->waits_for = -1;
    }
}

int ddp_small_run(struct ddp_comm *c, struct ddp_links *l,
                  const struct ddp_request *q, struct ddp_error *err)
{
    struct small x;
    int rc;

    c->n_calls += !q->whole;
    init(&x, c, l, q, err);
    if (atomic_load(&c->is_aborted))
        return ddp_blame_aborted(c, q, err);
    if (q->recv != q->send && x.bytes > 0)
        memcpy(q->recv, q->send, x.bytes);
    rc = ddp_beside_begin(&x.ring);
    if (!rc)
        rc = ddp_beside_begin(&x.world);
    if (!rc)
        rc = run_steps(&x);
    if (!rc && q->op == DDP_AVG && x.bytes > 0)
        ddp_divide(q->type, q->recv, q->recv, q->count, l->seats);
    return rc;
}
