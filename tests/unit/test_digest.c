/* digest: known answers (FIPS 180, RFC 1321), in pieces, and hex. */
#include "base/digest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static unsigned looks; /* At the CPU. */

void digest_look_at_cpu(void)
{
    looks++;
}

struct known {
    enum digest_kind kind;
    const char *text, *hex;
};

static const struct known known[] = {
    {DIGEST_SHA256, "",
     "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
    {DIGEST_SHA256, "abc",
     "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
    {DIGEST_SHA256, "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
     "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    {DIGEST_SHA512, "abc",
     "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
     "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f"},
    {DIGEST_SHA1, "abc", "a9993e364706816aba3e25717850c26c9cd0d89d"},
    {DIGEST_MD5, "", "d41d8cd98f00b204e9800998ecf8427e"},
    {DIGEST_MD5, "message digest", "f96b697d7cb7938d525a2f31aaf161d0"},
};

static void known_answers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        const struct known *k = &known[i];
        char hex[DIGEST_HEX_MAX];
        uint8_t sum[DIGEST_MAX];
        struct digest d;

        digest_start(&d, k->kind);
        for (const char *at = k->text; *at; at++)
            digest_add(&d, at, 1);
        digest_end(&d, sum);
        digest_hex(sum, digest_size(k->kind), hex);
        assert_string_equal(hex, k->hex);
        assert_int_equal(strlen(k->hex), 2 * digest_size(k->kind));
    }
}

static void words(void **state)
{
    (void)state;
    assert_string_equal(digest_word(DIGEST_SHA256), "sha256");
    assert_string_equal(digest_word(DIGEST_SHA512), "sha512");
    assert_string_equal(digest_word(DIGEST_SHA1), "sha1");
    assert_string_equal(digest_word(DIGEST_MD5), "md5");
}

static void hex_both_cases(void **state)
{
    uint8_t got[3];
    const uint8_t want[] = {0x00, 0xaf, 0xFA};

    (void)state;
    assert_true(digest_read_hex("00afFA", got, 3));
    assert_memory_equal(got, want, 3);
}

static void hex_refused(void **state)
{
    static const char *const bad[] = {"", "00afF", "00afFA0", "00afFA00",
                                      "00afFg", "0x00af", " 00afF", "00:af:"};
    uint8_t got[3];

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(digest_read_hex(bad[i], got, 3));
}

/* The static program has libcrypto look for its fast code then, no earlier. */
static void the_first_digest_looks_at_the_cpu(void **state)
{
    struct digest d;

    (void)state;
    looks = 0;
    digest_start(&d, DIGEST_SHA256);
    assert_int_equal(looks, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_answers),
        cmocka_unit_test(the_first_digest_looks_at_the_cpu),
        cmocka_unit_test(words),
        cmocka_unit_test(hex_both_cases),
        cmocka_unit_test(hex_refused),
    };

    return cmocka_run_group_tests_name("digest", tests, NULL, NULL);
}
