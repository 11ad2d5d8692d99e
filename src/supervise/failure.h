/* failure: what is known of the reason why a round or a job ended. Plain data:
 * it travels in frames (rendezvous/wire.h) and ends in the verdict. */
#ifndef SUPERVISE_FAILURE_H
#define SUPERVISE_FAILURE_H

#include <stdbool.h>
#include <stdint.h>

#define FAILURE_HOST_MAX 64
#define FAILURE_TEXT_MAX 512
#define FAILURE_TAIL_MAX 1024

enum failure_kind {
    FAILURE_NONE,
    FAILURE_WORKER,  /* A worker ended with another status than 0. */
    FAILURE_AGENT,   /* A pod's own: data, mismatch, barrier, exec, ... */
    FAILURE_LOST,    /* A pod's connection was lost. */
    FAILURE_STOPPED, /* A pod was told to stop from outside. */
    FAILURE_PREPARE, /* --pre-start ended with another status than 0. */
};

/* What a process is in the job. Servers and the scheduler are of mxnet; they
 * have numbers of their own in place of ranks. */
enum proc_role { PROC_WORKER, PROC_SERVER, PROC_SCHEDULER };

struct failure {
    enum failure_kind kind;
    enum proc_role role; /* WORKER. */
    int code;            /* Exit status that it stands for, 1..255. */
    int signo;           /* WORKER, PREPARE: signal that killed it, or 0.
                            STOPPED: the signal that the pod got. */
    uint32_t node_rank;  /* The pod. */
    uint32_t rank, local_rank; /* WORKER. */
    uint32_t pid;              /* WORKER, PREPARE; 0: could not be started. */
    uint32_t round;      /* The round that it ended. */
    uint64_t ran_ms;     /* WORKER, PREPARE: from its start to its end. */
    bool hung;           /* WORKER: it stands for all of its pod, which hung;
                            it did not end by itself. */
    bool from_file;      /* WORKER: `tail` is what its error file says. */
    char host[FAILURE_HOST_MAX]; /* The pod's host name. */
    char text[FAILURE_TEXT_MAX]; /* AGENT, LOST: what, where, why, what to do.
                                    WORKER, PREPARE: a hint, or "". */
    char tail[FAILURE_TAIL_MAX]; /* WORKER, PREPARE: last stderr lines, or of
                                    the worker's error file. */
};

/* All pure. When a worker dies its peers see their connections close and end,
 * too, at times before the kernel has reported the first death. */

/* A worker whose last words tell that another rank ended first. */
bool failure_follows(const struct failure *f);
/* It was killed in a way that no peer's end and no stop leads to. */
bool failure_is_death(const struct failure *f);
/* Whether `a` is the more likely cause of two failures of one round that are
 * some milliseconds apart, and neither of them of a worker that was stopped. */
bool failure_beats(const struct failure *a, const struct failure *b);

#endif
