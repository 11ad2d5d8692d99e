/* preflight_job: see preflight_job.h. */
#include "agent/preflight_job.h"

#include "base/variable.h"

#include <stdlib.h>
#include <string.h>

static void add_dir(struct preflight_job *job, const char *path,
                    const char *option, enum preflight_use use)
{
    if (path && job->n_dirs < PREFLIGHT_DIRS_MAX)
        job->dirs[job->n_dirs++] = (struct preflight_dir){
            .path = path, .option = option, .use = use};
}

void preflight_job_of(const struct options *o, unsigned nproc,
                      bool nproc_by_gpus, char *const *envp,
                      struct preflight_job *ret)
{
    const char *tmp = getenv("TMPDIR");

    memset(ret, 0, sizeof *ret);
    ret->nproc = nproc;
    ret->nnodes = o->nnodes;
    ret->nproc_by_gpus = nproc_by_gpus;
    ret->procs_per_gpu = o->procs_per_gpu;
    ret->binds_gpus = o->bind_gpus;
    ret->coordinates = o->node_rank == 0 && !o->any_node_rank;
    ret->names_way = o->nccl_ifname &&
                     !variable_find(envp, "NCCL_SOCKET_IFNAME");
    ret->master_addr = o->master_addr;
    ret->barrier_port = o->barrier_port;
    ret->node_rank = o->node_rank;
    ret->any_rank = o->any_node_rank;
    ret->job_id = o->job_id;
    ret->token_file = o->token_file;
    ret->barrier_timeout_ms = o->barrier_timeout_ms;
    ret->rejoin_timeout_ms = o->rejoin_timeout_ms;
    ret->busbw = o->preflight_busbw;
    ret->envp = envp;
    ret->root = "";
    for (unsigned i = 0; i < o->n_datasets; i++)
        add_dir(ret, o->datasets[i], "--dataset", PREFLIGHT_READS);
    for (unsigned i = 0; i < o->n_sources; i++)
        add_dir(ret, o->sources[i], "--source", PREFLIGHT_READS);
    add_dir(ret, o->stage, "--stage", PREFLIGHT_WRITES);
    add_dir(ret, o->log_dir, "--log-dir", PREFLIGHT_WRITES);
    add_dir(ret, tmp && *tmp ? tmp : "/tmp",
            tmp && *tmp ? "TMPDIR" : "the folder for temporary files",
            PREFLIGHT_WRITES_THERE);
}
