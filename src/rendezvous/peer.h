/* peer: the TCP edge: bytes <-> frames.
 *
 * On pod 0 it listens and numbers the connections of the others (1 and up);
 * on the others it makes one connection, the link to pod 0. It decides
 * nothing: when to connect again, whom to refuse and whom to drop is told to
 * it. Callbacks come from the loop, never from inside a call.
 *
 * Link, happy path: resolve the name (all addresses), connect to each in turn,
 * link_up, frames, peers_link_close, flush, link_down. Failures: no such name,
 * refused, no answer in PEER_CONNECT_MS, bytes that are no frame, reset, end
 * of file: each is one link_down with a reason, and the link is closed. */
#ifndef RENDEZVOUS_PEER_H
#define RENDEZVOUS_PEER_H

#include "base/err.h"
#include "rendezvous/wire.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PEER_CONNECT_MS 5000        /* For one address. */
#define PEER_PENDING_MAX (256 * 1024) /* Unsent bytes before a reset. */

struct peers;
struct uv_loop_s;

struct peers_out {
    void *ctx;
    void (*conn_open)(void *ctx, uint32_t conn, const char *addr,
                      const struct wire_addr *here);
    void (*conn_closed)(void *ctx, uint32_t conn);
    void (*conn_message)(void *ctx, uint32_t conn, const struct wire_msg *m);
    void (*conn_garbage)(void *ctx, uint32_t conn, const char *why,
                         unsigned version);
    /* No descriptor for the next connection: drop one that can be spared;
     * false where there is none. */
    bool (*make_room)(void *ctx);
    void (*link_up)(void *ctx);
    void (*link_down)(void *ctx, const char *why);
    void (*link_message)(void *ctx, const struct wire_msg *m);
};

/* `n_conns` as of barrier_init(): ids are 1 .. n_conns - 1; when all are in
 * use, which the barrier sees to that they are not, new connections are closed
 * at once. `host`, `port`: pod 0, for the
 * link. All borrowed for life. */
int peers_new(struct peers **ret, struct uv_loop_s *loop,
              const struct peers_out *out, uint32_t n_conns, const char *host,
              unsigned port, struct err *e);
/* Listen on all addresses, IPv6 and IPv4. ERR_RESOURCE where it is taken. */
int peers_listen(struct peers *p, unsigned port, struct err *e);

void peers_send(struct peers *p, uint32_t conn, const struct wire_msg *m);
/* After what was sent, or at once with a reset; then conn_closed() is not
 * called, and the id may be given away again at once. */
void peers_close(struct peers *p, uint32_t conn, bool abort);

/* Take all kinds of frames from it. Until then: HELLO and PROOF. */
void peers_admit(struct peers *p, uint32_t conn);

void peers_link_connect(struct peers *p);
void peers_link_send(struct peers *p, const struct wire_msg *m);
void peers_link_close(struct peers *p, bool abort);

/* The interface whose address a connection of the job uses on this machine,
 * never loopback; NULL where none is known (yet). */
const char *peers_interface(struct peers *p);
/* Pod 0's address, of the last connection to it or, on pod 0, from a pod. */
const char *peers_zero_ip(const struct peers *p);

#endif
