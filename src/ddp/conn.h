/* conn: non-blocking TCP sockets, and frames on top of them. */
#ifndef DDP_CONN_H
#define DDP_CONN_H

#include "ddp/addr.h"
#include "ddp/frame.h"

#include <stdbool.h>

/* Frames that may wait to be sent: a few, as they are answered or counted. */
#define DDP_CONN_OUT (4 * DDP_FRAME_MAX)

enum ddp_got {
    DDP_GOT_FRAME, /* *ret is set. */
    DDP_GOT_NONE,  /* Not yet. */
    DDP_GOT_EOF,   /* The peer closed, or the connection broke (c->error). */
    DDP_GOT_BAD    /* What came is no frame of this version. */
};

struct ddp_conn {
    int fd;   /* -1: not open. */
    int rank; /* Of the peer, or -1. */
    int error;             /* errno of a broken connection; 0: closed. */
    unsigned version;      /* GOT_BAD: the peer's, 0: none of ours. */
    uint64_t since;        /* ddp_now() of ddp_conn_open. */
    size_t in_len, out_len;
    uint8_t in[DDP_FRAME_MAX], out[DDP_CONN_OUT];
};

/* Take over a socket, or -1. */
void ddp_conn_open(struct ddp_conn *c, int fd, int rank);
void ddp_conn_close(struct ddp_conn *c);

/* Queue a frame and send what the kernel takes. -1: the queue is full or the
 * connection is broken (the next ddp_conn_get tells). */
int ddp_conn_put(struct ddp_conn *c, const struct ddp_frame *f);
int ddp_conn_flush(struct ddp_conn *c);

/* Take the next frame; reads from the socket only where none is buffered.
 * Also sends what waits to be sent. */
enum ddp_got ddp_conn_get(struct ddp_conn *c, struct ddp_frame *ret);

/* For poll: POLLIN, and POLLOUT where a frame waits. */
short ddp_conn_events(const struct ddp_conn *c);

/* Sockets: all non-blocking, close-on-exec, without delay. Each returns a
 * descriptor or -errno. */
int ddp_socket_listen(const struct ddp_addr *at, int backlog);
int ddp_socket_listen_any(uint16_t port, int backlog); /* IPv6 and IPv4. */
int ddp_socket_accept(int listen_fd);
int ddp_socket_connect(const struct ddp_addr *to); /* In progress, or done. */

/* After poll said writable: 0 connected, or -errno. */
int ddp_socket_connected(int fd);

/* No descriptor or no memory is left, here or on the whole machine. */
bool ddp_socket_is_shortage(int error);

/* strerror(), and of an own limit where it is set. */
const char *ddp_socket_error(int error);

/* Keep less on its way where both ends are on one machine: what fits in the
 * processor's cache costs less to copy, and the ranks take turns sooner. */
void ddp_socket_keep_short(int fd);

void ddp_socket_close(int *fd); /* -1 is ignored; *fd becomes -1. */

#endif
