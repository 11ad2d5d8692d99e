/* tick: how a rank that waits in a call notices who is silent. The calls over
 * the ring and the small ones must agree, for each may wait for the other. */
#ifndef DDP_TICK_H
#define DDP_TICK_H

#include <stdint.h>

#define DDP_TICK_MIN_MS 20
#define DDP_TICK_MAX_MS 1000
#define DDP_TICKS_OF_TIMEOUT 16
#define DDP_SILENT_TICKS 3
#define DDP_LOST_MS 500 /* For a FAULT that explains a lost connection. */

/* From one PING to the next where nothing moves. */
static inline uint64_t ddp_tick_ms(uint64_t timeout_ms)
{
    uint64_t ms = timeout_ms / DDP_TICKS_OF_TIMEOUT;

    return ms < DDP_TICK_MIN_MS   ? DDP_TICK_MIN_MS
           : ms > DDP_TICK_MAX_MS ? DDP_TICK_MAX_MS
                                  : ms;
}

#endif
