/* lives: whose end came first, among ranks that have ended.
 *
 * A launcher stops the other ranks within a millisecond of the first one's
 * death, so whoever looks then may find several gone. An epoll instance that
 * is told of ends alone hands them out in the order in which they came,
 * however late somebody looks; and on one machine the first death comes before
 * whatever it led to. What cannot be watched (no descriptors, a kernel before
 * 5.3) is left out: then less is known, and nothing fails. */
#ifndef DDP_LIVES_H
#define DDP_LIVES_H

#include <stdbool.h>
#include <stdint.h>

struct ddp_lives {
    int fd; /* The epoll instance, or -1. */
    unsigned n, n_watched, n_ended;
    int *ended;        /* Ranks, the first one first. */
    uint8_t *is_known; /* Of each rank: DDP_LIFE_*. */
    int *processes;    /* Descriptors of ranks' processes, or -1; or NULL. */
};

enum {
    DDP_LIFE_WATCHED = 1,
    DDP_LIFE_ENDED = 2,
    DDP_LIFE_TOLD = 4 /* It has told why: its FAULT has come. */
};

/* For ranks below n, of which none is watched yet. */
void ddp_lives_init(struct ddp_lives *l, unsigned n);
void ddp_lives_free(struct ddp_lives *l);

/* Watch a connection to a rank, until it is closed here; or its process. */
void ddp_lives_conn(struct ddp_lives *l, int rank, int fd);
void ddp_lives_process(struct ddp_lives *l, int rank, uint32_t pid);

/* Whether all ranks but this one are watched. */
bool ddp_lives_knows_all(const struct ddp_lives *l);

/* Take up what has ended by now; how many are in l->ended. */
unsigned ddp_lives_look(struct ddp_lives *l);

#endif
