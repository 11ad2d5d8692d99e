/* Tests of supervise/relay. */
#include "supervise/relay.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
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
    b->buf = malloc(RELAY_BUF_BYTES);
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
        {"> ", "dos\r\nunix\n", "> dos\r\n> unix\n", 2},
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

/* The longest line is not split; with one byte more it is. */
static void test_long_lines_are_split_and_marked(void **state)
{
    static char in[3 * RELAY_LINE_MAX];
    const size_t part = RELAY_LINE_MAX, mark = sizeof RELAY_MARK - 1;
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
    memcpy(in + RELAY_LINE_MAX - 2, "\xe2\x82\xac", 3); /* One byte beyond. */
    in[RELAY_LINE_MAX + 3] = '\n';
    feed(b, in, RELAY_LINE_MAX + 4, 777);
    assert_memory_equal(b->out + RELAY_LINE_MAX - 2,
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
    assert_int_equal(room, RELAY_LINE_MAX + 1);
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
    memset(relay_space(&b->r, &room), 'x', RELAY_LINE_MAX + 1);
    relay_put(&b->r, room + 5);
    assert_int_equal(b->r.len, RELAY_LINE_MAX + 1);
    assert_int_equal(b->r.n_bytes, RELAY_LINE_MAX + 1);
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

/* Carriage returns, escapes and newlines, dense. */
static size_t random_bars(uint64_t *seed, char *in)
{
    static const char *const pieces[] = {
        "\r", "\r", "\n", "50%", " ", "\r\n", "\033[A", "\033[K", "x", "\r\r",
        "\n\rlower bar\033[A", "\303\251", "\n\n\rlow\033[A\033[A", "\033[2A",
        "\n\r", "\033[", "3", "A", "\r\033[2K\033[1A\033[2Kup\nlow",
        "\r\033[2K\033[2A", "\nlast"};
    size_t n = 0, size = next_random(seed) % 3000;

    if (next_random(seed) % 4 == 0) { /* A long row. */
        memcpy(in, "\r1\r", 3);
        memset(in + 3, 'z', RELAY_ROW_MAX);
        n = 3 + RELAY_ROW_MAX - 4 + next_random(seed) % 8;
        memcpy(in + n, "\033[A", 3);
        n += 3;
    }
    while (n < size) {
        const char *s = pieces[next_random(seed) % 21];

        memcpy(in + n, s, strlen(s));
        n += strlen(s);
    }
    if (next_random(seed) % 4 == 0) { /* A state that reaches the limit. */
        size_t len = RELAY_LINE_MAX - 6 + next_random(seed) % 8;

        memset(in + n, 'y', len);
        n += len;
        in[n++] = next_random(seed) % 2 ? '\r' : '\n';
        in[n++] = next_random(seed) % 2 ? '\n' : 'z';
    }
    return n;
}

/* Whatever the reads and the rooms were, the output is the same, and what
 * came in comes out, or is a state that another took the place of. */
static void test_cuts_never_change_the_output(void **state)
{
    char *in = malloc(IN_MAX);
    uint64_t seed = 20;

    (void)state;
    assert_non_null(in);
    for (unsigned round = 0; round < 600; round++) {
        bool bars = round % 10 != 0;
        size_t n = bars ? random_bars(&seed, in) : random_stream(&seed, in);
        size_t at = 0, marks, newlines, added;
        struct bench *whole = bench_new("[rank7] ");
        struct bench *b = bench_new("[rank7] ");
        unsigned read_max =
            1 + next_random(&seed) % (bars ? 40 : round % 20 ? 90000 : 700);

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
        assert_int_equal(b->r.n_hidden, whole->r.n_hidden);
        newlines = count(b->out, b->n_out, "\n");
        assert_int_equal(newlines, b->r.n_lines);
        added = b->n_out + b->r.n_hidden - n - marks * sizeof RELAY_MARK -
                b->r.n_lines * strlen("[rank7] ");
        assert_true(bars ? added <= b->r.n_lines : added <= 1);
        bench_free(whole);
        bench_free(b);
    }
    free(in);
}

/* What carriage returns rewrite ends as its last state. */
/* A carriage return anywhere about the edges of what is looked through in one
 * go, and heads about the length that is copied in one go. */
static void test_edges_of_the_fast_way(void **state)
{
    static const size_t edges[] = {0, 8192, 16384, 24576, 40000};
    char *in = malloc(IN_MAX), head[64];

    (void)state;
    assert_non_null(in);
    for (unsigned i = 0; i < 5 * 7 * 4; i++) {
        size_t cr = edges[i % 5] + i / 5 % 7, head_len = 30 + i / 35;
        struct bench *whole, *b;

        memset(head, '#', sizeof head);
        head[head_len] = '\0';
        whole = bench_new(head);
        b = bench_new(head);
        for (size_t k = 0; k < 40000; k++)
            in[k] = k % 97 == 96 ? '\n' : (char)('a' + k % 26);
        if (cr >= 3 && cr - 3 < 40000 && in[cr - 3] != '\n')
            in[cr - 3] = '\r';
        feed(whole, in, 40000, RELAY_LINE_MAX);
        drain(whole, RELAY_OUT_MIN, true);
        b->small = 140; /* A line, and not much more. */
        feed(b, in, 40000, 50);
        drain(b, RELAY_OUT_MIN, true);
        assert_out(b, whole->out, whole->n_out);
        assert_int_equal(count(b->out, b->n_out, head), b->r.n_lines);
        assert_int_equal(b->r.n_hidden, whole->r.n_hidden);
        bench_free(whole);
        bench_free(b);
    }
    free(in);
}

static void test_bars_end_as_their_last_state(void **state)
{
    static const struct {
        const char *in, *want;
    } cases[] = {
        {"\r10%\r20%\r30%\n", "> 30%\n"},
        {"10%\r20%\r30%\r\n", "> 30%\r\n"},
        {"50%\r", "> 50%\n"},
        {"\r50%", "> 50%\n"},
        {"\r50%\r\r\r51%\r\r", "> 51%\n"},
        {"a\n\r1\r2\nb\n", "> a\n> 2\n> b\n"},
        {"\rbar\r   \rdone\n", "> done\n"},
        {"\r\n", "> \r\n"},
        {"\r", "> \n"},
        /* Two bars, the lower one below the cursor's place. */
        {"\rA 0\n\rB 0\033[A\n\rB 1\033[A\n\rB 2\033[A\rA 1\n",
         "> A 0\n> A 1\n> B 2\n"},
        {"\rA\n\rB 1\033[A\n\rB 2\033[A\nplain\n",
         "> A\n> B 2\n> plain\n"},
        {"\rA\n\rB\033[A\n\n\rC\033[2A", "> A\n> B\n> C\n"},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (size_t cut = 1; cut < 9; cut++) {
            struct bench *b = bench_new("> ");

            feed(b, cases[i].in, strlen(cases[i].in), cut);
            drain(b, RELAY_OUT_MIN, true);
            assert_out(b, cases[i].want, strlen(cases[i].want));
            bench_free(b);
        }
}

/* As tqdm writes them: a bar at a position goes there by newlines, and back by
 * "cursor up". */
static void test_bars_below_one_another(void **state)
{
    static const struct {
        const char *in, *want;
    } cases[] = {
        /* An inner one that is cleared at its end (leave=False). */
        {"\rE 0\n\rb 0\033[A\n\rb 1\033[A\n\r   \033[A\rE 1\n\rb 0\033[A\n\rb 1"
         "\033[A\n\r   \033[A\rE 2\rE 2\nend\n", "> E 0\n> E 2\n> end\n"},
        /* One that stays (leave=True): in the place of the outer one. */
        {"\rE 0\n\rb 0\033[A\n\rb 1\033[A\rb 1\n\rE 1\n\rb 0\033[A\n\rb 2\033[A"
         "\rb 2\n\rE 2\rE 2\nend\n",
         "> E 0\n> b 1\n> b 2\n> E 2\n> end\n"},
        /* Three. */
        {"\rA\n\rB\033[A\n\n\rC 1\033[A\033[A\n\n\rC 2\033[2A\n\rB 2\033[A\rA 2"
         "\n\n\nend", "> A\n> A 2\n> B 2\n> C 2\n> end\n"},
        /* tqdm.write() clears them, and they come again a row further down. */
        {"\rE 0\n\rb 0\033[A\n\r   \r\033[A\r   \rsaid\n\rE 0\n\rb 0\033[A"
         "\rE 1\n",
         "> E 0\n> said\n> E 1\n> b 0\n"},
        /* A line of somebody else between them, and an end in the midst. */
        {"\rE 0\n\rb 0\033[Aloss\n\rE 1\n\rb 1\033[A\rE 2",
         "> E 0\n> loss\n> E 2\n> b 1\n"},
        {"\rE 0\n\rb 0\033[A\n\rb 1\033[A\r  \rE 1\nTraceback\n",
         "> E 0\n> E 1\n> b 1\n> Traceback\n"},
        /* What is no movement: a colour, half a sequence. */
        {"\rE\n\rb\033[A\r\033[32mE 1\033[0m\n\033[31mred\033[0m\n\rx\033[",
         "> E\n> \033[32mE 1\033[0m\n> b\n> \033[31mred\033[0m\n> x\033[\n"},
        /* As rich does: each row is erased, and all are written anew. */
        {"a 1\nb 1\nc 1\r\033[2K\033[1A\033[2K\033[1A\033[2Ka 2\nb 2\nc 2\r"
         "\033[2K\033[1A\033[2K\033[1A\033[2Ka 3\nb 3\nc 3\nend\n",
         "> a 1\n> b 1\n> a 3\n> b 3\n> c 3\n> end\n"},
        /* A print above them moves them down; and a row that stays erased. */
        {"a 1\nb 1\r\033[2K\033[1A\033[2Kloss\na 2\nb 2\r\033[2K\033[1A"
         "\033[2Ka 3\nb 3\r\033[2K\033[1A\033[2Kend\n",
         "> a 1\n> loss\n> a 2\n> end\n"},
        /* Further up than there are rows: as on a screen of so many. */
        {"\ra\033[9999A\rb\033[A\rc\033[A\n\n\n\n", "> c\n> a\n"},
        {"\rE 0\n\rb 0\033[A\033[Ksaid\nsaid\nsaid\n",
         "> E 0\n> said\n> b 0\n> said\n> said\n"},
        {"\rE 0\n\rb 0\033[A\n\r   \033[A\033[Ksaid\nsaid\nsaid\n",
         "> E 0\n> said\n> said\n> said\n"},
        /* What erases one alone would erase the prefix, too. */
        {"\033[2Ka\r\033[2Kb\r\033[K\033[1Kc\nd\033[K\re\033[Kf\r\033[3K\n"
         "\r\033[2Kg\r\033[2Kh",
         "> c\n> \033[3K\n> h\n"},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (size_t cut = 1; cut < 30; cut++) {
            struct bench *b = bench_new("> ");

            feed(b, cases[i].in, strlen(cases[i].in), cut);
            drain(b, RELAY_OUT_MIN, true);
            assert_out(b, cases[i].want, strlen(cases[i].want));
            bench_free(b);
        }
}

/* More rows than are kept: the upper ones are lines, in order, each once. */
static void test_many_rows(void **state)
{
    enum { LINES = RELAY_ROWS + 24 };
    struct bench *b = bench_new("");
    char in[64], want[16 * LINES] = "";
    uint64_t bytes = 0;
    size_t room;

    (void)state;
    feed(b, "\rfirst\033[A", 9, 99);
    for (unsigned i = 0; i < LINES; i++) {
        int n = snprintf(in, sizeof in, "\rrow %u\n\r", i);

        feed(b, in, (size_t)n, 99);
        (void)snprintf(want + strlen(want), sizeof want - strlen(want),
                       "row %u\n", i);
    }
    assert_true(b->r.n_lines > LINES - RELAY_ROWS && b->r.n_lines < LINES);
    drain(b, RELAY_OUT_MIN, true);
    assert_out(b, want, strlen(want));

    /* Thrown away, they are counted by their texts. */
    memcpy(relay_space(&b->r, &room), "\r1\r20\033[A\r3\n\n.", 13);
    relay_put(&b->r, 13);
    assert_int_equal(relay_drop(&b->r, true, &bytes), 3);
    assert_int_equal(bytes, 4);
    bench_free(b);
}

/* A text that is no row for its length is a line; of a bar the rest goes. */
static void test_long_rows(void **state)
{
    static char in[3 * RELAY_ROW_MAX], want[3 * RELAY_ROW_MAX];
    struct bench *b = bench_new("");
    int n;

    (void)state;
    memset(want, 'x', RELAY_ROW_MAX + 9);
    n = snprintf(in, sizeof in, "\rE\n\rb\033[A%s\n", want);
    feed(b, in, (size_t)n, 50);
    n = snprintf(in, sizeof in, "E\nb\n%s\n", want);
    assert_out(b, in, (size_t)n);

    b->n_out = 0;
    n = snprintf(in, sizeof in, "\rE\n\r%s\033[A\n\n.\n", want);
    feed(b, in, (size_t)n, 50);
    want[RELAY_ROW_MAX] = '\0';
    n = snprintf(in, sizeof in, "E\n%s\n.\n", want);
    assert_out(b, in, (size_t)n);
    bench_free(b);
}

static void show(struct bench *b, const char *want)
{
    size_t n;

    assert_int_equal(relay_has_state(&b->r), want[0] != '\0');
    assert_int_equal(relay_take_state(&b->r, b->piece, 3), 0);
    n = relay_take_state(&b->r, b->piece, RELAY_OUT_MIN);
    assert_int_equal(n, strlen(want));
    assert_memory_equal(b->piece, want, n);
    assert_false(relay_has_state(&b->r));
}

/* The present state is there on request, and is not repeated. */
static void test_states_are_shown_once(void **state)
{
    struct bench *b = bench_new("> ");

    (void)state;
    feed(b, "no bar", 6, 9);
    show(b, "");
    feed(b, "\r", 1, 9);
    show(b, "> no bar\n"); /* It may be a bar, or the end of a line. */
    feed(b, "\n", 1, 9);
    assert_int_equal(b->n_out, 0); /* It was shown. */
    feed(b, "\r10%\r20%", 8, 9);
    show(b, "> 20%\n");
    feed(b, " of 9\n", 6, 9);
    assert_out(b, "> 20% of 9\n", 11);
    b->n_out = 0;
    feed(b, "\r30%\r    ", 9, 9);
    show(b, ""); /* Blank. */
    feed(b, "\r40%\033[A", 7, 9);
    show(b, "> 40%\n"); /* Without moving the cursor of the reader. */
    feed(b, "\n.\n", 3, 9);
    assert_out(b, "> .\n", 4);
    b->n_out = 0;
    feed(b, "\r1\r\033[2K50%", 10, 9);
    show(b, "> 50%\n"); /* Without what would erase the prefix. */
    feed(b, "\n", 1, 9);
    assert_int_equal(b->n_out, 0);
    feed(b, "\r\303", 2, 9);
    show(b, ""); /* Nothing of half a character, */
    feed(b, "\251\n", 2, 9);
    assert_out(b, "> \303\251\n", 5); /* but all of it at the end. */
    b->n_out = 0;
    feed(b, "\r50%", 4, 9);
    show(b, "> 50%\n");
    drain(b, RELAY_OUT_MIN, true);
    assert_int_equal(b->n_out, 0);
    bench_free(b);
}

static void say(struct bench *b, const char *s)
{
    feed(b, s, strlen(s), 9);
}

/* Of rows those are shown that are other than before. */
static void test_rows_are_shown_once(void **state)
{
    struct bench *b = bench_new("> ");

    (void)state;
    say(b, "\rE 0\n\rb 0");
    b->n_out = 0;
    show(b, "> b 0\n");
    say(b, "\033[A");
    show(b, ""); /* It was, before it was known to be a row. */
    say(b, "\n\rb 1\033[A\rE");
    show(b, "> E\n> b 1\n");
    say(b, " 1\n\rb 1\033[A");
    show(b, "> E 1\n");
    say(b, "\rE 1\n\r   \033[A");
    show(b, ""); /* The same, and what was cleared. */
    say(b, "\r\033[2K\n\r\033[A");
    show(b, ""); /* Erased, and then the same again. */
    say(b, "\rE 1\n\r\033[A");
    show(b, "");
    say(b, "\rE \303");
    show(b, "> E \n"); /* Nothing of half a character. */
    say(b, "\251\n.\n");
    drain(b, RELAY_OUT_MIN, true);
    assert_out(b, "> E \303\251\n> .\n", 11);
    bench_free(b);
}

static void test_json(void **state)
{
    static const struct {
        const char *in, *want;
        size_t n;
    } cases[] = {
        {"plain and long enough for words\n",
         "plain and long enough for words", 32},
        {"a\"b\\c\td\n", "a\\\"b\\\\c\\u0009d", 8},
        {"a\0b\33\n", "a\\u0000b\\u001b", 5},
        {"\303\251\342\202\254\n", "\303\251\342\202\254", 6},
        {"\377\303x\300\200\n", "\\ufffd\\ufffdx\\ufffd\\ufffd", 6},
        {"12345678\3571234567\"\n", "12345678\\ufffd1234567\\\"", 18},
        {"dos\r\n", "dos\\u000d", 5},
    };
    char want[128];

    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct bench *b = bench_new("");

        relay_set_head(&b->r, "{\"line\":\"", true);
        feed(b, cases[i].in, cases[i].n, 3);
        assert_true(snprintf(want, sizeof want, "{\"line\":\"%s\"}\n",
                             cases[i].want) > 0);
        assert_out(b, want, strlen(want));
        bench_free(b);
    }
}

/* The worst line has room in RELAY_JSON_MIN, and all of it is needed. */
static void test_json_room(void **state)
{
    char *out = malloc(RELAY_JSON_MIN);
    struct bench *b = bench_new("");
    size_t room, n;

    (void)state;
    assert_non_null(out);
    relay_set_head(&b->r, "{\"line\":\"", true);
    memset(relay_space(&b->r, &room), '\1', RELAY_LINE_MAX + 1);
    relay_put(&b->r, RELAY_LINE_MAX + 1);
    n = relay_take(&b->r, out, RELAY_JSON_MIN, false);
    assert_int_equal(n, 9 + 6 * RELAY_LINE_MAX + strlen(RELAY_JSON_MARK) + 3);
    /* A part says that the line goes on, beside its bytes. */
    assert_memory_equal(out + n - 24, "\\u0001\",\"goes_on\":true}\n", 24);
    n = relay_take(&b->r, out, RELAY_JSON_MIN, true);
    assert_int_equal(n, 9 + 6 + 3);
    assert_memory_equal(out + 9, "\\u0001\"}\n", 9);
    free(out);
    bench_free(b);
}

static void test_dropped_lines_are_counted(void **state)
{
    struct bench *b = bench_new("> ");
    uint64_t bytes = 0;
    size_t room;

    (void)state;
    memcpy(relay_space(&b->r, &room), "a\nbb\nccc", 8);
    relay_put(&b->r, 8);
    assert_int_equal(relay_drop(&b->r, false, &bytes), 2);
    assert_int_equal(bytes, 5);
    feed(b, "c\n", 2, 9);
    assert_out(b, "> cccc\n", 7); /* Never a part of a line. */
    assert_int_equal(b->r.n_lines, 1);
    bench_free(b);
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
        cmocka_unit_test(test_edges_of_the_fast_way),
        cmocka_unit_test(test_bars_end_as_their_last_state),
        cmocka_unit_test(test_bars_below_one_another),
        cmocka_unit_test(test_many_rows),
        cmocka_unit_test(test_long_rows),
        cmocka_unit_test(test_states_are_shown_once),
        cmocka_unit_test(test_rows_are_shown_once),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_json_room),
        cmocka_unit_test(test_dropped_lines_are_counted),
    };

    return cmocka_run_group_tests_name("relay", tests, NULL, NULL);
}
