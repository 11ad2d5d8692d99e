/* digest: see digest.h. */
#include "base/digest.h"

#include <openssl/md5.h>
#include <openssl/sha.h>

#include <string.h>

/* OpenSSL 3 marks the low-level calls as deprecated in favour of EVP, which
 * digest.h says why not to use. They are in 3.0 and in 3.5. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

_Static_assert(sizeof(SHA256_CTX) <= DIGEST_STATE_MAX, "sha256 fits");
_Static_assert(sizeof(SHA512_CTX) <= DIGEST_STATE_MAX, "sha512 fits");
_Static_assert(sizeof(SHA_CTX) <= DIGEST_STATE_MAX, "sha1 fits");
_Static_assert(sizeof(MD5_CTX) <= DIGEST_STATE_MAX, "md5 fits");

const char *digest_word(enum digest_kind kind)
{
    static const char *const words[] = {
#define X(name, word, bytes) word,
        DIGEST_TABLE(X)
#undef X
    };

    return words[kind];
}

size_t digest_size(enum digest_kind kind)
{
    static const size_t sizes[] = {
#define X(name, word, bytes) bytes,
        DIGEST_TABLE(X)
#undef X
    };

    return sizes[kind];
}

void digest_start(struct digest *d, enum digest_kind kind)
{
    void *state = d->state.at;

    if (digest_look_at_cpu)
        digest_look_at_cpu();
    d->kind = kind;
    switch (kind) {
    case DIGEST_SHA256:
        (void)SHA256_Init(state);
        break;
    case DIGEST_SHA512:
        (void)SHA512_Init(state);
        break;
    case DIGEST_SHA1:
        (void)SHA1_Init(state);
        break;
    case DIGEST_MD5:
        (void)MD5_Init(state);
        break;
    }
}

void digest_add(struct digest *d, const void *data, size_t len)
{
    void *state = d->state.at;

    switch (d->kind) {
    case DIGEST_SHA256:
        (void)SHA256_Update(state, data, len);
        break;
    case DIGEST_SHA512:
        (void)SHA512_Update(state, data, len);
        break;
    case DIGEST_SHA1:
        (void)SHA1_Update(state, data, len);
        break;
    case DIGEST_MD5:
        (void)MD5_Update(state, data, len);
        break;
    }
}

void digest_end(struct digest *d, uint8_t ret[DIGEST_MAX])
{
    void *state = d->state.at;

    switch (d->kind) {
    case DIGEST_SHA256:
        (void)SHA256_Final(ret, state);
        break;
    case DIGEST_SHA512:
        (void)SHA512_Final(ret, state);
        break;
    case DIGEST_SHA1:
        (void)SHA1_Final(ret, state);
        break;
    case DIGEST_MD5:
        (void)MD5_Final(ret, state);
        break;
    }
}

void digest_hex(const uint8_t *bytes, size_t n, char *ret)
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < n; i++) {
        ret[2 * i] = digits[bytes[i] >> 4];
        ret[2 * i + 1] = digits[bytes[i] & 15];
    }
    ret[2 * n] = '\0';
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

bool digest_read_hex(const char *hex, uint8_t *ret, size_t n)
{
    if (strlen(hex) != 2 * n)
        return false;
    for (size_t i = 0; i < n; i++) {
        int high = hex_value(hex[2 * i]);
        int low = hex_value(hex[2 * i + 1]);

        if (high < 0 || low < 0)
            return false;
        ret[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}
