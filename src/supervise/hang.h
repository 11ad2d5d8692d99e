/* hang: whether all workers of a pod stand still, for --hang-timeout.
 *
 * Pure: the caller looks at its workers now and then, as often as it is told,
 * and says what it saw. A worker stands still that wrote nothing and used less
 * than 1 % of a core for the whole time; one that has sent a heartbeat, where
 * it sent no other for as long. When in doubt nobody hangs. */
#ifndef SUPERVISE_HANG_H
#define SUPERVISE_HANG_H

#include <stdbool.h>
#include <stdint.h>

#define HANG_STEPS 8 /* Looks in the time of --hang-timeout. */
#define HANG_SIGNAL_MS 5000 /* From the signal until the workers are stopped. */

struct hang_seen { /* Of a worker. */
    bool is_alive;
    uint64_t start_ms;  /* When it was started; another one is another. */
    uint64_t output_ms; /* When it last wrote; 0: never. */
    bool is_stalled;    /* It may have written what is not read yet. */
    bool beats;         /* Heartbeats are what counts, */
    uint64_t beat_ms;   /* of which this was the last. */
    bool has_cpu;       /* So much CPU time was used so far: */
    uint64_t cpu_ms;    /* all its processes together. */
};

struct hang_worker {
    uint64_t start_ms;
    unsigned n; /* Looks in a row, the newest at n - 1 modulo their number. */
    uint64_t at_ms[HANG_STEPS + 1], cpu_ms[HANG_STEPS + 1];
};

struct hang {
    uint64_t timeout_ms;
    uint32_t n_workers;
    struct hang_worker *workers; /* Borrowed, zeroed. */
    uint64_t last_ms;  /* The last look; 0: none so far. */
    uint64_t since_ms; /* What was before does not count. */
};

void hang_init(struct hang *h, uint64_t timeout_ms, struct hang_worker *workers,
               uint32_t n_workers);
/* Begin anew: a round starts. */
void hang_begin(struct hang *h, uint64_t now_ms);
/* Milliseconds between two looks. */
uint64_t hang_step_ms(const struct hang *h);
/* True where all that live stand still for as long, and one lives. */
bool hang_look(struct hang *h, uint64_t now_ms, const struct hang_seen *seen);

#endif
