/* digest: hashes. The only module that sees OpenSSL.
 *
 * OpenSSL's low-level calls only: EVP would add 3 MB to the static program and
 * a millisecond to its start. Nothing here fails or allocates. */
#ifndef BASE_DIGEST_H
#define BASE_DIGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DIGEST_MAX 64                      /* Bytes of the longest, sha512. */
#define DIGEST_HEX_MAX (2 * DIGEST_MAX + 1) /* As hex digits, NUL included. */
#define DIGEST_STATE_MAX 224

/* X(name, word, bytes) */
#define DIGEST_TABLE(X)                                                        \
    X(SHA256, "sha256", 32)                                                    \
    X(SHA512, "sha512", 64)                                                    \
    X(SHA1, "sha1", 20)                                                        \
    X(MD5, "md5", 16)

enum digest_kind {
#define X(name, word, bytes) DIGEST_##name,
    DIGEST_TABLE(X)
#undef X
};

/* A hash under way; private, on the caller's stack, nothing to free. */
struct digest {
    enum digest_kind kind;
    union {
        uint64_t align;
        unsigned char at[DIGEST_STATE_MAX];
    } state;
};

const char *digest_word(enum digest_kind kind); /* "sha256" */
size_t digest_size(enum digest_kind kind);      /* Bytes, not hex digits. */

/* Is called before the first hash, where the program has it: digest_cpu.c. */
extern void digest_look_at_cpu(void) __attribute__((weak));

void digest_start(struct digest *d, enum digest_kind kind);
void digest_add(struct digest *d, const void *data, size_t len);

/* Write digest_size() bytes. `d` needs a new start afterwards. */
void digest_end(struct digest *d, uint8_t ret[DIGEST_MAX]);

/* Write `n` bytes as lower-case hex digits and a NUL. */
void digest_hex(const uint8_t *bytes, size_t n, char *ret);

/* Read exactly `n` bytes of hex digits, either case. False where `hex` is
 * anything else. */
bool digest_read_hex(const char *hex, uint8_t *ret, size_t n);

#endif
