/* barrier_door: who may talk to the barrier: the handshake of pod 0's side,
 * and the bounds on those who have not got through it. Internal to the
 * barrier. */
#ifndef RENDEZVOUS_BARRIER_DOOR_H
#define RENDEZVOUS_BARRIER_DOOR_H

#include "rendezvous/barrier.h"

/* A connection was accepted: note it; the oldest of too many is dropped. */
void bar_door_enter(struct barrier *b, uint64_t now_ms, uint32_t conn);
/* A frame of a connection that is not admitted. Its HELLO is acted on once it
 * is known to come from a pod that has the token, or if there is no token. */
void bar_door_message(struct barrier *b, uint64_t now_ms, uint32_t conn,
                      const struct wire_msg *m);
/* It is a guest no longer: admitted, or a rank's new claimant. */
void bar_door_pass(struct barrier *b, uint32_t conn);
/* Nothing more is heard of it, and nothing is said to it. */
void bar_door_leave(struct barrier *b, uint32_t conn);
/* Drop those whose time is up; when next, by bar_wake(). `say`: also report
 * what was dropped and refused since. */
void bar_door_timeout(struct barrier *b, uint64_t now_ms, bool say);

#endif
