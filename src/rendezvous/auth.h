/* auth: how a pod and pod 0 prove to each other that they have the same token.
 *
 * Pure; byte by byte in docs/wire.md. The pod proves first, so a stranger who
 * reaches pod 0's port gets nothing from which a token could be guessed. A
 * proof is bound to both nonces and both incarnations, to the side that makes
 * it, and to all that HELLO and CHALLENGE say. It shows who is at the other
 * end when the connection begins; later frames are not protected by it. */
#ifndef RENDEZVOUS_AUTH_H
#define RENDEZVOUS_AUTH_H

#include "rendezvous/wire.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AUTH_KEY 32
#define AUTH_SEED 32
#define AUTH_SCRIPT 32

struct auth { /* Copied into the configurations; all zero: no token. */
    bool has_token;
    uint8_t key[AUTH_KEY];   /* Of the token, which is not kept. */
    uint8_t seed[AUTH_SEED]; /* Random; of this life of the agent. */
};

enum auth_side { AUTH_POD, AUTH_ZERO };

/* `seed` is AUTH_SEED random bytes that nobody else knows. */
void auth_init(struct auth *a, const void *token, size_t len,
               const uint8_t *seed);

/* The n-th nonce of this life; never use a number twice. */
void auth_nonce(const struct auth *a, uint64_t n, uint8_t ret[WIRE_NONCE_SIZE]);

/* What is proved: the frames HELLO and CHALLENGE, as they are on the wire. */
void auth_script(const uint8_t *hello, size_t hello_len,
                 const struct wire_msg *challenge, uint8_t ret[AUTH_SCRIPT]);

void auth_proof(const struct auth *a, enum auth_side side,
                const uint8_t script[AUTH_SCRIPT],
                uint8_t ret[WIRE_PROOF_SIZE]);

/* Whether `proof` is that of `side`; takes the same time wherever they
 * differ. */
bool auth_check(const struct auth *a, enum auth_side side,
                const uint8_t script[AUTH_SCRIPT],
                const uint8_t proof[WIRE_PROOF_SIZE]);

/* HMAC-SHA256 (RFC 2104) of two parts, one after the other. */
void auth_hmac(const void *key, size_t key_len, const void *a, size_t a_len,
               const void *b, size_t b_len, uint8_t ret[32]);

#endif
