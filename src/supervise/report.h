/* report: the verdict as JSON (--report); docs/report.md has the schema.
 *
 * Pure. */
#ifndef SUPERVISE_REPORT_H
#define SUPERVISE_REPORT_H

#include "supervise/verdict.h"

#define REPORT_VERSION 1
#define REPORT_MAX 16384 /* Bytes; every verdict fits. */

struct report {
    const struct verdict *verdict;
    const char *job_id, *host, *agent_version;
    uint64_t end_unix_ms; /* When it ended. */
};

/* One JSON object and a newline. */
void report_write(struct text *t, const struct report *r);

#endif
