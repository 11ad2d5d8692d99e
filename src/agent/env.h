/* env: `agent env`: what an agent here would take its job to be, and who says
 * so. */
#ifndef AGENT_ENV_H
#define AGENT_ENV_H

#include "agent/options.h"

/* Prints; returns the exit status. */
int env_command(const struct options *o);

#endif
