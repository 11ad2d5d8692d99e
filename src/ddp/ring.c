/* ring: the course of one call, for comm.h; elements are flow.c's. */
#include "ddp/blame.h"
#include "ddp/call.h"
#include "ddp/clock.h"
#include "ddp/tick.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

/* For poll: elements out and in, prev, next, ddp_abort; beside.h. */
#define N_FDS 7

static bool needs(struct ddp_call *x, const struct ddp_side *s)
{
    if (!s->has_call)
        return true;
    return s == &x->prev ? !ddp_call_has_got(x) : !ddp_call_has_sent(x);
}

static int fail_lost(struct ddp_call *x, const struct ddp_side *s)
{
    return ddp_blame_lost(x->c, x->q, x->err, s->conn->rank,
                          s->ahead->said_bye, s->conn->error);
}

/* The silent rank that this one waits for, as far as is known; -1: none. A
 * neighbour that was heard from may itself know of one. */
static int find_silent(struct ddp_call *x, uint64_t now)
{
    const struct ddp_side *const sides[] = {&x->prev, &x->next};

    for (unsigned i = 0; i < 2; i++)
        if (needs(x, sides[i]) &&
            now - sides[i]->heard > DDP_SILENT_TICKS * x->tick_ms)
            return sides[i]->conn->rank;
    for (unsigned i = 0; i < 2; i++)
        if (needs(x, sides[i]) && sides[i]->waits_for >= 0 &&
            sides[i]->waits_for != x->c->rank)
            return sides[i]->waits_for;
    return -1;
}

static int fail_late(struct ddp_call *x, uint64_t now)
{
    int peer = find_silent(x, now);
    const struct ddp_side *s = peer == x->prev.conn->rank ? &x->prev
                               : peer == x->next.conn->rank ? &x->next
                                                            : NULL;

    return ddp_blame_late(x->c, x->q, x->err, peer, !s || s->has_call);
}

/* Compare a neighbour's CALL with this rank's. */
static int check_call(struct ddp_call *x, struct ddp_side *s,
                      const struct ddp_frame *f)
{
    s->has_call = true;
    s->waits_for = -1; /* What was said before was about something else. */
    x->n_moved++;
    return ddp_blame_difference(x->c, x->q, x->err, s->conn->rank, &x->mine, f);
}

/* Tell both neighbours whom this rank waits for. */
static void ping(struct ddp_call *x, int waits_for)
{
    struct ddp_frame f = {.kind = DDP_PING, .peer = (uint32_t)waits_for};

    x->told = waits_for;
    if (x->prev.conn->out_len == 0)
        (void)ddp_conn_put(x->prev.conn, &f);
    if (x->next.conn->out_len == 0)
        (void)ddp_conn_put(x->next.conn, &f);
}

static int take_frame(struct ddp_call *x, struct ddp_side *s,
                      const struct ddp_frame *f)
{
    if (f->kind == DDP_FAULT)
        return ddp_blame_by_frame(x->c, x->q, f, s->conn->rank, x->err);
    if (f->kind == DDP_BYE) {
        s->ahead->said_bye = true;
        return 0;
    }
    if (f->kind == DDP_CALL && !s->has_call)
        return check_call(x, s, f);
    if (f->kind == DDP_CALL && !s->ahead->has_call) {
        s->ahead->has_call = true;
        s->ahead->call = *f;
        return 0;
    }
    if (f->kind != DDP_PING)
        return ddp_blame(x->c, x->q, x->err, DDP_EPEER, s->conn->rank,
                         "a frame that has no place here came from a "
                         "neighbour");
    if (!s->ahead->has_call) /* Else it is about the next call. */
        s->waits_for = (int)f->peer;
    return 0;
}

/* A neighbour is gone that this call needs. Where others may know of one that
 * went before it they have a moment to tell. */
static int mourn(struct ddp_call *x, struct ddp_side *s, uint64_t now)
{
    if (ddp_blame_knows(x->c))
        return fail_lost(x, s);
    if (!x->lost) {
        x->lost = s;
        x->lost_until = now + DDP_LOST_MS;
    }
    return 0;
}

/* Read what a neighbour's control connection has. */
static int hear(struct ddp_call *x, struct ddp_side *s, uint64_t now)
{
    struct ddp_frame f;
    enum ddp_got got = DDP_GOT_NONE;
    int rc;

    while (!s->is_gone && (got = ddp_conn_get(s->conn, &f)) == DDP_GOT_FRAME) {
        s->heard = now;
        rc = take_frame(x, s, &f);
        if (rc)
            return rc;
    }
    if (got == DDP_GOT_BAD)
        return ddp_blame(x->c, x->q, x->err, DDP_EPEER, s->conn->rank,
                         "a neighbour sends what is no frame");
    if (got == DDP_GOT_EOF)
        s->is_gone = true;
    /* One that has finished this call may go; its elements are on the way. */
    if ((s->ahead->said_bye || s->is_gone) &&
        (!s->has_call || s == x->lost || (s == &x->next && needs(x, s))))
        return mourn(x, s, now);
    return 0;
}

/* The elements' connection ended. Its rank may have said why, or be gone. */
static int lose(struct ddp_call *x, struct ddp_side *s, uint64_t now)
{
    if (x->lost)
        return 0;
    x->lost = s;
    x->lost_until = now + DDP_LOST_MS;
    return hear(x, s, now);
}

static int tick(struct ddp_call *x, uint64_t now)
{
    int rc;

    if (x->lost && now >= x->lost_until)
        return fail_lost(x, x->lost);
    if (now >= x->deadline)
        return fail_late(x, now);
    if (now < x->next_tick)
        return 0;
    x->next_tick = now + x->tick_ms;
    rc = ddp_beside_tick(&x->beside, find_silent(x, now));
    if (rc)
        return rc;
    if (x->n_moved != x->n_moved_then) { /* All is well: forget rumours. */
        x->n_moved_then = x->n_moved;
        x->prev.waits_for = x->next.waits_for = -1;
        if (x->told >= 0)
            ping(x, -1);
    } else {
        ping(x, find_silent(x, now));
    }
    return 0;
}

/* Wait for any of the descriptors; what is not wanted is left out, as poll
 * reports ends and errors even unasked. */
static uint64_t wait_events(struct ddp_call *x, struct pollfd p[N_FDS])
{
    const struct ddp_links *l = x->l;
    uint64_t now = ddp_now();
    uint64_t until = x->next_tick < x->deadline ? x->next_tick : x->deadline;
    bool push = !x->lost && ddp_call_can_push(x);
    bool pull = !x->lost && ddp_call_can_pull(x);

    p[0] = (struct pollfd){.fd = push ? ddp_call_push_fd(x) : -1,
                           .events = POLLOUT};
    p[1] = (struct pollfd){.fd = pull ? ddp_call_pull_fd(x) : -1,
                           .events = POLLIN};
    p[2] = (struct pollfd){.fd = x->prev.is_gone ? -1 : l->prev.fd,
                           .events = ddp_conn_events(&l->prev)};
    p[3] = (struct pollfd){.fd = x->next.is_gone ? -1 : l->next.fd,
                           .events = ddp_conn_events(&l->next)};
    p[4] = (struct pollfd){.fd = x->c->wake_fd, .events = POLLIN};
    ddp_beside_poll(&x->beside, p + 5);
    if (x->lost && x->lost_until < until)
        until = x->lost_until;
    if (poll(p, N_FDS, ddp_until(now, until, DDP_TICK_MAX_MS)) <= 0)
        for (unsigned i = 0; i < N_FDS; i++)
            p[i].revents = 0;
    return ddp_now();
}

/* Nothing of this call waits to go to a neighbour that is still there. */
static bool has_told(const struct ddp_side *s)
{
    return s->is_gone || s->conn->out_len == 0;
}

static bool is_over(struct ddp_call *x)
{
    return !needs(x, &x->prev) && !needs(x, &x->next) && has_told(&x->prev) &&
           has_told(&x->next);
}

static int turn(struct ddp_call *x)
{
    struct pollfd p[N_FDS];
    uint64_t now = wait_events(x, p);
    int rc = 0;

    if (p[4].revents)
        return ddp_blame_aborted(x->c, x->q, x->err);
    if (p[2].revents)
        rc = hear(x, &x->prev, now);
    if (!rc && p[3].revents)
        rc = hear(x, &x->next, now);
    if (!rc)
        rc = ddp_beside_turn(&x->beside, p + 5);
    if (!rc && p[1].revents) {
        x->prev.heard = now;
        if (ddp_call_pull(x))
            rc = lose(x, &x->prev, now);
    }
    /* What came in can go on at once, whether or not poll has seen room. */
    if (!rc && !x->lost && ddp_call_can_push(x) && ddp_call_push(x))
        rc = lose(x, &x->next, now);
    if (!rc && x->told != find_silent(x, now) && x->n_moved == x->n_moved_then)
        ping(x, find_silent(x, now));
    return rc ? rc : tick(x, now);
}

/* Introduce this call to both neighbours, and take up what they have said. */
static int begin(struct ddp_call *x)
{
    struct ddp_side *const sides[] = {&x->prev, &x->next};
    int rc = ddp_beside_begin(&x->beside);

    if (rc)
        return rc;
    (void)ddp_conn_put(x->prev.conn, &x->mine); /* What fails here is told */
    (void)ddp_conn_put(x->next.conn, &x->mine); /* by the next read.       */
    for (unsigned i = 0; i < 2 && !rc; i++) {
        if (sides[i]->ahead->has_call)
            rc = check_call(x, sides[i], &sides[i]->ahead->call);
        sides[i]->ahead->has_call = false;
        if (!rc)
            rc = hear(x, sides[i], x->began);
    }
    if (!rc && ddp_call_can_push(x) && ddp_call_push(x))
        rc = lose(x, &x->next, x->began);
    return rc;
}

static void init(struct ddp_call *x, struct ddp_comm *c, struct ddp_links *l,
                 const struct ddp_request *q, struct ddp_error *err)
{
    memset(x, 0, sizeof *x);
    x->c = c;
    x->l = l;
    x->q = q;
    x->err = err;
    ddp_call_frame(c, q, &x->mine);
    x->began = ddp_now();
    x->deadline = q->whole ? q->deadline : x->began + c->timeout_ms;
    x->tick_ms = ddp_tick_ms(c->timeout_ms);
    x->next_tick = x->began + x->tick_ms;
    x->told = -1;
    x->prev = (struct ddp_side){.conn = &l->prev, .heard = x->began,
                                .ahead = &l->prev_ahead, .waits_for = -1};
    x->next = (struct ddp_side){.conn = &l->next, .heard = x->began,
                                .ahead = &l->next_ahead, .waits_for = -1};
    x->beside = (struct ddp_beside){.c = c, .q = q, .err = err,
                                    .mine = &x->mine};
    if (c->rail.seats > 0)
        x->beside.l = l == &c->rail ? &c->links : &c->rail;
    ddp_schedule_init(&x->schedule, q->what, l->seat, l->seats, q->root,
                      q->count, q->width);
}

int ddp_ring_run(struct ddp_comm *c, const struct ddp_request *q,
                 struct ddp_error *err)
{
    return ddp_ring_run_on(c, &c->links, q, err);
}

int ddp_ring_run_on(struct ddp_comm *c, struct ddp_links *l,
                    const struct ddp_request *q, struct ddp_error *err)
{
    struct ddp_call x;
    int rc;

    c->n_calls += !q->whole;
    init(&x, c, l, q, err);
    if (atomic_load(&c->is_aborted))
        return ddp_blame_aborted(c, q, err);
    if (x.schedule.has_slots && q->count > 0) {
        x.tmp = malloc(2 * q->count * q->width);
        if (!x.tmp)
            return ddp_blame(c, q, err, DDP_ENOMEM, -1, "out of memory");
    }
    rc = begin(&x);
    while (!rc && !is_over(&x))
        rc = turn(&x);
    free(x.tmp);
    return rc;
}
