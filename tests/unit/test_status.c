/* status: a snapshot as JSON that parses and as a table that can be read. */
#include "agent/status.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include <cmocka.h>

static struct status s;
static struct status_worker w[3];
static char buf[65536];
static struct text t;

static void make(void)
{
    s = (struct status){.version = "1.2", .host = "h", .job_id = "j",
                        .agent_pid = 1, .up_ms = 200000, .node_rank = 1,
                        .nnodes = 3, .min_nodes = 2, .nproc = 3,
                        .world_size = 9, .phase = "running", .round = 4,
                        .n_rounds = 5, .n_restarts = 2, .max_restarts = 3,
                        .exit_code = -1, .is_ready = true, .has_link = true,
                        .link = "admitted", .zero = "z:1", .link_error = "",
                        .was_heard = true, .heard_ms = 3000, .workers = w};
    memset(w, 0, sizeof w);
    w[0] = (struct status_worker){.rank = 3, .state = STATUS_RUNNING,
                                  .pid = 77, .n_starts = 5, .up_ms = 61000,
                                  .has_usage = true, .cpu_ms = 7200000,
                                  .rss_bytes = 1288490189, .n_procs = 9,
                                  .has_output = true, .silent_ms = 250,
                                  .line = "step 9"};
    w[1] = (struct status_worker){.rank = 4, .state = STATUS_EXITED,
                                  .n_starts = 5, .up_ms = 3, .code = 137,
                                  .signo = SIGKILL};
    w[2].rank = STATUS_UNKNOWN;
    w[0].err = (struct log_stats){.bytes = 11, .lines = 22, .dropped_lines = 3,
                                  .dropped_bytes = 4};
}

static json_t *parse(void)
{
    json_error_t e;
    json_t *j;

    text_init(&t, buf, sizeof buf);
    status_json(&t, &s);
    assert_false(t.cut);
    assert_ptr_equal(strchr(buf, '\n'), buf + t.len - 1); /* One line. */
    j = json_loads(buf, JSON_REJECT_DUPLICATES, &e);
    if (!j)
        fail_msg("%s at %d: %s", e.text, e.position, buf);
    return j;
}

static const char *string_of(const json_t *j, const char *key)
{
    const char *v = json_string_value(json_object_get(j, key));

    return v ? v : "(none)";
}

/* Every key of the promise is there, with its type; and no other. */
static void test_schema(void **state)
{
    static const char *const keys[] = {
        "schema", "version", "agent_pid", "uptime_ms", "host", "job_id",
        "node_rank", "nnodes", "min_nodes", "nproc", "world_size", "phase",
        "ready", "round", "rounds", "restarts_used", "max_restarts",
        "staging_percent", "waiting", "last_failure", "stop_signal",
        "exit_code", "barrier", "link", "workers", "servers"};
    static const char *const of_worker[] = {
        "rank", "local_rank", "state", "pid", "starts", "uptime_ms",
        "exit_code", "signal", "cpu_ms", "rss_bytes", "processes", "silent_ms",
        "last_line", "stdout", "stderr"};
    json_t *j, *one;
    size_t n = sizeof keys / sizeof keys[0];
    size_t m = sizeof of_worker / sizeof of_worker[0];

    (void)state;
    make();
    j = parse();
    assert_int_equal(json_object_size(j), n);
    for (size_t i = 0; i < n; i++)
        if (!json_object_get(j, keys[i]))
            fail_msg("no %s", keys[i]);
    for (size_t k = 0; k < 3; k++) {
        one = json_array_get(json_object_get(j, "workers"), k);
        assert_int_equal(json_object_size(one), m);
        for (size_t i = 0; i < m; i++)
            if (!json_object_get(one, of_worker[i]))
                fail_msg("worker %zu: no %s", k, of_worker[i]);
    }
    json_decref(j);
}

static void test_json_values(void **state)
{
    json_t *j, *one;
    const char *line;
    int rank, pid, starts, code, up;
    json_int_t cpu, rss, lines, bytes, dropped_lines, dropped;

    (void)state;
    make();
    j = parse();
    assert_int_equal(json_integer_value(json_object_get(j, "schema")), 1);
    assert_true(json_is_true(json_object_get(j, "ready")));
    assert_true(json_is_null(json_object_get(j, "barrier")));
    assert_true(json_is_null(json_object_get(j, "exit_code")));
    assert_string_equal(string_of(json_object_get(j, "link"), "address"),
                        "z:1");
    one = json_array_get(json_object_get(j, "workers"), 0);
    assert_int_equal(json_unpack(one, "{si si si sI sI ss}", "rank", &rank,
                                 "pid", &pid, "starts", &starts, "cpu_ms",
                                 &cpu, "rss_bytes", &rss, "last_line", &line),
                     0);
    assert_true(rank == 3 && pid == 77 && starts == 5 && cpu == 7200000 &&
                rss == 1288490189);
    assert_string_equal(line, "step 9");
    assert_true(json_is_null(json_object_get(one, "exit_code")));
    assert_int_equal(json_unpack(json_object_get(one, "stderr"),
                                 "{sI sI sI sI}", "bytes", &bytes, "lines",
                                 &lines, "dropped_lines", &dropped_lines,
                                 "dropped_bytes", &dropped), 0);
    assert_true(bytes == 11 && lines == 22 && dropped_lines == 3 &&
                dropped == 4);
    one = json_array_get(json_object_get(j, "workers"), 1);
    assert_int_equal(json_unpack(one, "{si si}", "exit_code", &code,
                                 "uptime_ms", &up), 0);
    assert_true(code == 137 && up == 3);
    assert_string_equal(string_of(one, "signal"), "SIGKILL");
    assert_true(json_is_null(json_object_get(one, "pid")));
    one = json_array_get(json_object_get(j, "workers"), 2);
    assert_string_equal(string_of(one, "state"), "waiting");
    assert_true(json_is_null(json_object_get(one, "rank")));
    assert_true(json_is_null(json_object_get(one, "uptime_ms")));
    json_decref(j);
}

static void test_missing_pods(void **state)
{
    json_t *j, *b, *one;
    int n, rank, percent;

    (void)state;
    make();
    s.has_link = false;
    s.has_barrier = true;
    s.barrier_phase = "gathering";
    s.n_missing = STATUS_PODS_MAX + 6; /* Only the first are listed. */
    for (unsigned i = 0; i < STATUS_PODS_MAX; i++)
        s.missing[i] = (struct status_pod){i + 2, i ? "unseen" : "staging",
                                           i ? "" : "w2", 37};
    j = parse();
    b = json_object_get(j, "barrier");
    assert_int_equal(json_unpack(b, "{si}", "n_missing", &n), 0);
    assert_int_equal(n, STATUS_PODS_MAX + 6);
    b = json_object_get(b, "missing");
    assert_int_equal(json_array_size(b), STATUS_PODS_MAX);
    one = json_array_get(b, 0);
    assert_int_equal(json_unpack(one, "{si si}", "node_rank", &rank, "percent",
                                 &percent), 0);
    assert_true(rank == 2 && percent == 37);
    assert_string_equal(string_of(one, "host"), "w2");
    one = json_array_get(b, 1);
    assert_true(json_is_null(json_object_get(one, "percent")));
    assert_true(json_is_null(json_object_get(one, "host")));
    json_decref(j);
}

/* Whatever a worker writes, the JSON parses and holds no control. */
static void test_any_bytes(void **state)
{
    uint32_t seed = 3;

    (void)state;
    make();
    for (int round = 0; round < 20000; round++) {
        json_t *j;

        for (size_t i = 0; i < sizeof w[0].line - 1; i++) {
            seed = seed * 1664525u + 1013904223u;
            w[0].line[i] = (char)(seed >> 24);
            s.cause[i] = "\"\\\n\t\r{},:a\xc3\xa4"[(seed >> 16) % 12];
        }
        w[0].line[seed >> 8 & 0xff] = '\0';
        w[0].line[sizeof w[0].line - 1] = s.cause[200] = '\0';
        j = parse();
        json_decref(j);
    }
}

/* mxnet's, behind the workers: they have numbers of their own. */
static void test_servers(void **state)
{
    json_t *j, *all, *one;
    int index;

    (void)state;
    make();
    s.nproc = 1;
    s.n_servers = 2;
    w[1].role = "server";
    w[1].index = 5;
    w[2].role = "scheduler";
    j = parse();
    assert_int_equal(json_array_size(json_object_get(j, "workers")), 1);
    all = json_object_get(j, "servers");
    assert_int_equal(json_array_size(all), 2);
    one = json_array_get(all, 0);
    assert_string_equal(string_of(one, "role"), "server");
    assert_int_equal(json_unpack(one, "{si}", "index", &index), 0);
    assert_int_equal(index, 5);
    assert_string_equal(string_of(one, "signal"), "SIGKILL");
    assert_null(json_object_get(one, "rank"));
    assert_string_equal(string_of(json_array_get(all, 1), "state"), "waiting");
    json_decref(j);
    text_init(&t, buf, sizeof buf);
    status_table(&t, &s);
    assert_non_null(strstr(buf, "\n\nserver    num     pid state "));
    assert_non_null(strstr(buf, "\nserver      5       - SIGKILL "));
    assert_non_null(strstr(buf, "\nscheduler   0       - waiting "));
    s.n_servers = 0;
    text_init(&t, buf, sizeof buf);
    status_table(&t, &s);
    assert_null(strstr(buf, "server"));
}

static void test_escapes_are_exact(void **state)
{
    static const char line[] = "a \"q\" \\ \t\n \xe2\x82\xac";
    json_t *j;

    (void)state;
    make();
    (void)snprintf(w[0].line, sizeof w[0].line, "%s\033[31m\xff", line);
    j = parse();
    assert_string_equal(
        string_of(json_array_get(json_object_get(j, "workers"), 0),
                  "last_line"),
        "a \"q\" \\ \t\n \xe2\x82\xac?[31m?");
    json_decref(j);
}

/* What does not fit is said, at any size, and nothing is written beyond. */
static void test_cut(void **state)
{
    char *small;
    size_t whole;

    (void)state;
    make();
    text_init(&t, buf, sizeof buf);
    status_json(&t, &s);
    whole = t.len;
    for (size_t cap = 1; cap <= whole; cap++) {
        small = malloc(cap);
        assert_non_null(small);
        text_init(&t, small, cap);
        status_json(&t, &s);
        assert_true(t.cut);
        free(small);
    }
}

static void test_table(void **state)
{
    (void)state;
    make();
    (void)snprintf(s.waiting, sizeof s.waiting, "node rank 2\nnot seen yet");
    (void)snprintf(s.cause, sizeof s.cause, "rank 4 was\033 killed");
    s.stop_signo = SIGTERM;
    text_init(&t, buf, sizeof buf);
    status_table(&t, &s);
    assert_string_equal(
        buf,
        "agent 1.2, pid 1 on h, up 3 min 20 s\n"
        "node rank 1 of 2 to 3, job j: running, round 4, world size 9, 2 of 3 "
        "restarts used\n"
        "node rank 0 at z:1: admitted, heard 3 s ago\n"
        "waiting: node rank 2 not seen yet\n"
        "last failure: rank 4 was? killed\n"
        "told to stop: SIGTERM\n"
        "\n"
        "rank     pid state        up    cpu   rss procs starts silent last "
        "line\n"
        "   3      77 running     61s   2h0m  1.2G     9      5  250ms step 9\n"
        "   4       - SIGKILL     3ms      -     -     -      5      - -\n"
        "   -       - waiting       -      -     -     -      0      - -\n");
    w[0].state = STATUS_EXITED;
    w[0].code = 137;
    text_init(&t, buf, sizeof buf);
    status_table(&t, &s);
    assert_non_null(strstr(buf, " exit 137 "));
    s.was_heard = false; /* Node rank 0's budget is not known yet. */
    text_init(&t, buf, sizeof buf);
    status_table(&t, &s);
    assert_non_null(strstr(buf, "running, round 4, world size 9\n"));
    s.has_link = false; /* This is node rank 0. */
    text_init(&t, buf, sizeof buf);
    status_table(&t, &s);
    assert_non_null(strstr(buf, "world size 9, 2 of 3 restarts used\n"));
}

static void cell_is(const char *text)
{
    text_init(&t, buf, sizeof buf);
    status_table(&t, &s);
    if (!strstr(buf, text))
        fail_msg("no '%s': %s", text, buf);
}

static void test_cells(void **state)
{
    static const struct {
        uint64_t value;
        const char *text;
    } bytes[] = {{0, "   0K "}, {1023, "   0K "}, {4096, "   4K "},
                 {1048575, " 1023K "}, {1048576, " 1.0M "},
                 {10485760, "  10M "}, {1099511627776, " 1.0T "},
                 {UINT64_MAX, " 16777215T "}},
      times[] = {{0, "   0ms "}, {999, " 999ms "}, {1999, "  1.9s "},
                 {10000, "   10s "}, {119999, "  119s "}, {120000, "  2m0s "},
                 {5999999, " 99m59s "}, {6000000, " 1h40m "},
                 {359999999, " 99h59m "}, {360000000, "  4d4h "},
                 {UINT64_MAX, "d"}};

    (void)state;
    make();
    for (unsigned i = 0; i < sizeof bytes / sizeof bytes[0]; i++) {
        w[0].rss_bytes = bytes[i].value;
        cell_is(bytes[i].text);
    }
    for (unsigned i = 0; i < sizeof times / sizeof times[0]; i++) {
        w[0].cpu_ms = times[i].value;
        cell_is(times[i].text);
    }
}

static void test_ready(void **state)
{
    (void)state;
    make();
    text_init(&t, buf, sizeof buf);
    status_ready(&t, &s);
    assert_string_equal(buf, "running\n");
    s.phase = "staging";
    s.is_staging = true;
    s.percent = 40;
    (void)snprintf(s.waiting, sizeof s.waiting, "node rank 2 not seen yet");
    text_init(&t, buf, sizeof buf);
    status_ready(&t, &s);
    assert_string_equal(buf, "staging (40 %): node rank 2 not seen yet\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_schema),
        cmocka_unit_test(test_json_values),
        cmocka_unit_test(test_missing_pods),
        cmocka_unit_test(test_any_bytes),
        cmocka_unit_test(test_servers),
        cmocka_unit_test(test_escapes_are_exact),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_cells),
        cmocka_unit_test(test_ready),
    };

    return cmocka_run_group_tests_name("status", tests, NULL, NULL);
}
