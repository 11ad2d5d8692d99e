/* peer_parts: what peer.c (connections) and peer_link.c (the link to pod 0)
 * share. Internal to the TCP edge. */
#ifndef RENDEZVOUS_PEER_PARTS_H
#define RENDEZVOUS_PEER_PARTS_H

#include "rendezvous/peer.h"

#include <net/if.h>
#include <uv.h>

#define PEER_LINK UINT32_MAX
#define PEER_GONE (UINT32_MAX - 1) /* Being closed; nobody is told. */

struct conn {
    uv_tcp_t tcp; /* First: a handle of libuv is the connection. */
    struct peers *peers;
    uint32_t id; /* PEER_LINK for the link. */
    bool open, closing;
    bool is_guest; /* Not admitted: few kinds of frames, small ones. */
    uint8_t in[WIRE_FRAME_MAX];
    size_t n_in;
};

struct peers {
    uv_loop_t *loop;
    struct peers_out out;
    uint32_t n_conns;
    struct conn **conns;
    uint32_t *free_ids, n_free;
    int listen_fd;
    uv_poll_t listener;
    uv_timer_t rest; /* Until descriptors may be free again. */
    char ifname[IF_NAMESIZE];
    char zero_ip[INET6_ADDRSTRLEN]; /* Of pod 0; "": not known yet. */
    uint32_t scope_id; /* Of the link-local address that the job uses. */

    const char *host;
    unsigned port;
    struct conn *link; /* NULL: none, or being closed. */
    uv_getaddrinfo_t lookup;
    struct addrinfo *addrs, *next_addr;
    uv_timer_t limit;
    uv_connect_t connecting;
    char why[WIRE_TEXT_MAX];
};

struct conn *conn_new(struct peers *p, uint32_t id);
/* This number may be given to the next connection. */
void peers_id_free(struct peers *p, uint32_t id);
void conn_start(struct conn *c);
void conn_send(struct conn *c, const struct wire_msg *m);
void conn_close(struct conn *c, bool abort);
/* The other side is gone, or is not to be listened to any more. */
void conn_fail(struct conn *c, const char *why);
/* Of an admitted connection: which interface and address of pod 0 it uses. */
void conn_learn(struct conn *c);
void peer_addr(const struct sockaddr *a, struct wire_addr *ret);
/* The link is closed: report it, unless it was dropped on purpose. */
void link_closed(struct peers *p, struct conn *c, const char *why);

#endif
