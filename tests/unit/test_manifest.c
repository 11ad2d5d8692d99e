/* manifest: what is read, what is refused and where, and the set's digest. */
#include "dataset/manifest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define H0 "0000000000000000000000000000000000000000000000000000000000000000"
#define H1 "1111111111111111111111111111111111111111111111111111111111111111"
#define HEAD "{\"manifest\": 1, \"name\": \"set\", \"files\": ["
#define FILE_A "{\"path\": \"a\", \"size\": 1, \"sha256\": \"" H0 "\"}"
#define PATH(p)                                                                \
    HEAD "{\"path\": \"" p "\", \"size\": 1, \"sha256\": \"" H0 "\"}]}"
#define MORE(more)                                                             \
    HEAD "{\"path\": \"a.gz\", \"size\": 1, \"sha256\": \"" H0 "\", " more "}]}"

static int read_text(struct manifest *m, const char *text, struct err *e)
{
    memset(m, 0, sizeof *m);
    return manifest_read(m, "m.json", text, strlen(text), e);
}

struct refused {
    const char *text, *why; /* `why` is the whole of what is said. */
};

static const struct refused refused[] = {
    {"", "m.json: it names no file"},
    {"x", "m.json:1:1: neither JSON nor a line of a hash and a path, as "
          "sha256sum writes it"},
    {"{", "m.json:1:2: a key in double quotes should come here"},
    {"{}", "m.json:1:2: 'manifest' is missing"},
    {"{\"manifest\": 1, \"files\": [" FILE_A "]}",
     "m.json:1:130: 'name' is missing"},
    {"{\"manifest\": 2}", "m.json:1:14: 'manifest' must be 1, the only version "
                          "of the format that is read"},
    {"{\"manifest\": 1, \"name\": \"a/b\"}",
     "m.json:1:25: 'name' is refused: it has a slash"},
    {"{\"name\": \"..\"}", "m.json:1:10: 'name' is refused: it is no name of a "
                           "folder"},
    {"{\"name\": \"\"}", "m.json:1:10: 'name' is refused: it is empty"},
    {"{\"name\": \"a\\nb\"}",
     "m.json:1:10: 'name' is refused: it has a control character"},
    {"{\"name\": 1}", "m.json:1:10: 'name' must be a string"},
    {"{\"manifest\": 1,\n \"nmae\": \"set\"}",
     "m.json:2:2: unknown key 'nmae'"},
    {"{\"manifest\": 1,\n \"manifest\": 1}",
     "m.json:2:2: 'manifest' is given twice"},
    {HEAD "]}", "m.json: it names no file"},
    {HEAD "]", "m.json:1:43: the file ends where a ',' should come, between "
               "two keys"},
    {HEAD "]} x", "m.json:1:45: text after the end of the manifest"},
    {HEAD FILE_A ",]}", "m.json:1:145: a comma before the ']'"},
    {HEAD FILE_A " " FILE_A "]}",
     "m.json:1:145: a ',' should come here, in 'files'"},
    {HEAD "1]}", "m.json:1:42: a '{' should come here, for a file"},
    {HEAD "{\"size\": 1}]}", "m.json:1:42: an entry without 'path'"},
    {HEAD "{\"path\": \"a\"}]}", "m.json:1:42: 'a' has no 'size'"},
    {HEAD "{\"path\": \"a\", \"size\": 1}]}",
     "m.json:1:42: 'a' has none of sha256, sha512, sha1, md5"},
    {HEAD "\n{\"path\": \"a\", \"size\": \"1\"}]}",
     "m.json:2:23: 'size' must be a whole number, 0 or more"},
    {HEAD "{\"size\": -1}]}",
     "m.json:1:51: 'size' must be a whole number, 0 or more"},
    {HEAD "{\"size\": 1.0}]}",
     "m.json:1:51: 'size' must be a whole number, 0 or more"},
    {HEAD "{\"size\": 1125899906842625}]}",
     "m.json:1:51: 'size' is over the limit of 1 PiB for a file"},
    {HEAD "{\"size\": [[[[1]]]]}]}",
     "m.json:1:51: a single value should come here"},
    {HEAD "{\"sha256\": \"00\"}]}",
     "m.json:1:53: 'sha256' must be 64 hex digits"},
    {HEAD "{\"md5\": \"" H0 "\"}]}",
     "m.json:1:50: 'md5' must be 32 hex digits"},
    {HEAD "{\"sha256\": \"" H0 "\", \"md5\": \"\"}]}",
     "m.json:1:127: a second hash of one file: keep one of sha256, sha512, "
     "sha1, md5"},
    {PATH("/etc/passwd"),
     "m.json:1:51: path '/etc/passwd' is refused: it is absolute"},
    {PATH("a/../b"),
     "m.json:1:51: path 'a/../b' is refused: it has a '..' component"},
    {PATH(".."), "m.json:1:51: path '..' is refused: it has a '..' component"},
    {PATH("./a"), "m.json:1:51: path './a' is refused: it has a '.' component"},
    {PATH("a//b"),
     "m.json:1:51: path 'a//b' is refused: it has an empty component"},
    {PATH("a/"),
     "m.json:1:51: path 'a/' is refused: it has an empty component"},
    {PATH(""), "m.json:1:51: path '' is refused: it is empty"},
    {PATH(".agent-stage"), "m.json:1:51: path '.agent-stage' is refused: the "
                           "name is kept for the marker of a stage"},
    {PATH("a\\u0000b"),
     "m.json:1:51: a NUL (\\u0000) in a string"},
    {HEAD "{\"path\": \"" H0 H0 H0 H0 "\"}]}",
     "m.json:1:51: path "
     "'..." "00000000000000000000000000000000000000000000000000000000000000"
     "000000000000000000000000000000000000000000000000000000000000000000000000"
     "0000000000000000000000' is refused: it has a component of more than 255 "
     "bytes"},
    {MORE("\"unpack\": \"gz\""),
     "m.json:1:158: 'unpack' must be none, gzip, tar, tar.gz, tar.zst, tar.xz "
     "or zip"},
    {MORE("\"unpack\": \"zip\", \"unpacked_sha256\": \"" H0 "\""),
     "m.json:1:42: 'a.gz' has an unpacked hash, but many files in it"},
    {MORE("\"keep\": 1"), "m.json:1:156: 'keep' must be true or false"},
    {MORE("\"urls\": \"x\""), "m.json:1:156: a '[' should come here, for "
                              "'urls'"},
    {MORE("\"urls\": [\"\"]"), "m.json:1:157: an empty URL"},
    {MORE("\"unpacked_size\": 1"), "m.json:1:42: 'a.gz' has an unpacked size "
                                   "or hash, but no 'unpack'"},
    {MORE("\"size\": 1"), "m.json:1:148: 'size' is given twice"},
    {HEAD "{\"path\": \"a\", \"size\": 1, \"sha256\": \"" H0
          "\", \"unpack\": \"gzip\"}]}",
     "m.json:1:51: a path to unpack must end with .gz"},
    {HEAD "{\"path\": \"b/...gz\", \"size\": 1, \"sha256\": \"" H0
          "\", \"unpack\": \"gzip\"}]}",
     "m.json:1:51: the path without .gz is refused: it has a '..' component"},
    {HEAD FILE_A ",\n{\"path\": \"a\", \"size\": 2, \"sha256\": \"" H0 "\"}]}",
     "m.json:2: 'a' is listed twice and differs from line 1: keep the right "
     "one"},
    {HEAD FILE_A ",\n{\"path\": \"a/b\", \"size\": 2, \"sha256\": \"" H0
                 "\"}]}",
     "m.json:2: 'a' would be both a file and a folder (see line 1)"},
    {HEAD FILE_A ",\n{\"path\": \"a.gz\", \"size\": 2, \"sha256\": \"" H0
                 "\", \"unpack\": \"gzip\"}]}",
     "m.json:2: 'a' would be made twice (see line 1)"},
    {HEAD "{\"path\": \"\xff\"}]}",
     "m.json:1:51: unable to decode byte 0xff near '\"'"},
    {HEAD "{\"p\xc3\xa4\xc3\xb6th\": 1}]}",
     "m.json:1:43: unknown key 'p\xc3\xa4\xc3\xb6th'"},
};

static void refuses_and_says_where(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        struct manifest m;
        struct err e = {.code = 0};

        assert_int_equal(read_text(&m, refused[i].text, &e), -ERR_DATA);
        assert_int_equal(e.code, ERR_DATA);
        assert_string_equal(e.text, refused[i].why);
    }
}

static const char whole[] =
    "{\"manifest\": 1, \"name\": \"d\xc3\xafgits\",\n"
    " \"files\": [\n"
    "  {\"path\": \"raw/b \\u00e9.gz\", \"size\": 12, \"sha1\":"
    " \"A9993E364706816ABA3E25717850C26C9CD0D89D\","
    " \"unpack\": \"gzip\", \"keep\": true, \"unpacked_size\": 100,"
    " \"unpacked_sha256\": \"sha256:" H1 "\","
    " \"urls\": [\"https://a/b\", \"https://c\"]},\n"
    "  {\"path\": \"raw/a\", \"size\": 0, \"unpack\": \"none\","
    " \"sha256\": \"" H0 "\"}\n"
    " ]}\n";

static void reads_every_key(void **state)
{
    struct manifest m;
    struct err e = {.code = 0};
    const struct manifest_entry *b;

    (void)state;
    assert_int_equal(read_text(&m, whole, &e), 0);
    assert_string_equal(m.name, "d\xc3\xafgits");
    assert_int_equal(m.n_entries, 2);
    assert_int_equal(m.n_bytes, 12);
    assert_string_equal(m.entries[0].path, "raw/a");
    assert_int_equal(m.entries[0].line, 4);
    b = &m.entries[1];
    assert_string_equal(b->path, "raw/b \xc3\xa9.gz");
    assert_string_equal(b->out_path, "raw/b \xc3\xa9");
    assert_int_equal(b->line, 3);
    assert_int_equal(b->hash_kind, DIGEST_SHA1);
    assert_int_equal(b->hash[0], 0xa9);
    assert_int_equal(b->unpack, UNPACK_GZIP);
    assert_true(b->keep && b->has_unpacked_size && b->has_unpacked_sha256);
    assert_int_equal(b->unpacked_size, 100);
    assert_int_equal(b->unpacked_sha256[31], 0x11);
    assert_int_equal(m.n_outputs, 3); /* a, b, and b.gz, which is kept. */
    assert_string_equal(m.outputs[2].path, b->path);
    assert_false(m.outputs[2].unpacked);
    assert_true(m.outputs[1].unpacked);
    manifest_free(&m);
}

/* printf 'sha1:a999... 12 raw/b é.gz gzip\nsha256:000... 0 raw/a none\n' |
 * LC_ALL=C sort | sha256sum */
static void digest_is_of_sorted_lines(void **state)
{
    struct manifest m;
    struct err e = {.code = 0};
    char hex[DIGEST_HEX_MAX];

    (void)state;
    assert_int_equal(read_text(&m, whole, &e), 0);
    digest_hex(m.digest, sizeof m.digest, hex);
    assert_string_equal(hex, "9ebcaa2eb61e77238232f97cda6c5277"
                             "1b538d5d946c2f27029a2eb449b737a9");
    manifest_free(&m);
}

static void digest_ignores_order_and_doubles(void **state)
{
    static const char b[] =
        "{\"path\": \"b\", \"size\": 2, \"md5\": "
        "\"d41d8cd98f00b204e9800998ecf8427e\"}";
    char text[2][1024];
    struct manifest m[2];
    struct err e = {.code = 0};

    (void)state;
    (void)snprintf(text[0], sizeof text[0], HEAD FILE_A ",%s]}", b);
    (void)snprintf(text[1], sizeof text[1], HEAD "%s,%s," FILE_A "]}", b, b);
    for (int i = 0; i < 2; i++)
        assert_int_equal(read_text(&m[i], text[i], &e), 0);
    assert_int_equal(m[1].n_entries, 2);
    assert_memory_equal(m[0].digest, m[1].digest, 32);
    for (int i = 0; i < 2; i++)
        manifest_free(&m[i]);
}

/* One path with a newline must not look like two entries. */
static void digest_escapes_newlines(void **state)
{
    struct manifest one, two;
    struct err e = {.code = 0};

    (void)state;
    assert_int_equal(
        read_text(&one, PATH("x none\\nsha256:" H1 " 1 y"), &e), 0);
    assert_int_equal(
        read_text(&two,
                  HEAD "{\"path\": \"x\", \"size\": 1, \"sha256\": \"" H0 "\"},"
                       "{\"path\": \"y\", \"size\": 1, \"sha256\": \"" H1
                       "\"}]}",
                  &e),
        0);
    assert_memory_not_equal(one.digest, two.digest, 32);
    manifest_free(&one);
    manifest_free(&two);
}

/* Cut anywhere it is refused, not read half and not read beyond. */
static void cut_anywhere(void **state)
{
    size_t len = sizeof whole - 1;

    (void)state;
    for (size_t n = 0; n < len - 1; n++) {
        char *text = malloc(n + 1); /* Exact, so that ASan sees more. */
        struct manifest m = {.n_entries = 0};
        struct err e = {.code = 0};

        assert_non_null(text);
        memcpy(text, whole, n);
        assert_int_equal(manifest_read(&m, "m", text, n, &e), -ERR_DATA);
        free(text);
    }
}

/* Any byte changed in any way: read or refused, but never worse. */
static void changed_anywhere(void **state)
{
    static const unsigned char put[] = {0, '"', '\\', '{', ']', ',', '9', 0xff};
    char text[sizeof whole];

    (void)state;
    for (size_t i = 0; i < (sizeof whole - 1) * sizeof put; i++) {
        struct manifest m = {.n_entries = 0};
        struct err e = {.code = 0};
        int rc;

        memcpy(text, whole, sizeof whole);
        text[i / sizeof put] = (char)put[i % sizeof put];
        rc = manifest_read(&m, "m", text, sizeof whole - 1, &e);
        assert_true(rc == 0 || rc == -ERR_DATA);
        manifest_free(&m);
    }
}

static char *write_out(int (*fn)(FILE *, const struct manifest *,
                                 struct err *),
                       const struct manifest *m, struct err *e, int *ret_rc)
{
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);

    assert_non_null(f);
    *ret_rc = fn(f, m, e);
    assert_int_equal(fclose(f), 0);
    return text;
}

static void json_is_read_back(void **state)
{
    struct manifest a, b;
    struct err e = {.code = 0};
    char *text, *again;
    int rc;

    (void)state;
    assert_int_equal(read_text(&a, whole, &e), 0);
    text = write_out(manifest_write_json, &a, &e, &rc);
    assert_int_equal(rc, 0);
    assert_int_equal(read_text(&b, text, &e), 0);
    assert_memory_equal(a.digest, b.digest, 32);
    assert_int_equal(b.n_outputs, 3);
    again = write_out(manifest_write_json, &b, &e, &rc);
    assert_string_equal(text, again);
    free(text);
    free(again);
    manifest_free(&a);
    manifest_free(&b);
}

static void sums_escape_names(void **state)
{
    static const char *const paths[] = {"a b", "c\\d\ne\rf", "-"};
    struct manifest m = {.n_entries = 0};
    struct err e = {.code = 0};
    char *text;
    int rc;

    (void)state;
    for (size_t i = 0; i < 3; i++)
        assert_non_null(manifest_add(&m, strdup(paths[i]), &e));
    text = write_out(manifest_write_sums, &m, &e, &rc);
    assert_int_equal(rc, 0);
    assert_string_equal(text, H0 "  a b\n\\" H0 "  c\\\\d\\ne\\rf\n" H0
                                 "  ./-\n");
    free(text);
    manifest_free(&m);
}

static void json_refuses_no_utf8(void **state)
{
    struct manifest m = {.n_entries = 0};
    struct err e = {.code = 0};
    char *text;
    int rc;

    (void)state;
    assert_non_null(manifest_add(&m, strdup("a"), &e));
    assert_non_null(manifest_add(&m, strdup("b\xff"), &e));
    text = write_out(manifest_write_json, &m, &e, &rc);
    assert_int_equal(rc, -ERR_DATA);
    assert_string_equal(text, ""); /* Nothing half. */
    assert_string_equal(e.text, "'b?' is no UTF-8, which JSON needs: rename "
                                "it, or use --format sha256sum");
    free(text);
    manifest_free(&m);
}

static void path_order_keeps_folders_together(void **state)
{
    (void)state;
    assert_true(path_compare("a", "a/b") < 0);
    assert_true(path_compare("a/b", "a!") < 0);
    assert_true(path_compare("a-", "a/b") > 0);
    assert_true(path_compare("a\xff", "ab") > 0);
    assert_int_equal(path_compare("a/b", "a/b"), 0);
}

static void shown_paths_are_one_line(void **state)
{
    struct path_shown p;
    char long_path[400];

    (void)state;
    assert_string_equal(path_show(&p, "/src", "a"), "/src/a");
    assert_string_equal(path_show(&p, "/", "a"), "/a");
    assert_string_equal(path_show(&p, NULL, "a\n\t\x1b[1mb"), "a???[1mb");
    memset(long_path, 'x', sizeof long_path - 1);
    long_path[sizeof long_path - 1] = '\0';
    long_path[sizeof long_path - 2] = 'y';
    (void)path_show(&p, "/src", long_path);
    assert_int_equal(strlen(p.at), PATH_SHOWN_MAX - 1);
    assert_memory_equal(p.at, "...xx", 5);
    assert_int_equal(p.at[PATH_SHOWN_MAX - 2], 'y');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_and_says_where),
        cmocka_unit_test(reads_every_key),
        cmocka_unit_test(digest_is_of_sorted_lines),
        cmocka_unit_test(digest_ignores_order_and_doubles),
        cmocka_unit_test(digest_escapes_newlines),
        cmocka_unit_test(cut_anywhere),
        cmocka_unit_test(changed_anywhere),
        cmocka_unit_test(json_is_read_back),
        cmocka_unit_test(sums_escape_names),
        cmocka_unit_test(json_refuses_no_utf8),
        cmocka_unit_test(path_order_keeps_folders_together),
        cmocka_unit_test(shown_paths_are_one_line),
    };

    return cmocka_run_group_tests_name("manifest", tests, NULL, NULL);
}
