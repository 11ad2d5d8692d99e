/* loop_http: the door of --http. */
#include "agent/loop_ask.h"

#include "agent/http_listen.h"
#include "base/log.h"

int loop_http_open(struct loop *l, struct door *d, struct err *e)
{
    const struct options *o = l->plan->o;
    int fd;

    if (o->http_port == 0)
        return 0;
    fd = http_listen(o->http_addr, o->http_port, e);
    if (fd < 0)
        return -e->code;
    log_debug("--http answers at %s, port %u",
              o->http_addr[0] ? o->http_addr : "loopback", o->http_port);
    door_open(l, d, fd);
    return 0;
}
