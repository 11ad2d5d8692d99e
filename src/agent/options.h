/* options: the one table of options and commands, and what is read from it.
 *
 * Pure: reads argv and environ as given, prints nothing, opens nothing. Help,
 * manual page, completions and the JSON view are other readings of the same
 * table (help.h). Strings are borrowed from argv, environ or the table. */
#ifndef AGENT_OPTIONS_H
#define AGENT_OPTIONS_H

#include "agent/cpu_plan.h"
#include "agent/topology.h"
#include "base/err.h"
#include "base/text.h"
#include "base/exit_map.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OPT_MAX_DATASETS 16
#define OPT_MAX_NPROC 1024
#define OPT_MAX_NNODES 65536
#define OPT_NAME_MAX 32 /* Longest option name, NUL included. */
#define OPT_ROLE_MAX 64 /* Bytes. */
#define OPT_ADDR_MAX 64
#define OPT_JOB_ID_MAX 128
#define OPT_PREFIX_MAX 255
#define OPT_RANGES_MAX 64
#define OPT_HOSTS_MAX 2048
#define OPT_RUN_DIR_MAX 3800 /* So that paths in it fit into PATH_MAX. */
#define OPT_PIECES_MAX 8192 /* All paths of AGENT_DATASET, AGENT_SOURCE. */

enum command {
    CMD_RUN,
    CMD_STAGE,
    CMD_VERIFY,
    CMD_MANIFEST,
    CMD_STATUS,
    CMD_ENV,
    CMD_TORCHRUN,  /* Of the table; options_read() makes it CMD_RUN. */
    CMD_PREFLIGHT,
    CMD_FETCH,     /* Exec of agent-fetch; args are passed on as they are. */
    CMD_ALLREDUCE, /* Exec of agent-allreduce. */
    CMD_PROBE,     /* Exec of agent-probe. */
    CMD_HELP,      /* --help: `help_view` says which; see help.h. */
    CMD_VERSION,
};

enum nproc_kind {
    NPROC_DEFAULT,
    NPROC_NUMBER,
    NPROC_AUTO,
    NPROC_GPU,
    NPROC_CPU,
};
/* X(name, word, the codes at which there is a restart). docs/platforms.md has
 * the same in a table, from which tests/system/policies.sh runs each. */
#define RESTART_POLICIES(X)                                                    \
    X(NEVER, "never", "none; a lost pod ends the job, too.")                   \
    X(ON_FAILURE, "on-failure", "all but 0, 126 and 127.")                     \
    X(ALWAYS, "always", "all but 126 and 127; 0 while restarts are left.")     \
    X(EXIT_CODE, "exit-code",                                                  \
      "128 to 255, which a signal gives; 1 to 127 are permanent, as in "       \
      "Kubeflow.")
#define RESTART_POLICY_HELP(name, word, codes) " \"" word "\": " codes
enum restart_policy {
#define X(name, word, codes) RESTART_##name,
    RESTART_POLICIES(X)
#undef X
};
enum restart_scope { SCOPE_JOB, SCOPE_WORKER };
enum mesh_choice { MESH_CHOICE_RING, MESH_CHOICE_FULL, MESH_CHOICE_OFF };
enum manifest_format { FORMAT_JSON, FORMAT_SHA256SUM };

enum log_format { LOG_FORMAT_TEXT, LOG_FORMAT_JSON };
enum log_overflow { LOG_OVERFLOW_BLOCK, LOG_OVERFLOW_DROP };

struct rank_list { /* Ranges, both ends included; none: all ranks. */
    unsigned n;
    uint32_t first[OPT_RANGES_MAX], last[OPT_RANGES_MAX];
};

/* Which streams of which local rank: bit 0 stdout, bit 1 stderr. */
#define OPT_STD_RANKS 10 /* torchrun's map has ranks of one digit. */
struct std_choice {
    uint8_t of[OPT_STD_RANKS], rest;
};

/* Of the torchrun command line: what no option of `run` has. torchrun.c sets
 * it, torchrun_start.c what is known at the start alone. */
struct torchrun_options {
    bool is_on;
    bool is_c10d, standalone;
    const char *backend, *endpoint, *conf, *host, *local_addr;
    bool never_coordinates; /* is_host=0 of --rdzv-conf. */
    bool module, no_python, run_path;
    bool no_logs; /* --log-dir /dev/null. */
    const char *filters[2]; /* Of stdout, stderr; NULL: none. */
    const char *signals;    /* As given; */
    uint64_t stop_with;     /* those that would else be passed on. */
    bool virtual_local_rank;
    enum cpu_bind numa_binding;
    unsigned shutdown_s;
    bool random_id; /* job_id is to be made. */
    const char *prefix; /* A template of Python's; see torchrun_prefix(). */
    /* What is large comes last: see struct pod. */
    char run_dir[OPT_RUN_DIR_MAX]; /* "": none; holds attempt_<n>/. */
    struct std_choice redirects, tee;
    struct rank_list local_ranks;
    char address[256]; /* What master_addr points at. */
    char run_id[40];
};

/* Where an option's value is from; a later one here wins. */
enum opt_origin {
    BY_DEFAULT,
    BY_PLATFORM, /* Of topology.h. */
    BY_ALIAS_VARIABLE,
    BY_VARIABLE,
    BY_WORD,
};

struct options {
    enum command command;
    const char *help_view; /* As help_write() takes it. */
    char **args;           /* Command to run, or the command's own words. */
    int n_args;

    enum nproc_kind nproc_kind;
    unsigned nproc; /* With NPROC_NUMBER, 1..OPT_MAX_NPROC. */
    unsigned nnodes, min_nodes; /* MIN:MAX: `nnodes` is MAX; else equal. */
    unsigned node_rank;
    bool any_node_rank; /* --node-rank auto. */
    uint64_t last_call_ms;
    const char *master_addr;
    unsigned master_port, barrier_port;
    bool master_port_given; /* Asked for: a busy one is an error. */
    enum mesh_choice mesh;
    bool mesh_given;    /* Asked for: a bad pair is an error. */
    unsigned mesh_port; /* 0: a free one. */
    const char *job_id, *role;
    const char *token_file; /* NULL: none; see token.h. */

    const char *datasets[OPT_MAX_DATASETS], *sources[OPT_MAX_DATASETS];
    unsigned n_datasets, n_sources;
    const char *stage;
    bool reverify;
    unsigned preflight;   /* Bits of the checks of preflight/names.h. */
    unsigned preflight_busbw; /* MB/s; 0: any. */
    bool preflight_given; /* Asked for: what is found may end the run. */
    uint64_t stage_lease_ms; /* Silence after which a maker is dead. */
    bool offline;              /* See offline.h. */
    const char *offline_allow; /* Hosts with commas, or NULL. */

    uint64_t barrier_timeout_ms, rejoin_timeout_ms;
    unsigned max_restarts;
    uint64_t restart_period_ms; /* Of max_restarts; 0: the job's life. */
    enum restart_policy restart_policy;
    uint64_t backoff_min_ms, backoff_max_ms, restart_reset_ms;
    bool no_restart_on[256]; /* Exit codes that are permanent. */
    enum restart_scope restart_scope;
    const char *pre_start; /* NULL: none. */
    unsigned same_failure_limit; /* 0: off. */
    struct exit_map exit_map;
    uint64_t grace_ms;
    uint64_t hang_timeout_ms; /* 0: off. */
    int hang_signal;

    unsigned contracts; /* Bits of enum contract_dialect. */
    const char *pass_local_rank; /* "--local-rank=" or so; NULL: off. */
    bool expand; /* Macros in the command. */
    unsigned servers; /* mxnet's, in this pod. */
    unsigned procs_per_gpu;
    bool bind_gpus;   /* --gpu-bind single. */
    enum cpu_bind cpu_bind;
    bool nccl_ifname; /* NCCL_SOCKET_IFNAME by the barrier. */
    bool dry_run;
    bool role_given;  /* --role. */

    const char *log_prefix; /* Template, or "none". */
    bool log_timestamps;
    enum log_format log_format;
    enum log_overflow log_overflow;
    struct rank_list log_ranks;
    const char *log_dir;    /* NULL: no files. */
    uint64_t log_max_bytes; /* Of a file, then it is rotated; 0: never. */
    unsigned log_keep;      /* Old files that stay. */
    const char *report; /* NULL: none. */
    const char *termination_log; /* NULL: the default place, if it exists. */
    unsigned quiet, verbose;     /* How often -q and -v were given. */

    const char *output;   /* manifest -o; NULL is stdout. */
    const char *name;     /* manifest --name; NULL is the folder's name. */
    bool structure;       /* verify --structure. */
    const char *socket;   /* Of `agent status`; NULL: the default place. */
    char http_addr[OPT_ADDR_MAX]; /* "": loopback, "*": all. */
    unsigned http_port;   /* 0: no --http. */
    bool json, watch;     /* status, env --json; status --watch. */

    bool unpack;          /* manifest --unpack. */
    enum manifest_format format;

    enum opt_origin origins[TOPO_KEYS]; /* Of what `topology` may set. */
    struct torchrun_options torchrun;
    struct topology topology;

    /* Paths of a variable that lists several. `datasets` and `sources` may
     * point in here, so a struct options must not be copied or moved. */
    char pieces[OPT_PIECES_MAX];
    size_t pieces_len;
};

/* Read command line, then AGENT_* for what it left open, then what the platform
 * says, then defaults.
 * `argv` and `envp` end with NULL and are borrowed; where a command takes
 * options after its words, argv is put in order, words first. Fails with
 * ERR_USAGE and a text that names the word, why, and what to do. */
int options_read(struct options *ret, int argc, char **argv,
                 char *const *envp, struct err *e);

bool options_has_rank(const struct rank_list *list, uint32_t rank);
/* Add those ranks and ranges of which a job of `n_ranks` has none; false where
 * there are none such. */
bool options_ranks_beyond(const struct rank_list *list, uint64_t n_ranks,
                          struct text *t);

/* The same with topology_in.place; `ret` is all zero already. */
int options_read_at(struct options *ret, int argc, char **argv,
                    char *const *envp,
                    const struct topo_place *(*place)(void *ctx),
                    struct err *e);

/* True where the `len` bytes at `name` (without "=value") are the variable of
 * an option of `run`, built or not, or AGENT_TOKEN: workers must not see it. */
bool options_is_variable(const char *name, size_t len);

#endif
