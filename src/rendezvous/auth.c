/* auth: see auth.h. */
#include "rendezvous/auth.h"

#include "base/digest.h"

#include <string.h>

#define BLOCK 64 /* Of SHA-256. */

static void sha256(const void *a, size_t a_len, const void *b, size_t b_len,
                   const void *c, size_t c_len, uint8_t ret[32])
{
    uint8_t sum[DIGEST_MAX];
    struct digest d;

    digest_start(&d, DIGEST_SHA256);
    digest_add(&d, a, a_len);
    digest_add(&d, b, b_len);
    digest_add(&d, c, c_len);
    digest_end(&d, sum);
    memcpy(ret, sum, 32);
    explicit_bzero(&d, sizeof d);
}

void auth_hmac(const void *key, size_t key_len, const void *a, size_t a_len,
               const void *b, size_t b_len, uint8_t ret[32])
{
    uint8_t pad[BLOCK] = {0}, inner[32];

    if (key_len > BLOCK)
        sha256(key, key_len, NULL, 0, NULL, 0, pad);
    else if (key_len > 0)
        memcpy(pad, key, key_len);
    for (unsigned i = 0; i < BLOCK; i++)
        pad[i] ^= 0x36;
    sha256(pad, BLOCK, a, a_len, b, b_len, inner);
    for (unsigned i = 0; i < BLOCK; i++)
        pad[i] ^= 0x36 ^ 0x5c;
    sha256(pad, BLOCK, inner, sizeof inner, NULL, 0, ret);
    explicit_bzero(pad, sizeof pad);
}

void auth_init(struct auth *a, const void *token, size_t len,
               const uint8_t *seed)
{
    static const char what[] = "agent barrier key 1";

    memset(a, 0, sizeof *a);
    a->has_token = true;
    auth_hmac(token, len, what, sizeof what - 1, NULL, 0, a->key);
    memcpy(a->seed, seed, sizeof a->seed);
}

void auth_nonce(const struct auth *a, uint64_t n, uint8_t ret[WIRE_NONCE_SIZE])
{
    auth_hmac(a->seed, sizeof a->seed, &n, sizeof n, NULL, 0, ret);
}

void auth_script(const uint8_t *hello, size_t hello_len,
                 const struct wire_msg *challenge, uint8_t ret[AUTH_SCRIPT])
{
    uint8_t frame[WIRE_FRAME_MAX];
    size_t len = wire_encode(challenge, frame);

    sha256(hello, hello_len, frame, len, NULL, 0, ret);
}

void auth_proof(const struct auth *a, enum auth_side side,
                const uint8_t script[AUTH_SCRIPT], uint8_t ret[WIRE_PROOF_SIZE])
{
    const char *who = side == AUTH_POD ? "pod " : "zero";

    auth_hmac(a->key, sizeof a->key, who, 4, script, AUTH_SCRIPT, ret);
}

bool auth_check(const struct auth *a, enum auth_side side,
                const uint8_t script[AUTH_SCRIPT],
                const uint8_t proof[WIRE_PROOF_SIZE])
{
    uint8_t right[WIRE_PROOF_SIZE];
    volatile uint8_t differ = 0;

    auth_proof(a, side, script, right);
    for (unsigned i = 0; i < WIRE_PROOF_SIZE; i++)
        differ = (uint8_t)(differ | (right[i] ^ proof[i]));
    explicit_bzero(right, sizeof right);
    return differ == 0;
}
