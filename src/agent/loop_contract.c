/* loop_contract: what a worker is told: its place in the job, and its words
 * and environment in the loop's buffers. */
#include "agent/loop_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool loop_is_pre_start(const struct loop *l, uint32_t i)
{
    return i == l->plan->n_procs;
}

/* Workers, servers, the scheduler, --pre-start. */
static enum contract_kind kind_of(const struct plan *p, uint32_t i)
{
    return i < p->nproc                  ? CONTRACT_WORKER
           : i < p->nproc + p->n_servers ? CONTRACT_SERVER
           : i < p->n_procs              ? CONTRACT_SCHEDULER
                                         : CONTRACT_PRE_START;
}

/* The platform's number, where it gives one. */
static uint32_t server_index(const struct loop *l,
                             const struct pod_round *round, uint32_t i)
{
    const char *id = l->plan->has_platform_role ? getenv("DMLC_SERVER_ID")
                                                : NULL;

    if (id)
        return (uint32_t)strtoul(id, NULL, 10);
    return round->group_rank * l->plan->n_servers + (i - l->plan->nproc);
}

/* A server has a number in place of a rank; so have its lines. */
static void describe_server(const struct loop *l, struct contract_in *in,
                            const struct pod_round *round, uint32_t i)
{
    in->role = in->kind == CONTRACT_SERVER ? "server" : "scheduler";
    in->index = in->kind == CONTRACT_SERVER ? server_index(l, round, i) : 0;
    in->rank_base = in->index;
    in->local_rank = 0;
    in->gpu = -1;
}

void loop_name_process(const struct loop *l, uint32_t i, struct pod_exit *x)
{
    static const enum proc_role roles[] = {
        [CONTRACT_WORKER] = PROC_WORKER,
        [CONTRACT_PRE_START] = PROC_WORKER,
        [CONTRACT_SERVER] = PROC_SERVER,
        [CONTRACT_SCHEDULER] = PROC_SCHEDULER};
    enum contract_kind kind = kind_of(l->plan, i);

    x->role = roles[kind];
    x->index = kind == CONTRACT_SERVER ? server_index(l, &l->pod.at, i) : 0;
}

void loop_describe(struct loop *l, struct contract_in *in,
                   const struct pod_round *round, uint32_t i)
{
    const struct plan *p = l->plan;
    const struct options *o = p->o;

    memset(in, 0, sizeof *in);
    in->base_env = (const char *const *)p->envp;
    in->kind = kind_of(p, i);
    in->dialects = o->contracts;
    in->node_rank = round->group_rank;
    in->nnodes = round->group_size ? round->group_size : o->nnodes;
    in->nproc = p->nproc;
    in->local_rank = i;
    in->rank_base = round->rank_base;
    in->world_size = round->world_size;
    in->round = round->round;
    in->max_restarts = l->pod.cfg.max_restarts; /* As pod 0 has it. */
    in->master_addr = o->master_addr;
    in->master_port = round->master_port;
    in->job_id = o->job_id;
    in->role = o->role;
    in->datasets = l->datasets;
    in->n_datasets = o->n_datasets;
    (void)snprintf(l->cookie, sizeof l->cookie, "%s.%04u.", p->cookie, i);
    in->cookie = l->cookie;
    in->error_dir = loop_error_root(l);
    in->omp_threads = p->omp_threads;
    in->virtual_local_rank = o->torchrun.virtual_local_rank || o->bind_gpus;
    in->visible = p->visible;
    in->signals = o->torchrun.signals;
    in->gloo_ifname = l->peers ? peers_interface(l->peers) : NULL;
    in->nccl_ifname = o->nccl_ifname;
    in->gpu = i / o->procs_per_gpu < p->n_gpus ? (int)(i / o->procs_per_gpu)
                                               : -1;
    in->dead_port = p->dead_port;
    in->no_proxy = l->no_proxy;
    in->host = p->host;
    in->master_ip = loop_master_ip(l);
    in->cluster = round->hosts;
    in->n_servers = p->n_servers * in->nnodes;
    in->has_platform_role = p->has_platform_role;
    if (!o->role_given && (o->servers > 0 || p->has_platform_role))
        in->role = "worker"; /* Its lines are told from those of others. */
    if (in->kind == CONTRACT_SERVER || in->kind == CONTRACT_SCHEDULER)
        describe_server(l, in, round, i);
}

static struct contract_command command_of(const struct loop *l)
{
    const struct options *o = l->plan->o;

    return (struct contract_command){.words = o->args,
                                     .expand = o->expand,
                                     .has_template = o->torchrun.is_on,
                                     .local_rank = o->pass_local_rank};
}

int loop_contract_new(struct loop *l, const struct contract_in *in)
{
    struct contract_command command = command_of(l);

    contract_room(in, &l->env_cap, &l->envp_max);
    contract_command_room(in, &command, &l->word_cap, &l->argv_max);
    l->env_bytes = malloc(l->env_cap);
    l->envp = calloc(l->envp_max, sizeof *l->envp);
    l->word_bytes = malloc(l->word_cap);
    l->argv = calloc(l->argv_max, sizeof *l->argv);
    return l->env_bytes && l->envp && l->word_bytes && l->argv ? 0 : -1;
}

int loop_write_contract(struct loop *l, const struct contract_in *in,
                        struct child_spec *spec, struct err *e)
{
    struct contract_command command = command_of(l);
    int r;

    if (in->kind != CONTRACT_WORKER)
        command.local_rank = NULL;
    r = contract_env(in, l->env_bytes, l->env_cap, l->envp, l->envp_max, e);

    spec->envp = (char *const *)l->envp;
    if (r != 0 || in->kind == CONTRACT_PRE_START)
        return r;
    spec->argv = l->argv;
    return contract_command(in, &command, l->word_bytes, l->word_cap, l->argv,
                            l->argv_max, e);
}
