/* peer_listen: pod 0's listening socket; see peer.h.
 *
 * It accepts by itself, for libuv answers a lack of descriptors by closing
 * what came last; here the pure side says who has to go. Few connections are
 * accepted in one go, so that those before have their HELLO read first. */
#include "rendezvous/peer_parts.h"

#include "rendezvous/port.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BACKLOG 4096
#define ACCEPT_MAX 64
#define REST_MS 100 /* Where not even one descriptor can be made free. */

/* "10.0.0.1:29400", "[::1]:29400"; an IPv4 address mapped into IPv6 as IPv4. */
static void address_text(const struct sockaddr *a, char *out, size_t cap)
{
    const struct sockaddr_in6 *a6 = (const struct sockaddr_in6 *)(const void *)
        a;
    const struct sockaddr_in *a4 = (const struct sockaddr_in *)(const void *)a;
    char ip[INET6_ADDRSTRLEN] = "?";

    if (a->sa_family == AF_INET) {
        (void)uv_ip4_name(a4, ip, sizeof ip);
        (void)snprintf(out, cap, "%s:%u", ip, ntohs(a4->sin_port));
        return;
    }
    (void)uv_ip6_name(a6, ip, sizeof ip);
    if (strncmp(ip, "::ffff:", 7) == 0 && strchr(ip, '.'))
        (void)snprintf(out, cap, "%s:%u", ip + 7, ntohs(a6->sin6_port));
    else
        (void)snprintf(out, cap, "[%s]:%u", ip, ntohs(a6->sin6_port));
}

static void enter(struct peers *p, int fd, const struct sockaddr *there)
{
    char addr[INET6_ADDRSTRLEN + 16];
    struct sockaddr_storage local = {.ss_family = AF_INET};
    struct wire_addr here;
    int len = sizeof local;
    struct conn *c = p->n_free > 0 ? conn_new(p, PEER_GONE) : NULL;

    if (!c) {
        (void)close(fd);
        return;
    }
    if (uv_tcp_open(&c->tcp, fd) != 0) {
        (void)close(fd);
        conn_close(c, true);
        return;
    }
    c->id = p->free_ids[--p->n_free];
    p->conns[c->id] = c;
    address_text(there, addr, sizeof addr);
    (void)uv_tcp_getsockname(&c->tcp, (struct sockaddr *)&local, &len);
    peer_addr((const struct sockaddr *)&local, &here);
    conn_start(c);
    p->out.conn_open(p->out.ctx, c->id, addr, &here);
}

void peers_id_free(struct peers *p, uint32_t id)
{
    p->conns[id] = NULL;
    p->free_ids[p->n_free++] = id;
}

static void on_listener(uv_poll_t *h, int status, int events);

static void on_rested(uv_timer_t *t)
{
    struct peers *p = t->data;

    (void)uv_poll_start(&p->listener, UV_READABLE, on_listener);
}

static bool is_shortage(int e)
{
    return e == EMFILE || e == ENFILE || e == ENOBUFS || e == ENOMEM;
}

static void on_listener(uv_poll_t *h, int status, int events)
{
    struct peers *p = h->data;

    (void)status;
    (void)events;
    for (unsigned i = 0; i < ACCEPT_MAX; i++) {
        struct sockaddr_storage there = {0};
        socklen_t len = sizeof there;
        int fd = accept4(p->listen_fd, (struct sockaddr *)&there, &len,
                         SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (fd >= 0) {
            enter(p, fd, (const struct sockaddr *)&there);
        } else if (errno == EAGAIN) {
            return;
        } else if (is_shortage(errno) && !p->out.make_room(p->out.ctx)) {
            (void)uv_poll_stop(&p->listener);
            (void)uv_timer_start(&p->rest, on_rested, REST_MS, 0);
            return;
        }
        /* Any other error is that of a connection that is gone again. */
    }
}

/* A listening socket, or a negative errno. */
static int listen_on(const struct sockaddr *addr, socklen_t len)
{
    int fd = socket(addr->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
                    0);
    int one = 1, zero = 0, r;

    if (fd < 0)
        return -errno;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (addr->sa_family == AF_INET6)
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof zero);
    if (bind(fd, addr, len) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    r = -errno;
    (void)close(fd);
    return r;
}

int peers_listen(struct peers *p, unsigned port, struct err *e)
{
    struct sockaddr_in6 a6 = {.sin6_family = AF_INET6,
                              .sin6_port = htons((uint16_t)port)};
    struct sockaddr_in a4 = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port)};
    char who[128];
    int fd;

    fd = listen_on((const struct sockaddr *)&a6, sizeof a6);
    if (fd < 0 && fd != -EADDRINUSE) /* No IPv6 here. */
        fd = listen_on((const struct sockaddr *)&a4, sizeof a4);
    if (fd == -EADDRINUSE) {
        port_holder(port, who, sizeof who);
        return err_set(e, ERR_RESOURCE,
                       "--barrier-port %u is taken%s%s: %sgive the job another "
                       "one, the same on all pods", port,
                       who[0] ? " by " : "", who,
                       strstr(who, "(agent)") ? "if that is pod 0 of this job, "
                       "give this one its --node-rank; else " : "");
    }
    if (fd < 0)
        return err_set(e, ERR_RESOURCE, "listen on barrier port %u: %s", port,
                       strerror(-fd));
    p->listen_fd = fd;
    (void)uv_timer_init(p->loop, &p->rest);
    p->rest.data = p;
    (void)uv_poll_init(p->loop, &p->listener, fd);
    p->listener.data = p;
    (void)uv_poll_start(&p->listener, UV_READABLE, on_listener);
    return 0;
}
