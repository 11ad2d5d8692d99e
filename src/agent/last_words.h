/* last_words: where the verdict goes besides stderr: the termination log of
 * the container, and --report. Never a reason to fail. */
#ifndef AGENT_LAST_WORDS_H
#define AGENT_LAST_WORDS_H

#include "agent/options.h"
#include "supervise/report.h"
#include "supervise/verdict.h"

/* The termination log. */
void last_words_log(const struct options *o, const struct verdict *v);
/* --report, which must be given. `host`: of this pod. `output`: of its
 * processes. */
void last_words_report(const struct options *o, const struct verdict *v,
                       const char *host, const struct report_output *output);

/* It ends before there is a job: say why, write both. Returns what to exit
 * with. */
int last_words_early(const struct options *o, const struct err *e);

#endif
