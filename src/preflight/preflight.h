/* preflight: is this pod fit for its job, before any worker exists? Checks
 * that look, allocate, lock, read and write for real; each in a child of its
 * own with a deadline, so that a file system or a driver that hangs costs its
 * check alone. What is found says what, why it matters and how to mend it. */
#ifndef PREFLIGHT_PREFLIGHT_H
#define PREFLIGHT_PREFLIGHT_H

#include "preflight/names.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PREFLIGHT_DIRS_MAX 40
#define PREFLIGHT_FINDINGS_MAX 32 /* Of one check. */

enum preflight_level { /* In order: the worst one counts. */
    PREFLIGHT_PASS,
    PREFLIGHT_WARN,  /* The job may run, slower or with luck. */
    PREFLIGHT_RETRY, /* It cannot run now; another time or place it may. */
    PREFLIGHT_FATAL, /* It cannot run so. */
};

/* 0, 10, 20, 30. */
int preflight_exit_code(enum preflight_level level);
const char *preflight_level_word(enum preflight_level level);

/* One record of a check's pipe, written whole: less than PIPE_BUF. */
struct preflight_finding {
    uint8_t check, level; /* PASS: `what` alone, what was seen. */
    bool is_step;         /* No finding: `what` is what is done now. */
    char what[320], why[320], fix[480];
    char yaml[640]; /* Lines for a manifest, or "". */
};

enum preflight_use {
    PREFLIGHT_READS,
    PREFLIGHT_WRITES,
    PREFLIGHT_WRITES_THERE, /* Nobody makes the folder where it is not. */
};

struct preflight_dir {
    const char *path;   /* Borrowed. */
    const char *option; /* "--stage", for texts. */
    enum preflight_use use;
};

struct preflight_job { /* What the pod is for. Strings are borrowed. */
    unsigned checks;   /* Bits: to be run; */
    unsigned asked;    /* and those that were named by the user. */
    unsigned nproc, nnodes;
    bool nproc_by_gpus; /* The workers were counted by GPUs. */
    unsigned procs_per_gpu; /* So many share one; 0: as 1. */
    bool binds_gpus;        /* Each worker sees its own alone. */
    bool coordinates;   /* It is, or may be, node rank 0. */
    bool names_way;     /* NCCL is told which interface leads there. */
    const char *master_addr;
    unsigned barrier_port;
    unsigned node_rank;
    bool any_rank;
    bool in_run; /* The barrier port is in use already. */
    const char *job_id, *token_file; /* The latter NULL: none. */
    uint64_t barrier_timeout_ms;
    uint64_t rejoin_timeout_ms; /* 0: as by default. */
    unsigned busbw; /* MB/s at least; 0: any. */
    uint64_t max_files; /* The workers' soft limit; 0: as it is here. */
    char *const *envp;
    struct preflight_dir dirs[PREFLIGHT_DIRS_MAX];
    unsigned n_dirs;
    const char *root; /* Before /dev, /proc and /sys; "" but in tests. */
    uint32_t limit_ms; /* Of each check; 0: as the table says. */
};

struct preflight_out {
    void *ctx;
    void (*finding)(void *ctx, const struct preflight_finding *f);
    void (*over)(void *ctx, enum preflight_check check,
                 enum preflight_level worst, uint64_t ms);
};

/* Run job->checks, one after the other. Returns the worst level. */
enum preflight_level preflight_run(const struct preflight_job *job,
                                   const struct preflight_out *out);

/* The cheap forms alone, in this process: no call that may take long. */
enum preflight_level preflight_look(const struct preflight_job *job,
                                    const struct preflight_out *out);

#endif
