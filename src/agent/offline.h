/* offline: which hosts a worker still reaches with --offline: the list for its
 * no_proxy. All other HTTP and HTTPS goes to a port that refuses.
 *
 * Pure. A guard against accident and no sandbox: what uses no proxy is not
 * stopped. */
#ifndef AGENT_OFFLINE_H
#define AGENT_OFFLINE_H

#include <stdbool.h>
#include <stddef.h>

#define OFFLINE_LIST_MAX 16384 /* NUL included. */

struct offline_in {           /* Lists have commas; NULL or "": none. */
    const char *master_addr, *host;
    const char *addresses;    /* Of this machine. */
    const char *pods;         /* Names and addresses, as START has them. */
    const char *service_host; /* KUBERNETES_SERVICE_HOST. */
    const char *allow;        /* --offline-allow. */
};

/* Write the list to `out`; each entry once, and each IPv6 address with and
 * without brackets, since programs differ. A pod's name goes in alone and with
 * the rest of --master-addr after its first label, if that is a name. False
 * where some entries were left out for want of room. */
bool offline_no_proxy(const struct offline_in *in, char *out, size_t cap);

#endif
