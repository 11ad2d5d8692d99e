/* stage_set: what the parts of staging one set share. */
#ifndef DATASET_STAGE_SET_H
#define DATASET_STAGE_SET_H

#include "dataset/manifest.h"
#include "dataset/meter.h"
#include "dataset/space.h"
#include "dataset/stage.h"

#include <limits.h>

#define STAGE_WORK_MAX (NAME_MAX + 32)

struct stage_set { /* All is borrowed. */
    struct manifest *m;
    const char *source;
    struct space root; /* The stage; all names below are in it. */
    char final[NAME_MAX + 1], part[NAME_MAX + 1], lock[NAME_MAX + 1];
    char old[NAME_MAX + 1]; /* A dead maker's part, while it is removed. */
    char work[STAGE_WORK_MAX]; /* Where the set is made; see lease.h. */
    bool is_shared;     /* flock(2) may not reach all who write here. */
    uint64_t silent_ms; /* A maker on another host is dead after this. */
    struct meter *meter;
};

#endif
