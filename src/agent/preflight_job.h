/* preflight_job: what the checks of preflight are to know, from the options. */
#ifndef AGENT_PREFLIGHT_JOB_H
#define AGENT_PREFLIGHT_JOB_H

#include "agent/options.h"
#include "preflight/preflight.h"

/* `o` and `envp` are borrowed; checks are left empty. */
void preflight_job_of(const struct options *o, unsigned nproc,
                      bool nproc_by_gpus, char *const *envp,
                      struct preflight_job *ret);

#endif
