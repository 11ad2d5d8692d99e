/* Tests of agent/contract: the room for it. */
#include "agent/offline.h"
#include "unit/contract_env.h"

/* The room is asked for once, before data sets are staged and the network is
 * known, and is enough with all at its longest. */
static void test_the_room_is_enough(void **state)
{
    static char longest[PATH_MAX], ifname[16], any[8000],
        list[OFFLINE_LIST_MAX];
    struct contract_dataset sets[16];
    struct contract_in in = job(no_env), later;
    struct env v = {0};
    struct err e = {0};

    (void)state;
    memset(longest, 'l', sizeof longest - 1);
    memset(ifname, 'i', sizeof ifname - 1);
    memset(any, 'a', sizeof any - 1);
    memset(list, 'n', sizeof list - 1);
    for (unsigned i = 0; i < 16; i++)
        sets[i].name = sets[i].dir = "";
    in.dialects = (1u << CONTRACTS) - 1 - CONTRACT_TENSORFLOW; /* Bounded. */
    in.datasets = sets;
    in.n_datasets = 16;
    in.host = any;
    in.role = in.job_id = in.master_addr = in.cookie = any;
    in.dead_port = 65535;
    contract_room(&in, &v.bytes, &v.entries);
    v.buf = malloc(v.bytes);
    v.envp = calloc(v.entries, sizeof *v.envp);
    assert_true(v.buf && v.envp);

    later = in;
    later.node_rank = later.nnodes = later.nproc = UINT32_MAX;
    later.local_rank = later.world_size = later.round = UINT32_MAX;
    later.max_restarts = later.master_port = UINT32_MAX;
    later.omp_threads = UINT32_MAX;
    later.rank_base = 0;
    later.gpu = INT32_MAX;
    later.error_dir = longest;
    later.gloo_ifname = ifname;
    later.nccl_ifname = true;
    later.heartbeat_fd = INT32_MAX;
    later.no_proxy = list;
    for (unsigned i = 0; i < 16; i++) {
        sets[i].name = longest + PATH_MAX - 200 - i; /* All differ. */
        sets[i].dir = longest;
    }
    if (contract_env(&later, v.buf, v.bytes, v.envp, v.entries, &e) < 0)
        fail_msg("%s", e.text);
    assert_var(&v, "RANK", "4294967295");
    assert_var(&v, "AGENT_DATASET_DIR", longest);
    env_free(&v);
}

static void test_paths_beyond_path_max_have_room(void **state)
{
    static char any[2 * PATH_MAX];
    static const struct contract_dataset sets[] = {{"d", any}};
    struct contract_in in = job(no_env);
    struct env v;

    (void)state;
    memset(any, 'a', sizeof any - 1);
    in.error_dir = any;
    in.datasets = sets;
    in.n_datasets = 1;
    v = build(&in);
    assert_var(&v, "AGENT_DATASET_DIR", any);
    env_free(&v);
}

static void test_too_little_room_is_an_error(void **state)
{
    static const char *const base[] = {"A=1", "B=2", NULL};
    struct contract_in in = job(base);
    struct env v = build(&in);
    size_t bytes = 0, entries = 0, n_ok = 0;

    (void)state;
    for (; v.envp[entries]; entries++)
        if (v.envp[entries] != base[0] && v.envp[entries] != base[1])
            bytes += strlen(v.envp[entries]) + 1;
    for (size_t cap = 0; cap <= bytes; cap++) {
        char *buf = malloc(cap + 1);
        struct err e = {0};
        int rc = contract_env(&in, buf, cap, v.envp, entries + 1, &e);

        assert_int_equal(rc, cap < bytes ? -ERR_AGENT : 0);
        n_ok += rc == 0;
        free(buf);
    }
    assert_int_equal(n_ok, 1);
    for (size_t max = 0; max <= entries; max++) {
        struct err e = {0};

        assert_int_equal(contract_env(&in, v.buf, v.bytes, v.envp, max, &e),
                         -ERR_AGENT);
        assert_non_null(strstr(e.text, "local rank 2"));
    }
    env_free(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_room_is_enough),
        cmocka_unit_test(test_paths_beyond_path_max_have_room),
        cmocka_unit_test(test_too_little_room_is_an_error),
    };

    return cmocka_run_group_tests_name("contract_room", tests, NULL, NULL);
}
