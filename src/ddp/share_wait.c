/* share_wait: waits of share.h, and what may end them but what they are for:
 * a failure that another rank told of, the end of a neighbour, ddp_abort, the
 * deadline. */
#include "ddp/blame.h"
#include "ddp/clock.h"
#include "ddp/share.h"
#include "ddp/tick.h"

#define SPINS 32 /* Between two looks at the clock. */
#define LOOK_MAX_MS 25 /* Between two looks at what may have gone wrong. */
#define SILENT_MIN_MS 100
#define SILENT_MAX_MS 3000
#define SILENT_OF_TIMEOUT 4

static struct ddp_shm_counter *counter(const struct ddp_shm *s, unsigned r,
                                       enum ddp_stage stage)
{
    struct ddp_shm_rank *rank = &s->ranks[r];

    return stage == DDP_STAGED    ? &rank->staged
           : stage == DDP_REDUCED ? &rank->reduced
                                  : &rank->done;
}

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* The short way: it is there, or comes while this rank keeps awake. */
static bool comes_soon(const struct ddp_shm *s,
                       const struct ddp_shm_counter *c, uint32_t chunk)
{
    uint64_t until;

    if (ddp_shm_is_at(c, chunk))
        return true;
    if (s->spin_ns == 0)
        return false;
    until = ddp_now_ns() + s->spin_ns;
    do
        for (unsigned i = 0; i < SPINS; i++) {
            relax();
            if (ddp_shm_is_at(c, chunk))
                return true;
        }
    while (ddp_now_ns() < until);
    return false;
}

/* Whether rank r has nothing more to do in this call. */
static bool has_ended(const struct ddp_share *x, unsigned r)
{
    return ddp_shm_is_at(&x->s->ranks[r].done, x->last);
}

/* Take signs of life. */
static void take_signs(struct ddp_share *x, uint64_t now)
{
    struct ddp_shm *s = x->s;

    for (unsigned r = 0; r < s->n; r++) {
        const struct ddp_shm_rank *k = &s->ranks[r];
        uint32_t beat = atomic_load(&k->beat) + atomic_load(&k->staged.value) +
                        atomic_load(&k->reduced.value) +
                        atomic_load(&k->done.value);

        if (x->is_listening && s->heard[r].beat == beat)
            continue;
        s->heard[r].beat = beat;
        s->heard[r].when = now;
    }
    x->is_listening = true;
}

/* The rank of the job that has been silent for the longest time, or one that
 * another rank waits for elsewhere; or -1. */
static int find_silent(const struct ddp_share *x, uint64_t now)
{
    uint64_t oldest = now - x->silent_ms;
    int ret = -1;

    for (unsigned r = 0; r < x->s->n; r++) {
        if (r == x->s->rank || has_ended(x, r) || x->s->heard[r].when > oldest)
            continue;
        oldest = x->s->heard[r].when;
        ret = x->s->world[r];
    }
    for (unsigned r = 0; r < x->s->n && ret < 0; r++) {
        int other = (int)atomic_load(&x->s->ranks[r].waits_for) - 1;

        if (r != x->s->rank && !has_ended(x, r) && other != x->c->rank)
            ret = other;
    }
    return ret;
}

/* A neighbour's control connection: what was said, and whether it ended. One
 * of another pod may be through with the call; else its rail ends, too. */
static int hear(struct ddp_share *x, struct ddp_beside *b, unsigned side,
                uint64_t now)
{
    const struct ddp_conn *conn;
    const struct ddp_ahead *ahead;
    int rc, seat;

    if (!b->l)
        return 0;
    conn = side ? &b->l->next : &b->l->prev;
    ahead = side ? &b->l->next_ahead : &b->l->prev_ahead;
    rc = ddp_beside_hear(b, side);
    seat = ddp_shm_seat(x->s, conn->rank);
    if (rc || !b->is_gone[side] || seat < 0 || has_ended(x, (unsigned)seat))
        return rc;
    if (!x->lost) {
        x->lost = conn;
        x->lost_until = now + DDP_LOST_MS;
    }
    if (!ddp_blame_knows(x->c) && (x->lost != conn || now < x->lost_until))
        return 0;
    return ddp_blame_lost(x->c, x->q, x->err, conn->rank, ahead->said_bye,
                          conn->error);
}

/* A process of this memory ended that is still needed: with rails it need not
 * be a neighbour of any other one here. */
static int find_dead(struct ddp_share *x, uint64_t now)
{
    if (ddp_lives_look(&x->c->lives) == 0)
        return 0;
    if (!x->dead_until)
        x->dead_until = now + DDP_LOST_MS;
    if (!ddp_blame_knows(x->c) && now < x->dead_until)
        return 0;
    return ddp_blame_dead(x->c, x->q, x->err);
}

static int find_left(struct ddp_share *x)
{
    for (unsigned r = 0; r < x->s->n; r++)
        if (atomic_load(&x->s->ranks[r].has_left) && !has_ended(x, r))
            return ddp_blame_lost(x->c, x->q, x->err, x->s->world[r], true, 0);
    return 0;
}

/* Others may wait for this rank while it waits here. */
static void ping(struct ddp_share *x, uint64_t now)
{
    int peer;

    if (!x->rail.l || now < x->next_ping)
        return;
    x->next_ping = now + ddp_tick_ms(x->c->timeout_ms);
    peer = find_silent(x, now);
    ddp_beside_ping(&x->ring, peer);
    ddp_beside_ping(&x->rail, peer);
}

static int fail_late(struct ddp_share *x, uint64_t now)
{
    int peer = find_silent(x, now);
    int seat = peer < 0 ? -1 : ddp_shm_seat(x->s, peer);

    return ddp_blame_late(x->c, x->q, x->err, peer,
                          seat < 0 || ddp_shm_is_at(&x->s->ranks[seat].staged,
                                                    x->first));
}

/* It takes longer: is all well? */
static int look(struct ddp_share *x, uint64_t now)
{
    struct ddp_comm *c = x->c;
    struct ddp_frame f;
    int rc;

    ddp_shm_beat(x->s, -1);
    if (ddp_shm_failed(x->s, &f))
        return ddp_blame_by_frame(c, x->q, &f, -1, x->err);
    if (atomic_load(&c->is_aborted))
        return ddp_blame_aborted(c, x->q, x->err);
    rc = x->is_listening ? 0 : ddp_beside_begin(&x->ring);
    take_signs(x, now);
    if (!rc)
        rc = find_dead(x, now);
    if (!rc)
        rc = find_left(x);
    for (unsigned side = 0; side < 2 && !rc; side++) {
        rc = hear(x, &x->ring, side, now);
        if (!rc)
            rc = hear(x, &x->rail, side, now);
    }
    if (!rc && now >= x->deadline)
        rc = fail_late(x, now);
    if (!rc)
        ping(x, now);
    return rc;
}

static void start_clock(struct ddp_share *x, uint64_t now)
{
    uint64_t silent = x->c->timeout_ms / SILENT_OF_TIMEOUT;

    x->deadline = x->q->whole ? x->q->deadline : now + x->c->timeout_ms;
    x->next_ping = now + ddp_tick_ms(x->c->timeout_ms);
    if (silent < SILENT_MIN_MS)
        silent = x->c->timeout_ms / 2 < SILENT_MIN_MS ? x->c->timeout_ms / 2
                                                      : SILENT_MIN_MS;
    x->silent_ms = silent > SILENT_MAX_MS ? SILENT_MAX_MS : silent;
}

int ddp_share_wait(struct ddp_share *x, unsigned r, enum ddp_stage stage,
                   uint32_t chunk)
{
    struct ddp_shm_counter *c = counter(x->s, r, stage);
    unsigned ms = 1;

    if (comes_soon(x->s, c, chunk))
        return 0;
    for (;;) {
        uint64_t now = ddp_now();
        int rc;

        if (x->deadline == 0)
            start_clock(x, now);
        ddp_shm_sleep(c, chunk, (unsigned)ddp_until(now, x->deadline,
                                                    (int)ms));
        if (ddp_shm_is_at(c, chunk))
            return 0;
        rc = look(x, ddp_now());
        if (rc)
            return rc;
        ms = ms * 2 > LOOK_MAX_MS ? LOOK_MAX_MS : ms * 2;
    }
}

int ddp_share_wait_all(struct ddp_share *x, enum ddp_stage stage,
                       uint32_t chunk)
{
    for (unsigned i = 1; i < x->s->n; i++) {
        /* From the next rank on, so that not all look at the same one. */
        int rc = ddp_share_wait(x, (x->s->rank + i) % x->s->n, stage, chunk);

        if (rc)
            return rc;
    }
    return 0;
}
