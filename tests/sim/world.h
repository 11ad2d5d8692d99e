/* world: a whole job in one process: the real pod, barrier, supervisor and
 * wire for P pods of N workers, with one virtual clock, a seeded generator and
 * a heap of events to come. Frames pass through encode and decode. */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include "agent/pod.h"

#include <stdbool.h>
#include <stdint.h>

#define WORLD_PODS 8
#define WORLD_WORKERS 4
#define WORLD_EVENTS 4096
#define WORLD_CONNS (WORLD_PODS + 64)
#define WORLD_LINKS 8192

enum what {
    EV_BOOT,     /* A pod's agent starts. */
    EV_CONNECT,  /* An attempt to reach pod 0 has its answer. */
    EV_TO_ZERO,  /* A frame reaches pod 0. */
    EV_TO_POD,   /* A frame reaches a pod. */
    EV_FIN_ZERO, /* The end of a connection reaches pod 0. */
    EV_FIN_POD,
    EV_STAGED,
    EV_SWEPT,
    EV_EXIT,     /* A worker ends. */
    EV_KILL_POD, /* agent and all of the pod die at once. */
    EV_TERM_POD,
    EV_CUT,      /* A connection is reset. */
};

struct event {
    uint64_t at, seq;
    enum what what;
    uint32_t pod, worker;
    uint64_t life; /* Which life of the pod, or of the worker. */
    uint32_t link; /* Which connection. */
    int code;
    uint16_t len;
    uint8_t frame[WIRE_FRAME_MAX];
};

struct sim_worker {
    bool alive, ignores_term;
    uint64_t life;
    uint32_t round;
};

struct sim_pod {
    struct pod pod;
    bool exists; /* Its agent runs. */
    bool over;   /* It has exited for good. */
    uint64_t life;
    int exit_code;
    bool was_termed;
    uint32_t link; /* Its connection; 0: none. */
    struct sim_worker workers[WORLD_WORKERS];
};

struct sim_link { /* A connection, as TCP gives it. */
    uint32_t pod, conn; /* `conn`: its number at pod 0. */
    uint64_t pod_life, zero_life;
    bool pod_open, zero_open;
    uint64_t to_zero_ms, to_pod_ms; /* Nothing overtakes. */
};

struct history { /* What happened, for the oracle. */
    unsigned n_terms, n_kills, n_cuts, n_stage_faults, n_ignored_terms;
    unsigned n_rounds;
    uint32_t least_round; /* Rounds only go up, while anyone remembers. */
    bool failed_with[256]; /* Codes with which workers failed by themselves. */
    uint64_t last_fault_ms;
};

struct world {
    uint64_t seed, rng, now, seq, lives;
    bool trace;
    uint32_t n_pods, n_workers;
    uint64_t grace_ms;
    uint32_t max_restarts;
    bool has_stage;
    bool never, quiet_job; /* Policy; no fault but worker deaths. */
    unsigned fail_percent;
    struct sim_pod pods[WORLD_PODS];
    struct barrier barrier;
    struct bar_peer bar_peers[WORLD_PODS];
    struct bar_conn bar_conns[WORLD_CONNS];
    struct sim_link links[WORLD_LINKS]; /* Index 0 is not used. */
    uint32_t n_links;
    struct event *heap[WORLD_EVENTS];
    unsigned n_heap;
    struct history history;
    char fault[512]; /* What went wrong, or "". */
};

/* Run one job from its seed to its end. False where an invariant broke:
 * w->fault says which. `w` is large; the caller gives it. */
bool world_run(struct world *w, uint64_t seed, bool trace);

/* world_check.c: invariants after each step, and the end. */
void world_check_spawn(struct world *w, uint32_t pod, uint32_t round);
/* After a death: where nobody is left who knows of the rounds so far, the job
 * may begin anew. */
void world_check_memory(struct world *w);
void world_check_step(struct world *w);
void world_check_end(struct world *w);
void world_fail(struct world *w, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#endif
