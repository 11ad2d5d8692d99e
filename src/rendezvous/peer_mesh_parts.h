/* peer_mesh_parts: what peer_mesh.c (the test, the listener) and
 * peer_mesh_talk.c (one connection) share. Internal to the TCP edge. */
#ifndef RENDEZVOUS_PEER_MESH_PARTS_H
#define RENDEZVOUS_PEER_MESH_PARTS_H

#include "rendezvous/mesh.h"
#include "rendezvous/mesh_talk.h"
#include "rendezvous/peer_mesh.h"
#include "rendezvous/peer_parts.h"

struct talk {
    uv_tcp_t tcp; /* First: a handle of libuv is the connection. */
    struct peer_mesh *mesh;
    struct talk *next;
    struct mesh_talk t;
    struct wire_partner to; /* Of a caller. */
    uv_connect_t connecting;
    uv_write_t writes[3]; /* Hello, block, "got it": once each. */
    uint8_t hello[MESH_HELLO], thanks;
    uint64_t begin_ms;
    bool waits; /* An answerer that came before its test. */
};

struct peer_mesh {
    struct peers *peers;
    uint32_t rank;
    void *ctx;
    void (*done)(void *ctx, const struct wire_msg *m);

    uv_tcp_t *listener; /* NULL: none. */
    struct sockaddr_storage bound; /* As asked for; the port may be 0. */
    struct wire_addr here;
    bool held_back; /* A connection waits for room. */

    uv_timer_t limit; /* Of the test. */
    uv_timer_t stale; /* Of answerers. */
    struct talk *talks;
    uint32_t n_calls, n_answers;

    uint64_t nonce; /* 0: no test so far. */
    bool runs, is_over;
    uint32_t n_partners, n_begun;
    struct wire_partner *partners; /* MESH_PARTNERS_MAX. */
    uint8_t *block, *in;           /* MESH_BLOCK each. */
    struct wire_msg report;
};

/* peer_mesh.c */
/* Begin what there is room for; where all is done, report soon. */
void mesh_go_on(struct peer_mesh *m);
/* Accept a connection that was held back, if there is room now. */
void mesh_answer_more(struct peer_mesh *m);
void mesh_note_bad(struct peer_mesh *m, const struct wire_partner *to,
                   enum mesh_reason reason);

/* peer_mesh_talk.c */
/* On the list of its mesh, and not connected. NULL: no memory. */
struct talk *talk_new(struct peer_mesh *m, bool calls);
void talk_call(struct peer_mesh *m, const struct wire_partner *to);
/* It is connected: talk. */
void talk_start(struct talk *k);
/* An answerer that waited for its test. False where it is gone now. */
bool talk_wake(struct talk *k);
/* Off the list at once, and closed. */
void talk_drop(struct talk *k, bool reset);
/* Why it is not done yet. */
enum mesh_reason talk_late(struct talk *k);

#endif
