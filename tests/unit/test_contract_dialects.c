/* Tests of agent/contract: the dialects of --contract, as tables. */
#include "unit/contract_env.h"

struct want {
    unsigned dialect;
    const char *name, *value;
};

/* Rank 10 of 12, local rank 2 of 4, node rank 1 of 2, round 3. */
static const struct want wants[] = {
    {CONTRACT_JAX, "JAX_COORDINATOR_ADDRESS", "w0:29501"},
    {CONTRACT_JAX, "JAX_NUM_PROCESSES", "12"},
    {CONTRACT_JAX, "JAX_PROCESS_ID", "10"},
    {CONTRACT_MPI, "OMPI_COMM_WORLD_RANK", "10"},
    {CONTRACT_MPI, "OMPI_COMM_WORLD_SIZE", "12"},
    {CONTRACT_MPI, "OMPI_COMM_WORLD_LOCAL_RANK", "2"},
    {CONTRACT_MPI, "OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
    {CONTRACT_MPI, "OMPI_COMM_WORLD_NODE_RANK", "2"},
    {CONTRACT_MPI, "OMPI_UNIVERSE_SIZE", "12"},
    {CONTRACT_HOROVOD, "HOROVOD_RANK", "10"},
    {CONTRACT_HOROVOD, "HOROVOD_SIZE", "12"},
    {CONTRACT_HOROVOD, "HOROVOD_LOCAL_RANK", "2"},
    {CONTRACT_HOROVOD, "HOROVOD_LOCAL_SIZE", "4"},
    {CONTRACT_HOROVOD, "HOROVOD_CROSS_RANK", "1"},
    {CONTRACT_HOROVOD, "HOROVOD_CROSS_SIZE", "2"},
    {CONTRACT_HOROVOD, "HOROVOD_HOSTNAME", "w1"},
    {CONTRACT_MXNET, "DMLC_ROLE", "worker"},
    {CONTRACT_MXNET, "DMLC_NUM_WORKER", "12"},
    {CONTRACT_MXNET, "DMLC_NUM_SERVER", "4"},
    {CONTRACT_MXNET, "DMLC_PS_ROOT_URI", "w0"},
    {CONTRACT_MXNET, "DMLC_PS_ROOT_PORT", "29501"},
    {CONTRACT_MXNET, "DMLC_WORKER_ID", "10"},
    {CONTRACT_MXNET, "DMLC_TASK_ID", "10"},
    {CONTRACT_MXNET, "DMLC_NUM_ATTEMPT", "3"},
    {CONTRACT_MXNET, "DMLC_JOB_CLUSTER", "local"},
    {CONTRACT_MXNET, "DMLC_USE_KUBERNETES", "1"},
    {CONTRACT_TENSORFLOW, "TF_CONFIG",
     "{\"cluster\": {\"worker\": [\"w0:29501\", \"w0:29502\", \"w0:29503\", "
     "\"w0:29504\", \"w0:29505\", \"w0:29506\", \"w0:29507\", \"w0:29508\", "
     "\"10.0.0.1:29509\", \"10.0.0.1:29510\", \"10.0.0.1:29511\", "
     "\"10.0.0.1:29512\"]}, \"task\": {\"type\": \"worker\", \"index\": 10}}"},
};
#define N_WANTS (sizeof wants / sizeof wants[0])

static struct contract_in job_in(unsigned dialects, const char *const *base)
{
    struct contract_in in = job(base);

    in.dialects = dialects;
    in.host = "w1";
    in.n_servers = 4;
    in.cluster = "w0*8,10.0.0.1*4";
    return in;
}

static size_t count(const struct env *v)
{
    size_t n = 0;

    while (v->envp[n])
        n++;
    return n;
}

static void test_each_alone(void **state)
{
    (void)state;
    for (unsigned bit = 0; bit < CONTRACTS; bit++) {
        struct contract_in none = job_in(0, no_env);
        struct contract_in in = job_in(1u << bit, no_env);
        struct env before = build(&none), v = build(&in);
        size_t n = 0;

        for (unsigned i = 0; i < N_WANTS; i++) {
            bool is_mine = wants[i].dialect == 1u << bit;

            assert_var(&v, wants[i].name, is_mine ? wants[i].value : NULL);
            n += is_mine;
        }
        if (1u << bit != CONTRACT_TORCH) /* And no more; test_contract.c. */
            assert_int_equal(count(&v), count(&before) + n);
        assert_var(&v, "AGENT_PROCESS_INDEX", "10");
        env_free(&before);
        env_free(&v);
    }
}

static void test_all_at_once(void **state)
{
    struct contract_in in = job_in((1u << CONTRACTS) - 1, no_env);
    struct env v = build(&in);

    (void)state;
    for (unsigned i = 0; i < N_WANTS; i++)
        assert_var(&v, wants[i].name, wants[i].value);
    assert_var(&v, "RANK", "10");
    env_free(&v);
}

/* The platform's are of this pod; those of dialects that were not chosen are
 * left alone, but torch's ranks would be taken for the worker's. */
static void test_the_base(void **state)
{
    static const char *const base[] = {
        "OMPI_COMM_WORLD_RANK=7", "PORT=80", "RANK=1", "WORLD_SIZE=2",
        "MASTER_ADDR=w9", "JAX_PROCESS_ID=1", NULL};
    struct contract_in in = job_in(CONTRACT_TORCH, base);
    struct env v = build(&in);

    (void)state;
    assert_var(&v, "OMPI_COMM_WORLD_RANK", "7");
    assert_var(&v, "PORT", "80");
    assert_var(&v, "JAX_PROCESS_ID", "1");
    env_free(&v);
    in = job_in(CONTRACT_MPI | CONTRACT_MXNET, base);
    v = build(&in);
    assert_var(&v, "OMPI_COMM_WORLD_RANK", "10");
    assert_var(&v, "PORT", NULL);
    assert_var(&v, "RANK", NULL);
    assert_var(&v, "WORLD_SIZE", NULL);
    assert_var(&v, "MASTER_ADDR", "w9");
    assert_var(&v, "JAX_PROCESS_ID", "1");
    env_free(&v);
}

/* JAX believes Slurm and mpirun, which started one agent on each node. */
static void test_jax_on_a_platform(void **state)
{
    static const char *const base[] = {
        "SLURM_JOB_ID=7", "SLURM_NODEID=1", "SLURM_PROCID=1", "SLURM_NTASKS=2",
        "SLURM_LOCALID=0", "OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=2",
        "OMPI_COMM_WORLD_LOCAL_RANK=0", NULL};
    static const struct want places[] = {
        {0, "SLURM_PROCID", "10"}, {0, "SLURM_NTASKS", "12"},
        {0, "SLURM_LOCALID", "2"}, {0, "OMPI_COMM_WORLD_RANK", "10"},
        {0, "OMPI_COMM_WORLD_SIZE", "12"},
        {0, "OMPI_COMM_WORLD_LOCAL_RANK", "2"},
    };
    struct contract_in in = job_in(CONTRACT_JAX, base);
    struct env v = build(&in);

    (void)state;
    for (unsigned i = 0; i < sizeof places / sizeof places[0]; i++)
        assert_var(&v, places[i].name, places[i].value);
    assert_var(&v, "SLURM_NODEID", "1");
    assert_var(&v, "SLURM_JOB_ID", "7");
    env_free(&v);
    in = job_in(CONTRACT_TORCH, base); /* Who knows of them by another. */
    v = build(&in);
    assert_var(&v, "SLURM_PROCID", "1");
    assert_var(&v, "SLURM_NTASKS", "2");
    env_free(&v);
    in = job_in(CONTRACT_JAX, no_env);
    v = build(&in);
    assert_var(&v, "SLURM_PROCID", NULL);
    env_free(&v);
}

static void test_a_pre_start_has_no_rank(void **state)
{
    static const char *const base[] = {
        "RANK=1", "HOROVOD_RANK=2", "AGENT_GPU=3", "MASTER_PORT=4",
        "TF_CONFIG=5", NULL};
    static const char *const gone[] = {
        "RANK", "LOCAL_RANK", "WORLD_SIZE", "GROUP_WORLD_SIZE", "ROLE_RANK",
        "ROLE_WORLD_SIZE", "MASTER_PORT", "AGENT_PROCESS_INDEX",
        "AGENT_PROCESS_NUM", "AGENT_GPU", "TORCHELASTIC_ERROR_FILE",
        "HOROVOD_RANK", "DMLC_ROLE", "TF_CONFIG", "JAX_PROCESS_ID"};
    struct contract_in in = job_in((1u << CONTRACTS) - 1, base);
    struct env v;

    (void)state;
    in.kind = CONTRACT_PRE_START;
    in.gpu = 0;
    in.cluster = NULL;
    v = build(&in);
    for (unsigned i = 0; i < sizeof gone / sizeof gone[0]; i++)
        assert_var(&v, gone[i], NULL);
    assert_var(&v, "LOCAL_WORLD_SIZE", "4");
    assert_var(&v, "GROUP_RANK", "1");
    assert_var(&v, "ROLE_NAME", "rank");
    assert_var(&v, "MASTER_ADDR", "w0");
    assert_var(&v, "TORCHELASTIC_RUN_ID", "job7");
    env_free(&v);
}

static void test_servers(void **state)
{
    static const char *const names[] = {
        "DMLC_ROLE", "DMLC_NUM_WORKER", "DMLC_NUM_SERVER", "DMLC_PS_ROOT_URI",
        "DMLC_PS_ROOT_PORT", "DMLC_SERVER_ID", "DMLC_WORKER_ID",
        "DMLC_TASK_ID", "DMLC_NUM_ATTEMPT", "RANK", "LOCAL_RANK", "AGENT_GPU"};
    static const struct {
        enum contract_kind kind;
        const char *want[sizeof names / sizeof names[0]];
    } cases[] = {
        {CONTRACT_SERVER, {"server", "12", "4", "w0", "29501", "3", NULL,
                           "15", "3"}},
        {CONTRACT_SCHEDULER, {"scheduler", "12", "4", "w0", "29501", NULL,
                              NULL, NULL, "3"}},
    };

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        static const char *const base[] = {"RANK=0", "DMLC_WORKER_ID=9", NULL};
        struct contract_in in = job_in(CONTRACT_MXNET | CONTRACT_TORCH, base);
        struct env v;

        in.kind = cases[i].kind;
        in.index = in.rank_base = 3;
        in.local_rank = 0;
        v = build(&in);
        for (unsigned k = 0; k < sizeof names / sizeof names[0]; k++)
            assert_var(&v, names[k], cases[i].want[k]);
        env_free(&v);
    }
}

/* The platform has said which role each pod has; the workers are counted
 * where agent knows them. */
static void test_platform_roles(void **state)
{
    static const char *const base[] = {
        "DMLC_ROLE=worker", "DMLC_NUM_WORKER=2", "DMLC_NUM_SERVER=3",
        "DMLC_PS_ROOT_URI=s0", "DMLC_WORKER_ID=1", "PORT=80", NULL};
    struct contract_in in = job_in(CONTRACT_MXNET, base);
    struct env v;

    (void)state;
    in.has_platform_role = true;
    for (in.nnodes = 1; in.nnodes <= 2; in.nnodes++) {
        v = build(&in);
        assert_var(&v, "DMLC_ROLE", "worker");
        assert_var(&v, "DMLC_NUM_WORKER", in.nnodes == 1 ? "2" : "12");
        assert_var(&v, "DMLC_WORKER_ID", in.nnodes == 1 ? "1" : "10");
        assert_var(&v, "DMLC_NUM_SERVER", "3");
        assert_var(&v, "DMLC_PS_ROOT_URI", "s0");
        assert_var(&v, "DMLC_PS_ROOT_PORT", "29501"); /* It has none. */
        assert_var(&v, "DMLC_TASK_ID", in.nnodes == 1 ? NULL : "10");
        assert_var(&v, "PORT", NULL);
        env_free(&v);
    }
    in = job_in(CONTRACT_MXNET, base + 4); /* Without DMLC_SERVER_ID. */
    in.has_platform_role = true;
    in.kind = CONTRACT_SERVER;
    for (in.nnodes = 1; in.nnodes <= 2; in.nnodes++) {
        v = build(&in);
        assert_var(&v, "DMLC_SERVER_ID", NULL);
        env_free(&v);
    }
}

static void test_where_dmlc_listens(void **state)
{
    static const char *const by_name[] = {"DMLC_INTERFACE=eth1", NULL};
    static const char *const by_host[] = {"DMLC_NODE_HOST=10.0.0.9",
                                          "DMLC_USE_KUBERNETES=0", NULL};
    static const struct {
        const char *const *base;
        uint32_t nnodes;
        const char *host, *interface, *kubernetes;
    } cases[] = {
        {no_env, 1, "127.0.0.1", NULL, NULL},
        {by_name, 1, NULL, "eth1", NULL},
        {by_host, 1, "10.0.0.9", NULL, "0"},
        {no_env, 2, NULL, "eth0", "1"},
        {by_name, 2, NULL, "eth1", "1"},
        {by_host, 2, "10.0.0.9", NULL, "0"},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct contract_in in = job_in(CONTRACT_MXNET, cases[i].base);
        struct env v;

        in.nnodes = cases[i].nnodes;
        in.gloo_ifname = in.nnodes > 1 ? "eth0" : NULL;
        v = build(&in);
        assert_var(&v, "DMLC_NODE_HOST", cases[i].host);
        assert_var(&v, "DMLC_INTERFACE", cases[i].interface);
        assert_var(&v, "DMLC_USE_KUBERNETES", cases[i].kubernetes);
        env_free(&v);
    }
}

static void test_jax_on_gpus(void **state)
{
    static const char *const base[] = {"JAX_LOCAL_DEVICE_IDS=5", NULL};
    struct contract_in in = job_in(CONTRACT_JAX, no_env);
    struct env v;

    (void)state;
    in.gpu = 2;
    v = build(&in);
    assert_var(&v, "JAX_LOCAL_DEVICE_IDS", "2");
    env_free(&v);
    in.base_env = base;
    v = build(&in);
    assert_var(&v, "JAX_LOCAL_DEVICE_IDS", "5");
    env_free(&v);
}

static void test_ipv6(void **state)
{
    struct contract_in in = job_in(CONTRACT_JAX | CONTRACT_TENSORFLOW, no_env);
    struct env v;

    (void)state;
    in.master_addr = "fd00::1";
    in.world_size = 2;
    in.rank_base = in.local_rank = 0;
    in.cluster = "w0*1,fd00::2*1";
    v = build(&in);
    assert_var(&v, "JAX_COORDINATOR_ADDRESS", "[fd00::1]:29501");
    assert_var(&v, "TF_CONFIG",
               "{\"cluster\": {\"worker\": [\"[fd00::1]:29501\", "
               "\"[fd00::2]:29502\"]}, \"task\": {\"type\": \"worker\", "
               "\"index\": 0}}");
    env_free(&v);
}

/* The list has more with --offline; one that is not right is no TF_CONFIG. */
static void test_lists_for_tensorflow(void **state)
{
    static const struct {
        const char *cluster, *why; /* NULL: all is well. */
        uint32_t world_size, port;
    } cases[] = {
        {"w0*8,w1,10.0.0.1*4,10.0.0.9", NULL, 12, 29501},
        {"w0*8,10.0.0.1*4", NULL, 12, 65524},
        {"w0*8,10.0.0.1*4", "above 65535", 12, 65525},
        {"w0*8,10.0.0.1*3", "has not told", 12, 29501},
        {"w0*8,10.0.0.1*5", "has not told", 12, 29501},
        {"w0*8,a\"b*4", "has not told", 12, 29501},
        {"w0*8,*4", "has not told", 12, 29501},
        {"w0,10.0.0.1", "has not told", 12, 29501},
        {"", "has not told", 12, 29501},
        {NULL, "has not told", 12, 29501},
        {"w0*10000", "128 KiB", 10000, 29501},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct contract_in in = job_in(CONTRACT_TENSORFLOW, no_env);
        struct env v = {0};
        struct err e = {0};
        int r;

        in.cluster = cases[i].cluster;
        in.world_size = cases[i].world_size;
        in.master_port = cases[i].port;
        in.master_addr = "a-name-that-is-rather-long.example.org";
        contract_room(&in, &v.bytes, &v.entries);
        v.buf = malloc(v.bytes);
        v.envp = calloc(v.entries, sizeof *v.envp);
        assert_true(v.buf && v.envp);
        r = contract_env(&in, v.buf, v.bytes, v.envp, v.entries, &e);
        assert_int_equal(r, cases[i].why ? -ERR_USAGE : 0);
        if (cases[i].why && !strstr(e.text, cases[i].why))
            fail_msg("%u: %s", i, e.text);
        env_free(&v);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_alone),
        cmocka_unit_test(test_all_at_once),
        cmocka_unit_test(test_the_base),
        cmocka_unit_test(test_jax_on_a_platform),
        cmocka_unit_test(test_a_pre_start_has_no_rank),
        cmocka_unit_test(test_servers),
        cmocka_unit_test(test_platform_roles),
        cmocka_unit_test(test_where_dmlc_listens),
        cmocka_unit_test(test_jax_on_gpus),
        cmocka_unit_test(test_ipv6),
        cmocka_unit_test(test_lists_for_tensorflow),
    };

    return cmocka_run_group_tests_name("contract_dialects", tests, NULL, NULL);
}
