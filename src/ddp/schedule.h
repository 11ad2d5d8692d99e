/* schedule: which bytes a rank sends and receives in a collective, in order.
 *
 * Pure. A call is a row of steps. In step j a rank sends one block to the
 * next rank and receives one from the rank before; what it sends in step j is
 * what it received in step j - 1 (after reduction), so bytes may flow on as
 * soon as they are in: a step is no barrier. Step 0 sends the rank's own.
 *
 * all_reduce: the N blocks of the buffer go round twice. Rank r sends block
 * r, r-1, ... and adds what arrives to its own; after N-1 steps block r+1 is
 * complete here, and N-1 more steps copy the complete blocks. A large buffer is
 * cut into parts, which are reduced one pair after the other, so that a block
 * is still in the processor's cache when it goes on: the steps of the two take
 * turns, for then what one sends has come while the other's was sent.
 * reduce_scatter is the first half, shifted by one block so that block r ends
 * at rank r; all_gather is the second half, shifted likewise. broadcast is a
 * chain from the root on. */
#ifndef DDP_SCHEDULE_H
#define DDP_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>

enum ddp_what { /* On the wire: never renumber. */
    DDP_ALL_REDUCE = 1,
    DDP_BROADCAST,
    DDP_REDUCE_SCATTER,
    DDP_ALL_GATHER,
    DDP_BARRIER
};

enum ddp_place { /* Which buffer. */
    DDP_IN,  /* The caller's `send`. */
    DDP_OUT, /* The caller's `recv`. */
    DDP_TMP  /* Two blocks of our own, used in turn. */
};

/* A block: in bytes from the start of its buffer. */
struct ddp_block {
    enum ddp_place place;
    size_t at, len;
    bool reduce;  /* Received: combine with DDP_IN at `own`, ... */
    bool is_last; /* ... and this is the last one to be combined. */
    size_t own;
};

struct ddp_schedule {
    enum ddp_what what;
    unsigned rank, size, root;
    size_t count, width; /* As in the call (elements); bytes of an element. */
    unsigned n_send, n_recv;
    unsigned n_parts; /* Of an all_reduce. */
    bool has_slots; /* Step j receives into what step j - 1 sends from. */
};

void ddp_schedule_init(struct ddp_schedule *s, enum ddp_what what,
                       unsigned rank, unsigned size, unsigned root,
                       size_t count, size_t width);

/* Cut an all_reduce into this many parts; ddp_schedule_init does. */
void ddp_schedule_cut(struct ddp_schedule *s, unsigned n_parts);

/* What step j < n_send sends, what step j < n_recv receives. */
void ddp_schedule_send(const struct ddp_schedule *s, unsigned j,
                       struct ddp_block *ret);
void ddp_schedule_recv(const struct ddp_schedule *s, unsigned j,
                       struct ddp_block *ret);

/* The step whose block is received and then sent in step j; -1: none, it is
 * this rank's own. */
long ddp_schedule_needs(const struct ddp_schedule *s, unsigned j);

/* "all_reduce"; "?" for what is none. */
const char *ddp_what_name(unsigned what);

#endif
