/* schedule: see schedule.h. */
#include "ddp/schedule.h"

#include <string.h>

/* Bytes of a block of a part, at least. Measured: docs/benchmarks.md. */
#define BLOCK (512 * 1024)

const char *ddp_what_name(unsigned what)
{
    static const char *const names[] = {
        [DDP_ALL_REDUCE] = "all_reduce",
        [DDP_BROADCAST] = "broadcast",
        [DDP_REDUCE_SCATTER] = "reduce_scatter",
        [DDP_ALL_GATHER] = "all_gather",
        [DDP_BARRIER] = "barrier",
    };

    if (what >= sizeof names / sizeof names[0] || !names[what])
        return "?";
    return names[what];
}

void ddp_schedule_init(struct ddp_schedule *s, enum ddp_what what,
                       unsigned rank, unsigned size, unsigned root,
                       size_t count, size_t width)
{
    unsigned hops = (rank + size - root) % size;

    *s = (struct ddp_schedule){.what = what, .rank = rank, .size = size,
                               .root = root, .count = count, .width = width};
    switch (what) {
    case DDP_ALL_REDUCE:
    case DDP_BARRIER:
        ddp_schedule_cut(s, (unsigned)(count / size * width / BLOCK));
        break;
    case DDP_REDUCE_SCATTER:
        s->n_send = s->n_recv = size - 1;
        s->has_slots = true;
        break;
    case DDP_ALL_GATHER:
        s->n_send = s->n_recv = size - 1;
        break;
    case DDP_BROADCAST: /* Step 0 of all but the root sends nothing. */
        s->n_recv = hops > 0;
        s->n_send = hops == 0 ? size > 1 : hops < size - 1 ? 2 : 0;
        break;
    }
}

void ddp_schedule_cut(struct ddp_schedule *s, unsigned n_parts)
{
    s->n_parts = n_parts > 0 ? n_parts : 1;
    s->n_send = s->n_recv = 2 * (s->size - 1) * s->n_parts;
}

static bool has_parts(const struct ddp_schedule *s)
{
    return s->what == DDP_ALL_REDUCE || s->what == DDP_BARRIER;
}

/* Step j is step *ret_step of a part, of which one or two take turns. */
static unsigned part_of(const struct ddp_schedule *s, unsigned j,
                        unsigned *ret_step, unsigned *ret_turns)
{
    unsigned pair = 4 * (s->size - 1), first = j / pair * 2;
    unsigned turns = s->n_parts - first > 1 ? 2 : 1;

    *ret_step = j % pair / turns;
    *ret_turns = turns;
    return first + j % pair % turns;
}

long ddp_schedule_needs(const struct ddp_schedule *s, unsigned j)
{
    unsigned step = j, turns = 1;

    if (has_parts(s))
        (void)part_of(s, j, &step, &turns);
    return step == 0 ? -1 : (long)j - (long)turns;
}

/* Piece k of n of `count` elements: the first ones have one more. */
static size_t piece(size_t count, unsigned n, unsigned k, size_t *ret_len)
{
    size_t share = count / n, rest = count % n;

    *ret_len = share + (k < rest);
    return k * share + (k < rest ? k : rest);
}

/* Block (rank - back) mod size: of all_reduce, a share of a part; of the
 * others, `count` itself. */
static void set_block(const struct ddp_schedule *s, unsigned part,
                      unsigned back, struct ddp_block *ret)
{
    unsigned n = s->size;
    unsigned k = (s->rank + n - back % n) % n;
    size_t len;

    if (has_parts(s)) {
        ret->at = piece(s->count, s->n_parts, part, &len);
        ret->at += piece(len, n, k, &ret->len);
    } else {
        ret->at = k * s->count;
        ret->len = s->count;
    }
    ret->at *= s->width;
    ret->len *= s->width;
    ret->own = ret->at;
}

/* Step j of reduce_scatter, which keeps sums in our own two blocks. */
static void set_slot(const struct ddp_schedule *s, unsigned j,
                     struct ddp_block *ret)
{
    ret->place = DDP_TMP;
    ret->at = j % 2 * s->count * s->width;
}

void ddp_schedule_send(const struct ddp_schedule *s, unsigned j,
                       struct ddp_block *ret)
{
    unsigned part, step, turns;

    memset(ret, 0, sizeof *ret);
    ret->place = j == 0 ? DDP_IN : DDP_OUT;
    switch (s->what) {
    case DDP_ALL_REDUCE:
    case DDP_BARRIER:
        part = part_of(s, j, &step, &turns);
        ret->place = step == 0 ? DDP_IN : DDP_OUT;
        set_block(s, part, step, ret);
        break;
    case DDP_REDUCE_SCATTER:
        set_block(s, 0, j + 1, ret);
        if (j > 0)
            set_slot(s, j - 1, ret);
        break;
    case DDP_ALL_GATHER:
        set_block(s, 0, j, ret);
        if (j == 0)
            ret->at = 0; /* The caller's `send` is this block alone. */
        break;
    case DDP_BROADCAST:
        if (s->rank == s->root || j > 0)
            ret->len = s->count * s->width;
        break;
    }
}

void ddp_schedule_recv(const struct ddp_schedule *s, unsigned j,
                       struct ddp_block *ret)
{
    unsigned part, step, turns;

    memset(ret, 0, sizeof *ret);
    ret->place = DDP_OUT;
    switch (s->what) {
    case DDP_ALL_REDUCE:
    case DDP_BARRIER:
        part = part_of(s, j, &step, &turns);
        set_block(s, part, step + 1, ret);
        ret->reduce = step < s->size - 1;
        ret->is_last = step == s->size - 2;
        break;
    case DDP_REDUCE_SCATTER:
        set_block(s, 0, j + 2, ret);
        ret->reduce = true;
        ret->is_last = j == s->size - 2;
        if (ret->is_last)
            ret->at = 0;
        else
            set_slot(s, j, ret);
        break;
    case DDP_ALL_GATHER:
        set_block(s, 0, j + 1, ret);
        break;
    case DDP_BROADCAST:
        ret->len = s->count * s->width;
        break;
    }
}
