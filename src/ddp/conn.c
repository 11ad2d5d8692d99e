/* conn: see conn.h. */
#include "ddp/conn.h"
#include "ddp/clock.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SHORT_SNDBUF (128 * 1024)

void ddp_conn_open(struct ddp_conn *c, int fd, int rank)
{
    c->fd = fd;
    c->rank = rank;
    c->error = 0;
    c->version = 0;
    c->since = ddp_now();
    c->in_len = 0;
    c->out_len = 0;
}

void ddp_conn_close(struct ddp_conn *c)
{
    ddp_socket_close(&c->fd);
}

int ddp_conn_flush(struct ddp_conn *c)
{
    while (c->out_len > 0) {
        ssize_t n = send(c->fd, c->out, c->out_len, MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN ? 0 : -1;
        c->out_len -= (size_t)n;
        memmove(c->out, c->out + n, c->out_len);
    }
    return 0;
}

int ddp_conn_put(struct ddp_conn *c, const struct ddp_frame *f)
{
    if (c->fd < 0 || sizeof c->out - c->out_len < DDP_FRAME_MAX)
        return -1;
    c->out_len += ddp_frame_encode(f, c->out + c->out_len);
    return ddp_conn_flush(c);
}

/* A frame out of the buffer. */
static enum ddp_got take(struct ddp_conn *c, struct ddp_frame *ret)
{
    int n = ddp_frame_decode(c->in, c->in_len, ret, &c->version);

    if (n < 0)
        return DDP_GOT_BAD;
    if (n == 0)
        return DDP_GOT_NONE;
    c->in_len -= (size_t)n;
    memmove(c->in, c->in + n, c->in_len);
    return DDP_GOT_FRAME;
}

enum ddp_got ddp_conn_get(struct ddp_conn *c, struct ddp_frame *ret)
{
    (void)ddp_conn_flush(c); /* Where it is broken, recv says so too. */
    for (;;) {
        enum ddp_got got = take(c, ret);
        ssize_t n;

        if (got != DDP_GOT_NONE)
            return got;
        /* A whole frame fits, so there is room where none is complete. */
        n = recv(c->fd, c->in + c->in_len, sizeof c->in - c->in_len, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return DDP_GOT_NONE;
        if (n <= 0) {
            c->error = n < 0 ? errno : 0;
            return DDP_GOT_EOF;
        }
        c->in_len += (size_t)n;
    }
}

short ddp_conn_events(const struct ddp_conn *c)
{
    return (short)(POLLIN | (c->out_len > 0 ? POLLOUT : 0));
}

void ddp_socket_close(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
    *fd = -1;
}

bool ddp_socket_is_shortage(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOBUFS ||
           error == ENOMEM;
}

const char *ddp_socket_error(int error)
{
    return error == EMFILE ? "Too many open files (see ulimit -n)"
                           : strerror(error);
}

static int fail(int fd)
{
    int error = errno;

    if (fd >= 0)
        (void)close(fd);
    return -error;
}

static int tcp_socket(int family)
{
    return socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

static int set(int fd, int level, int name, int value)
{
    return setsockopt(fd, level, name, &value, sizeof value);
}

static int listen_at(int family, const struct sockaddr *sa, socklen_t len,
                     int backlog)
{
    int fd = tcp_socket(family);

    if (fd < 0 || set(fd, SOL_SOCKET, SO_REUSEADDR, 1) ||
        (family == AF_INET6 && set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0)) ||
        bind(fd, sa, len) || listen(fd, backlog))
        return fail(fd);
    return fd;
}

int ddp_socket_listen(const struct ddp_addr *at, int backlog)
{
    struct sockaddr_storage ss;
    socklen_t len = ddp_addr_to(at, &ss);

    return listen_at(ss.ss_family, (struct sockaddr *)&ss, len, backlog);
}

int ddp_socket_listen_any(uint16_t port, int backlog)
{
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6,
                              .sin6_port = htons(port)};
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port)};
    int fd = listen_at(AF_INET6, (struct sockaddr *)&v6, sizeof v6, backlog);

    if (fd != -EAFNOSUPPORT && fd != -EADDRNOTAVAIL)
        return fd;
    return listen_at(AF_INET, (struct sockaddr *)&v4, sizeof v4, backlog);
}

int ddp_socket_accept(int listen_fd)
{
    int fd = accept4(listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

    if (fd < 0 || set(fd, IPPROTO_TCP, TCP_NODELAY, 1))
        return fail(fd);
    return fd;
}

int ddp_socket_connect(const struct ddp_addr *to)
{
    struct sockaddr_storage ss;
    socklen_t len = ddp_addr_to(to, &ss);
    int fd = tcp_socket(ss.ss_family);

    if (fd < 0 || set(fd, IPPROTO_TCP, TCP_NODELAY, 1))
        return fail(fd);
    if (connect(fd, (struct sockaddr *)&ss, len) && errno != EINPROGRESS &&
        errno != EINTR)
        return fail(fd);
    return fd;
}

void ddp_socket_keep_short(int fd)
{
    struct ddp_addr local, remote;

    if (!ddp_addr_local(fd, &local) || !ddp_addr_remote(fd, &remote) ||
        memcmp(local.ip, remote.ip, sizeof local.ip))
        return;
    (void)set(fd, SOL_SOCKET, SO_SNDBUF, SHORT_SNDBUF); /* Or it is slower. */
}

int ddp_socket_connected(int fd)
{
    int error = 0;
    socklen_t len = sizeof error;

    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len))
        return -errno;
    return -error;
}
