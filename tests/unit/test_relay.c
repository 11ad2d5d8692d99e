/* Tests of supervise/relay. */
#include "supervise/relay.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define IN_MAX (4 * RELAY_LINE_MAX)
#define OUT_MAX (4 * IN_MAX)

/* A relay with its buffer, and all that came out of it. */
struct bench {
    struct relay r;
    char *buf, *out, *piece;
    size_t n_out;
    size_t small; /* Room that is given while there is space to read to. */
};

static struct bench *bench_new(const char *prefix)
{
    struct bench *b = calloc(1, sizeof *b);

    assert_non_null(b);
    b->buf = malloc(RELAY_LINE_MAX);
    b->out = malloc(OUT_MAX);
    b->piece = malloc(RELAY_OUT_MIN);
    assert_true(b->buf && b->out && b->piece);
    relay_init(&b->r, b->buf, prefix);
    return b;
}

static void bench_free(struct bench *b)
{
    free(b->buf);
    free(b->out);
    free(b->piece);
    free(b);
}

/* Take all, `cap` bytes at a time; each piece must be whole lines. */
static void drain(struct bench *b, size_t cap, bool at_end)
{
    size_t n;

    while ((n = relay_take(&b->r, b->piece, cap, at_end)) > 0) {
        assert_true(n <= cap);
        assert_int_equal(b->piece[n - 1], '\n');
        assert_true(b->n_out + n <= OUT_MAX);
        memcpy(b->out + b->n_out, b->piece, n);
        b->n_out += n;
    }
}

static void feed(struct bench *b, const char *in, size_t n, size_t read_max)
{
    while (n > 0) {
        size_t room, part;
        char *to = relay_space(&b->r, &room);

        if (room == 0) {
            drain(b, RELAY_OUT_MIN, false);
            to = relay_space(&b->r, &room);
        }
        assert_true(room > 0);
        part = room < read_max ? room : read_max;
        part = part < n ? part : n;
        memcpy(to, in, part);
        relay_put(&b->r, part);
        in += part;
        n -= part;
        drain(b, b->small ? b->small : RELAY_OUT_MIN, false);
    }
}

static void assert_out(const struct bench *b, const char *want, size_t n)
{
    assert_int_equal(b->n_out, n);
    assert_memory_equal(b->out, want, n);
}

static void test_lines_get_the_prefix(void **state)
{
    static const struct {
        const char *prefix, *in, *want;
        unsigned n_lines;
    } cases[] = {
        {"[r0] ", "", "", 0},
        {"[r0] ", "a\n", "[r0] a\n", 1},
        {"[r0] ", "a\nbc\n\nd\n", "[r0] a\n[r0] bc\n[r0] \n[r0] d\n", 4},
        {"[r0] ", "no newline", "[r0] no newline\n", 1},
        {"[r0] ", "a\nrest", "[r0] a\n[r0] rest\n", 2},
        {"[r0] ", "\n", "[r0] \n", 1},
        {"", "a\nb", "a\nb\n", 2},
        {"> ", "10%\r20%\r\n", "> 10%\r20%\r\n", 1},
        {"> ", "\xff\xfe\n\xc3", "> \xff\xfe\n> \xc3\n", 2},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (size_t cut = 1; cut < 12; cut++) {
            struct bench *b = bench_new(cases[i].prefix);

            feed(b, cases[i].in, strlen(cases[i].in), cut);
            drain(b, RELAY_OUT_MIN, true);
            drain(b, RELAY_OUT_MIN, true);
            assert_out(b, cases[i].want, strlen(cases[i].want));
            assert_int_equal(b->r.n_lines, cases[i].n_lines);
            assert_int_equal(b->r.n_bytes, strlen(cases[i].in));
            bench_free(b);
        }
}

static void test_nothing_before_the_newline(void **state)
{
    struct bench *b = bench_new("p ");

    (void)state;
    feed(b, "half", 4, 99);
    assert_int_equal(b->n_out, 0);
    feed(b, " done\nnext", 10, 99);
    assert_out(b, "p half done\n", 12);
    bench_free(b);
}

static void test_nul_passes(void **state)
{
    struct bench *b = bench_new("p ");

    (void)state;
    feed(b, "a\0b\n\0", 5, 1);
    drain(b, RELAY_OUT_MIN, true);
    assert_out(b, "p a\0b\np \0\n", 10);
    bench_free(b);
}

static void test_prefix_is_cut(void **state)
{
    char prefix[2 * RELAY_PREFIX_MAX];
    struct bench *b;

    (void)state;
    memset(prefix, 'p', sizeof prefix);
    prefix[sizeof prefix - 1] = '\0';
    b = bench_new(prefix);
    feed(b, "x\n", 2, 9);
    assert_int_equal(b->n_out, RELAY_PREFIX_MAX - 1 + 2);
    assert_memory_equal(b->out + RELAY_PREFIX_MAX - 2, "px\n", 3);
    bench_free(b);
}

/* The longest line, its newline included, is not split; one byte more is. */
static void test_long_lines_are_split_and_marked(void **state)
{
    static char in[3 * RELAY_LINE_MAX];
    const size_t part = RELAY_LINE_MAX - 1, mark = sizeof RELAY_MARK - 1;
    static const size_t cuts[] = {1000, 4096, 65535, RELAY_LINE_MAX};

    (void)state;
    memset(in, 'x', sizeof in);
    for (unsigned i = 0; i < sizeof cuts / sizeof cuts[0]; i++) {
        struct bench *b = bench_new("> ");

        in[part] = '\n';
        feed(b, in, part + 1, cuts[i]);
        assert_int_equal(b->n_out, 2 + part + 1);
        assert_memory_equal(b->out + b->n_out - 3, "xx\n", 3);

        b->n_out = 0;
        in[part] = 'x';
        in[part + 1] = '\n';
        feed(b, in, part + 2, cuts[i]);
        assert_int_equal(b->n_out, 2 + part + mark + 1 + 2 + 1 + 1);
        assert_memory_equal(b->out + 2 + part, RELAY_MARK "\n> x\n", mark + 5);

        b->n_out = 0;
        in[part + 1] = 'x';
        feed(b, in, 2 * part + 2, cuts[i]);
        drain(b, RELAY_OUT_MIN, true);
        assert_int_equal(b->n_out, 2 * (2 + part + mark + 1) + 2 + 2 + 1);
        assert_memory_equal(b->out + b->n_out - 5, "> xx\n", 5);
        bench_free(b);
    }
}

static void test_a_split_tears_no_character(void **state)
{
    static char in[RELAY_LINE_MAX + 8];
    struct bench *b = bench_new("");

    (void)state;
    memset(in, 'x', sizeof in);
    memcpy(in + RELAY_LINE_MAX - 3, "\xe2\x82\xac", 3); /* One byte beyond. */
    in[RELAY_LINE_MAX + 2] = '\n';
    feed(b, in, RELAY_LINE_MAX + 3, 777);
    assert_memory_equal(b->out + RELAY_LINE_MAX - 3,
                        RELAY_MARK "\n\xe2\x82\xacxx\n",
                        sizeof RELAY_MARK + 6);
    bench_free(b);
}

static void test_little_room_takes_what_fits(void **state)
{
    struct bench *b = bench_new("> ");
    char *to;
    size_t room;

    (void)state;
    to = relay_space(&b->r, &room);
    memcpy(to, "a\nbb\nccc\ndddd", 13);
    relay_put(&b->r, 13);
    assert_int_equal(relay_take(&b->r, b->piece, 3, false), 0);
    assert_int_equal(relay_take(&b->r, b->piece, 0, false), 0);
    assert_int_equal(relay_take(&b->r, b->piece, 9, false), 9);
    assert_memory_equal(b->piece, "> a\n> bb\n", 9);
    assert_int_equal(relay_take(&b->r, b->piece, 5, false), 0);
    assert_int_equal(relay_take(&b->r, b->piece, 6, false), 6);
    assert_memory_equal(b->piece, "> ccc\n", 6);
    assert_int_equal(relay_take(&b->r, b->piece, 99, false), 0);
    assert_int_equal(relay_take(&b->r, b->piece, 6, true), 0);
    assert_int_equal(relay_take(&b->r, b->piece, 7, true), 7);
    assert_int_equal(relay_take(&b->r, b->piece, 99, true), 0);
    bench_free(b);
}

/* The smallest room that is promised to be enough is enough. */
static void test_the_longest_line_fits_in_out_min(void **state)
{
    char prefix[RELAY_PREFIX_MAX];
    struct bench *b;
    size_t room;
    char *to;

    (void)state;
    memset(prefix, 'p', sizeof prefix);
    prefix[sizeof prefix - 1] = '\0';
    b = bench_new(prefix);
    to = relay_space(&b->r, &room);
    assert_int_equal(room, RELAY_LINE_MAX);
    memset(to, 'x', room);
    relay_put(&b->r, room);
    (void)relay_space(&b->r, &room);
    assert_int_equal(room, 0);
    assert_true(relay_take(&b->r, b->piece, RELAY_OUT_MIN, false) > 0);
    (void)relay_space(&b->r, &room);
    assert_true(room > 0);
    bench_free(b);
}

static void test_put_beyond_the_room_is_clamped(void **state)
{
    struct bench *b = bench_new("");
    size_t room;

    (void)state;
    memset(relay_space(&b->r, &room), 'x', RELAY_LINE_MAX);
    relay_put(&b->r, room + 5);
    assert_int_equal(b->r.len, RELAY_LINE_MAX);
    assert_int_equal(b->r.n_bytes, RELAY_LINE_MAX);
    bench_free(b);
}

/* A line in many small reads: each byte is looked at once for a newline and
 * never moved, so the work stays linear. */
static void test_small_reads_scan_each_byte_once(void **state)
{
    struct bench *b = bench_new("");

    (void)state;
    feed(b, "first\n", 6, 99);
    for (unsigned i = 0; i < 20000; i++) {
        size_t before = b->r.scanned;

        feed(b, "x", 1, 1);
        assert_int_equal(b->r.scanned, before + 1);
        assert_int_equal(b->r.start, 0);
        assert_int_equal(b->r.len, b->r.scanned);
    }
    bench_free(b);
}

static unsigned next_random(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(*seed >> 33);
}

/* Lines of all lengths, of all bytes. */
static size_t random_stream(uint64_t *seed, char *in)
{
    size_t n = 0, size = next_random(seed) % IN_MAX;
    unsigned kind = next_random(seed) % 4;

    while (n < size) {
        static const unsigned longest[] = {3, 80, 5000, 2 * RELAY_LINE_MAX};
        size_t len = next_random(seed) % longest[kind];

        if (next_random(seed) % 8 == 0)
            len = RELAY_LINE_MAX - 3 + next_random(seed) % 6;
        for (; len > 0 && n < size; len--)
            in[n++] = (char)(next_random(seed) % 3 == 0
                                 ? 0x80 + next_random(seed) % 128
                                 : (next_random(seed) & 0x7f) | 0x10);
        if (n < size)
            in[n++] = next_random(seed) % 50 ? '\n' : '\0';
    }
    return n;
}

static size_t count(const char *s, size_t n, const char *words)
{
    size_t found = 0, len = strlen(words);
    const char *end = s + n;

    while ((s = memmem(s, (size_t)(end - s), words, len))) {
        found++;
        s += len;
    }
    return found;
}

/* Whatever the reads and the rooms were, the output is the same, and what
 * came in comes out. */
static void test_cuts_never_change_the_output(void **state)
{
    char *in = malloc(IN_MAX);
    uint64_t seed = 20;

    (void)state;
    assert_non_null(in);
    for (unsigned round = 0; round < 60; round++) {
        size_t n = random_stream(&seed, in), at = 0, marks, added;
        struct bench *whole = bench_new("[rank7] ");
        struct bench *b = bench_new("[rank7] ");
        unsigned read_max = 1 + next_random(&seed) % (round % 2 ? 90000 : 700);

        feed(whole, in, n, RELAY_LINE_MAX);
        drain(whole, RELAY_OUT_MIN, true);
        b->small = 1 + next_random(&seed) % RELAY_OUT_MIN;
        while (at < n) {
            size_t part = 1 + next_random(&seed) % read_max;

            part = part < n - at ? part : n - at;
            feed(b, in + at, part, part);
            at += part;
        }
        drain(b, RELAY_OUT_MIN, true);
        assert_out(b, whole->out, whole->n_out);
        assert_int_equal(b->r.n_lines, whole->r.n_lines);
        assert_int_equal(b->r.n_bytes, n);
        marks = count(b->out, b->n_out, RELAY_MARK "\n");
        added = n > 0 && in[n - 1] != '\n' ? 1 : 0;
        assert_int_equal(b->n_out, n + b->r.n_lines * strlen("[rank7] ") +
                                       marks * sizeof RELAY_MARK + added);
        bench_free(whole);
        bench_free(b);
    }
    free(in);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines_get_the_prefix),
        cmocka_unit_test(test_nothing_before_the_newline),
        cmocka_unit_test(test_nul_passes),
        cmocka_unit_test(test_prefix_is_cut),
        cmocka_unit_test(test_long_lines_are_split_and_marked),
        cmocka_unit_test(test_a_split_tears_no_character),
        cmocka_unit_test(test_little_room_takes_what_fits),
        cmocka_unit_test(test_the_longest_line_fits_in_out_min),
        cmocka_unit_test(test_put_beyond_the_room_is_clamped),
        cmocka_unit_test(test_small_reads_scan_each_byte_once),
        cmocka_unit_test(test_cuts_never_change_the_output),
    };

    return cmocka_run_group_tests_name("relay", tests, NULL, NULL);
}
