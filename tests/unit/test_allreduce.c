/* agent-allreduce: its options, its patterns and its table. */
#include "allreduce/opts.h"
#include "allreduce/pattern.h"
#include "allreduce/table.h"
#include "ddp/reduce.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define WORDS_MAX 12
#define MIB (UINT64_C(1) << 20)

/* Up to six words; NULL ends them. */
static int read_words(struct opts *o, struct err *e, const char *const *words)
{
    char copy[WORDS_MAX][64] = {"agent-allreduce"};
    char *argv[WORDS_MAX] = {copy[0]};
    int argc = 1;

    for (; words[argc - 1]; argc++) {
        (void)snprintf(copy[argc], sizeof copy[argc], "%s", words[argc - 1]);
        argv[argc] = copy[argc];
    }
    return opts_read(o, argc, argv, e);
}

static void test_defaults(void **state)
{
    const char *const none[] = {NULL};
    struct opts o;
    struct err e;

    (void)state;
    assert_int_equal(read_words(&o, &e, none), 0);
    assert_true(o.min_bytes == 32 * MIB && o.max_bytes == 32 * MIB);
    assert_true(o.step_bytes == MIB && o.factor == 1 && o.iters == 20);
    assert_true(o.warmup == 1 && o.check == 1 && !o.json);
    assert_string_equal(pattern_type((unsigned)o.type)->name, "float");
    assert_string_equal(pattern_op((unsigned)o.op)->name, "sum");
    assert_true(o.min_busbw <= 0 && o.timeout_ms == 0);
}

static void test_options(void **state)
{
    static const struct {
        const char *words[8];
        uint64_t min, max;
        unsigned n; /* Sizes. */
    } good[] = {
        {{"-b", "8", "-e", "128M", "-f", "2"}, 8, 128 * MIB, 25},
        {{"-b8", "-e1k", "-f3"}, 8, 1024, 5},
        {{"--minbytes", "1M", "--maxbytes=4M"}, MIB, 4 * MIB, 4},
        {{"-b", "1K", "-e", "4K", "-i", "512"}, 1024, 4096, 7},
        {{"-e", "1T", "-f", "1000000"}, 32 * MIB, MIB * MIB, 1},
        {{"-b", "1", "-e", "1024T", "-f", "1000000"}, 1, OPTS_BYTES_MAX, 3},
        {{"-g", "1", "-t1", "-z", "0", "-a", "1"}, 32 * MIB, 32 * MIB, 1},
        {{"--warmup_iters=5", "--min-busbw", "1.5", "-T", "5m"},
         32 * MIB, 32 * MIB, 1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        struct opts o;
        struct err e = {0};
        unsigned n = 0;

        if (read_words(&o, &e, good[i].words))
            fail_msg("%zu: %s", i, e.text);
        assert_true(o.min_bytes == good[i].min && o.max_bytes == good[i].max);
        for (uint64_t b = o.min_bytes; b; b = opts_next(&o, b))
            n++;
        assert_int_equal(n, good[i].n);
    }
}

static void test_refused(void **state)
{
    static const struct {
        const char *words[4], *text;
    } bad[] = {
        {{"-g", "8"}, "--ngpus=8: only 1 is possible: a rank is a process; "
                      "agent --nproc N starts N"},
        {{"-G", "1"}, "--cudagraph=1: only 0 is possible: this measures host "
                      "memory, not GPUs"},
        {{"-b", "0"}, "--minbytes=0: use a number of bytes: 8, 64K, 32M, 1G"},
        {{"-b", "M"}, "--minbytes=M: use a number of bytes: 8, 64K, 32M, 1G"},
        {{"-e", "2000T"},
         "--maxbytes=2000T: use a number of bytes: 8, 64K, 32M, 1G"},
        {{"-e", "1.5M"},
         "--maxbytes=1.5M: use a number of bytes: 8, 64K, 32M, 1G"},
        {{"-e", "8"},
         "--minbytes is larger than --maxbytes (32M where not given)"},
        {{"-n", "0"}, "--iters=0: use a number from 1 to 1000000"},
        {{"-f", "0"}, "--stepfactor=0: use a number from 1 to 1000000"},
        {{"-o", "mulsum"},
         "--op=mulsum: use one of all, sum, prod, max, min, avg"},
        {{"-d", "fp8_e4m3"},
         "--datatype=fp8_e4m3: use one of all, int8, uint8, int32, uint32, "
         "int64, uint64, half, float, double, bfloat16"},
        {{"--min-busbw", "-1"},
         "--min-busbw=-1: use a bandwidth in GB/s: 0.8, 12"},
        {{"--min-busbw=nan"},
         "--min-busbw=nan: use a bandwidth in GB/s: 0.8, 12"},
        {{"-T", "0"}, "--timeout=0: use a duration that makes sense here: "
                      "30s, 5m, 2h"},
        {{"--json=1"}, "--json=1: it takes no value"},
        {{"-n"}, "-n: it needs a value: N"},
        {{"--iters"}, "--iters: it needs a value: N"},
        {{"-x"}, "-x: no such option; see agent-allreduce --help"},
        {{"--nope"}, "--nope: no such option; see agent-allreduce --help"},
        {{"--", "-b"}, "-b: it takes no words; see agent-allreduce --help"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct opts o;
        struct err e = {0};

        assert_int_equal(read_words(&o, &e, bad[i].words), -ERR_USAGE);
        assert_string_equal(e.text, bad[i].text);
    }
}

/* The pattern's result is that of a serial reduction, to the bit but for
 * averages; and one wrong element is found, wherever it is. */
static void check_pattern(const struct pattern_type *t,
                          const struct pattern_op *op, unsigned size,
                          size_t count)
{
    struct pattern *p = calloc(1, sizeof *p);
    uint8_t *all = malloc((size + 1) * count * t->width);
    uint8_t *out = all + size * count * t->width;
    const void **parts = calloc(size, sizeof *parts);
    struct pattern_wrong wrong;
    size_t at = count * 2 / 3;

    assert_true(p && all && parts);
    for (unsigned r = 0; r < size; r++) {
        uint8_t *buf = all + r * count * t->width;

        pattern_init(p, t, op, (int)r, (int)size);
        pattern_fill(p, buf, count);
        parts[r] = buf;
    }
    ddp_fold((int)t->type, (int)op->op, out, parts, size, count);
    pattern_check(p, out, count, &wrong);
    if (wrong.n > 0)
        fail_msg("%s %s of %u ranks: %zu wrong, element %zu: %g, not %g",
                 t->name, op->name, size, wrong.n, wrong.first, wrong.got,
                 wrong.wanted);
    out[at * t->width + t->width - 1] ^= 0x20;
    pattern_check(p, out, count, &wrong);
    assert_true(wrong.n == 1 && wrong.first == at);
    free(p);
    free(all);
    free(parts);
}

static void test_patterns(void **state)
{
    static const unsigned sizes[] = {1, 2, 3, 7, 17, 40, 300};

    (void)state;
    for (unsigned t = 0; pattern_type(t); t++)
        for (unsigned o = 0; pattern_op(o); o++)
            for (size_t i = 0; i < sizeof sizes / sizeof sizes[0] &&
                               (sizes[i] < 100 || t % 5 == o); i++)
                check_pattern(pattern_type(t), pattern_op(o), sizes[i],
                              sizes[i] < 20 ? PATTERN_PERIOD + 10 : 500);
}

/* A rank that is left out or counted twice is noticed. */
static void test_left_out(void **state)
{
    struct pattern *p = calloc(1, sizeof *p);
    float buf[4][PATTERN_PERIOD];
    struct pattern_wrong wrong;

    (void)state;
    assert_non_null(p);
    for (unsigned o = 0; pattern_op(o); o++)
        for (int missing = 0; missing < 3; missing++) {
            const void *parts[3] = {buf[0], buf[1], buf[2]};

            for (int r = 0; r < 3; r++) {
                pattern_init(p, pattern_type(7), pattern_op(o), r, 3);
                pattern_fill(p, buf[r], PATTERN_PERIOD);
            }
            parts[missing] = parts[(missing + 1) % 3];
            ddp_fold(DDP_F32, (int)pattern_op(o)->op, buf[3], parts, 3,
                     PATTERN_PERIOD);
            pattern_check(p, buf[3], PATTERN_PERIOD, &wrong);
            assert_true(wrong.n > PATTERN_PERIOD / 8);
        }
    free(p);
}

static bool print_one(struct opts *o, uint64_t n_wrong, char **ret)
{
    const struct table_rank ranks[2] = {{.pid = 12, .host = "one"},
                                        {.pid = 345, .host = "two"}};
    struct table_line line = {.bytes = 4096, .count = 1024,
                              .type = pattern_type(7), .op = pattern_op(0),
                              .out_of_place = {.time_us = 4.096},
                              .in_place = {.time_us = 81920,
                                           .n_wrong = n_wrong}};
    struct table t = {.opts = o, .size = 2};
    size_t len = 0;
    bool ok;

    t.out = open_memstream(ret, &len);
    assert_non_null(t.out);
    table_begin(&t, ranks);
    table_add(&t, &line);
    line.bytes = line.count = 0;
    line.out_of_place.time_us = line.in_place.time_us = 2;
    line.in_place.n_wrong = 0;
    table_add(&t, &line);
    ok = table_end(&t);
    assert_int_equal(fclose(t.out), 0);
    return ok;
}

static void test_table(void **state)
{
    static const char text[] =
        "# nRanks 2 minBytes 4096 maxBytes 8192 step: 2(factor) warmup iters: "
        "1 iters: 20 validation: 1\n"
        "#\n# Using ranks\n"
        "#  Rank  0 Pid     12 on        one host memory\n"
        "#  Rank  1 Pid    345 on        two host memory\n"
        "#\n"
        "#                                                                "
        "out-of-place                         in-place\n"
        "#       size         count      type   redop    root     time   algbw"
        "   busbw #wrong     time   algbw   busbw #wrong\n"
        "#        (B)    (elements)                               (us)  (GB/s)"
        "  (GB/s)            (us)  (GB/s)  (GB/s)       \n"
        "        4096          1024     float     sum      -1     4.10    1.00"
        "    1.00      0  81920.0    0.00    0.00      3\n"
        "           0             0     float     sum      -1     2.00    0.00"
        "    0.00      0     2.00    0.00    0.00      0\n"
        "# Out of bounds values : 3 FAILED\n"
        "# Avg bus bandwidth    : 0.250013 OK\n#\n";
    struct opts o = {.min_bytes = 4096, .max_bytes = 8192, .factor = 2,
                     .iters = 20, .warmup = 1, .check = 1, .min_busbw = 0.25};
    char *got = NULL;

    (void)state;
    assert_false(print_one(&o, 3, &got));
    assert_string_equal(got, text);
    free(got);
    assert_true(print_one(&o, 0, &got));
    assert_non_null(strstr(got, "# Out of bounds values : 0 OK\n"));
    free(got);
    o.min_busbw = 0.2501;
    assert_false(print_one(&o, 0, &got));
    assert_non_null(strstr(got, "# Avg bus bandwidth    : 0.250013 FAILED\n"));
    free(got);
    o.check = 0;
    o.min_busbw = 0;
    assert_true(print_one(&o, 0, &got));
    assert_non_null(strstr(got, "   1.00    N/A  81920.0"));
    assert_non_null(strstr(got, "# Avg bus bandwidth    : 0.250013 \n"));
    free(got);
}

static void test_json(void **state)
{
    static const char text[] =
        "{\"version\": \"" AGENT_VERSION "\", \"ranks\": 2, \"min_bytes\": "
        "4096, \"max_bytes\": 4096, \"iters\": 20, \"warmup\": 1, \"check\": "
        "1, \"results\": [\n"
        "{\"bytes\": 4096, \"count\": 1024, \"type\": \"float\", \"op\": "
        "\"sum\", \"out_of_place\": {\"time_us\": 4.096, \"algbw\": 1.0000, "
        "\"busbw\": 1.0000, \"wrong\": 0}, \"in_place\": {\"time_us\": "
        "81920.000, \"algbw\": 0.0001, \"busbw\": 0.0001, \"wrong\": 3}},\n"
        "{\"bytes\": 0, \"count\": 0, \"type\": \"float\", \"op\": \"sum\", "
        "\"out_of_place\": {\"time_us\": 2.000, \"algbw\": 0.0000, \"busbw\": "
        "0.0000, \"wrong\": 0}, \"in_place\": {\"time_us\": 2.000, \"algbw\": "
        "0.0000, \"busbw\": 0.0000, \"wrong\": 0}}\n"
        "], \"wrong\": 3, \"avg_busbw\": 0.2500, \"min_busbw\": 0.5, \"ok\": "
        "false}\n";
    struct opts o = {.min_bytes = 4096, .max_bytes = 4096, .factor = 1,
                     .iters = 20, .warmup = 1, .check = 1, .min_busbw = 0.5,
                     .json = true};
    char *got = NULL;

    (void)state;
    assert_false(print_one(&o, 3, &got));
    assert_string_equal(got, text);
    free(got);
    o.check = 0;
    o.min_busbw = 0;
    assert_true(print_one(&o, 0, &got));
    assert_non_null(strstr(got, "\"wrong\": null}, \"in_place\""));
    assert_non_null(strstr(got, "], \"wrong\": null, \"avg_busbw\": 0.2500, "
                                "\"min_busbw\": null, \"ok\": true}"));
    free(got);
}

static void test_busbw(void **state)
{
    (void)state;
    assert_true(table_algbw(1000, 1) == 1);
    assert_true(table_busbw(1000, 1, 1) == 0);
    assert_true(table_busbw(1000, 1, 2) == 1);
    assert_true(table_busbw(1000, 1, 4) == 1.5);
    assert_true(table_algbw(1000, 0) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults), cmocka_unit_test(test_options),
        cmocka_unit_test(test_refused),  cmocka_unit_test(test_patterns),
        cmocka_unit_test(test_left_out), cmocka_unit_test(test_table),
        cmocka_unit_test(test_json),     cmocka_unit_test(test_busbw),
    };

    return cmocka_run_group_tests_name("allreduce", tests, NULL, NULL);
}
