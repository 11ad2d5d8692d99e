/* status_find: which agent `agent status` asks, and which others are here. */
#ifndef AGENT_STATUS_FIND_H
#define AGENT_STATUS_FIND_H

#include "agent/status_socket.h"
#include "base/err.h"

/* A connection to the agent at `asked`, or where it is NULL to the first at a
 * default place, or to the only second one; `path` is then where. Negative on
 * failure. */
int status_find(const char *asked, char path[STATUS_SOCKET_PATH_MAX],
                struct err *e);

/* Log a line for each other agent at the default places that takes
 * connections: they are of the asker's uid, or root's. */
void status_say_others(const char *path);

#endif
