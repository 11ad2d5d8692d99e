/* pulse: whether a stager gets on, by what it has told. A source that hangs (a
 * dead NFS server) leaves it alive, and telling the same for ever.
 *
 * Pure: the time, in ms of one clock, is passed in. */
#ifndef DATASET_PULSE_H
#define DATASET_PULSE_H

#include "dataset/stage.h"

#include <stdbool.h>
#include <stdint.h>

/* Putting data on the disk tells no numbers: so long it may take. A node's
 * memory may hold some 100 GB of what a slow volume has to write. */
#define PULSE_SYNC_MS (10 * 60 * 1000)

/* Without progress for so long, the user hears of it: before pod 0 calls the
 * pod late. */
#define PULSE_SAY_MS (30 * 1000)

struct pulse { /* Zeroed: nothing was told yet. */
    struct stage_progress last;
    uint64_t moved_ms; /* When the numbers were others for the last time. */
    bool has_said;
};

/* True where it has got on since the last call, or writes to the disk and may
 * still do so. */
bool pulse_take(struct pulse *p, const struct stage_progress *at,
                uint64_t now_ms);

/* True once in each time that it stands still for PULSE_SAY_MS; *ret_ms is how
 * long it has been. */
bool pulse_has_stopped(struct pulse *p, uint64_t now_ms, uint64_t *ret_ms);

#endif
