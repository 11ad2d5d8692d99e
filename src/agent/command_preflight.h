/* command_preflight: `agent preflight`: check this pod, print what is found. */
#ifndef AGENT_COMMAND_PREFLIGHT_H
#define AGENT_COMMAND_PREFLIGHT_H

#include "agent/options.h"

/* Returns the exit code: 0 pass, 10 warn, 20 retryable, 30 fatal; or one of
 * agent's own where it cannot tell. */
int command_preflight(const struct options *o, char *const *envp);

#endif
