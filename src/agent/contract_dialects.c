/* contract_dialects: the one table of what each dialect of --contract sets. */
#include "agent/contract_parts.h"

#include "agent/torchrun.h"
#include "base/variable.h"

#include <string.h>

/* X(dialect, name, value, kinds): `kinds` has a letter for each enum
 * contract_kind that gets it: worker, pre-start, server, scheduler. The same
 * name in the base's environment is not handed on to others: it would tell of
 * another process, such as this pod's rank. */
#define NAMES(X)                                                               \
    X(TORCH, "RANK", RANK, "w")                                                \
    X(TORCH, "LOCAL_RANK", LOCAL_RANK, "w")                                    \
    X(TORCH, "WORLD_SIZE", WORLD, "w")                                         \
    X(TORCH, "LOCAL_WORLD_SIZE", LOCAL_WORLD, "wp")                            \
    X(TORCH, "GROUP_RANK", NODE, "wp")                                         \
    X(TORCH, "GROUP_WORLD_SIZE", NODES, "w")                                   \
    X(TORCH, "ROLE_NAME", ROLE, "wp")                                          \
    X(TORCH, "ROLE_RANK", RANK, "w")                                           \
    X(TORCH, "ROLE_WORLD_SIZE", WORLD, "w")                                    \
    X(TORCH, "MASTER_ADDR", ADDR, "wp")                                        \
    X(TORCH, "MASTER_PORT", PORT, "w")                                         \
    X(TORCH, "TORCHELASTIC_RESTART_COUNT", ROUND, "wp")                        \
    X(TORCH, "TORCHELASTIC_MAX_RESTARTS", MAX_RESTARTS, "wp")                  \
    X(TORCH, "TORCHELASTIC_RUN_ID", JOB_ID, "wp")                              \
    /* With "True" no worker would host the store, and agent has none. */      \
    X(TORCH, "TORCHELASTIC_USE_AGENT_STORE", FALSE, "wp")                      \
    X(TORCH, "TORCHELASTIC_ERROR_FILE", ERROR_FILE, "w")                       \
    X(JAX, "JAX_COORDINATOR_ADDRESS", ADDR_PORT, "w")                          \
    X(JAX, "JAX_NUM_PROCESSES", WORLD, "w")                                    \
    X(JAX, "JAX_PROCESS_ID", RANK, "w")                                        \
    X(TENSORFLOW, "TF_CONFIG", TF_CONFIG, "w")                                 \
    X(MXNET, "DMLC_ROLE", DMLC_ROLE, "wsc")                                    \
    X(MXNET, "DMLC_NUM_WORKER", WORLD, "wsc")                                  \
    X(MXNET, "DMLC_NUM_SERVER", SERVERS, "wsc")                                \
    X(MXNET, "DMLC_PS_ROOT_URI", ADDR, "wsc")                                  \
    X(MXNET, "DMLC_PS_ROOT_PORT", PORT, "wsc")                                 \
    X(MXNET, "DMLC_WORKER_ID", RANK, "w")                                      \
    X(MXNET, "DMLC_SERVER_ID", INDEX, "s")                                     \
    X(MXNET, "DMLC_TASK_ID", TASK, "ws")                                       \
    X(MXNET, "DMLC_NUM_ATTEMPT", ROUND, "wsc")                                 \
    /* ps-lite listens there, in each process alike. */                        \
    X(MXNET, "PORT", NOTHING, "")                                              \
    X(MPI, "OMPI_COMM_WORLD_RANK", RANK, "w")                                  \
    X(MPI, "OMPI_COMM_WORLD_SIZE", WORLD, "w")                                 \
    X(MPI, "OMPI_COMM_WORLD_LOCAL_RANK", LOCAL_RANK, "w")                      \
    X(MPI, "OMPI_COMM_WORLD_LOCAL_SIZE", LOCAL_WORLD, "w")                     \
    X(MPI, "OMPI_COMM_WORLD_NODE_RANK", LOCAL_RANK, "w")                       \
    X(MPI, "OMPI_UNIVERSE_SIZE", WORLD, "w")                                   \
    X(HOROVOD, "HOROVOD_RANK", RANK, "w")                                      \
    X(HOROVOD, "HOROVOD_SIZE", WORLD, "w")                                     \
    X(HOROVOD, "HOROVOD_LOCAL_RANK", LOCAL_RANK, "w")                          \
    X(HOROVOD, "HOROVOD_LOCAL_SIZE", LOCAL_WORLD, "w")                         \
    X(HOROVOD, "HOROVOD_CROSS_RANK", NODE, "w")                                \
    X(HOROVOD, "HOROVOD_CROSS_SIZE", NODES, "w")                               \
    X(HOROVOD, "HOROVOD_HOSTNAME", HOST, "w")                                  \
    X(OWN, "AGENT_PROCESS_INDEX", RANK, "w")                                   \
    X(OWN, "AGENT_PROCESS_NUM", WORLD, "w")                                    \
    X(OWN, "AGENT_GPU", GPU, "w")                                              \
    /* With torchrun's options alone. */                                       \
    X(OWN, "CUDA_VISIBLE_DEVICES", DEVICE, "wp")                               \
    X(OWN, "TORCHELASTIC_SIGNALS_TO_HANDLE", SIGNALS, "wp")

enum value {
    RANK, LOCAL_RANK, WORLD, LOCAL_WORLD, NODE, NODES, ROLE, ADDR, PORT,
    ADDR_PORT, ROUND, MAX_RESTARTS, JOB_ID, FALSE, ERROR_FILE, TF_CONFIG,
    DMLC_ROLE, SERVERS, INDEX, TASK, HOST, GPU, DEVICE, SIGNALS, NOTHING,
};

#define CONTRACT_DEVICE_MAX 128
#define JAX_PLACES 6u
#define CONTRACT_OWN (1u << CONTRACTS) /* Always. */

/* Without pointers, whose relocation would be a page or two of each start. */
static const struct row {
    unsigned dialect;
    char name[32];
    enum value value;
    char kinds[4];
} rows[] = {
#define X(dialect, name, value, kinds) {CONTRACT_##dialect, name, value, kinds},
    NAMES(X)
#undef X
};
#define N_ROWS (sizeof rows / sizeof rows[0])
_Static_assert(N_ROWS <= CONTRACT_DROPS_MAX, "each may be dropped");

static const char letters[] = {[CONTRACT_WORKER] = 'w',
                               [CONTRACT_PRE_START] = 'p',
                               [CONTRACT_SERVER] = 's',
                               [CONTRACT_SCHEDULER] = 'c'};

static void add_device(struct env *v, const struct contract_in *in,
                       const char *name)
{
    char device[CONTRACT_DEVICE_MAX];

    if (in->virtual_local_rank && in->kind == CONTRACT_WORKER &&
        torchrun_device(in->visible,
                        in->gpu >= 0 ? (uint32_t)in->gpu : in->local_rank,
                        device, sizeof device))
        env_add(v, "%s=%s", name, device);
}

static void add_row(struct env *v, const struct contract_in *in,
                    const struct row *row)
{
    const char *name = row->name;
    uint32_t rank = in->rank_base + in->local_rank;
    bool is_ipv6 = strchr(in->master_addr, ':') != NULL;

    switch (row->value) {
    case RANK: env_add(v, "%s=%u", name, rank); break;
    case LOCAL_RANK:
        env_add(v, "%s=%u", name,
                in->virtual_local_rank ? 0 : in->local_rank);
        break;
    case WORLD: env_add(v, "%s=%u", name, in->world_size); break;
    case LOCAL_WORLD: env_add(v, "%s=%u", name, in->nproc); break;
    case NODE: env_add(v, "%s=%u", name, in->node_rank); break;
    case NODES: env_add(v, "%s=%u", name, in->nnodes); break;
    case ROLE: env_add(v, "%s=%s", name, in->role); break;
    case ADDR: env_add(v, "%s=%s", name, in->master_addr); break;
    case PORT: env_add(v, "%s=%u", name, in->master_port); break;
    case ADDR_PORT:
        env_add(v, is_ipv6 ? "%s=[%s]:%u" : "%s=%s:%u", name, in->master_addr,
                in->master_port);
        break;
    case ROUND: env_add(v, "%s=%u", name, in->round); break;
    case MAX_RESTARTS: env_add(v, "%s=%u", name, in->max_restarts); break;
    case JOB_ID: env_add(v, "%s=%s", name, in->job_id); break;
    case FALSE: env_add(v, "%s=False", name); break;
    case ERROR_FILE:
        if (in->error_dir)
            env_add(v, "%s=%s/attempt_%u/%u/error.json", name, in->error_dir,
                    in->round, in->local_rank);
        else
            env_add(v, "%s=", name);
        break;
    case TF_CONFIG: contract_add_tf_config(v, in); break;
    case DMLC_ROLE:
        env_add(v, "%s=%s", name,
                in->kind == CONTRACT_SERVER      ? "server"
                : in->kind == CONTRACT_SCHEDULER ? "scheduler"
                                                 : "worker");
        break;
    case SERVERS: env_add(v, "%s=%u", name, in->n_servers); break;
    case INDEX: env_add(v, "%s=%u", name, in->index); break;
    case TASK: /* Workers first, as dmlc's launchers count. */
        env_add(v, "%s=%u", name,
                in->kind == CONTRACT_SERVER ? in->world_size + in->index
                                            : rank);
        break;
    case HOST: env_add(v, "%s=%s", name, in->host); break;
    case GPU:
        if (in->gpu >= 0)
            env_add(v, "%s=%u", name, (unsigned)in->gpu);
        break;
    case DEVICE: add_device(v, in, name); break;
    case SIGNALS:
        if (in->signals)
            env_add(v, "%s=%s", name, in->signals);
        break;
    case NOTHING: break;
    }
}

/* The platform has named the pods' roles. What it says stays, but for the
 * workers, which it cannot count where agent starts several in a pod. */
static bool stands_back(const struct contract_in *in, const struct row *row)
{
    bool counts = row->value == WORLD || row->value == RANK ||
                  row->value == TASK;

    return row->dialect == CONTRACT_MXNET && in->has_platform_role &&
           row->value != NOTHING && (in->nnodes == 1 || !counts);
}

/* JAX takes its place in the job from these where they are there, whatever else
 * it is told; there they are agent's own, which is one for each node. */
static void add_jax_places(struct env *v, const struct contract_in *in)
{
    static const struct row places[] = {
        {CONTRACT_JAX, "SLURM_PROCID", RANK, "w"},
        {CONTRACT_JAX, "SLURM_NTASKS", WORLD, "w"},
        {CONTRACT_JAX, "SLURM_LOCALID", LOCAL_RANK, "w"},
        {CONTRACT_JAX, "OMPI_COMM_WORLD_RANK", RANK, "w"},
        {CONTRACT_JAX, "OMPI_COMM_WORLD_SIZE", WORLD, "w"},
        {CONTRACT_JAX, "OMPI_COMM_WORLD_LOCAL_RANK", LOCAL_RANK, "w"},
    };

    if (!(in->dialects & CONTRACT_JAX) || in->kind != CONTRACT_WORKER)
        return;
    for (unsigned i = 0; i < JAX_PLACES; i++)
        if (variable_find((char *const *)in->base_env, places[i].name))
            add_row(v, in, &places[i]);
}

void contract_add_dialects(struct env *v, const struct contract_in *in)
{
    for (unsigned i = 0; i < N_ROWS; i++) {
        const struct row *row = &rows[i];
        bool chosen = row->dialect & (in->dialects | CONTRACT_OWN);

        if (stands_back(in, row))
            continue;
        if (chosen && strchr(row->kinds, letters[in->kind]))
            add_row(v, in, row);
        else if (chosen || (row->dialect == CONTRACT_TORCH &&
                            row->value <= NODES)) /* Of the pod. */
            v->drops[v->n_drops++] = row->name;
    }
    add_jax_places(v, in);
}

/* Which of its role a pod is: where the platform does not say, and agent knows
 * this pod alone, nobody does. */
static bool is_number(const struct row *row)
{
    return row->value == RANK || row->value == TASK || row->value == INDEX;
}

/* Where ps-lite listens; by itself it takes the first interface, and fails
 * where there is none but loopback. */
static void add_dmlc_place(struct env *v, const struct contract_in *in)
{
    if (in->has_platform_role)
        for (unsigned i = 0; i < N_ROWS; i++)
            if (stands_back(in, &rows[i]) && !is_number(&rows[i]) &&
                strchr(rows[i].kinds, letters[in->kind]))
                add_row(v, in, &rows[i]);
    env_add(v, "DMLC_JOB_CLUSTER=local"); /* Of dmlc's launchers. */
    if (in->nnodes > 1) {
        env_add(v, "DMLC_USE_KUBERNETES=1"); /* The scheduler: any address. */
        if (in->gloo_ifname && !env_has(v, "DMLC_NODE_HOST="))
            env_add(v, "DMLC_INTERFACE=%s", in->gloo_ifname);
    } else if (!in->has_platform_role && !env_has(v, "DMLC_INTERFACE=")) {
        env_add(v, "DMLC_NODE_HOST=127.0.0.1");
    }
}

void contract_add_unset(struct env *v, const struct contract_in *in)
{
    /* A process of JAX takes all GPUs otherwise. */
    if (in->dialects & CONTRACT_JAX && in->kind == CONTRACT_WORKER &&
        in->gpu >= 0)
        env_add(v, "JAX_LOCAL_DEVICE_IDS=%u",
                (unsigned)(in->virtual_local_rank ? 0 : in->gpu));
    if (in->dialects & CONTRACT_MXNET && in->kind != CONTRACT_PRE_START)
        add_dmlc_place(v, in);
}

void contract_room_dialects(const struct contract_in *in, size_t *bytes,
                            size_t *entries)
{
    for (unsigned i = 0; i < N_ROWS; i++)
        *bytes += strlen(rows[i].name) + 16; /* A number, "False". */
    *bytes += strlen(in->role) + strlen(in->job_id);
    *bytes += 3 * (strlen(in->master_addr) + 2); /* torch, jax, mxnet. */
    *bytes += in->host ? strlen(in->host) : 0;
    *bytes += in->dialects & CONTRACT_TENSORFLOW ? CONTRACT_STRING_MAX : 0;
    *bytes += in->virtual_local_rank ? CONTRACT_DEVICE_MAX : 0;
    *bytes += in->signals ? strlen(in->signals) : 0;
    *bytes += (4 + JAX_PLACES) * 64; /* contract_add_unset() */
    *entries += N_ROWS + 4 + JAX_PLACES;
}
