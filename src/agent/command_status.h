/* command_status: `agent status`: ask the agent of this pod, print what it
 * says. */
#ifndef AGENT_COMMAND_STATUS_H
#define AGENT_COMMAND_STATUS_H

#include "agent/options.h"

/* Returns the exit status: 0 where an agent answered. */
int command_status(const struct options *o);

#endif
