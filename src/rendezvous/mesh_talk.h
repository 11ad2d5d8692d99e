/* mesh_talk: what two pods say to each other to see whether they can: one
 * connection, 64 KiB each way.
 *
 * Pure. The nonce comes from pod 0, for this test alone: whoever does not know
 * it gets no byte. Both send the same block of bytes, made from the nonce.
 *
 *   caller                           answerer
 *     |--- hello, 64 KiB ------------->|  checks the hello first
 *     |<------------- hello, 64 KiB ---|
 *     |--- "got it" ------------------>|  once all 64 KiB have come unchanged
 *     |<------------------ "got it" ---|  likewise
 *     |--- reset                          the caller knows; it reports
 */
#ifndef RENDEZVOUS_MESH_TALK_H
#define RENDEZVOUS_MESH_TALK_H

#include "base/text.h"
#include "rendezvous/wire.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MESH_BLOCK 65536
#define MESH_HELLO 24 /* Magic, version, 3 zeros, nonce, from, to. */
#define MESH_GOT_IT 0x06

/* X(name, number on the wire, words): why one pod does not reach another. */
#define MESH_REASON_TABLE(X)                                                   \
    X(TIMED_OUT, 1, "no answer (timed out)")                                   \
    X(REFUSED, 2, "connection refused")                                        \
    X(NO_ROUTE, 3, "no route to host")                                         \
    X(NO_NETWORK, 4, "network is unreachable")                                 \
    X(RESET, 5, "connection reset")                                            \
    X(FORBIDDEN, 6, "not permitted (a firewall on this pod's side?)")          \
    X(SILENT, 7, "it accepts a connection, then nothing comes back")           \
    X(STUCK, 8, "small packets pass, 64 KiB do not: is the MTU too large?")    \
    X(STUCK_THERE, 9, "small packets pass, 64 KiB do not arrive there: is "    \
                      "the MTU too large?")                                    \
    X(STUCK_HERE, 10, "small packets pass, 64 KiB from there do not arrive: "  \
                      "is the MTU too large?")                                 \
    X(CHANGED, 11, "bytes arrive changed")                                     \
    X(STRANGER, 12, "another program answers there")                           \
    X(CLOSED, 13, "it closes the connection")                                  \
    X(NO_ROOM, 14, "no descriptors or memory left to connect")                 \
    X(UNTRIED, 15, "not tried: others took all the time")                      \
    X(FAILED, 16, "the connection fails")

enum mesh_reason {
    MESH_FINE,
#define X(name, number, words) MESH_##name = number,
    MESH_REASON_TABLE(X)
#undef X
};

const char *mesh_reason_text(unsigned reason);
/* Of an errno that connecting, reading or writing gave. */
enum mesh_reason mesh_reason_of_errno(int number);

/* "10.0.0.1:4567", "[fd00::1]:4567". */
void mesh_add_addr(struct text *t, const struct wire_addr *a);
/* "node rank 2 at 10.0.0.3:4567: no answer (timed out)". */
void mesh_add_partner(struct text *t, const struct wire_partner *p);

void mesh_block(uint64_t nonce, uint8_t block[MESH_BLOCK]);

struct mesh_talk {
    bool calls;         /* The caller, else the answerer. */
    bool connected;     /* Caller: set by whoever connects. */
    bool knows;         /* The other side's hello was right. */
    bool got_it;        /* It has said that all has come. */
    uint8_t hello[MESH_HELLO]; /* Of the other side, as far as it is here. */
    size_t n_hello;
    size_t n_in;        /* Of the block. */
    uint32_t me, them;  /* Node ranks; `them` of an answerer: once known. */
};

enum mesh_talk_next {
    MESH_TALK_READ,     /* More must come. */
    MESH_TALK_JUDGE,    /* All of its hello is here: mesh_talk_judge(). */
    MESH_TALK_THANK,    /* Its block is here: send "got it"; then read on. */
    MESH_TALK_OVER,     /* All is done, on this side. */
    MESH_TALK_FAILED,
};

void mesh_hello(uint8_t hello[MESH_HELLO], uint64_t nonce, uint32_t from,
                uint32_t to);
/* How many bytes may be read now; never beyond what one step takes. */
size_t mesh_talk_room(const struct mesh_talk *t);
/* Take n <= mesh_talk_room() bytes. *ret_reason is set with FAILED. */
enum mesh_talk_next mesh_talk_take(struct mesh_talk *t, const uint8_t *bytes,
                                   size_t n, const uint8_t block[MESH_BLOCK],
                                   enum mesh_reason *ret_reason);
/* Whether the hello that came is of this test and meant for this pod. */
bool mesh_talk_judge(struct mesh_talk *t, uint64_t nonce);
/* Why a caller is not done yet, now that its time is over. `unsent`: bytes
 * that the other side's kernel has not confirmed. */
enum mesh_reason mesh_talk_late(const struct mesh_talk *t, size_t unsent);

#endif
