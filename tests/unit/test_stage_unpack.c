/* stage: gzip files, into a stage and in place. */
#include "stage_fixture.h"

#define GZIP ", \"unpack\": \"gzip\""
#define NOTE                                                                   \
    "1 of the 1 files of 'set' are packed, and without --stage stay so: give " \
    "--stage DIR where the workers want them unpacked"

/* Put a.gz, of `packed` bytes, into the source and list it alone. */
static void list_gz(struct fixture *f, const void *packed, size_t n,
                    const char *more)
{
    text_init(&f->entries, f->json, sizeof f->json);
    put_file(f->src, "a.gz", packed, n);
    list_file(f, "a.gz", packed, n, more);
    write_manifest(f);
}

static const char *with_sha256(char *buf, size_t cap, const char *text)
{
    char hex[DIGEST_HEX_MAX];

    sha256_hex(text, strlen(text), hex);
    (void)snprintf(buf, cap,
                   GZIP ", \"unpacked_size\": %zu, \"unpacked_sha256\": \"%s\"",
                   strlen(text), hex);
    return buf;
}

static void members_are_joined(void **state)
{
    struct fixture *f = *state;
    uint8_t gz[512];
    char more[256];
    size_t n = gzip(gz, sizeof gz, "hello", 5);

    n += gzip(gz + n, sizeof gz - n, "", 0);
    n += gzip(gz + n, sizeof gz - n, " world", 6);
    list_gz(f, gz, n, with_sha256(more, sizeof more, "hello world"));
    assert_int_equal(run_stage(f), 0);
    assert_content(f->r.dir, "a", "hello world", 11);
    assert_int_equal(count_names(f->r.dir, "a"), 1);
    assert_int_equal(f->r.n_bytes, n);
}

/* Longer than all buffers, so that a member goes on over several reads. */
static void large_file(void **state)
{
    struct fixture *f = *state;
    size_t len = 3u << 20, cap = len + 4096, n;
    uint8_t *data = malloc(len), *gz = malloc(cap);
    uint32_t x = 1;

    assert_true(data && gz);
    for (size_t i = 0; i < len; i++) {
        x = x * 1664525 + 1013904223;
        data[i] = (uint8_t)(x >> 24 & 0x7f);
    }
    n = gzip(gz, cap, data, len);
    list_gz(f, gz, n, GZIP);
    assert_int_equal(run_stage(f), 0);
    assert_content(f->r.dir, "a", data, len);
    free(data);
    free(gz);
}

struct bad_gzip {
    const char *more, *why; /* Of "'T/src/a.gz' "... */
    int cut;                /* Bytes to take from the end; < 0: to add. */
};

static void what_gzip_can_get_wrong(void **state)
{
    static const struct bad_gzip bad[] = {
        {GZIP, "cannot be unpacked: the gzip data ends early", 1},
        {GZIP, "cannot be unpacked: the gzip data ends early", 12},
        {GZIP, "cannot be unpacked: the gzip data ends early", 23},
        {GZIP, "cannot be unpacked: it is no gzip data", 25},
        {GZIP, "cannot be unpacked: bytes follow the end of the gzip data", -1},
        {GZIP, "cannot be unpacked: bytes follow the end of the gzip data",
         -40},
        {GZIP ", \"unpacked_size\": 4",
         "unpacks to more than the 4 bytes that the manifest says", 0},
        {GZIP ", \"unpacked_size\": 6",
         "unpacks to 5 bytes, the manifest says 6", 0},
        {GZIP ", \"unpacked_sha256\": "
              "\"0000000000000000000000000000000000000000000000000000000000"
              "000000\"",
         "unpacks to sha256 "
         "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824, "
         "the manifest says "
         "0000000000000000000000000000000000000000000000000000000000000000",
         0},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        uint8_t gz[128] = {0};
        char want[ERR_TEXT_MAX];
        size_t n = gzip(gz, sizeof gz, "hello", 5);

        assert_int_equal(n, 25);
        memset(gz + n, 'x', sizeof gz - n);
        list_gz(f, gz, (size_t)((int)n - bad[i].cut), bad[i].more);
        (void)snprintf(want, sizeof want, "'T/src/a.gz' %s", bad[i].why);
        assert_fault(f, run_stage(f), ERR_DATA, want);
        assert_int_equal(count_names(f->stage, "set@"), 0);
    }
}

/* A wrong hash says more than what the unpacking stumbles over. */
static void flipped_byte_is_told_by_its_hash(void **state)
{
    struct fixture *f = *state;
    uint8_t gz[128];
    size_t n = gzip(gz, sizeof gz, "hello", 5);

    for (size_t i = 0; i < n; i++) {
        list_gz(f, gz, n, GZIP);
        gz[i] ^= 0x10;
        put_file(f->src, "a.gz", gz, n);
        gz[i] ^= 0x10;
        assert_int_equal(run_stage(f), -ERR_DATA);
        assert_non_null(strstr(f->e.text, "/src/a.gz' has sha256 "));
    }
}

static void bomb(void **state)
{
    struct fixture *f = *state;
    size_t len = 4u << 20, cap = 65536, n;
    uint8_t *zeros = calloc(1, len), *gz = malloc(cap);

    assert_true(zeros && gz);
    n = gzip(gz, cap, zeros, len);
    assert_true(n * 1000 < len);
    list_gz(f, gz, n, GZIP);
    assert_fault(f, run_stage(f), ERR_DATA,
                 "'T/src/a.gz' unpacks to more than 1000 times its size: if "
                 "that is right, give its unpacked_size in the manifest");
    list_gz(f, gz, n, GZIP ", \"unpacked_size\": 4194304");
    assert_int_equal(run_stage(f), 0);
    assert_content(f->r.dir, "a", zeros, len);
    free(zeros);
    free(gz);
}

static void corrected_hash_is_not_the_old_stage(void **state)
{
    struct fixture *f = *state;
    uint8_t gz[128];
    size_t n = gzip(gz, sizeof gz, "hello", 5);

    list_gz(f, gz, n, GZIP);
    assert_int_equal(run_stage(f), 0);
    /* Of the same digest, but now with a size that is wrong. */
    list_gz(f, gz, n, GZIP ", \"unpacked_size\": 6");
    assert_fault(f, run_stage(f), ERR_DATA,
                 "'T/src/a.gz' unpacks to 5 bytes, the manifest says 6");
    list_gz(f, gz, n, GZIP ", \"unpacked_size\": 5");
    assert_int_equal(run_stage(f), 0);
    assert_true(f->r.reused); /* The old one was left alone. */
}

static void in_place(void **state)
{
    struct fixture *f = *state;
    char more[256], hex[2][DIGEST_HEX_MAX], want[ERR_TEXT_MAX];
    uint8_t gz[128];
    size_t n = gzip(gz, sizeof gz, "hello", 5);

    sha256_hex("hello", 5, hex[0]);
    sha256_hex("jello", 5, hex[1]);
    list_gz(f, gz, n, GZIP);
    assert_int_equal(run_with(f, false, false), 0);
    assert_string_equal(f->r.note, NOTE);
    assert_string_equal(f->r.dir, f->src);
    assert_false(f->r.reused);
    put_file(f->src, "a", "hello", 5); /* Both. */
    assert_int_equal(run_with(f, false, false), 0);
    assert_string_equal(f->r.note, "");
    put_file(f->src, "a", "jello", 5);
    (void)snprintf(want, sizeof want,
                   "'T/src/a' has sha256 %s, the packed file says %s", hex[1],
                   hex[0]);
    assert_fault(f, run_with(f, false, false), ERR_DATA, want);
    put_file(f->src, "a", "hello", 5); /* Unpacked alone: of what hash? */
    sh("rm %s/a.gz", f->src);
    assert_fault(f, run_with(f, false, false), ERR_NODATA,
                 "'T/src/a.gz' is missing");
    list_gz(f, gz, n, with_sha256(more, sizeof more, "hello"));
    sh("rm %s/a.gz", f->src);
    assert_int_equal(run_with(f, false, false), 0);
    assert_string_equal(f->r.note, "");
    put_file(f->src, "a", "jello", 5);
    (void)snprintf(want, sizeof want,
                   "'T/src/a' has sha256 %s, the manifest says %s", hex[1],
                   hex[0]);
    assert_fault(f, run_with(f, false, false), ERR_DATA, want);
}

#define TEST(fn)                                                               \
    cmocka_unit_test_setup_teardown(fn, fixture_setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(members_are_joined),
        TEST(large_file),
        TEST(what_gzip_can_get_wrong),
        TEST(flipped_byte_is_told_by_its_hash),
        TEST(bomb),
        TEST(corrected_hash_is_not_the_old_stage),
        TEST(in_place),
    };

    (void)umask(022);
    return cmocka_run_group_tests_name("stage_unpack", tests, NULL, NULL);
}
