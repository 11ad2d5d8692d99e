/* telling: how far a command is with a set, told on stderr: a bar on a
 * terminal, else a line each 5 s. */
#ifndef DATASET_TELLING_H
#define DATASET_TELLING_H

#include "base/show.h"
#include "dataset/pulse.h"
#include "dataset/stage.h"

struct telling {
    struct show show;
    struct pulse pulse;
    bool was_waiting;
};

/* `is_on` false: nothing but that it has to wait, or gets on no more. */
void telling_begin(struct telling *t, bool is_on);

/* A stage_progress_fn; the context is a struct telling. */
void telling_tell(void *t, const struct stage_progress *p);

/* With the time in it, and where the caller shows it: for agent itself. False
 * where it has not got on (pulse_take). */
bool telling_tell_at(struct telling *t, const struct stage_progress *p,
                     uint64_t now_ms);

/* Before anything else is written: take the bar away. */
void telling_end(struct telling *t);

#endif
