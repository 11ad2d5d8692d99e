/* plan: what is fixed before anything runs: who this pod is, how many workers
 * it starts and what they get. Built once, lives until exit. */
#ifndef AGENT_PLAN_H
#define AGENT_PLAN_H

#include "agent/cpu_bind.h"
#include "agent/machine.h"
#include "agent/options.h"
#include "agent/pod.h"
#include "agent/token.h"

#define PLAN_COOKIE_MAX 256

struct plan {
    const struct options *o;     /* Borrowed. */
    char *const *envp;           /* agent's environ at start, borrowed. */
    unsigned nproc, omp_threads; /* 0: OMP_NUM_THREADS is left alone. */
    /* mxnet's, here: processes behind the workers, servers first. */
    unsigned n_servers, n_schedulers, n_procs;
    bool has_platform_role;      /* DMLC_ROLE says what this pod is. */
    const char *visible;         /* CUDA_VISIBLE_DEVICES, or NULL. */
    bool has_gpus;               /* There are GPUs, so many: */
    unsigned n_gpus;
    struct cpu_binding cpus;
    uint32_t node_rank;          /* 0 coordinates; WIRE_ANY_RANK: by arrival. */
    uint64_t incarnation, command_hash;
    uint64_t brand;              /* As of brand.h, for its workers. */
    char own_cookie[24];         /* What only this agent's workers carry. */
    char cookie[PLAN_COOKIE_MAX]; /* AGENT_COOKIE: an outer agent's, and it. */
    char host[FAILURE_HOST_MAX];
    char zero[320];              /* "host:port" of pod 0's barrier. */
    unsigned master_port;
    unsigned master_port_taken;  /* So another was chosen; 0: none was. */
    struct auth auth;
    struct token_notes token;
    uint32_t n_guests;           /* Pod 0: as in struct barrier_config. */
    struct machine_files files;
    bool few_files;              /* Too few for all who may come. */
    unsigned dead_port;          /* --offline: the proxy's; else 0. */
    char addresses[1024];        /* --offline: of this machine, with commas. */
    const char *service_host;    /* KUBERNETES_SERVICE_HOST, or NULL. */
};

/* Fails with ERR_USAGE (no GPU where `gpu` was asked for) or ERR_RESOURCE (the
 * port that was asked for is taken). */
int plan_make(struct plan *ret, const struct options *o, char *const *envp,
              struct err *e);

/* p->nproc, has_gpus and n_gpus, from p->o alone. */
int plan_count_workers(struct plan *p, struct err *e);

/* The pure parts' configuration. */
void plan_pod(const struct plan *p, struct pod_config *ret);
void plan_barrier(const struct plan *p, struct barrier_config *ret);

#endif
