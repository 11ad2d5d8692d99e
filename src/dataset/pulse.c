/* pulse: see pulse.h. */
#include "dataset/pulse.h"

#include <stddef.h>

/* Zeros are no news: who waits has heard nothing of the other process. */
static bool has_moved(const struct stage_progress *a,
                      const struct stage_progress *b)
{
    return (b->total > 0 || b->n_files > 0) &&
           (a->done != b->done || a->total != b->total ||
            a->n_done != b->n_done || a->n_files != b->n_files);
}

bool pulse_take(struct pulse *p, const struct stage_progress *at,
                uint64_t now_ms)
{
    bool moved = has_moved(&p->last, at);

    if (moved) {
        p->last = *at;
        p->last.name = NULL; /* The caller's. */
        p->has_said = false;
    }
    if (moved || p->moved_ms == 0)
        p->moved_ms = now_ms;
    return moved || (at->syncing && now_ms - p->moved_ms < PULSE_SYNC_MS);
}

bool pulse_has_stopped(struct pulse *p, uint64_t now_ms, uint64_t *ret_ms)
{
    *ret_ms = now_ms - p->moved_ms;
    if (p->has_said || p->moved_ms == 0 || *ret_ms < PULSE_SAY_MS)
        return false;
    p->has_said = true;
    return true;
}
