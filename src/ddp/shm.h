/* shm: memory that all ranks of a job on one machine share, or with rails
 * (rails.h) all ranks of a pod: where "rank" is their place in it.
 *
 * Rank 0 makes an unnamed file in memory, of full size before it is mapped
 * (no SIGBUS) and sealed against shrinking; the others open it through
 * /proc/PID/fd of rank 0. It goes with the last process that has it. A rank
 * that cannot have it makes all fall back to TCP, while ddp_init runs.
 *
 * Each rank has DDP_SHM_SLOTS slots for data that others read, and counters
 * of the chunks that it has staged there, reduced, and done with. A counter
 * is written by its rank alone; whoever waits for it sleeps on its address.
 * A rank that fails writes why into the head, for all. */
#ifndef DDP_SHM_H
#define DDP_SHM_H

#include "ddp.h"
#include "ddp/frame.h"

#include <stdatomic.h>
#include <stdbool.h>

#define DDP_SHM_RANKS_MAX 256
#define DDP_SHM_SLOTS 4
#define DDP_SHM_SLOT_MAX (256 * 1024)
#define DDP_SHM_SLOT_MIN (16 * 1024)
#define DDP_SHM_BUDGET (8 * 1024 * 1024) /* Where slots may be smaller. */
#define DDP_LINE 64

struct ddp_shm_counter {
    _Alignas(DDP_LINE) _Atomic uint32_t value; /* Chunks, modulo 2^32. */
    _Atomic uint32_t n_waiters; /* Who sleep, or are about to. */
};

/* The call that a rank is in. */
struct ddp_shm_call {
    uint64_t seq, count;
    uint32_t what, type, op, root;
};

struct ddp_shm_rank {
    struct ddp_shm_counter staged, reduced, done;
    _Alignas(DDP_LINE) _Atomic uint32_t beat; /* Changes while it waits. */
    _Atomic uint32_t has_left;                /* By ddp_free. */
    _Atomic uint32_t waits_for; /* Elsewhere, for this silent rank: it and 1;
                                 * 0: nobody. */
    _Atomic uint32_t pid;                     /* 0: not here yet. */
    _Alignas(DDP_LINE) struct ddp_shm_call calls[2]; /* Used in turn. */
};

enum { DDP_SHM_WELL, DDP_SHM_WRITING, DDP_SHM_FAILED };

struct ddp_shm_head {
    uint8_t token[DDP_TOKEN];
    uint64_t size; /* Of all. */
    uint32_t n, slot;
    _Atomic uint32_t state; /* DDP_SHM_*: whether `fault` is one. */
    int32_t code, rank, peer;
    char text[DDP_FRAME_TEXT_MAX + 1];
};

/* When a rank's beat was last seen to change. */
struct ddp_shm_heard {
    uint32_t beat;
    uint64_t when;
};

struct ddp_shm {
    int fd; /* Of rank 0, while the others come; else -1. */
    struct ddp_shm_head *head;
    struct ddp_shm_rank *ranks;
    uint8_t *data;
    size_t size, slot;
    unsigned n, rank;  /* Ranks here, and which one this is; */
    int *world;        /* which ones they are of the job. */
    uint32_t n_calls;  /* That were compared. */
    uint32_t chunk;    /* The last one; the same on all ranks. */
    uint32_t all_done; /* All ranks are known to be done with this one. */
    uint64_t spin_ns;  /* Before a wait sleeps. */
    struct ddp_shm_heard *heard;
    const void **parts; /* Room for n addresses. */
};

/* Who shares memory and process numbers with this process: the same for all
 * who do, all zeros where that is unknown. */
void ddp_shm_host(uint8_t ret[DDP_TOKEN]);

/* Which processors of which machine this process may use: the same for all who
 * may use the same ones, all zeros where that is unknown. */
void ddp_shm_processors(uint8_t ret[DDP_TOKEN]);

/* So many ranks use this one's processors, other pods' with them: where they
 * are too many, no wait spins. */
void ddp_shm_crowd(struct ddp_shm *s, unsigned n);

/* The first one's, for n ranks; NULL: not possible here. */
struct ddp_shm *ddp_shm_create(unsigned n, const uint8_t token[DDP_TOKEN]);

/* Another rank's, from the first one's process and descriptor; or NULL. */
struct ddp_shm *ddp_shm_open(unsigned rank, unsigned n, uint32_t pid,
                             uint32_t fd, const uint8_t token[DDP_TOKEN]);
void ddp_shm_free(struct ddp_shm *s);

/* Which one here is a rank of the job; -1: none. */
int ddp_shm_seat(const struct ddp_shm *s, int rank);

/* Say that this rank is there, and whom it waits for elsewhere (-1: nobody). */
void ddp_shm_beat(struct ddp_shm *s, int waits_for);

/* Slot of a rank for a chunk. */
static inline uint8_t *ddp_shm_slot(const struct ddp_shm *s, unsigned rank,
                                    uint32_t chunk)
{
    return s->data +
           ((size_t)rank * DDP_SHM_SLOTS + chunk % DDP_SHM_SLOTS) * s->slot;
}

/* Whether a counter has come to `chunk`. */
static inline bool ddp_shm_is_at(const struct ddp_shm_counter *c,
                                 uint32_t chunk)
{
    uint32_t at = atomic_load_explicit(&c->value, memory_order_acquire);

    return (int32_t)(at - chunk) >= 0;
}

/* Set a counter of this rank's and wake who waits for it. */
void ddp_shm_post(struct ddp_shm_counter *c, uint32_t chunk);

/* Wait until it has come to `chunk`, at most `ms`; it may return early. */
void ddp_shm_sleep(struct ddp_shm_counter *c, uint32_t chunk, unsigned ms);

/* Tell all ranks of a failure: the first one counts. Nobody sleeps on. */
void ddp_shm_fail(struct ddp_shm *s, const struct ddp_error *e);

/* The failure that a rank told of, as its FAULT frame; false: none. */
bool ddp_shm_failed(const struct ddp_shm *s, struct ddp_frame *ret);

#endif
