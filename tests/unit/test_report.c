/* report, and jsonw below it: valid JSON whatever the texts hold. */
#include "supervise/report.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/jsonw.h"

static struct verdict failed(void)
{
    struct verdict v = {.exit_code = 137, .nnodes = 2, .world_size = 4,
                        .n_restarts = 1, .max_restarts = 3, .n_rounds = 2,
                        .job_ms = 61234, .why = "because \"so\""};

    v.cause = (struct failure){.kind = FAILURE_WORKER, .code = 137,
                               .signo = SIGKILL, .node_rank = 1, .rank = 3,
                               .local_rank = 1, .pid = 77, .round = 1,
                               .ran_ms = 1500};
    (void)text_copy(v.cause.host, sizeof v.cause.host, "w1");
    (void)text_copy(v.cause.text, sizeof v.cause.text, "a hint");
    (void)text_copy(v.cause.tail, sizeof v.cause.tail,
                    "one \\ \"two\"\n\tthree \x01\xff\xc3\xbc");
    return v;
}

static json_t *written(const struct verdict *v)
{
    static char buf[REPORT_MAX];
    static const struct log_stats output[2] = {
        {.bytes = 70, .lines = 9},
        {.bytes = 10000000000, .lines = 5, .dropped_lines = 3,
         .dropped_bytes = 33, .file_dropped = 8}};
    static const struct report_server servers[2] = {
        {.role = "server", .index = 1, .n_starts = 2, .ended = true,
         .code = 137, .signo = SIGKILL, .output = {.bytes = 4, .lines = 1}},
        {.role = "scheduler"}};
    static const struct report_output all = {
        .workers = output, .n_workers = 2, .servers = servers, .n_servers = 2};
    struct report r = {.verdict = v, .job_id = "j", .host = "h",
                       .agent_version = "1", .end_unix_ms = 1700000000123,
                       .output = &all};
    struct text t;
    json_error_t e;
    json_t *j;

    text_init(&t, buf, sizeof buf);
    report_write(&t, &r);
    assert_false(t.cut);
    j = json_loads(buf, JSON_REJECT_DUPLICATES, &e);
    if (!j)
        fail_msg("%s at %d: %s", e.text, e.position, buf);
    return j;
}

static int64_t number(const json_t *j, const char *key)
{
    return json_integer_value(json_object_get(j, key));
}

static void test_output(void **state)
{
    struct verdict v = {.exit_code = 0};
    json_t *j = written(&v), *all = json_object_get(j, "output");
    const json_t *one = json_array_get(all, 1);

    (void)state;
    assert_int_equal(json_array_size(all), 2);
    assert_int_equal(number(json_array_get(all, 0), "lines"), 9);
    assert_int_equal(number(one, "local_rank"), 1);
    assert_true(number(one, "bytes") == 10000000000);
    assert_int_equal(number(one, "dropped_lines"), 3);
    assert_int_equal(number(one, "dropped_bytes"), 33);
    assert_int_equal(number(one, "file_dropped_bytes"), 8);
    json_decref(j);
}

static const char *word(const json_t *j, const char *key);

static void test_servers(void **state)
{
    struct verdict v = {.exit_code = 0};
    json_t *j = written(&v), *all = json_object_get(j, "servers");
    const json_t *one = json_array_get(all, 0), *two = json_array_get(all, 1);

    (void)state;
    assert_int_equal(json_array_size(all), 2);
    assert_string_equal(word(one, "role"), "server");
    assert_int_equal(number(one, "index"), 1);
    assert_int_equal(number(one, "starts"), 2);
    assert_int_equal(number(one, "exit_code"), 137);
    assert_string_equal(word(one, "signal"), "SIGKILL");
    assert_int_equal(number(one, "bytes"), 4);
    assert_string_equal(word(two, "role"), "scheduler");
    assert_true(json_is_null(json_object_get(two, "exit_code")));
    assert_true(json_is_null(json_object_get(two, "signal")));
    json_decref(j);
}

static const char *word(const json_t *j, const char *key)
{
    return json_string_value(json_object_get(j, key));
}

static void test_a_worker(void **state)
{
    struct verdict v = failed();
    json_t *j = written(&v), *c = json_object_get(j, "cause");
    const json_t *lines = json_object_get(c, "stderr");

    (void)state;
    assert_string_equal(word(j, "class"), "worker");
    assert_int_equal(json_integer_value(json_object_get(j, "exit_code")), 137);
    assert_string_equal(word(j, "no_restart"), "because \"so\"");
    assert_true(json_is_null(json_object_get(j, "retryable")));
    assert_string_equal(word(c, "kind"), "worker");
    assert_string_equal(word(c, "signal"), "SIGKILL");
    assert_string_equal(word(c, "hint"), "a hint");
    assert_int_equal(json_integer_value(json_object_get(c, "rank")), 3);
    assert_true(json_real_value(json_object_get(c, "ran_s")) == 1.5);
    assert_int_equal(json_array_size(lines), 2);
    assert_string_equal(json_string_value(json_array_get(lines, 0)),
                        "one \\ \"two\"");
    assert_string_equal(json_string_value(json_array_get(lines, 1)),
                        "\tthree ??\xc3\xbc");
    json_decref(j);
    v.cause.from_file = true;
    v.cause.pid = 0;
    j = written(&v);
    c = json_object_get(j, "cause");
    assert_int_equal(json_array_size(json_object_get(c, "error_file")), 2);
    assert_true(json_is_null(json_object_get(c, "pid")));
    json_decref(j);
}

static void test_other_ends(void **state)
{
    static const struct {
        enum failure_kind kind;
        int code;
        const char *class, *word;
        int retry; /* -1: null. */
    } cases[] = {
        {FAILURE_NONE, 0, "ok", NULL, 0},
        {FAILURE_AGENT, 65, "data", "agent", 0},
        {FAILURE_AGENT, 202, "resource", "agent", 1},
        {FAILURE_LOST, 201, "peer", "lost", 1},
        {FAILURE_STOPPED, 143, "stopped", "stopped", 1},
        {FAILURE_PREPARE, 5, "worker", "pre-start", -1},
        {FAILURE_WORKER, 127, "exec", "worker", 0},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct verdict v = {.exit_code = cases[i].code};
        const json_t *cause, *retry;
        json_t *j;

        v.cause.kind = cases[i].kind;
        v.cause.code = cases[i].code;
        j = written(&v);
        cause = json_object_get(j, "cause");
        retry = json_object_get(j, "retryable");
        assert_string_equal(word(j, "class"), cases[i].class);
        assert_int_equal(json_is_null(retry) ? -1 : json_is_true(retry),
                         cases[i].retry);
        if (cases[i].word)
            assert_string_equal(word(cause, "kind"), cases[i].word);
        else
            assert_true(json_is_null(cause));
        json_decref(j);
    }
}

/* Every text at its longest, of bytes that are escaped. */
static void test_the_longest(void **state)
{
    static char why[192];
    struct verdict v = failed();

    (void)state;
    memset(why, '"', sizeof why - 1);
    memset(v.cause.host, '\\', sizeof v.cause.host - 1);
    memset(v.cause.text, '"', sizeof v.cause.text - 1);
    memset(v.cause.tail, '"', sizeof v.cause.tail - 1);
    for (size_t i = 0; i < sizeof v.cause.tail - 1; i += 2)
        v.cause.tail[i] = '\n';
    v.why = why;
    json_decref(written(&v));
}

static void test_pieces_of_a_long_string(void **state)
{
    char in[2000], buf[8192], want[2000];
    struct jsonw j;
    struct text t;
    json_t *back;

    (void)state;
    for (size_t i = 0; i + 4 < sizeof in; i += 3)
        memcpy(in + i, "\xe2\x82\xac", 4); /* Cut in the middle of some. */
    (void)snprintf(want, sizeof want, "%s", in);
    text_init(&t, buf, sizeof buf);
    jsonw_begin(&j, &t);
    jsonw_string(&j, "s", in);
    jsonw_close(&j, '}');
    back = json_loads(buf, 0, NULL);
    assert_non_null(back);
    assert_string_equal(word(back, "s"), want);
    json_decref(back);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_output),
        cmocka_unit_test(test_servers),
        cmocka_unit_test(test_a_worker),
        cmocka_unit_test(test_other_ends),
        cmocka_unit_test(test_the_longest),
        cmocka_unit_test(test_pieces_of_a_long_string),
    };

    return cmocka_run_group_tests_name("report", tests, NULL, NULL);
}
