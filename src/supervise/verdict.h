/* verdict: the last thing that agent says: who failed first, how, after how
 * long, restarts used, last stderr lines, a hint. Pure. */
#ifndef SUPERVISE_VERDICT_H
#define SUPERVISE_VERDICT_H

#include "base/exit_map.h"
#include "base/text.h"
#include "supervise/failure.h"

#include <stdbool.h>
#include <stdint.h>

#define VERDICT_MAX 4096 /* Kubernetes keeps so much of a termination log. */

struct verdict {
    int exit_code;              /* This pod's. */
    struct failure cause;       /* Kind NONE on success. */
    uint32_t nnodes, world_size;
    uint32_t node_rank;         /* This pod. */
    uint32_t n_restarts, max_restarts; /* Used, allowed; */
    uint64_t restart_period_ms;        /* within this, or 0. */
    uint32_t n_rounds;          /* Rounds that ran. */
    uint64_t job_ms;            /* agent's start to now; */
    uint64_t told_ms;           /* where it was told to stop: to that. */
    uint32_t n_reaped;          /* Orphans reaped by this agent. */
    bool silent;                /* The cause, of this pod, wrote no stderr. */
    const char *why;            /* Why there was no restart, or NULL or "". */
    const struct exit_map *map; /* NULL: none. */
};

/* Facts on this machine at the time of a worker's death. */
struct verdict_facts {
    uint64_t oom_kills;    /* By this pod's limit, since the worker's start. */
    uint64_t memory_limit; /* That limit; 0: none is seen. */
    uint64_t shm_bytes, shm_used;   /* statvfs of /dev/shm; 0, 0 unknown. */
    int exec_errno;                 /* errno of a failed exec, else 0. */
    const char *command;            /* argv[0]. */
    const char *exec_text;   /* Why exec failed, if more is known; or NULL. */
    uint64_t node_oom_kills; /* On this node, more than at its start. */
    unsigned port;           /* That the last lines call taken, and */
    const char *port_holder; /* who has it; NULL or "": not known. */
    const char *full;        /* Full file systems, in words; NULL or "". */
    uint64_t pids_max;       /* Of this pod; 0: none is seen. */
    bool cwd_gone;           /* The working directory has been removed. */
    uint64_t cpu_ms;         /* That it and those it waited for have used; */
    uint64_t cpu_soft_s, cpu_hard_s; /* agent's own limits; 0: none. */
};

/* "1 of 3 restarts used"; with a period, "2 restarts used, at most 1 within 2
 * s": then more than the budget may have been used in all. */
void verdict_restarts(struct text *t, uint32_t used, uint32_t budget,
                      uint64_t period_ms);

/* "SIGKILL" for 9; "signal N" where it has no name. Written to `buf` of 16
 * bytes, which is returned. */
const char *verdict_signal_name(int signo, char *buf);

/* What kind of end it is: an index of exit_class_word(). */
unsigned verdict_class(const struct verdict *v);
/* What this pod exits with: exit_code, or as the map says. */
int verdict_code(const struct verdict *v);

/* A likely cause of a worker's death and what to do, from code, signo and tail
 * of `f`, or "". One line. In verdict_hint.c. */
void verdict_hint(char *ret, size_t cap, const struct failure *f,
                  const struct verdict_facts *facts);

/* One line: "rank 2 (local rank 2, node rank 0, host w0, pid 123) was killed by
 * SIGKILL after 3 s in round 0". */
void verdict_cause_line(struct text *t, const struct failure *f);

/* Add the whole verdict: lines of valid UTF-8 without a final newline. The
 * first carries the whole story, then the hint, then the tail, whose oldest
 * lines are left out where not all fits. */
void verdict_write(struct text *t, const struct verdict *v);

#endif
