/* topology_place: what topology.h asks of the machine. */
#ifndef AGENT_TOPOLOGY_PLACE_H
#define AGENT_TOPOLOGY_PLACE_H

#include "agent/topology.h"

/* As topology_in.place; `ctx` is not used. Looked up at the first call; lives
 * until exit. */
const struct topo_place *topology_place(void *ctx);

#endif
