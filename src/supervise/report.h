/* report: the verdict as JSON (--report); docs/report.md has the schema.
 *
 * Pure. */
#ifndef SUPERVISE_REPORT_H
#define SUPERVISE_REPORT_H

#include "supervise/log_stats.h"
#include "supervise/verdict.h"

#include <stdbool.h>
#include <stdint.h>

#define REPORT_VERSION 1
/* Bytes; every verdict fits, with the output of 1024 processes. */
#define REPORT_MAX (16384 + 1024 * 320)

struct report_server { /* mxnet's. */
    const char *role;
    uint32_t index, n_starts;
    bool ended;
    int code, signo;
    struct log_stats output;
};

struct report_output {
    const struct log_stats *workers; /* By local rank. */
    unsigned n_workers;
    const struct report_server *servers;
    unsigned n_servers;
};

struct report {
    const struct verdict *verdict;
    const char *job_id, *host, *agent_version;
    uint64_t end_unix_ms; /* When it ended. */
    const struct report_output *output;
};

/* One JSON object and a newline. */
void report_write(struct text *t, const struct report *r);

#endif
