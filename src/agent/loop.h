/* loop: the edge. libuv handles become events of the pod, the pod's actions
 * become calls. No decision is made here. */
#ifndef AGENT_LOOP_H
#define AGENT_LOOP_H

#include "agent/plan.h"

/* Run the pod to its end, and end with agent's exit status; where it cannot
 * begin, that is returned. All signals must be blocked already and stay so.
 * Says the verdict. */
int loop_run(const struct plan *plan);

/* --dry-run: print on stdout, as JSON, what would be started. */
int loop_dry_run(const struct plan *plan);

#endif
