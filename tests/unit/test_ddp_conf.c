/* Tests of ddp/conf: environment and options -> configuration. */
#include "ddp/conf.h"
#include "ddp/names.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define MAX_VARS 12
#define THREE "RANK=1", "WORLD_SIZE=3", "MASTER_ADDR=h", "MASTER_PORT=29500"

#define MPI_LOCAL "OMPI_COMM_WORLD_LOCAL_RANK=3", "OMPI_COMM_WORLD_LOCAL_SIZE=4"
#define SLURM                                                                  \
    "SLURM_STEP_NUM_TASKS=4", "SLURM_JOB_ID=55", "SLURM_STEP_ID=1",            \
        "SLURM_STEP_NODELIST=n[08-09]", "SLURM_STEP_TASKS_PER_NODE=2(x2)"

/* getenv over a list of "NAME=value". */
static const char *get(void *ctx, const char *name)
{
    const char *const *vars = ctx;
    size_t len = strlen(name);

    for (unsigned i = 0; i < MAX_VARS && vars[i]; i++)
        if (!strncmp(vars[i], name, len) && vars[i][len] == '=')
            return vars[i] + len + 1;
    return NULL;
}

static void test_good(void **state)
{
    static const struct {
        const char *vars[MAX_VARS];
        struct ddp_conf want;
    } cases[] = {
        {{NULL},
         {.size = 1, .local_size = 1, .timeout_ms = 60000}},
        {{"RANK=", "WORLD_SIZE=", "DDP_TIMEOUT="}, /* Empty is unset. */
         {.size = 1, .local_size = 1, .timeout_ms = 60000}},
        {{"RANK=0", "WORLD_SIZE=1", "DDP_TIMEOUT=250ms"},
         {.size = 1, .local_size = 1, .timeout_ms = 250}},
        {{THREE},
         {.rank = 1, .size = 3, .local_size = 1, .host = "h",
          .master_port = 29500, .port = 29500, .n_ports = 1,
          .timeout_ms = 60000, .attempt = DDP_NO_ATTEMPT}},
        {{THREE, "LOCAL_RANK=1", "LOCAL_WORLD_SIZE=2",
          "TORCHELASTIC_RUN_ID=a", "TORCHELASTIC_RESTART_COUNT=4",
          "TORCHELASTIC_USE_AGENT_STORE=False"},
         {.rank = 1, .size = 3, .local_rank = 1, .local_size = 2, .host = "h",
          .master_port = 29500, .port = 29500, .n_ports = 1,
          .timeout_ms = 60000, .attempt = 4, .job = "a"}},
        /* torchrun's store has MASTER_PORT, and its counts differ by node. */
        {{THREE, "TORCHELASTIC_RUN_ID=a", "TORCHELASTIC_RESTART_COUNT=4",
          "TORCHELASTIC_USE_AGENT_STORE=True"},
         {.rank = 1, .size = 3, .local_size = 1, .host = "h",
          .master_port = 29500, .port = 29501, .n_ports = 8,
          .timeout_ms = 60000, .attempt = DDP_NO_ATTEMPT, .job = "a"}},
        {{THREE, "TORCHELASTIC_USE_AGENT_STORE=True",
          "DDP_BOOTSTRAP_PORT=1234", "DDP_TIMEOUT=2m"},
         {.rank = 1, .size = 3, .local_size = 1, .host = "h",
          .master_port = 29500, .port = 1234, .n_ports = 1,
          .timeout_ms = 120000, .attempt = DDP_NO_ATTEMPT}},
        /* mpirun on one machine: nothing else need be set. */
        {{"OMPI_COMM_WORLD_RANK=3", "OMPI_COMM_WORLD_SIZE=4", MPI_LOCAL,
          "PMIX_NAMESPACE=17"},
         {.rank = 3, .size = 4, .local_rank = 3, .local_size = 4,
          .host = "127.0.0.1", .master_port = 30993, .port = 30993,
          .n_ports = 8, .timeout_ms = 60000, .attempt = DDP_NO_ATTEMPT,
          .job = "17"}},
        {{"OMPI_COMM_WORLD_RANK=6", "OMPI_COMM_WORLD_SIZE=8", MPI_LOCAL,
          "PMIX_NAMESPACE=17", "MASTER_ADDR=h", "MASTER_PORT=29500"},
         {.rank = 6, .size = 8, .local_rank = 3, .local_size = 4, .host = "h",
          .master_port = 29500, .port = 29500, .n_ports = 1,
          .timeout_ms = 60000, .attempt = DDP_NO_ATTEMPT, .job = "17"}},
        /* agent under mpirun: the nearest launcher counts. */
        {{THREE, "OMPI_COMM_WORLD_RANK=6", "OMPI_COMM_WORLD_SIZE=8"},
         {.rank = 1, .size = 3, .local_size = 1, .host = "h",
          .master_port = 29500, .port = 29500, .n_ports = 1,
          .timeout_ms = 60000, .attempt = DDP_NO_ATTEMPT}},
        {{SLURM, "SLURM_PROCID=3", "SLURM_LOCALID=1", "SLURM_NODEID=1"},
         {.rank = 3, .size = 4, .local_rank = 1, .local_size = 2,
          .host = "n08", .master_port = 28342, .port = 28342, .n_ports = 8,
          .timeout_ms = 60000, .attempt = DDP_NO_ATTEMPT, .job = "55.1"}},
        /* A batch script itself is no rank of several. */
        {{"SLURM_PROCID=0", "SLURM_NTASKS=4", "SLURM_LOCALID=0",
          "SLURM_JOB_ID=55"},
         {.size = 1, .local_size = 1, .timeout_ms = 60000}},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct ddp_conf c;
        struct ddp_error err = {.text = ""};
        const struct ddp_conf *want = &cases[i].want;

        if (ddp_conf_read(&c, NULL, get, (void *)(uintptr_t)cases[i].vars,
                          &err))
            fail_msg("case %u: %s", i, err.text);
        assert_int_equal(c.rank, want->rank);
        assert_int_equal(c.size, want->size);
        assert_int_equal(c.local_rank, want->local_rank);
        assert_int_equal(c.local_size, want->local_size);
        assert_string_equal(c.host, want->host);
        assert_int_equal(c.master_port, want->master_port);
        assert_int_equal(c.port, want->port);
        assert_int_equal(c.n_ports, want->n_ports);
        assert_true(c.timeout_ms == want->timeout_ms);
        assert_true(c.attempt == want->attempt);
        assert_string_equal(c.job, want->job);
    }
}

static void test_bad(void **state)
{
    static const struct {
        const char *vars[MAX_VARS];
        const char *want; /* In the text. */
    } cases[] = {
        {{"RANK=0"}, "RANK is set but WORLD_SIZE is not"},
        {{"WORLD_SIZE=2"}, "WORLD_SIZE is set but RANK is not"},
        {{"RANK=2", "WORLD_SIZE=2"}, "RANK 2 does not fit WORLD_SIZE 2"},
        {{"RANK=-1", "WORLD_SIZE=2"}, "RANK is '-1'"},
        {{"RANK=0x1", "WORLD_SIZE=2"}, "RANK is '0x1'"},
        {{"RANK= 1", "WORLD_SIZE=2"}, "RANK is ' 1'"},
        {{"RANK=1", "WORLD_SIZE=99999999999999999999"}, "WORLD_SIZE is '9"},
        {{"RANK=1", "WORLD_SIZE=5000"}, "from 1 to 4096"},
        {{"RANK=0", "WORLD_SIZE=2", "LOCAL_RANK=2", "LOCAL_WORLD_SIZE=2"},
         "LOCAL_RANK 2 does not fit"},
        {{"RANK=0", "WORLD_SIZE=2", "MASTER_PORT=1"}, "MASTER_ADDR is not set"},
        {{"RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=h"}, "MASTER_PORT is not set"},
        {{"RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=h",
          "MASTER_PORT=tcp://10.0.0.1:80"}, "Kubernetes service link"},
        {{"RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=h", "MASTER_PORT=0"},
         "MASTER_PORT is '0'"},
        {{"RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=h", "MASTER_PORT=65536"},
         "from 1 to 65535"},
        {{"RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=h", "MASTER_PORT=65530",
          "TORCHELASTIC_USE_AGENT_STORE=True"}, "set DDP_BOOTSTRAP_PORT"},
        {{THREE, "TORCHELASTIC_RESTART_COUNT=x"}, "RESTART_COUNT is 'x'"},
        {{"OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=8", MPI_LOCAL,
          "PMIX_NAMESPACE=17"}, "MASTER_ADDR is not set"},
        {{"OMPI_COMM_WORLD_RANK=1"}, "but OMPI_COMM_WORLD_SIZE is not"},
        {{SLURM, "SLURM_PROCID=3", "SLURM_LOCALID=2", "SLURM_NODEID=1"},
         "SLURM_STEP_TASKS_PER_NODE is '2(x2)' and SLURM_LOCALID 2"},
        {{"DDP_TIMEOUT=0"}, "DDP_TIMEOUT is '0'"},
        {{"DDP_SOCKETS=0"}, "DDP_SOCKETS is '0', but must be a number from 1 "
                            "to 16"},
        {{"DDP_SOCKETS=17"}, "DDP_SOCKETS is '17'"},
        {{"DDP_SOCKETS=two"}, "DDP_SOCKETS is 'two'"},
        {{"DDP_TIMEOUT=5 s"}, "DDP_TIMEOUT is '5 s'"},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct ddp_conf c = {.size = 77};
        struct ddp_error err;
        int rc = ddp_conf_read(&c, NULL, get,
                               (void *)(uintptr_t)cases[i].vars, &err);

        assert_int_equal(rc, DDP_EINVAL);
        assert_int_equal(err.code, DDP_EINVAL);
        assert_int_equal(c.size, 77); /* Set on success only. */
        if (!strstr(err.text, cases[i].want))
            fail_msg("case %u: got '%s', wanted '%s'", i, err.text,
                     cases[i].want);
    }
}

static void test_host_too_long(void **state)
{
    char host[300] = "MASTER_ADDR=";
    const char *vars[MAX_VARS] = {"RANK=0", "WORLD_SIZE=2", "MASTER_PORT=1",
                                  host};
    struct ddp_conf c;
    struct ddp_error err;

    (void)state;
    memset(host + 12, 'a', 253);
    assert_int_equal(ddp_conf_read(&c, NULL, get, vars, &err), 0);
    assert_int_equal(strlen(c.host), 253);
    memset(host + 12, 'a', 254);
    assert_int_equal(ddp_conf_read(&c, NULL, get, vars, &err), DDP_EINVAL);
    assert_non_null(strstr(err.text, "MASTER_ADDR is longer than 253 bytes"));
}

static void test_options_go_first(void **state)
{
    const char *vars[MAX_VARS] = {THREE, "DDP_TIMEOUT=5s",
                                  "TORCHELASTIC_RUN_ID=env",
                                  "DDP_BOOTSTRAP_PORT=7"};
    struct ddp_options opt = {.size = sizeof opt, .timeout_ms = 7,
                              .world_size = 2, .rank = 0,
                              .local_world_size = 4, .local_rank = 3,
                              .master_addr = "::1", .master_port = 5,
                              .bootstrap_port = 6, .job_id = "opt"};
    struct ddp_conf c;
    struct ddp_error err;

    (void)state;
    assert_int_equal(ddp_conf_read(&c, &opt, get, vars, &err), 0);
    assert_int_equal(c.rank, 0);
    assert_int_equal(c.size, 2);
    assert_int_equal(c.local_rank, 3);
    assert_int_equal(c.port, 6);
    assert_int_equal(c.master_port, 5);
    assert_true(c.timeout_ms == 7);
    assert_string_equal(c.host, "::1");
    assert_string_equal(c.job, "opt");

    opt = (struct ddp_options){.size = sizeof opt}; /* All 0: the variables. */
    assert_int_equal(ddp_conf_read(&c, &opt, get, vars, &err), 0);
    assert_int_equal(c.rank, 1);
    assert_int_equal(c.port, 7);
    assert_string_equal(c.job, "env");

    opt.world_size = 2;
    opt.rank = 2;
    assert_int_equal(ddp_conf_read(&c, &opt, get, vars, &err), DDP_EINVAL);
    opt = (struct ddp_options){.size = sizeof opt, .master_port = 70000};
    assert_int_equal(ddp_conf_read(&c, &opt, get, vars, &err), DDP_EINVAL);
}

/* A program built for a smaller or a larger struct ddp_options. */
static void test_options_of_other_versions(void **state)
{
    const char *vars[MAX_VARS] = {NULL};
    struct {
        struct ddp_options opt;
        uint64_t later;
    } big = {.opt = {.size = sizeof big, .timeout_ms = 9}};
    struct ddp_conf c;
    struct ddp_error err;

    (void)state;
    assert_int_equal(ddp_conf_read(&c, &big.opt, get, vars, &err), 0);
    assert_true(c.timeout_ms == 9);
    big.later = 1;
    assert_int_equal(ddp_conf_read(&c, &big.opt, get, vars, &err), DDP_EINVAL);
    assert_non_null(strstr(err.text, "newer"));

    big.opt.size = offsetof(struct ddp_options, world_size);
    big.opt.world_size = -5; /* Beyond what this program has. */
    assert_int_equal(ddp_conf_read(&c, &big.opt, get, vars, &err), 0);
    assert_int_equal(c.size, 1);
    big.opt.size = 0;
    assert_int_equal(ddp_conf_read(&c, &big.opt, get, vars, &err), DDP_EINVAL);
    assert_non_null(strstr(err.text, "ddp_options.size is 0"));
    assert_int_equal(sizeof(struct ddp_error), 512);
}

static void test_first_host(void **state)
{
    static const struct {
        const char *list, *want; /* NULL: none. */
    } cases[] = {
        {"n1", "n1"}, {"n1,n2", "n1"}, {"n[08-10],m1", "n08"},
        {"rack[1-2]node[3,5]", "rack1node3"}, {"a[7]-ib,b", "a7-ib"},
        {"", NULL}, {",a", NULL}, {"n[1-2", NULL}, {"n]", NULL},
        {"a-name-of-20-letters", NULL},
    };
    char host[20];

    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int rc = ddp_names_first_host(cases[i].list, host, sizeof host);

        assert_int_equal(rc, cases[i].want ? 0 : -1);
        if (cases[i].want)
            assert_string_equal(host, cases[i].want);
    }
}

static void test_tasks(void **state)
{
    static const struct {
        const char *list;
        unsigned node;
        int want; /* -1: none. */
    } cases[] = {
        {"4", 0, 4}, {"2(x3),1", 0, 2}, {"2(x3),1", 2, 2}, {"2(x3),1", 3, 1},
        {"1,2,3", 2, 3}, {"2(x3),1", 4, -1}, {"", 0, -1}, {"x", 0, -1},
        {"2(x3", 0, -1}, {"0", 0, -1}, {"99999999999999999999", 0, -1},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int got = -1;
        int rc = ddp_names_tasks(cases[i].list, cases[i].node, &got);

        assert_int_equal(rc, cases[i].want < 0 ? -1 : 0);
        assert_int_equal(got, cases[i].want);
    }
}

static void test_duration(void **state)
{
    static const struct {
        const char *s;
        int64_t ms; /* -1: none. */
    } cases[] = {
        {"1", 1000},   {"500ms", 500},  {"10s", 10000},   {"5m", 300000},
        {"2h", 7200000}, {"1ms", 1},    {"", -1},         {"0", -1},
        {"0s", -1},    {"s", -1},       {"-1s", -1},      {"+1s", -1},
        {"1.5s", -1},  {"1 s", -1},     {"1S", -1},       {"1sm", -1},
        {"1d", -1},    {"31536000s", 31536000000}, {"31536001s", -1},
        {"99999999999999999999", -1},   {"18446744073709551615ms", -1},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t ms = 3;
        int rc = ddp_conf_duration(cases[i].s, &ms);

        if (rc != (cases[i].ms < 0 ? -1 : 0) ||
            ms != (cases[i].ms < 0 ? 3 : (uint64_t)cases[i].ms))
            fail_msg("'%s' gives %d, %llu", cases[i].s, rc,
                     (unsigned long long)ms);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),
        cmocka_unit_test(test_bad),
        cmocka_unit_test(test_host_too_long),
        cmocka_unit_test(test_options_go_first),
        cmocka_unit_test(test_options_of_other_versions),
        cmocka_unit_test(test_first_host),
        cmocka_unit_test(test_tasks),
        cmocka_unit_test(test_duration),
    };

    return cmocka_run_group_tests_name("ddp_conf", tests, NULL, NULL);
}
