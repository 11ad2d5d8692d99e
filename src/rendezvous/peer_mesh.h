/* peer_mesh: the TCP edge of the mesh test: this pod listens for the others,
 * connects to those that pod 0 names, and reports which it did not reach.
 *
 * One test at a time: a MESH with another nonce ends the one before. The
 * report comes from the loop, never from inside a call; for the nonce of a
 * test that is over it comes again. Limits: MESH_PARTNERS_MAX partners,
 * MESH_CALLS_MAX connections at a time to them and MESH_ANSWERS_MAX from
 * others, MESH_TEST_MS for all together. */
#ifndef RENDEZVOUS_PEER_MESH_H
#define RENDEZVOUS_PEER_MESH_H

#include "base/err.h"
#include "rendezvous/wire.h"

#include <stdint.h>

#define MESH_CALLS_MAX 64
#define MESH_ANSWERS_MAX 128

struct peer_mesh;
struct peers;

/* `peers`: whose link or listener says at which address to listen; borrowed
 * for life. `done` gets MESHED. */
int peer_mesh_new(struct peer_mesh **ret, struct peers *peers, void *ctx,
                  void (*done)(void *ctx, const struct wire_msg *m),
                  struct err *e);
/* This pod is node rank `rank`. Listen at the address of the link (pod 0: at
 * all addresses), on `port` or (0) a free one. Keeps a listener that is there
 * and still right. Fails with ERR_RESOURCE. */
int peer_mesh_open(struct peer_mesh *m, uint32_t rank, unsigned port,
                   struct wire_addr *ret, struct err *e);
/* Take one MESH; with the last one of a test it begins. */
void peer_mesh_test(struct peer_mesh *m, const struct wire_msg *msg);
/* Stop listening, close all connections, report nothing. */
void peer_mesh_close(struct peer_mesh *m);

#endif
