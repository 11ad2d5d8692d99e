/* share: see share.h. */
#include "ddp/share.h"
#include "ddp/blame.h"
#include "ddp/reduce.h"

#include <string.h>

#define SMALL (64 * 1024)      /* Bytes of all ranks that one rank reduces. */
#define CHUNK_MIN (32 * 1024)
#define CHUNKS 4               /* At least, so that work overlaps. */
#define AHEAD 3 /* A rank that stages a chunk is done with this many less. */

/* Elements [from, from + n) of a call; the same bytes of a slot. */
struct range {
    size_t from, n;
};

static unsigned me(const struct ddp_share *x)
{
    return x->s->rank;
}

static size_t lines(size_t bytes)
{
    return (bytes + DDP_LINE - 1) / DDP_LINE;
}

/* Elements of chunk `k`, of those that the call counts. */
static struct range chunk_range(const struct ddp_share *x, uint32_t k)
{
    size_t from = (size_t)(k - x->first) * x->n_elements;
    size_t left = x->q->count - from;

    return (struct range){from, left < x->n_elements ? left : x->n_elements};
}

/* The share of rank r of a chunk of n elements: whole lines. */
static struct range share(const struct ddp_share *x, unsigned r, size_t n)
{
    size_t each = (lines(n * x->q->width) + x->s->n - 1) / x->s->n * DDP_LINE /
                  x->q->width;
    size_t from = r * each < n ? r * each : n;

    return (struct range){from, n - from < each ? n - from : each};
}

static const uint8_t *in_at(const struct ddp_share *x, size_t element)
{
    return (const uint8_t *)x->q->send + element * x->q->width;
}

static uint8_t *out_at(const struct ddp_share *x, size_t element)
{
    return (uint8_t *)x->q->recv + element * x->q->width;
}

static void copy(uint8_t *to, const uint8_t *from, size_t bytes)
{
    if (bytes > 0)
        memcpy(to, from, bytes);
}

/* Elements of block r of a reduce_scatter or all_gather that fall into range
 * `c` of all blocks: the last blocks of a part may be shorter. */
static size_t in_block(const struct ddp_share *x, unsigned r, struct range c)
{
    size_t from = r * x->q->count + c.from, left;

    if (x->q->total == 0)
        return c.n;
    left = from < x->q->total ? x->q->total - from : 0;
    return left < c.n ? left : c.n;
}

/* Bytes of a slot between two ranks' blocks of a reduce_scatter. */
static size_t stride(const struct ddp_share *x)
{
    return lines(x->n_elements * x->q->width) * DDP_LINE;
}

/* Put this rank's part of chunk k into its slot. */
static void stage(const struct ddp_share *x, uint32_t k)
{
    struct range c = chunk_range(x, k), own;
    uint8_t *slot = ddp_shm_slot(x->s, me(x), k);
    size_t w = x->q->width;

    if (x->q->count == 0)
        return;
    switch (x->q->what) {
    case DDP_BARRIER:
        return;
    case DDP_BROADCAST:
        if (x->q->root == me(x))
            copy(slot, in_at(x, c.from), c.n * w);
        return;
    case DDP_ALL_GATHER:
        copy(slot, in_at(x, c.from), in_block(x, me(x), c) * w);
        return;
    case DDP_REDUCE_SCATTER:
        for (unsigned r = 0; r < x->s->n; r++)
            if (r != me(x))
                copy(slot + r * stride(x), in_at(x, r * x->q->count + c.from),
                     in_block(x, r, c) * w);
        return;
    case DDP_ALL_REDUCE:
        break;
    }
    /* Its own share is for nobody else, unless all reduce all. */
    own = x->is_small ? (struct range){0, 0} : share(x, me(x), c.n);
    copy(slot, in_at(x, c.from), own.from * w);
    copy(slot + (own.from + own.n) * w, in_at(x, c.from + own.from + own.n),
         (c.n - own.from - own.n) * w);
}

/* Reduce n elements at byte `at` of all ranks' slots; this rank's are taken
 * from `own`. */
static void fold(const struct ddp_share *x, uint32_t k, size_t at,
                 const uint8_t *own, uint8_t *out, size_t n)
{
    for (unsigned r = 0; r < x->s->n; r++)
        x->s->parts[r] = ddp_shm_slot(x->s, r, k) + at;
    x->s->parts[me(x)] = own;
    ddp_fold(x->q->type, x->q->op, out, x->s->parts, x->s->n, n);
}

/* The share of this rank in a large all_reduce, for itself and the others. */
static void reduce(const struct ddp_share *x, uint32_t k)
{
    struct range c = chunk_range(x, k), own = share(x, me(x), c.n);
    size_t at = own.from * x->q->width;
    uint8_t *out = out_at(x, c.from + own.from);

    fold(x, k, at, in_at(x, c.from + own.from), out, own.n);
    copy(ddp_shm_slot(x->s, me(x), k) + at, out, own.n * x->q->width);
}

/* Take what this rank needs of chunk k. */
static void take(const struct ddp_share *x, uint32_t k)
{
    struct range c = chunk_range(x, k);
    size_t w = x->q->width;

    if (x->q->count == 0)
        return;
    switch (x->q->what) {
    case DDP_BARRIER:
        return;
    case DDP_BROADCAST:
        if (x->q->root != me(x))
            copy(out_at(x, c.from), ddp_shm_slot(x->s, x->q->root, k), c.n * w);
        return;
    case DDP_ALL_GATHER:
        for (unsigned r = 0; r < x->s->n; r++)
            if (r != me(x))
                copy(out_at(x, r * x->q->count + c.from),
                     ddp_shm_slot(x->s, r, k), in_block(x, r, c) * w);
        return;
    case DDP_REDUCE_SCATTER:
        fold(x, k, me(x) * stride(x), in_at(x, me(x) * x->q->count + c.from),
             out_at(x, c.from), in_block(x, me(x), c));
        return;
    case DDP_ALL_REDUCE:
        break;
    }
    if (x->is_small)
        fold(x, k, 0, in_at(x, c.from), out_at(x, c.from), c.n);
    for (unsigned r = 0; r < x->s->n && !x->is_small; r++) {
        struct range s = share(x, r, c.n);

        if (r != me(x))
            copy(out_at(x, c.from + s.from),
                 ddp_shm_slot(x->s, r, k) + s.from * w, s.n * w);
    }
}

/* The CALL frames of all ranks, once all have staged the first chunk. */
static int compare(struct ddp_share *x)
{
    struct ddp_frame fault;

    for (unsigned r = 0; r < x->s->n; r++) {
        const struct ddp_shm_call *k =
            &x->s->ranks[r].calls[x->s->n_calls % 2];
        const struct ddp_frame f = {.kind = DDP_CALL, .what = k->what,
                                    .type = k->type, .op = k->op,
                                    .root = k->root, .count = k->count,
                                    .seq = k->seq};
        int rc = ddp_blame_difference(x->c, x->q, x->err, x->s->world[r],
                                      &x->mine, &f);

        if (rc)
            return rc;
    }
    /* All have come, but some may have given up before the last one did. */
    return ddp_shm_failed(x->s, &fault)
               ? ddp_blame_by_frame(x->c, x->q, &fault, -1, x->err)
               : 0;
}

static int do_stage(struct ddp_share *x, uint32_t k)
{
    uint32_t old = k - DDP_SHM_SLOTS;
    int rc = 0;

    /* The slot is free once nobody reads from it. */
    if ((int32_t)(x->s->all_done - old) < 0) {
        rc = ddp_share_wait_all(x, DDP_DONE, old);
        x->s->all_done = old;
    }
    if (rc)
        return rc;
    stage(x, k);
    ddp_shm_post(&x->s->ranks[me(x)].staged, k);
    return 0;
}

/* Wait until what this rank takes, or reduces, is there. */
static int wait_staged(struct ddp_share *x, uint32_t k)
{
    uint32_t done = k == x->first ? k - 1 : k - AHEAD;
    int rc;

    if (x->q->what == DDP_BROADCAST && k != x->first)
        return x->q->root == me(x)
                   ? 0
                   : ddp_share_wait(x, x->q->root, DDP_STAGED, k);
    rc = ddp_share_wait_all(x, DDP_STAGED, k);
    if (rc)
        return rc;
    if ((int32_t)(x->s->all_done - done) < 0)
        x->s->all_done = done;
    return k == x->first && !x->is_compared ? compare(x) : 0;
}

static int do_reduce(struct ddp_share *x, uint32_t k)
{
    int rc = wait_staged(x, k);

    if (rc)
        return rc;
    reduce(x, k);
    ddp_shm_post(&x->s->ranks[me(x)].reduced, k);
    return 0;
}

static int do_take(struct ddp_share *x, uint32_t k, bool is_reduced)
{
    int rc = is_reduced ? ddp_share_wait_all(x, DDP_REDUCED, k)
                        : wait_staged(x, k);

    if (rc)
        return rc;
    take(x, k);
    ddp_shm_post(&x->s->ranks[me(x)].done, k);
    return 0;
}

/* Stage a chunk while the others still work on the one before. */
static int run(struct ddp_share *x)
{
    bool reduces = x->q->what == DDP_ALL_REDUCE && !x->is_small;
    uint32_t n = x->last - x->first + 1, depth = reduces ? 2 : 1;
    int rc = 0;

    if (n == 1)
        depth = reduces;
    for (uint32_t i = 0; i < n + depth && !rc; i++) {
        uint32_t k = x->first + i;

        if (i < n)
            rc = do_stage(x, k);
        if (!rc && reduces && i >= depth - 1 && i - (depth - 1) < n)
            rc = do_reduce(x, k - (depth - 1));
        if (!rc && i >= depth)
            rc = do_take(x, k - depth, reduces);
    }
    return rc;
}

/* How many elements a chunk has. */
static void plan(struct ddp_share *x)
{
    const struct ddp_request *q = x->q;
    size_t bytes = q->count * q->width, most = x->s->slot, n = 1;
    size_t chunk = bytes / CHUNKS > CHUNK_MIN ? bytes / CHUNKS : CHUNK_MIN;

    if (q->what == DDP_REDUCE_SCATTER)
        most = most / x->s->n / DDP_LINE * DDP_LINE;
    if (chunk > most)
        chunk = most;
    x->n_elements = lines(chunk) * DDP_LINE / q->width;
    if (x->n_elements * q->width > most)
        x->n_elements = most / q->width;
    if (q->count > 0)
        n = (q->count + x->n_elements - 1) / x->n_elements;
    x->is_small = n == 1 && bytes * x->s->n <= SMALL;
    x->first = x->s->chunk + 1;
    x->last = x->s->chunk + (uint32_t)n;
}

/* Put down the call that this rank is in, for the others to compare. */
static void tell_call(struct ddp_share *x)
{
    struct ddp_shm_call *mine;

    x->s->n_calls++;
    mine = &x->s->ranks[me(x)].calls[x->s->n_calls % 2];
    *mine = (struct ddp_shm_call){.seq = x->mine.seq, .count = x->mine.count,
                                  .what = x->mine.what, .type = x->mine.type,
                                  .op = x->mine.op, .root = x->mine.root};
}

static void init(struct ddp_share *x, struct ddp_comm *c,
                 const struct ddp_request *q, struct ddp_error *err)
{
    const struct ddp_beside beside = {.c = c, .q = q, .err = err,
                                      .mine = &x->mine};

    *x = (struct ddp_share){.c = c, .s = c->shm, .q = q, .err = err,
                            .ring = beside, .rail = beside};
    x->ring.l = &c->links;
    x->rail.l = c->rail.seats > 0 ? &c->rail : NULL;
    x->rail.has_part = true;
    /* Its other part in the memory comes after this one. */
    x->is_compared = q->whole && q->what == DDP_ALL_GATHER;
}

int ddp_share_run(struct ddp_comm *c, const struct ddp_request *q,
                  struct ddp_error *err)
{
    struct ddp_share x;
    int rc;

    c->n_calls += !q->whole;
    init(&x, c, q, err);
    if (atomic_load(&c->is_aborted))
        return ddp_blame_aborted(c, q, err);
    plan(&x);
    ddp_call_frame(c, q, &x.mine);
    if (!x.is_compared)
        tell_call(&x);
    x.s->chunk = x.last;
    c->is_sharing = true;
    rc = run(&x);
    c->is_sharing = false;
    return rc;
}
