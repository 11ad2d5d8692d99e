/* auth: known answers of HMAC-SHA256 (RFC 4231), and what a proof is bound
 * to. */
#include "rendezvous/auth.h"

#include "base/digest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

struct known {
    const char *key, *data; /* One byte `*key` times `n_key` where n_key. */
    size_t n_key, n_data;
    const char *hex; /* As many digits as the test case gives. */
};

#define LONG_KEY                                                               \
    "This is a test using a larger than block-size key and a larger than "    \
    "block-size data. The key needs to be hashed before being used by the "   \
    "HMAC algorithm."

static const struct known known[] = {
    {"\x0b", "Hi There", 20, 0,
     "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
    {"Jefe", "what do ya want for nothing?", 0, 0,
     "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
    {"\xaa", "\xdd", 20, 50,
     "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"},
    {"\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10\x11\x12"
     "\x13\x14\x15\x16\x17\x18\x19", "\xcd", 0, 50,
     "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b"},
    {"\x0c", "Test With Truncation", 20, 0,
     "a3b6167473100ee06e0c796c2955552b"},
    {"\xaa", "Test Using Larger Than Block-Size Key - Hash Key First", 131, 0,
     "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
    {"\xaa", LONG_KEY, 131, 0,
     "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2"},
};

static size_t fill(uint8_t *buf, const char *s, size_t n)
{
    if (n > 0)
        memset(buf, (unsigned char)s[0], n);
    else
        memcpy(buf, s, strlen(s));
    return n > 0 ? n : strlen(s);
}

static void known_answers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        const struct known *k = &known[i];
        uint8_t key[256], data[256], mac[32];
        char hex[65];
        size_t n_key = fill(key, k->key, k->n_key);
        size_t n = fill(data, k->data, k->n_data);

        for (size_t cut = 0; cut <= n; cut++) { /* In two parts. */
            auth_hmac(key, n_key, data, cut, data + cut, n - cut, mac);
            digest_hex(mac, sizeof mac, hex);
            assert_memory_equal(hex, k->hex, strlen(k->hex));
        }
    }
}

static struct auth make(const char *token, uint8_t seed_byte)
{
    uint8_t seed[AUTH_SEED];
    struct auth a;

    memset(seed, seed_byte, sizeof seed);
    auth_init(&a, token, strlen(token), seed);
    return a;
}

static void nonces_differ(void **state)
{
    struct auth a = make("secret", 1), b = make("secret", 2);
    uint8_t n[4][WIRE_NONCE_SIZE];

    (void)state;
    auth_nonce(&a, 1, n[0]);
    auth_nonce(&a, 2, n[1]);
    auth_nonce(&b, 1, n[2]);
    auth_nonce(&a, 1, n[3]);
    assert_memory_not_equal(n[0], n[1], sizeof n[0]);
    assert_memory_not_equal(n[0], n[2], sizeof n[0]);
    assert_memory_equal(n[0], n[3], sizeof n[0]); /* The caller counts. */
}

static void script(uint64_t pod, uint64_t zero, uint8_t nonce, uint32_t rank,
                   uint8_t ret[AUTH_SCRIPT])
{
    struct wire_msg hello = {.kind = WIRE_HELLO, .incarnation = pod,
                             .node_rank = rank, .job_id = "j", .host = "h"};
    struct wire_msg challenge = {.kind = WIRE_CHALLENGE, .incarnation = zero};
    uint8_t frame[WIRE_FRAME_MAX];
    size_t len;

    hello.has_token = 1;
    hello.nonce[31] = nonce;
    challenge.nonce[0] = nonce;
    len = wire_encode(&hello, frame);
    auth_script(frame, len, &challenge, ret);
}

static void a_proof_holds_for_one_handshake(void **state)
{
    struct auth a = make("secret", 1), other = make("secres", 1);
    uint8_t s[AUTH_SCRIPT], t[AUTH_SCRIPT], proof[WIRE_PROOF_SIZE];

    (void)state;
    script(1, 2, 3, 4, s);
    auth_proof(&a, AUTH_POD, s, proof);
    assert_true(auth_check(&a, AUTH_POD, s, proof));
    assert_false(auth_check(&a, AUTH_ZERO, s, proof)); /* Reflected. */
    assert_false(auth_check(&other, AUTH_POD, s, proof));
    script(9, 2, 3, 4, t); /* Another incarnation of the pod, */
    assert_false(auth_check(&a, AUTH_POD, t, proof));
    script(1, 9, 3, 4, t); /* of pod 0, */
    assert_false(auth_check(&a, AUTH_POD, t, proof));
    script(1, 2, 9, 4, t); /* other nonces, */
    assert_false(auth_check(&a, AUTH_POD, t, proof));
    script(1, 2, 3, 9, t); /* another rank. */
    assert_false(auth_check(&a, AUTH_POD, t, proof));
    for (unsigned i = 0; i < 8 * WIRE_PROOF_SIZE; i++) {
        proof[i / 8] ^= (uint8_t)(1u << i % 8);
        assert_false(auth_check(&a, AUTH_POD, s, proof));
        proof[i / 8] ^= (uint8_t)(1u << i % 8);
    }
}

/* The key depends on the token alone, so that all pods have the same. */
static void the_seed_is_no_part_of_a_proof(void **state)
{
    struct auth a = make("secret", 1), b = make("secret", 200);
    uint8_t s[AUTH_SCRIPT], proof[WIRE_PROOF_SIZE];

    (void)state;
    script(1, 2, 3, 4, s);
    auth_proof(&a, AUTH_ZERO, s, proof);
    assert_true(auth_check(&b, AUTH_ZERO, s, proof));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_answers),
        cmocka_unit_test(nonces_differ),
        cmocka_unit_test(a_proof_holds_for_one_handshake),
        cmocka_unit_test(the_seed_is_no_part_of_a_proof),
    };

    return cmocka_run_group_tests_name("auth", tests, NULL, NULL);
}
