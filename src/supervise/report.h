/* report: the verdict as JSON (--report); docs/report.md has the schema.
 *
 * Pure. */
#ifndef SUPERVISE_REPORT_H
#define SUPERVISE_REPORT_H

#include "supervise/log_stats.h"
#include "supervise/verdict.h"

#define REPORT_VERSION 1
/* Bytes; every verdict fits, with the output of 1024 workers. */
#define REPORT_MAX (16384 + 1024 * 192)

struct report {
    const struct verdict *verdict;
    const char *job_id, *host, *agent_version;
    uint64_t end_unix_ms; /* When it ended. */
    const struct log_stats *output; /* Of each worker, by local rank. */
    unsigned n_output;
};

/* One JSON object and a newline. */
void report_write(struct text *t, const struct report *r);

#endif
