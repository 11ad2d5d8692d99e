/* past: what a job has gone through that a new pod 0 must know: how often node
 * rank 0 was lost, which others were, and when the restarts were. Pod 0 tells
 * the pods, and the pods tell the next one. Clocks differ, so times are told
 * as ages.
 *
 * Pure. */
#ifndef RENDEZVOUS_PAST_H
#define RENDEZVOUS_PAST_H

#include <stdbool.h>
#include <stdint.h>

#define PAST_RUNS_MAX 16 /* More restarts than that share an age. */
#define PAST_LOST_MAX 8  /* Of more lost pods the oldest are left out. */

struct past_run { /* So many restarts, so long ago. */
    uint32_t age_ms;
    uint16_t n;
};

struct past_lost { /* Another pod that was lost in a round, so long ago. */
    uint32_t rank, age_ms;
};

struct past {
    uint32_t zero_losses; /* Of node rank 0, each of which ended a round; */
    uint64_t zero_age_ms; /* and how long ago the last one was; or 0. */
    uint32_t n_runs;      /* Youngest first; empty unless restarts are counted
                             within a period. */
    struct past_run runs[PAST_RUNS_MAX];
    uint32_t n_lost; /* Each rank once. */
    struct past_lost lost[PAST_LOST_MAX];
};

/* So much time has passed. An age that no longer fits is forgotten. */
void past_age(struct past *p, uint64_t ms);
/* `n` restarts that are older than those in `p`. Where there are too many the
 * nearest two become one, with the older age: they are forgotten too early by
 * that, never too late, and nothing moves when it is done again. */
void past_add(struct past *p, uint64_t age_ms, uint32_t n);
/* This rank was lost, perhaps again. False where it was younger already, or
 * there is no room for one so old. */
bool past_lose(struct past *p, uint32_t rank, uint64_t age_ms);
/* A restart has just been counted. */
void past_count(struct past *p, uint32_t n);

#endif
