/* listen: rank 0 takes its port, for boot.h. */
#include "ddp/boot.h"
#include "ddp/clock.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#define RETRY_MS 100

/* Listen at one port: where MASTER_ADDR says if that is an address of this
 * machine, else everywhere: a name need not resolve here, and a service or
 * NAT address is none of ours. */
static int listen_port(const struct ddp_conf *conf, uint16_t port)
{
    struct ddp_addr at;
    int fd = -EADDRNOTAVAIL;

    if (ddp_addr_literal(conf->host, port, &at))
        fd = ddp_socket_listen(&at, SOMAXCONN);
    return fd == -EADDRNOTAVAIL ? ddp_socket_listen_any(port, SOMAXCONN) : fd;
}

/* An old rank 0 may be dying on the port: wait for it. */
int ddp_boot_listen(struct ddp_boot *b, int *ret_fd, struct ddp_addr *ret_at)
{
    const struct ddp_conf *conf = b->conf;
    int fd = -EADDRINUSE;

    for (;;) {
        uint64_t now = ddp_now();

        for (unsigned i = 0; i < conf->n_ports && fd == -EADDRINUSE; i++)
            fd = listen_port(conf, (uint16_t)(conf->port + i));
        if (fd != -EADDRINUSE || now >= b->deadline)
            break;
        (void)poll(NULL, 0, ddp_until(now, b->deadline, RETRY_MS));
    }
    if (fd >= 0) {
        *ret_fd = fd;
        (void)ddp_addr_local(fd, ret_at);
        return 0;
    }
    if (fd != -EADDRINUSE)
        return ddp_boot_fail(b, DDP_ESYSTEM, -1,
                             "cannot listen on %s port %u: %s", conf->host,
                             (unsigned)conf->port, ddp_socket_error(-fd));
    return ddp_boot_fail(b, DDP_ESYSTEM, -1,
                         "cannot listen on %s port %u%s: another program or "
                         "another rank 0 holds it (waited %.1f s); see "
                         "`ss -ltnp`, or choose another MASTER_PORT",
                         conf->host, (unsigned)conf->port,
                         conf->n_ports > 1 ? " and the 7 above" : "",
                         (double)conf->timeout_ms / 1000);
}
