/* schedule: see schedule.h. */
#include "ddp/schedule.h"

#include <string.h>

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
        s->n_send = s->n_recv = 2 * (size - 1);
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

/* Block (rank - back) mod size: of all_reduce, a share of `count`; of the
 * others, `count` itself. */
static void set_block(const struct ddp_schedule *s, unsigned back,
                      struct ddp_block *ret)
{
    unsigned n = s->size;
    unsigned k = (s->rank + n - back % n) % n;
    size_t share = s->count / n, rest = s->count % n;

    if (s->what == DDP_ALL_REDUCE || s->what == DDP_BARRIER) {
        /* The first `rest` blocks have one element more. */
        ret->at = k * share + (k < rest ? k : rest);
        ret->len = share + (k < rest);
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
    memset(ret, 0, sizeof *ret);
    ret->place = j == 0 ? DDP_IN : DDP_OUT;
    switch (s->what) {
    case DDP_ALL_REDUCE:
    case DDP_BARRIER:
        set_block(s, j, ret);
        break;
    case DDP_REDUCE_SCATTER:
        set_block(s, j + 1, ret);
        if (j > 0)
            set_slot(s, j - 1, ret);
        break;
    case DDP_ALL_GATHER:
        set_block(s, j, ret);
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
    memset(ret, 0, sizeof *ret);
    ret->place = DDP_OUT;
    switch (s->what) {
    case DDP_ALL_REDUCE:
    case DDP_BARRIER:
        set_block(s, j + 1, ret);
        ret->reduce = j < s->size - 1;
        ret->is_last = j == s->size - 2;
        break;
    case DDP_REDUCE_SCATTER:
        set_block(s, j + 2, ret);
        ret->reduce = true;
        ret->is_last = j == s->size - 2;
        if (ret->is_last)
            ret->at = 0;
        else
            set_slot(s, j, ret);
        break;
    case DDP_ALL_GATHER:
        set_block(s, j + 1, ret);
        break;
    case DDP_BROADCAST:
        ret->len = s->count * s->width;
        break;
    }
}
