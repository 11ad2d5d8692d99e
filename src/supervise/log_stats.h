/* log_stats: what became of one stream of one worker, over all attempts. */
#ifndef SUPERVISE_LOG_STATS_H
#define SUPERVISE_LOG_STATS_H

#include <stdint.h>

struct log_stats {
    uint64_t bytes; /* Read from the worker. */
    uint64_t lines; /* Of these, also those that were hidden or dropped. */
    /* Not shown: nobody read agent's output (--log-overflow drop), or it could
     * not be written, or the end came first. */
    uint64_t dropped_lines, dropped_bytes;
    uint64_t file_dropped; /* Bytes that are not in --log-dir's files. */
};

#endif
