/* Tests of agent/contract: what a worker gets. */
#include "unit/contract_env.h"

static void test_the_torch_contract(void **state)
{
    static const struct {
        const char *name, *want;
    } want[] = {
        {"RANK", "10"},
        {"LOCAL_RANK", "2"},
        {"WORLD_SIZE", "12"},
        {"LOCAL_WORLD_SIZE", "4"},
        {"GROUP_RANK", "1"},
        {"GROUP_WORLD_SIZE", "2"},
        {"ROLE_NAME", "rank"},
        {"ROLE_RANK", "10"},
        {"ROLE_WORLD_SIZE", "12"},
        {"MASTER_ADDR", "w0"},
        {"MASTER_PORT", "29501"},
        {"TORCHELASTIC_RESTART_COUNT", "3"},
        {"TORCHELASTIC_MAX_RESTARTS", "5"},
        {"TORCHELASTIC_RUN_ID", "job7"},
        {"TORCHELASTIC_USE_AGENT_STORE", "False"},
        {"TORCHELASTIC_ERROR_FILE", "/tmp/e/attempt_3/2/error.json"},
        {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "1"},
        {"OMP_NUM_THREADS", "6"},
        {"PYTHONUNBUFFERED", "1"},
        {"GLOO_SOCKET_IFNAME", "eth0"},
        {"AGENT_PROCESS_INDEX", "10"},
        {"AGENT_PROCESS_NUM", "12"},
        {"AGENT_GPU", "2"},
        {"AGENT_COOKIE", "c00c1e"},
    };
    struct contract_in in = job(no_env);
    struct env v;
    size_t n = 0;

    (void)state;
    in.error_dir = "/tmp/e";
    in.gloo_ifname = "eth0";
    in.gpu = 2;
    v = build(&in);
    for (unsigned i = 0; i < sizeof want / sizeof want[0]; i++)
        assert_var(&v, want[i].name, want[i].want);
    while (v.envp[n])
        n++;
    assert_int_equal(n, sizeof want / sizeof want[0]); /* And no more. */
    env_free(&v);
}

/* The pipe of this agent; one of an outer agent is not open any more. */
static void test_heartbeat_fd(void **state)
{
    static const char *const outer[] = {"AGENT_HEARTBEAT_FD=9", NULL};
    struct contract_in in = job(outer);
    struct env v = build(&in);

    (void)state;
    assert_var(&v, "AGENT_HEARTBEAT_FD", NULL);
    env_free(&v);
    in.heartbeat_fd = 12;
    v = build(&in);
    assert_var(&v, "AGENT_HEARTBEAT_FD", "12");
    env_free(&v);
}

/* By --nccl-ifname barrier, where the interface is known and nothing is set. */
static void test_nccl_ifname(void **state)
{
    static const char *const set[] = {"NCCL_SOCKET_IFNAME=ib", NULL};
    static const char *const empty[] = {"NCCL_SOCKET_IFNAME=", NULL};
    static const struct {
        const char *const *base;
        const char *ifname;
        bool asked;
        const char *want;
    } rows[] = {
        {no_env, "eth0", true, "=eth0"}, {no_env, "eth0", false, NULL},
        {no_env, NULL, true, NULL},      {set, "eth0", true, "ib"},
        {empty, "eth0", true, ""},       {set, "eth0", false, "ib"},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct contract_in in = job(rows[i].base);
        struct env v;

        in.gloo_ifname = rows[i].ifname;
        in.nccl_ifname = rows[i].asked;
        v = build(&in);
        assert_var(&v, "NCCL_SOCKET_IFNAME", rows[i].want);
        assert_var(&v, "GLOO_SOCKET_IFNAME", rows[i].ifname);
        env_free(&v);
    }
}

static void test_offline(void **state)
{
    static const char *const base[] = {"http_proxy=http://proxy:3128",
                                       "NO_PROXY=*", "PIP_NO_INDEX=0",
                                       "all_proxy=left alone", NULL};
    static const char *const ones[] = {"HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE",
                                       "TRANSFORMERS_OFFLINE", "PIP_NO_INDEX"};
    static const char *const proxies[] = {"http_proxy", "https_proxy",
                                          "HTTP_PROXY", "HTTPS_PROXY"};
    struct contract_in in = job(base);
    struct env v;

    (void)state;
    in.dead_port = 4711;
    in.no_proxy = "localhost,.svc";
    v = build(&in);
    for (unsigned i = 0; i < 4; i++) {
        assert_var(&v, ones[i], "1");
        assert_var(&v, proxies[i], "http://127.0.0.1:4711");
    }
    assert_var(&v, "no_proxy", "localhost,.svc");
    assert_var(&v, "NO_PROXY", "localhost,.svc");
    assert_var(&v, "all_proxy", "left alone");
    env_free(&v);
    in.dead_port = 0;
    v = build(&in);
    assert_var(&v, "http_proxy", "http://proxy:3128");
    assert_var(&v, "HF_HUB_OFFLINE", NULL);
    env_free(&v);
}

static void test_what_is_not_given_is_not_set(void **state)
{
    struct contract_in in = job(no_env);
    struct env v;

    (void)state;
    in.cookie = NULL;
    in.omp_threads = 0;
    v = build(&in);
    assert_var(&v, "AGENT_GPU", NULL);
    assert_var(&v, "AGENT_COOKIE", NULL);
    assert_var(&v, "AGENT_DATASET_DIR", NULL);
    assert_var(&v, "GLOO_SOCKET_IFNAME", NULL);
    assert_var(&v, "OMP_NUM_THREADS", NULL);
    assert_var(&v, "TORCHELASTIC_ERROR_FILE", ""); /* As torchrun's. */
    env_free(&v);
}

static void test_the_base_is_inherited(void **state)
{
    static const char *const base[] = {
        "PATH=/bin", "EMPTY=", "WITH=equals=signs", "lower=1", "R=1",
        "RANK_OF=2", "RAN=3", "MASTER_PORT_X=4", "NCCL_DEBUG=INFO",
        "TORCHELASTIC_SIGNALS_TO_HANDLE=SIGTERM", "CUDA_VISIBLE_DEVICES=1,2",
        NULL,
    };
    struct contract_in in = job(base);
    struct env v = build(&in);

    (void)state;
    for (unsigned i = 0; base[i]; i++) {
        bool found = false;

        for (size_t k = 0; v.envp[k]; k++)
            found = found || v.envp[k] == base[i]; /* Borrowed, no copy. */
        assert_true(found);
    }
    env_free(&v);
}

static void test_the_contract_wins_over_the_base(void **state)
{
    static const char *const base[] = {
        "RANK=99", "WORLD_SIZE=99", "MASTER_PORT=tcp://10.0.0.1:80",
        "AGENT_COOKIE=old", "TORCHELASTIC_ERROR_FILE=/old",
        "AGENT_DATASET_DIR=/old", "ROLE_NAME=old", NULL,
    };
    static const struct contract_dataset sets[] = {{"digits", "/stage/d"}};
    struct contract_in in = job(base);
    struct env v;

    (void)state;
    in.datasets = sets;
    in.n_datasets = 1;
    v = build(&in);
    assert_var(&v, "RANK", "10");
    assert_var(&v, "WORLD_SIZE", "12");
    assert_var(&v, "MASTER_PORT", "29501");
    assert_var(&v, "AGENT_COOKIE", "c00c1e");
    assert_var(&v, "TORCHELASTIC_ERROR_FILE", "");
    assert_var(&v, "AGENT_DATASET_DIR", "/stage/d");
    assert_var(&v, "ROLE_NAME", "rank");
    env_free(&v);
}

static void test_only_where_unset(void **state)
{
    static const char *const base[] = {
        "OMP_NUM_THREADS=2", "PYTHONUNBUFFERED=",
        "TORCH_NCCL_ASYNC_ERROR_HANDLING=3", "GLOO_SOCKET_IFNAME=ib0",
        NULL,
    };
    struct contract_in in = job(base);
    struct env v;

    (void)state;
    in.gloo_ifname = "eth0";
    v = build(&in);
    assert_var(&v, "OMP_NUM_THREADS", "2");
    assert_var(&v, "PYTHONUNBUFFERED", ""); /* Empty is set. */
    assert_var(&v, "TORCH_NCCL_ASYNC_ERROR_HANDLING", "3");
    assert_var(&v, "GLOO_SOCKET_IFNAME", "ib0");
    env_free(&v);
}

static void test_variables_of_options_are_hidden(void **state)
{
    static const char *const base[] = {
        "AGENT_NPROC=4", "AGENT_TOKEN=secret", "AGENT_DATASET=/m.json",
        "AGENT_MAX_RESTARTS=1", "AGENT_UNRELATED=1", "AGENT_=2",
        "AGENT_PORT=tcp://10.0.0.1:80", NULL,
    };
    struct contract_in in = job(base);
    struct env v = build(&in);

    (void)state;
    assert_var(&v, "AGENT_NPROC", NULL);
    assert_var(&v, "AGENT_TOKEN", NULL);
    assert_var(&v, "AGENT_DATASET", NULL);
    assert_var(&v, "AGENT_MAX_RESTARTS", NULL);
    assert_var(&v, "AGENT_UNRELATED", "1");
    assert_var(&v, "AGENT_", "2");
    assert_var(&v, "AGENT_PORT", "tcp://10.0.0.1:80");
    env_free(&v);
}

static void test_malformed_and_double_entries(void **state)
{
    static const char *const base[] = {
        "NOEQUALS", "A=first", "", "=empty", "A=second", "B=1", "A=third",
        "OMP_NUM_THREADS", NULL,
    };
    struct contract_in in = job(base);
    struct env v = build(&in);

    (void)state;
    assert_var(&v, "A", "first"); /* As getenv() would find it. */
    assert_var(&v, "B", "1");
    assert_var(&v, "OMP_NUM_THREADS", "6");
    for (size_t i = 0; v.envp[i]; i++)
        assert_true(strchr(v.envp[i], '=') > v.envp[i]);
    env_free(&v);
}

static void test_several_datasets(void **state)
{
    static const struct contract_dataset sets[] = {
        {"digits", "/s/digits@1"},
        {"en-wiki.2", "/s/wiki"},
        {"EN_WIKI-2", "/s/other"}, /* The same name once folded. */
        {"en_wiki", "/s/shorter"},
        {"\xc3\xa9=", "/s/e=1"},
    };
    struct contract_in in = job(no_env);
    struct env v;

    (void)state;
    in.datasets = sets;
    in.n_datasets = 5;
    v = build(&in);
    assert_var(&v, "AGENT_DATASET_DIR", "/s/digits@1");
    assert_var(&v, "AGENT_DATASET_DIR_DIGITS", "/s/digits@1");
    assert_var(&v, "AGENT_DATASET_DIR_EN_WIKI_2", "/s/wiki");
    assert_var(&v, "AGENT_DATASET_DIR_EN_WIKI", "/s/shorter");
    assert_var(&v, "AGENT_DATASET_DIR____", "/s/e=1");
    env_free(&v);

    in.n_datasets = 1;
    v = build(&in);
    assert_var(&v, "AGENT_DATASET_DIR", "/s/digits@1");
    assert_var(&v, "AGENT_DATASET_DIR_DIGITS", NULL);
    env_free(&v);
}

/* Kubernetes' service links: thousands of names, some twice. */
static void test_a_large_environment(void **state)
{
    enum { N = 5000 };
    char(*names)[40] = calloc(2 * N, sizeof *names);
    const char **base = calloc(2 * N + 1, sizeof *base);
    struct contract_in in = job(base);
    struct env v;
    size_t n = 0;

    (void)state;
    assert_true(names && base);
    for (unsigned i = 0; i < N; i++) {
        (void)snprintf(names[i], sizeof names[i], "SVC_%u_PORT_80=tcp://a", i);
        (void)snprintf(names[N + i], sizeof names[i], "SVC_%u_PORT_80=b",
                       i * 2);
        base[i] = names[i];
        base[N + i] = names[N + i];
    }
    v = build(&in);
    while (v.envp[n])
        n++;
    n -= 22; /* Those of the contract. */
    /* Of the second half, every other name is new. */
    assert_int_equal(n, N + N / 2);
    assert_var(&v, "SVC_0_PORT_80", "tcp://a");
    assert_var(&v, "SVC_4999_PORT_80", "tcp://a");
    assert_var(&v, "SVC_9002_PORT_80", "b");
    env_free(&v);
    free(base);
    free(names);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_torch_contract),
        cmocka_unit_test(test_heartbeat_fd),
        cmocka_unit_test(test_nccl_ifname),
        cmocka_unit_test(test_offline),
        cmocka_unit_test(test_what_is_not_given_is_not_set),
        cmocka_unit_test(test_the_base_is_inherited),
        cmocka_unit_test(test_the_contract_wins_over_the_base),
        cmocka_unit_test(test_only_where_unset),
        cmocka_unit_test(test_variables_of_options_are_hidden),
        cmocka_unit_test(test_malformed_and_double_entries),
        cmocka_unit_test(test_several_datasets),
        cmocka_unit_test(test_a_large_environment),
    };

    return cmocka_run_group_tests_name("contract", tests, NULL, NULL);
}
