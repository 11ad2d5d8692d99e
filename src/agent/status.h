/* status: what is said of a running agent to who asks (`agent status`,
 * /status): a plain snapshot, and how it is written, as JSON and as a table.
 * docs/status.md has the schema; it is a promise.
 *
 * Pure. Strings of a snapshot are borrowed until it is written; in what is
 * written, bytes that are no UTF-8, and controls, are replaced. */
#ifndef AGENT_STATUS_H
#define AGENT_STATUS_H

#include "agent/pod.h"
#include "base/text.h"
#include "supervise/log_stats.h"

#include <stdbool.h>
#include <stdint.h>

#define STATUS_SCHEMA 1      /* Goes up only where a field changes or goes. */
#define STATUS_LINE_MAX 256  /* Of a worker's last line; longer ones are cut. */
#define STATUS_PODS_MAX 64   /* Missing pods that are listed one by one. */
#define STATUS_TEXT_MAX 1024 /* Any other string. */
#define STATUS_UNKNOWN UINT32_MAX

enum status_state {
    STATUS_NEVER,    /* Not started so far. */
    STATUS_RUNNING,
    STATUS_STOPPING, /* Told to stop; alive. */
    STATUS_EXITED,   /* code, signo: how. */
    STATUS_STATES,
};

struct status_worker {
    const char *role; /* NULL: a worker; else mxnet's, with its number. */
    uint32_t index;
    uint32_t rank; /* STATUS_UNKNOWN before the first round. */
    enum status_state state;
    uint32_t pid;  /* 0: none now. */
    uint32_t n_starts;
    uint64_t up_ms; /* EXITED: how long it ran. */
    int code, signo;
    bool has_usage; /* Of all processes of its session. */
    uint64_t cpu_ms, rss_bytes;
    uint32_t n_procs;
    bool has_output;
    uint64_t silent_ms; /* Since its last output. */
    char line[STATUS_LINE_MAX]; /* The last one. */
    struct log_stats out, err;  /* Of all its starts. */
};

struct status_pod { /* A pod that is missing. */
    uint32_t node_rank;
    const char *state, *host; /* "": not known. */
    unsigned percent;
};

struct status {
    const char *version, *host, *job_id;
    uint32_t agent_pid;
    uint64_t up_ms;
    uint32_t node_rank; /* STATUS_UNKNOWN: pod 0 has yet to say. */
    uint32_t nnodes, min_nodes, nproc, world_size;
    const char *phase;
    uint32_t round, n_rounds, n_restarts, max_restarts;
    uint64_t restart_period_ms; /* Of max_restarts; 0: the job's life. */
    bool is_staging;
    unsigned percent;
    int stop_signo; /* 0: not told to stop. */
    int exit_code;  /* -1: not known yet. */
    bool is_ready;  /* Its workers run. */
    char cause[STATUS_TEXT_MAX];   /* The last failure, or "". */
    char waiting[STATUS_TEXT_MAX]; /* Who or what is waited for, or "". */

    bool has_barrier; /* Node rank 0. */
    const char *barrier_phase;
    uint32_t n_arrived, n_missing;
    struct status_pod missing[STATUS_PODS_MAX];

    bool has_link; /* The others: the connection to node rank 0. */
    const char *link, *zero, *link_error;
    bool was_heard;
    uint64_t heard_ms; /* How long ago. */

    uint32_t n_servers;
    const struct status_worker *workers; /* nproc, then n_servers. */
};

/* status_pod.c: all but version, agent_pid and workers. */
void status_of_pod(struct status *s, const struct pod *p, uint64_t now_ms);

/* One line of JSON, with a newline. What does not fit is cut: t->cut. */
void status_json(struct text *t, const struct status *s);
/* Lines for people. */
void status_table(struct text *t, const struct status *s);
/* One line: why it is, or is not, ready. */
void status_ready(struct text *t, const struct status *s);

const char *status_state_word(enum status_state state);

#endif
