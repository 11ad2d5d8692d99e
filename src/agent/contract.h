/* contract: the environment of one worker, and its command.
 *
 * Pure. Built in a buffer of the caller before fork; nothing is allocated.
 * The torch contract is pytorch's torch/distributed/elastic/agent/server/
 * local_elastic_agent.py (_start_workers) and torch/distributed/run.py; the
 * other dialects are the tables of contract_dialects.c. */
#ifndef AGENT_CONTRACT_H
#define AGENT_CONTRACT_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CONTRACT_TABLE(X)                                                      \
    X(TORCH, "torch") X(MXNET, "mxnet") X(JAX, "jax")                          \
    X(TENSORFLOW, "tensorflow") X(MPI, "mpi") X(HOROVOD, "horovod")

enum contract_number {
#define X(id, word) CONTRACT_NUMBER_##id,
    CONTRACT_TABLE(X)
#undef X
    CONTRACTS,
};
enum contract_dialect { /* --contract; one bit each. */
#define X(id, word) CONTRACT_##id = 1 << CONTRACT_NUMBER_##id,
    CONTRACT_TABLE(X)
#undef X
};

/* What a process is to the contract. */
enum contract_kind {
    CONTRACT_WORKER,
    CONTRACT_PRE_START,
    CONTRACT_SERVER,    /* mxnet's: it has no rank. */
    CONTRACT_SCHEDULER,
};

struct contract_dataset {
    const char *name; /* Manifest's name. */
    const char *dir;  /* Finished folder. */
};

struct contract_in {
    const char *const *base_env; /* agent's own environ at start, borrowed. */
    enum contract_kind kind;
    unsigned dialects; /* Bits of enum contract_dialect. */
    uint32_t index;    /* Of a server, in the job. */
    uint32_t n_servers;    /* In the job. */
    bool has_platform_role; /* The base has DMLC_ROLE, and knows better. */
    uint32_t node_rank, nnodes;
    uint32_t nproc, local_rank;       /* Of this pod. */
    uint32_t rank_base, world_size;   /* Sum of nproc below; of all pods. */
    uint32_t round;                   /* 0 for the first. */
    uint32_t max_restarts;
    const char *master_addr;
    uint32_t master_port;
    const char *job_id, *role;        /* `role` as given with --role. */
    const struct contract_dataset *datasets;
    unsigned n_datasets;
    const char *cookie;     /* Value of AGENT_COOKIE. */
    const char *error_dir;  /* `<dir>/attempt_<round>/<local_rank>/error.json`
                               becomes TORCHELASTIC_ERROR_FILE; NULL: "". */
    uint32_t omp_threads;   /* OMP_NUM_THREADS where the base has none. */
    const char *gloo_ifname; /* GLOO_SOCKET_IFNAME where the base has none;
                                NULL: leave alone. */
    bool nccl_ifname;        /* The same for NCCL_SOCKET_IFNAME. */
    bool virtual_local_rank; /* LOCAL_RANK 0, CUDA_VISIBLE_DEVICES its own. */
    const char *visible;     /* Then: of the base, or NULL. */
    const char *signals;     /* TORCHELASTIC_SIGNALS_TO_HANDLE; NULL: unset. */
    int gpu;                /* AGENT_GPU; < 0: not set. */
    unsigned dead_port;     /* Proxy with --offline; 0: not offline. */
    const char *no_proxy;   /* Then: as of offline.h. */
    int heartbeat_fd;       /* AGENT_HEARTBEAT_FD; <= 0: none. */
    const char *host;       /* Of this pod. */
    const char *master_ip;  /* The address of master_addr; NULL: not known. */
    const char *cluster;    /* With tensorflow: as of START, "HOST*NPROC" and
                               others, with commas. */
};

/* Write the strings to `buf` of `cap` bytes and their addresses, ended by
 * NULL, to `envp` of `max` entries. Variables of options are left out
 * (options_is_variable()); what the contract sets replaces the base's.
 * Strings taken over from the base are borrowed from it. Fails with ERR_AGENT
 * where the room is too small, with ERR_USAGE where no such environment can
 * be: a TF_CONFIG that is longer than the kernel takes. */
int contract_env(const struct contract_in *in, char *buf, size_t cap,
                 const char **envp, size_t max, struct err *e);

/* Bytes and entries that contract_env() needs at most, for all workers and
 * rounds: numbers, the names and folders of data sets (up to PATH_MAX),
 * error_dir and gloo_ifname may change or become known later. */
void contract_room(const struct contract_in *in, size_t *ret_bytes,
                   size_t *ret_entries);

/* Whether data sets of these names get one AGENT_DATASET_DIR_<NAME>. */
bool contract_same_variable(const char *a, const char *b);

/* Replace the macros of the interface ({rank}, {local_rank}, {role}, ...) in
 * `src`; other braces are left alone. False where `cap` is too small. Used
 * for --log-prefix and --expand. */
bool contract_expand(const struct contract_in *in, const char *src, char *out,
                     size_t cap);

/* How a worker's command differs from what was given. */
struct contract_command {
    char *const *words; /* Ended by NULL, borrowed. */
    bool expand;        /* Replace macros in all but the first. */
    const char *local_rank; /* Before its number, in a word of its own at the
                               end; NULL: none. */
    bool has_template; /* Replace $local_rank first, as torchrun does. */
};

/* Bytes and entries that contract_command() needs at most, in any round. */
void contract_command_room(const struct contract_in *in,
                           const struct contract_command *c,
                           size_t *ret_bytes, size_t *ret_entries);

/* Write the words that differ to `buf`, and the addresses of all, ended by
 * NULL, to `argv`. Fails with ERR_AGENT where the room is too small. */
int contract_command(const struct contract_in *in,
                     const struct contract_command *c, char *buf, size_t cap,
                     char **argv, size_t max, struct err *e);

#endif
