/* http_listen: the listening socket of --http. */
#ifndef AGENT_HTTP_LISTEN_H
#define AGENT_HTTP_LISTEN_H

#include "base/err.h"

/* Listen at `addr`: a literal IPv4 or IPv6 address, "*" for all of both, ""
 * for loopback. Returns the descriptor (non-blocking) or fails with ERR_USAGE
 * (no such address) or ERR_RESOURCE (a port that is taken names its holder). */
int http_listen(const char *addr, unsigned port, struct err *e);

#endif
