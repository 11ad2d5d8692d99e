/* plan: see plan.h. */
#include "agent/plan.h"

#include "agent/contract.h"
#include "agent/http.h"
#include "agent/machine.h"
#include "agent/torchrun.h"
#include "base/text.h"
#include "base/variable.h"
#include "rendezvous/port.h"
#include "rendezvous/role.h"
#include "supervise/brand.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OWN_FILES 64        /* Streams, libraries, libuv, a margin. */
#define FILES_PER_WORKER 4  /* Pipes. */
#define FEW_GUESTS 256      /* Fewer at once are worth a warning. */
#define LEAST_GUESTS 16
#define PORTS_MAX 4096     /* That are looked at for a free row of them. */

int plan_count_workers(struct plan *p, struct err *e)
{
    const struct options *o = p->o;
    unsigned gpus;

    if (o->nproc_kind == NPROC_NUMBER) {
        p->nproc = o->nproc;
        p->n_gpus = machine_gpus();
        p->has_gpus = p->n_gpus > 0;
        return 0;
    }
    gpus = o->nproc_kind == NPROC_CPU ? 0 : machine_gpus();
    if (o->nproc_kind == NPROC_GPU && gpus == 0)
        return err_set(e, ERR_USAGE,
                       "--nproc gpu: no GPU is visible here "
                       "(CUDA_VISIBLE_DEVICES, /dev/nvidia0, /dev/kfd); use "
                       "--nproc N or --nproc auto");
    if (gpus > 0)
        p->nproc = gpus * o->procs_per_gpu;
    else
        p->nproc = o->nproc_kind == NPROC_DEFAULT ? 1 : machine_cpus(1);
    p->has_gpus = gpus > 0;
    p->n_gpus = gpus;
    if (p->nproc > OPT_MAX_NPROC)
        p->nproc = OPT_MAX_NPROC;
    return 0;
}

static int check_gpus(const struct plan *p, struct err *e)
{
    const struct options *o = p->o;

    if (!o->bind_gpus || p->nproc <= p->n_gpus * o->procs_per_gpu)
        return 0;
    return err_set(e, ERR_USAGE, "--gpu-bind single: %u worker%s, and %u GPU%s "
                   "visible here (CUDA_VISIBLE_DEVICES, /dev/nvidia0, "
                   "/dev/kfd) for %u each; use --nproc gpu, or another "
                   "--procs-per-gpu", p->nproc, text_plural(p->nproc),
                   p->n_gpus, p->n_gpus == 1 ? " is" : "s are",
                   o->procs_per_gpu);
}

static int bind_cpus(struct plan *p, struct err *e)
{
    const struct options *o = p->o;
    enum cpu_bind torchs = o->torchrun.numa_binding;
    struct cpu_ask ask = {.how = torchs ? torchs : o->cpu_bind,
                          .is_torchrun = torchs != CPU_BIND_NONE,
                          .nproc = p->nproc,
                          .n_gpus = p->n_gpus,
                          .procs_per_gpu = o->procs_per_gpu,
                          .visible = p->visible,
                          .order = variable_find(p->envp, "CUDA_DEVICE_ORDER"),
                          .root = ""};

    return cpu_bind_make(&ask, &p->cpus, e);
}

/* mxnet: which processes run here besides workers. */
static int count_servers(struct plan *p, struct err *e)
{
    const struct options *o = p->o;
    const char *role = o->contracts & CONTRACT_MXNET
                           ? variable_find(p->envp, "DMLC_ROLE")
                           : NULL;

    p->has_platform_role = role && role[0];
    if (!p->has_platform_role) {
        p->n_servers = o->servers;
        p->n_schedulers = o->servers > 0 && p->node_rank == 0;
    } else if (o->servers > 0) {
        return err_set(e, ERR_USAGE, "--servers %u, and DMLC_ROLE=%.40s: the "
                       "platform gives each pod its role already; leave "
                       "--servers out", o->servers, role);
    } else if (strcmp(role, "server") == 0) {
        p->n_servers = 1;
    } else if (strcmp(role, "scheduler") == 0) {
        p->n_schedulers = 1;
    } else if (strcmp(role, "worker") != 0) {
        return err_set(e, ERR_USAGE, "DMLC_ROLE=%.40s: a role is scheduler, "
                       "server or worker", role);
    } else if (o->nnodes == 1 && p->nproc > 1) {
        return err_set(e, ERR_USAGE, "--nproc %u, and DMLC_ROLE=worker: the "
                       "platform counts one worker for this pod; use --nproc "
                       "1, or name the pods of the job by --nnodes", p->nproc);
    }
    if (p->has_platform_role && p->n_servers + p->n_schedulers > 0)
        p->nproc = 0;
    p->n_procs = p->nproc + p->n_servers + p->n_schedulers;
    if (p->n_procs > OPT_MAX_NPROC)
        return err_set(e, ERR_USAGE, "%u processes in this pod: at most %d "
                       "(--nproc, --servers)", p->n_procs, OPT_MAX_NPROC);
    return 0;
}

/* FNV-1a over the words, so that pods can tell that they run the same. */
static uint64_t hash_words(char *const *words, unsigned servers)
{
    uint64_t h = 0xcbf29ce484222325u + servers;

    for (; *words; words++)
        for (const char *s = *words;; s++) {
            h = (h ^ (unsigned char)*s) * 0x100000001b3u;
            if (!*s)
                break;
        }
    return h;
}

/* A worker of an outer agent that is an agent itself hands both cookies on, so
 * that the outer one still finds what the inner one left. */
static void make_cookie(struct plan *p)
{
    const char *outer = variable_find(p->envp, "AGENT_COOKIE");
    struct text t;

    (void)snprintf(p->own_cookie, sizeof p->own_cookie, "%016" PRIx64,
                   machine_random());
    text_init(&t, p->cookie, sizeof p->cookie);
    if (outer && strlen(outer) + sizeof p->own_cookie < sizeof p->cookie)
        text_add(&t, "%s:", outer);
    text_add(&t, "%s", p->own_cookie);
}

static char *const *copy_pointers(char *const *envp)
{
    size_t n = 0;
    char **copy;

    while (envp[n])
        n++;
    copy = calloc(n + 1, sizeof *copy);
    if (copy)
        memcpy(copy, envp, n * sizeof *copy);
    return copy;
}

/* Newcomers must leave descriptors for the pods and for the workers' pipes. */
static void count_files(struct plan *p)
{
    const struct options *o = p->o;
    uint64_t own = OWN_FILES + (uint64_t)p->n_procs * FILES_PER_WORKER, room;

    own += HTTP_LOCAL_CONNS + (o->http_port ? HTTP_CONNS : 0);
    if (p->node_rank == 0 && o->nnodes > 1) {
        own += o->nnodes;
        p->n_guests = barrier_n_guests(o->nnodes);
    }
    machine_raise_files(own + p->n_guests, &p->files);
    room = p->files.now > own ? p->files.now - own : 0;
    if (room >= p->n_guests)
        return;
    p->few_files = room < FEW_GUESTS;
    p->n_guests = room > LEAST_GUESTS ? (uint32_t)room : LEAST_GUESTS;
}

/* Of MASTER_PORT and those after it that workers listen on: with TF_CONFIG
 * each has one. Where one may be chosen, those of all pods are looked for: pods
 * may be on one host. */
static unsigned count_ports(const struct plan *p)
{
    const struct options *o = p->o;
    unsigned n = o->master_port_given ? 1 : o->nnodes;

    if (!(o->contracts & CONTRACT_TENSORFLOW) || p->nproc == 0)
        return 1;
    return n > PORTS_MAX / p->nproc ? p->nproc : n * p->nproc;
}

static unsigned count_threads(const struct plan *p)
{
    unsigned each;

    if (p->o->torchrun.is_on) /* As torchrun: 1, and none for one worker. */
        return p->nproc > 1;
    if (p->nproc == 0 || variable_find(p->envp, "OMP_NUM_THREADS"))
        return 0;
    each = machine_cpus(p->nproc) / p->nproc;
    return each > 0 ? each : 1;
}

int plan_make(struct plan *ret, const struct options *o, char *const *envp,
              struct err *e)
{
    bool coordinates = false;
    int r;

    memset(ret, 0, sizeof *ret);
    ret->o = o;
    ret->envp = copy_pointers(envp); /* setenv() would change the original. */
    if (!ret->envp)
        return err_set(e, ERR_AGENT, "no memory for the environment");
    r = token_read(o->token_file, envp, &ret->auth, &ret->token, e);
    if (r == 0)
        r = plan_count_workers(ret, e);
    if (r != 0)
        return r;
    ret->visible = variable_find(ret->envp, "CUDA_VISIBLE_DEVICES");
    r = torchrun_check_devices(o, ret->nproc, ret->visible, e);
    if (r != 0)
        return r;
    ret->incarnation = machine_random();
    ret->command_hash = hash_words(o->args, o->servers);
    make_cookie(ret);
    ret->brand = brand_make(machine_random());
    machine_host(ret->host, sizeof ret->host);
    (void)snprintf(ret->zero, sizeof ret->zero,
                   strchr(o->master_addr, ':') ? "[%.255s]:%u" : "%.255s:%u",
                   o->master_addr, o->barrier_port);
    ret->master_port = o->master_port;
    ret->node_rank = o->node_rank;
    if (o->any_node_rank && o->torchrun.never_coordinates) {
        ret->node_rank = WIRE_ANY_RANK;
    } else if (o->any_node_rank && o->nnodes > 1 && !o->dry_run) {
        r = role_find(o->master_addr, o->barrier_port, o->barrier_timeout_ms,
                      &coordinates, e);
        ret->node_rank = coordinates ? 0 : WIRE_ANY_RANK;
    }
    if (r == 0)
        r = count_servers(ret, e);
    if (r == 0)
        r = check_gpus(ret, e);
    if (r == 0)
        r = bind_cpus(ret, e);
    if (r != 0)
        return r;
    ret->omp_threads = count_threads(ret);
    count_files(ret);
    if (o->dry_run)
        return 0; /* Nothing is opened. */
    if (o->offline) {
        ret->dead_port = port_hold_dead();
        machine_addresses(ret->addresses, sizeof ret->addresses);
        ret->service_host = variable_find(envp, "KUBERNETES_SERVICE_HOST");
    }
    if (r == 0 && ret->node_rank == 0)
        r = port_claim(&ret->master_port, count_ports(ret),
                       o->master_port_given, &ret->master_port_taken, e);
    return r;
}

void plan_pod(const struct plan *p, struct pod_config *ret)
{
    const struct options *o = p->o;

    memset(ret, 0, sizeof *ret);
    ret->node_rank = p->node_rank;
    ret->any_rank = o->any_node_rank && p->node_rank != 0;
    ret->nnodes = o->nnodes;
    ret->nproc = p->nproc;
    ret->n_servers = p->n_procs - p->nproc;
    ret->max_restarts = o->max_restarts;
    ret->restart_period_ms = o->restart_period_ms;
    ret->incarnation = p->incarnation;
    ret->command_hash = p->command_hash;
    ret->barrier_timeout_ms = o->barrier_timeout_ms;
    ret->rejoin_timeout_ms = o->rejoin_timeout_ms;
    ret->grace_ms = o->grace_ms;
    ret->hang_timeout_ms = o->hang_timeout_ms;
    ret->hang_signal = o->hang_signal;
    /* Ctrl-C is KeyboardInterrupt in Python: who saves a checkpoint then shall,
     * be there one worker, which has the terminal itself, or several. */
    ret->stop_with = o->torchrun.stop_with | UINT64_C(1) << SIGINT;
    ret->auth = p->auth;
    ret->has_stage = o->n_datasets > 0 ||
                     (o->preflight_given && o->preflight != 0);
    ret->has_pre_start = o->pre_start != NULL;
    ret->restart_always = o->restart_policy == RESTART_ALWAYS;
    ret->restart_reset_ms = o->restart_reset_ms;
    ret->job_id = o->job_id;
    ret->host = p->host;
    ret->zero = p->zero;
    ret->mesh = o->mesh != MESH_CHOICE_OFF && o->nnodes > 1;
    ret->mesh_port_given = o->mesh_port != 0;
}

void plan_barrier(const struct plan *p, struct barrier_config *ret)
{
    const struct options *o = p->o;

    memset(ret, 0, sizeof *ret);
    ret->incarnation = p->incarnation;
    ret->seed = p->incarnation;
    ret->auth = p->auth;
    ret->n_guests = p->n_guests;
    ret->nnodes = o->nnodes;
    ret->min_nodes = o->min_nodes;
    ret->last_call_ms = o->last_call_ms;
    ret->restart_period_ms = o->restart_period_ms;
    ret->job_id = o->job_id;
    ret->barrier_timeout_ms = o->barrier_timeout_ms;
    ret->rejoin_timeout_ms = o->rejoin_timeout_ms;
    ret->grace_ms = o->grace_ms;
    ret->backoff_min_ms = o->backoff_min_ms;
    ret->backoff_max_ms = o->backoff_max_ms;
    ret->restart_reset_ms = o->restart_reset_ms;
    ret->max_restarts = o->max_restarts;
    ret->restart_never = o->restart_policy == RESTART_NEVER;
    ret->restart_always = o->restart_policy == RESTART_ALWAYS;
    ret->restart_by_code = o->restart_policy == RESTART_EXIT_CODE;
    memcpy(ret->no_restart_on, o->no_restart_on, sizeof ret->no_restart_on);
    ret->scope_worker = o->restart_scope == SCOPE_WORKER;
    ret->same_limit = o->same_failure_limit;
    ret->master_port = p->master_port;
    ret->mesh_reach = o->mesh == MESH_CHOICE_OFF    ? 0
                      : o->mesh == MESH_CHOICE_FULL ? MESH_FULL
                                                    : MESH_RING;
    ret->tell_hosts = o->offline && o->nnodes > 1;
    ret->tell_nproc = o->contracts & CONTRACT_TENSORFLOW;
    ret->mesh_strict = o->mesh_given;
}
