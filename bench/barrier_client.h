/* barrier_client: N peers of a barrier in one process, for bench_barrier. All
 * of it ends the program where something fails. */
#ifndef BENCH_BARRIER_CLIENT_H
#define BENCH_BARRIER_CLIENT_H

#include "rendezvous/wire.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KINDS 32 /* More than there are kinds of frames. */

struct peer {
    int fd;
    size_t n_in;
    uint8_t in[WIRE_FRAME_MAX];
};

struct client {
    int epoll;
    unsigned n, port;
    unsigned seen[KINDS]; /* Frames of each kind. */
    struct peer *peers;
};

void die(const char *what) __attribute__((noreturn));
double now_s(void);
/* On loopback: 127.0.0.0 + host. */
struct sockaddr_in address(unsigned host, unsigned port);
unsigned free_port(void);
void send_all(int fd, const uint8_t *bytes, size_t len);

/* Connect all; with `hello` each says so, and is admitted. */
void open_all(struct client *c, bool hello);
void close_all(struct client *c);
void tell_all(struct client *c, const uint8_t *bytes, size_t len);
void tell_kind(struct client *c, enum wire_kind kind);
/* Take what has come, waiting for at most so long; PING is answered. */
void pump(struct client *c, int ms);
/* Until `n` frames of this kind have come in all. */
void wait_for(struct client *c, unsigned kind, unsigned n);

#endif
