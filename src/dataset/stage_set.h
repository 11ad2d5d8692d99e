/* stage_set: what the parts of staging one set share. */
#ifndef DATASET_STAGE_SET_H
#define DATASET_STAGE_SET_H

#include "dataset/manifest.h"
#include "dataset/meter.h"
#include "dataset/space.h"
#include "dataset/stage.h"

#include <limits.h>

struct stage_set { /* All is borrowed. */
    struct manifest *m;
    const char *source;
    struct space root; /* The stage; all names below are in it. */
    char final[NAME_MAX + 1], part[NAME_MAX + 1], lock[NAME_MAX + 1];
    struct meter *meter;
};

#endif
