/* manifest: the forms of other tools; text that comes piece by piece. */
#include "dataset/manifest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define M1 "11111111111111111111111111111111"
#define H0 "0000000000000000000000000000000000000000000000000000000000000000"
#define H1 M1 M1
#define LFS "version https://git-lfs.github.com/spec/v1\n"

static int parse(struct manifest *m, enum manifest_form form, const char *text,
                 size_t len, struct err *e)
{
    struct manifest_input in = {.file = "m", .form = form, .text = text,
                                .len = len};

    memset(m, 0, sizeof *m);
    return manifest_parse(m, &in, e);
}

struct refused {
    enum manifest_form form;
    const char *text, *why; /* `why` is the whole of what is said. */
};

static const struct refused refused[] = {
    {FORM_ANY, "# nothing\n\n", "m: it names no file"},
    {FORM_ANY, H0 "  a\n" H0 "\n",
     "m:2:1: neither JSON nor a line of a hash and a path, as sha256sum writes "
     "it"},
    {FORM_ANY, H0 "  \n", "m:1:1: a hash without a path"},
    {FORM_ANY, H0 "  -\n", "m:1:67: the hash of standard input, of no file"},
    {FORM_ANY, H0 "  a/../b\n",
     "m:1:67: path 'a/../b' is refused: it has a '..' component"},
    {FORM_ANY, H0 " */a\n", "m:1:67: path '/a' is refused: it is absolute"},
    {FORM_ANY, "\\" H0 "  a\\x\n", "m:1:70: an unknown escape in the path"},
    {FORM_ANY, "\\" H0 "  a\\\n", "m:1:69: an unknown escape in the path"},
    {FORM_ANY, H0 "0  a\n", "m:1:1: a hash of 65 hex digits: md5 has 32, sha1 "
                            "40, sha256 64, sha512 128"},
    {FORM_ANY, "md5:" H0 "  a\n", "m:1:5: md5 has 32 hex digits, not 64"},
    {FORM_ANY, "MD5 (a) = " H0 "\n", "m:1:11: md5 has 32 hex digits, not 64"},
    {FORM_ANY, "MD5 (a) " M1 "\n",
     "m:1:9: a '=' should stand before the hash"},
    {FORM_ANY, "MD5 (a = " M1 "\n",
     "m:1:6: a ')' should stand after the path"},
    {FORM_ANY, "MD5 (a) = x\n", "m:1:12: md5 has 32 hex digits, not 0"},
    {FORM_ANY, "BLAKE2b (a) = " H0 "\n",
     "m:1:1: this hash is not read: use sha256, sha512, sha1 or md5"},
    {FORM_BAG, H0 "  a\n", "m:1:67: path 'a' is refused: the payload of a bag "
                           "is under data/"},
    {FORM_BAG, H0 "  data/%2e\n" H0 "  data/%0d/../b\n",
     "m:2:67: path 'data/\?/../b' is refused: it has a '..' component"},
    {FORM_ANY, "[]", "m: it names no file"},
    {FORM_ANY, "[{}]", "m:1:2: an entry without 'md5'"},
    {FORM_ANY, "[{\"md5\": \"" M1 "\"}]", "m:1:2: an entry without 'relpath'"},
    {FORM_ANY, "[{\"relpath\": \"/a\"}]",
     "m:1:14: path '/a' is refused: it is absolute"},
    {FORM_ANY, "[{\"relpath\": \"a\", \"relpath\": \"b\"}]",
     "m:1:19: 'relpath' is given twice"},
    {FORM_ANY, "[{\"md5\": \"" M1 "\", \"relpath\": \"a\"}] x",
     "m:1:63: text after the end of the manifest"},
    {FORM_ANY, "[{\"x\": {}}]", "m:1:8: a single value should come here"},
    {FORM_ANY, LFS "oid sha1:00\n", "m:2:1: a Git LFS pointer needs 'oid "
                                    "sha256:' and 64 hex digits here"},
    {FORM_ANY, LFS "oid sha256:" H0 "\n",
     "m:3:1: a Git LFS pointer needs 'size' here"},
    {FORM_ANY, LFS "oid sha256:" H0 "\nsize 1x\n",
     "m:3:6: 'size' must be a whole number, at most 1 PiB"},
    {FORM_ANY, LFS "oid sha256:" H0 "\nsize 1125899906842625\n",
     "m:3:6: 'size' must be a whole number, at most 1 PiB"},
    {FORM_ANY, LFS "ext-0-x sha256:" H0 "\n",
     "m:2:1: a Git LFS pointer with extensions, which say how the object was "
     "changed: it cannot be verified"},
    {FORM_ANY, LFS "oid sha256:" H0 "\nsize 1\nmore\n",
     "m:4:1: text after the end of the pointer"},
    {FORM_ANY, "\xff\xfex", "m:1:1: it is UTF-16, as PowerShell writes it: "
                            "save it as UTF-8"},
};

static void refuses_and_says_where(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        const struct refused *c = &refused[i];
        struct err e = {.code = 0};
        struct manifest m;

        assert_int_equal(parse(&m, c->form, c->text, strlen(c->text), &e),
                         -ERR_DATA);
        assert_string_equal(e.text, c->why);
    }
}

struct taken {
    enum manifest_form form;
    const char *text, *path;
    enum digest_kind kind;
    int64_t size; /* -1: not listed. */
};

static const struct taken taken[] = {
    {FORM_ANY, H1 "  a", "a", DIGEST_SHA256, -1},
    {FORM_ANY, H1 "  a \r\n", "a ", DIGEST_SHA256, -1},
    {FORM_ANY, H1 " *./a\n", "a", DIGEST_SHA256, -1},
    {FORM_ANY, H1 "   a\n", " a", DIGEST_SHA256, -1},
    {FORM_ANY, H1 " a\n", "a", DIGEST_SHA256, -1},
    {FORM_ANY, "\\" H1 "  a\\n\\r\\\\b\n", "a\n\r\\b", DIGEST_SHA256, -1},
    {FORM_ANY, H1 "  a\\n\n", "a\\n", DIGEST_SHA256, -1},
    {FORM_ANY, "sha256:" H1 "  a\n", "a", DIGEST_SHA256, -1},
    {FORM_ANY, H1 H1 "  a\n", "a", DIGEST_SHA512, -1},
    {FORM_ANY, M1 "  a\n", "a", DIGEST_MD5, -1},
    {FORM_ANY, M1 "11111111  a\n", "a", DIGEST_SHA1, -1},
    {FORM_ANY, "SHA1 (a) = b) = " M1 "11111111\n", "a) = b", DIGEST_SHA1, -1},
    {FORM_ANY, "\\MD5 (a\\nb) = " M1 "\n", "a\nb", DIGEST_MD5, -1},
    {FORM_ANY, "SHA2-256(a)= " H1 "\n", "a", DIGEST_SHA256, -1},
    {FORM_ANY, H1 "  a%0Ab\n", "a%0Ab", DIGEST_SHA256, -1},
    {FORM_BAG, H1 "\t data/%0ab%25%2\n", "data/\nb%%2", DIGEST_SHA256, -1},
    {FORM_TAGS, H1 " bagit.txt\n", "bagit.txt", DIGEST_SHA256, -1},
    {FORM_ANY, "-----BEGIN PGP SIGNED MESSAGE-----\nHash: x\n\n- " H1 "  a\n"
               "-----BEGIN PGP SIGNATURE-----\nx\n-----END PGP SIGNATURE-----",
     "a", DIGEST_SHA256, -1},
    {FORM_ANY, "[{\"md5\": \"" M1 "\", \"x\": 1, \"relpath\": \"a/b\"}]\n",
     "a/b", DIGEST_MD5, -1},
    {FORM_ANY, LFS "oid sha256:" H1 "\nsize 12\n", "", DIGEST_SHA256, 12},
    {FORM_ANY, LFS "oid sha256:" H1 "\r\nsize 0\r\n", "", DIGEST_SHA256, 0},
};

static void reads_what_others_write(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++) {
        const struct taken *c = &taken[i];
        struct err e = {.text = ""};
        struct manifest m;
        int rc = parse(&m, c->form, c->text, strlen(c->text), &e);

        if (rc)
            fail_msg("%s: %s", c->text, e.text);
        assert_int_equal(m.n_entries, 1);
        assert_string_equal(m.entries[0].path, c->path);
        assert_int_equal(m.entries[0].hash_kind, c->kind);
        assert_int_equal(m.entries[0].hash[0], 0x11);
        assert_int_equal(m.entries[0].has_size, c->size >= 0);
        if (c->size >= 0)
            assert_int_equal(m.entries[0].size, c->size);
        manifest_free(&m);
    }
}

/* Each cut and each changed byte: read or refused, but never worse. The text
 * is of the exact size, so that ASan sees a byte too many. */
static void cut_and_changed(void **state)
{
    static const unsigned char put[] = {0, '"', '\\', '(', ' ', '\n', 0xff};

    (void)state;
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++) {
        size_t len = strlen(taken[i].text);

        for (size_t n = 0; n < len * (sizeof put + 1); n++) {
            size_t cut = n < len ? n : len;
            char *text = malloc(cut + 1);
            struct err e = {.code = 0};
            struct manifest m;
            int rc;

            assert_non_null(text);
            memcpy(text, taken[i].text, cut);
            if (n >= len)
                text[n % len] = (char)put[n / len - 1];
            rc = parse(&m, taken[i].form, text, cut, &e);
            assert_true(rc == 0 || rc == -ERR_DATA);
            manifest_free(&m);
            free(text);
        }
    }
}

static void a_digest_without_sizes(void **state)
{
    static const char lines[] = "sha256:" H1 " - a none\nsha256:" H1
                                " - b none\n";
    uint8_t sum[DIGEST_MAX];
    struct digest d;
    struct manifest m;
    struct err e;

    (void)state;
    digest_start(&d, DIGEST_SHA256);
    digest_add(&d, lines, strlen(lines));
    digest_end(&d, sum);
    assert_int_equal(manifest_read(&m, "m", H1 "  b\n" H1 "  a\n" H1 "  b\n",
                                   3 * 68, &e),
                     0);
    assert_int_equal(m.n_entries, 2);
    assert_memory_equal(m.digest, sum, 32);
    assert_null(manifest_weak_hash(&m));
    manifest_free(&m);
}

static void the_stronger_of_two_hashes(void **state)
{
    static const char *const lines[] = {M1 "  a\n", M1 "11111111  a\n",
                                        H1 "  a\n", H1 H1 "  a\n"};
    static const enum digest_kind kinds[] = {DIGEST_MD5, DIGEST_SHA1,
                                             DIGEST_SHA256, DIGEST_SHA512};

    (void)state;
    for (size_t i = 0; i < 16; i++) {
        char text[512];
        struct manifest m;
        struct err e;
        size_t more = i % 4 > i / 4 ? i % 4 : i / 4;

        (void)snprintf(text, sizeof text, "%s%s", lines[i / 4], lines[i % 4]);
        assert_int_equal(manifest_read(&m, "m", text, strlen(text), &e), 0);
        assert_int_equal(m.n_entries, 1);
        assert_int_equal(m.entries[0].hash_kind, kinds[more]);
        assert_int_equal(manifest_weak_hash(&m) != NULL, more < 2);
        manifest_free(&m);
    }
}

/* --- piece by piece ------------------------------------------------------ */

#define N_MANY 40000u

struct pieces {
    size_t at, len, piece;
    char *text;
    bool fails;
};

static long next_piece(void *ctx, char *buf, size_t cap, struct err *e)
{
    struct pieces *p = ctx;
    size_t n = p->len - p->at;

    if (p->fails && n == 0)
        return err_set(e, ERR_RESOURCE, "no more");
    n = n < p->piece ? n : p->piece;
    n = n < cap ? n : cap;
    memcpy(buf, p->text + p->at, n);
    p->at += n;
    return (long)n;
}

static int read_pieces(struct pieces *p, struct manifest *m, struct err *e)
{
    struct manifest_input in = {.file = "m", .form = FORM_ANY,
                                .read = next_piece, .ctx = p};

    p->at = 0;
    return manifest_parse(m, &in, e);
}

/* More text than the window holds. */
static void many(struct pieces *p, bool json)
{
    FILE *f = open_memstream(&p->text, &p->len);

    assert_non_null(f);
    if (json)
        (void)fputs("{\"manifest\": 1, \"name\": \"a\", \"files\": [\n", f);
    for (unsigned i = 1; i <= N_MANY; i++) {
        if (json)
            (void)fprintf(f, "{\"path\": \"%08u\", \"size\": 1, \"sha256\": \""
                             H0 "\"}%s\n", i, i < N_MANY ? "," : "");
        else
            (void)fprintf(f, H0 "  train/class/image_%08u.jpg\n", i);
    }
    if (json)
        (void)fputs("]}", f);
    assert_int_equal(fclose(f), 0);
    assert_true(p->len > (size_t)3 << 20);
    p->piece = 100003;
}

/* A fault at its end has its true place; one of reading is passed on. */
static void read_many(bool json, const char *why)
{
    struct pieces p = {.at = 0};
    struct manifest m;
    struct err e = {.text = ""};

    many(&p, json);
    if (read_pieces(&p, &m, &e))
        fail_msg("%s", e.text);
    assert_int_equal(m.n_entries, N_MANY);
    assert_int_equal(m.entries[N_MANY - 1].line, N_MANY + json);
    manifest_free(&m);
    p.text[p.len - (json ? 1 : 99 - 5)] = '?';
    assert_int_equal(read_pieces(&p, &m, &e), -ERR_DATA);
    assert_string_equal(e.text, why);
    p.fails = true;
    p.len /= 2;
    assert_int_equal(read_pieces(&p, &m, &e), -ERR_RESOURCE);
    free(p.text);
}

static void longer_than_the_window(void **state)
{
    (void)state;
    read_many(false, "m:40000:1: neither JSON nor a line of a hash and a "
                     "path, as sha256sum writes it");
    read_many(true, "m:40002:2: a ',' should come here, between two keys");
}

static void an_entry_longer_than_the_window(void **state)
{
    struct pieces p = {.piece = 1u << 20, .len = (size_t)3 << 20};
    struct manifest m;
    struct err e;

    (void)state;
    p.text = malloc(p.len);
    assert_non_null(p.text);
    memset(p.text, ' ', p.len);
    memcpy(p.text, "[{\"relpath\": \"", 14);
    memset(p.text + 14, 'x', p.len - 14);
    assert_int_equal(read_pieces(&p, &m, &e), -ERR_DATA);
    assert_non_null(strstr(e.text, "an entry of more than 1 MiB"));
    memset(p.text, '0', p.len);
    assert_int_equal(read_pieces(&p, &m, &e), -ERR_DATA);
    assert_non_null(strstr(e.text, "an entry of more than 1 MiB"));
    free(p.text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_and_says_where),
        cmocka_unit_test(reads_what_others_write),
        cmocka_unit_test(cut_and_changed),
        cmocka_unit_test(a_digest_without_sizes),
        cmocka_unit_test(the_stronger_of_two_hashes),
        cmocka_unit_test(longer_than_the_window),
        cmocka_unit_test(an_entry_longer_than_the_window),
    };

    return cmocka_run_group_tests_name("manifest_forms", tests, NULL, NULL);
}
