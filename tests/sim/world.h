/* world: a whole job in one process: the real pod, barrier, supervisor and
 * wire, one virtual clock, a seeded generator and a heap of events to come.
 * Frames pass through encode and decode. A place is where one agent at a time
 * runs: places 0 .. n_ranks - 1 have a rank each, or (`is_auto`) get one; later
 * places claim a rank that another place has. Each place has its own clock,
 * which may run ahead of the world's. */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include "agent/pod.h"

#include <stdbool.h>
#include <stdint.h>

#define WORLD_RANKS 64
#define WORLD_PLACES (WORLD_RANKS + 8)
#define WORLD_STRANGER WORLD_PLACES /* Nobody ever boots there. */
#define WORLD_GUESTS (4 * WORLD_PLACES)
#define WORLD_WORKERS 4
#define WORLD_PRE WORLD_WORKERS /* --pre-start, after the workers. */
#define WORLD_EVENTS 16384
#define WORLD_CONNS (WORLD_PLACES + 64)
#define WORLD_LINKS 32768
#define WORLD_LOSSES 16 /* Of pod 0; of more no time is known. */
#define WORLD_ZEROS 3 /* Agents of rank 0 at a time. */
#define FOREVER UINT64_MAX

/* X(name, words, explains): the classes of faults and of what else must be
 * reached, each counted. `explains`: a pod may be lost because of it. */
#define FAULT_TABLE(X)                                                         \
    X(TERM, "TERM", true)                                                      \
    X(KILL, "pods killed", true)                                               \
    X(KILL_ZERO, "pod 0 killed", true)                                         \
    X(KILL_AT_STEP, "pod 0 killed at a step", true)                            \
    X(CUT, "connections cut", true)                                            \
    X(PART, "partitions", true)                                                \
    X(ONE_WAY, "one-way partitions", true)                                     \
    X(DROPPED, "frames dropped without a FIN", true)                           \
    X(HELD, "frames held", true)                                               \
    X(FREEZE, "agents frozen", true)                                           \
    X(REPLACED, "pods replaced while partitioned", true)                       \
    X(CLAIM, "ranks claimed twice", true)                                      \
    X(WRONG, "wrong nnodes", true)                                             \
    X(DATA, "bad data", true)                                                  \
    X(IGNORED, "TERM ignored", false)                                          \
    X(OUTLIVED, "KILL outlived", true)                                         \
    X(LATE, "frames late", false)                                              \
    X(STRANGER, "strangers", false)                                            \
    X(BLOCKED, "pods out of reach", false)                                     \
    X(PRE_FAILED, "pre-starts failed", false)                                  \
    X(AGAIN, "workers alone started again", false)                             \
    X(SAME, "same failures ended a job", false)                                \
    X(SMALLER, "groups smaller than all", false)                               \
    X(BIGGER, "groups that grew", false)                                       \
    X(AUTO, "ranks by arrival", false)                                         \
    X(JUMP, "clocks set forward", true)                                        \
    X(SUSPEND, "machines suspended", true)                                     \
    X(OLD, "frames of an old connection", false)                               \
    X(REUSED, "numbers of connections used again", false)                      \
    X(NEW_ZERO, "pods 0 replaced while partitioned", true)                     \
    X(FENCED, "new pods 0 that waited for an old one", false)                  \
    X(HANG, "pods that hung", false)                                           \
    X(ZERO_AGAIN, "pods 0 lost again", false)                                  \
    X(ZERO_END, "jobs ended by the loss of pod 0", false)

enum fault {
#define X(name, words, explains) FAULT_##name,
    FAULT_TABLE(X)
#undef X
    FAULTS,
};

enum what {
    EV_BOOT,    /* An agent starts. */
    EV_CONNECT, /* An attempt to reach pod 0 has its answer. */
    EV_ACCEPT,  /* Pod 0 takes the connection. */
    EV_TO_ZERO, /* A frame reaches pod 0. */
    EV_TO_POD,  /* A frame reaches a pod. */
    EV_FIN_ZERO, /* The end of a connection reaches pod 0. */
    EV_FIN_POD,
    EV_STAGED,
    EV_SWEPT,
    EV_EXIT, /* A worker ends. */
    EV_REAP, /* Its agent learns of it. */
    EV_KILL, /* agent and all of the pod die at once. */
    EV_TERM,
    EV_CUT,  /* A connection is reset. */
    EV_PART, /* Cut off for e->ms; e->code: WAY_*. */
    EV_FREEZE, /* e->code: and its workers. */
    EV_JUMP,   /* A clock is set forward by e->ms. */
    EV_CLAIM, /* Another pod with this rank; e->code: this one is cut off, and
                 is pod 0, perhaps. */
    EV_HANG,  /* The workers of a pod hang; e->ms: its round. */
    EV_MESHED,   /* A pod's mesh test is over. */
    EV_STRANGER, /* Somebody without the token connects to pod 0. */
};

#define WAY_OUT 1
#define WAY_IN 2
#define WAY_DROP 4 /* What is sent is lost, and the connection with it. */

struct event {
    uint64_t at, seq;
    enum what what;
    uint32_t place, worker;
    uint64_t life; /* Which life of the pod, or of the worker. */
    uint64_t ms;
    uint32_t link; /* Which connection. */
    int code;
    uint16_t len;
    uint8_t frame[];
};

struct sim_worker {
    bool alive, ignores_term, outlives_kill, killed, ok;
    uint64_t life;
    uint32_t round, node_rank;
    uint64_t zero_life; /* Of whom it was started. */
    uint64_t start_ms;
    bool stopped; /* By its agent, or it will be. */
    bool hung;
};

struct sim_streak { /* Early failures in a row, with one code. */
    int code;
    uint32_t n;
};

struct sim_pod {
    struct pod pod;
    uint32_t rank, nnodes; /* As its agent is told. */
    uint32_t n_workers;
    uint64_t boot_ms;      /* It takes so long to be back; 0: by chance. */
    bool stubborn;         /* Its workers ignore TERM. */
    uint64_t ahead_ms;     /* How far its clock runs before the world's. */
    unsigned zero;         /* Rank 0: which of `zeros` its barrier uses. */
    bool exists; /* Its agent runs. */
    bool over;   /* It has exited for good. */
    uint64_t life;
    int exit_code;
    bool was_termed, bad_data, was_stuck;
    uint32_t link; /* Its connection; 0: none. */
    uint64_t out_until, in_until; /* Cut off. */
    bool drops;
    uint64_t frozen_until;
    uint64_t thaw_ms; /* When it goes on with its workers, last. */
    bool replaced;   /* Pod 0: there is another one. */
    uint64_t cut_ms; /* When its connection was last cut. */
    bool mesh_open;
    uint64_t mesh_nonce; /* Of its last mesh test. */
    unsigned n_mesh;     /* How many it had in this life. */
    bool has_rank;       /* It was in a round in this life, */
    uint32_t last_rank, last_round;  /* with this rank. */
    uint64_t last_zero, first_zero; /* By whom the last round was started, and
                                       the first one in this life. */
    uint32_t first_round;
    uint32_t claim;      /* The rank that it said last it has, */
    uint64_t told_zero;  /* and the last pod 0 that it had. */
    uint64_t again_zero; /* That has admitted it more than once. */
    bool missed;         /* It did not hear the end. */
    uint64_t open_zero;  /* That started its round and has not ended it; 0. */
    bool zero_lost;      /* So it was with one that is lost, and it has had no
                            round since. */
    uint32_t told_losses, told_restarts; /* With its last round, */
    uint64_t spawn_ms;                   /* and when that was. */
    struct sim_worker workers[WORLD_WORKERS + 1];
    struct sim_streak streaks[WORLD_WORKERS + 1];
    struct pod_held held[WORLD_WORKERS];
    bool prepared; /* Its --pre-start succeeded since its last round. */
    uint32_t attempts[WORLD_WORKERS];
};

struct sim_link { /* A connection, as TCP gives it. */
    uint32_t place, zero; /* From where, and to which pod 0's place. */
    uint32_t conn;        /* Its number there. */
    uint64_t pod_life, zero_life;
    bool pod_open, zero_open;
    bool proved; /* A pod has sent its proof on it. */
    bool purged_up, purged_down; /* Aborted: what was held is gone. */
    uint64_t held_up, held_down; /* When what a partition held comes. */
    bool dead_up, dead_down; /* Frames were dropped: nothing comes any more. */
    uint64_t to_zero_ms, to_pod_ms; /* Nothing overtakes. */
};

struct sim_zero { /* What an agent of rank 0 has besides. */
    struct barrier barrier;
    struct bar_peer peers[WORLD_RANKS];
    struct bar_conn conns[WORLD_CONNS];
    struct bar_guest guests[WORLD_GUESTS];
    uint32_t link_of[WORLD_CONNS]; /* Its connections; 0: none. */
    uint32_t last_of[WORLD_CONNS]; /* And who had the number last. */
};

/* The group of a round, as far as its pods have started. By group rank. */
struct sim_group {
    uint64_t zero_life;
    uint32_t round, size, world_size;
    bool is_in[WORLD_RANKS];
    uint32_t node_rank[WORLD_RANKS], base[WORLD_RANKS], n[WORLD_RANKS];
};

struct history { /* What happened, for the oracle. */
    unsigned n[FAULTS];
    unsigned n_rounds;
    uint32_t least_round; /* Rounds only go up, while anyone remembers. */
    bool failed_with[256]; /* Codes with which workers failed by themselves. */
    bool ended_with[256];  /* Codes of END. */
    uint64_t end_life;     /* The life of pod 0 whose END was looked at. */
    uint64_t last_fault_ms; /* Also while one lasts: its end. */
    struct sim_group group;
    uint64_t zero_life;     /* What follows is about this pod 0. */
    uint64_t enough_ms;     /* Since when MIN have arrived; 0: they have not. */
    enum barrier_phase phase; /* Before the last step. */
    uint32_t n_members, n_started;
    /* Where each rank last had workers under it: place + 1, or 0. */
    uint32_t ran_at[WORLD_RANKS];
    uint64_t cut_ms;        /* When any connection was last cut. */
    uint32_t n_losses;      /* Of pod 0, as far as anybody knew. */
    uint64_t loss_floor_ms[WORLD_LOSSES]; /* None of them was before this. */
    uint64_t budget_life;   /* What follows is about this pod 0. */
    uint32_t restarts, restarts_before; /* Counted by any, and before it. */
    uint64_t heard_life;    /* The life of pod 0 that knows of an older one. */
};

enum job_kind {
    JOB_WILD,   /* Anything happens. */
    JOB_QUIET,  /* Only workers fail; pods may claim a rank twice. */
    JOB_GENTLE, /* One fault, and not a worker's: the job must succeed. */
    JOB_PLANNED, /* world_scenario.c. */
};

struct world {
    uint64_t seed, rng, now, seq, lives;
    bool trace;
    enum job_kind kind;
    uint32_t n_ranks, n_places;
    uint32_t min_nodes; /* Below n_ranks: the job is elastic. */
    bool is_auto;       /* Ranks by arrival. */
    uint64_t last_call_ms, barrier_timeout_ms, rejoin_timeout_ms;
    uint64_t grace_ms;
    uint32_t max_restarts;
    bool has_stage, never, has_claims, has_token;
    unsigned scenario;      /* PLANNED. */
    uint64_t work_ms;       /* How long workers run; 0: by chance. */
    uint64_t restart_period_ms;
    unsigned n_bugs;        /* So often the first worker of pod 0 fails. */
    bool zero_returns;      /* Also when it was told to stop. */
    uint64_t tempted_ms; /* The lease that world_tempt() has looked at. */
    bool has_new_zero; /* Some pod 0 was replaced behind a partition. */
    bool has_pre, scope_worker, always;
    uint32_t same_limit;
    bool hangs; /* The workers of some pods stand still. */
    bool buggy; /* One worker fails early with one code, again and again. */
    struct sim_streak causes; /* Of rounds, as the STOPs say. */
    uint32_t cause_rank;
    struct wire_msg heard_hello, heard_proof; /* By whoever listens. */
    unsigned fail_percent, outlive_percent, ignore_percent;
    uint64_t kill_zero_step; /* 0: not. */
    uint32_t mesh_reach;     /* As in barrier.h. */
    bool mesh_strict;
    bool blocked[WORLD_RANKS][WORLD_RANKS]; /* From one rank to another. */
    uint32_t zero; /* The place that the others reach as pod 0. */
    uint32_t n_links;
    struct event *heap[WORLD_EVENTS];
    unsigned n_heap;
    struct history history;
    char fault[512]; /* What went wrong, or "". */
    struct sim_pod pods[WORLD_PLACES + 1];
    struct sim_zero zeros[WORLD_ZEROS];
    struct sim_link links[WORLD_LINKS]; /* Index 0 is not used. */
};

/* Run one job from its seed to its end. False where an invariant broke:
 * w->fault says which. `w` is large; the caller gives it, zeroed at first. */
bool world_run(struct world *w, uint64_t seed, bool trace);
/* The same with one of the planned jobs. */
bool world_run_scenario(struct world *w, unsigned scenario, bool trace);

/* world.c: chance, time, words. */
uint64_t world_draw(struct world *w, uint64_t below);
bool world_chance(struct world *w, unsigned percent);
void world_say(struct world *w, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void world_fail(struct world *w, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
struct event *world_plan(struct world *w, uint64_t at, enum what what,
                         uint32_t place);
void world_count(struct world *w, enum fault f);
uint64_t world_clock(const struct world *w, uint32_t place);

/* world_pod.c: an agent, its workers and its data. */
void world_add_pod(struct world *w, uint32_t place, uint32_t rank,
                   uint32_t n_workers);
/* As far as it is known; WIRE_ANY_RANK. */
uint32_t world_rank(const struct sim_pod *p);
struct sim_pod *world_zero(struct world *w);
const struct barrier *world_barrier(const struct world *w);
bool world_is_elastic(const struct world *w);
void world_boot(struct world *w, uint32_t place);
/* Where the barrier of another agent of rank 0 can be; WORLD_ZEROS: nowhere. */
unsigned world_free_zero(const struct world *w);
void world_kill(struct world *w, uint32_t place);
void world_pod_event(struct world *w, const struct event *e);

/* world_net.c: connections to pod 0. */
void world_connect(void *ctx);
void world_link_send(void *ctx, const struct wire_msg *m);
void world_link_close(void *ctx, bool abort);
void world_conn_send(void *ctx, uint32_t conn, const struct wire_msg *m);
void world_conn_close(void *ctx, uint32_t conn, bool abort);
/* The kernel closes every connection of a pod whose agent is dead. */
void world_close_all(struct world *w, uint32_t place);
void world_cut(struct world *w, uint32_t place);
void world_net_event(struct world *w, const struct event *e);

/* A new connection to pod 0 from there; 0 where there can be none. */
uint32_t world_link(struct world *w, uint32_t place);
/* On its way to pod 0: a frame or an end. */
void world_say_zero(struct world *w, uint32_t link, enum what what,
                    const struct wire_msg *m);

/* world_stranger.c: the token, and who has it not. */
void world_make_token(struct world *w, struct auth *ret);
void world_overhear(struct world *w, uint32_t link, const struct wire_msg *m);
void world_conn_admit(void *ctx, uint32_t conn);
void world_stranger(struct world *w);

/* world_mesh.c: whether the pods reach each other. */
void world_plan_mesh(struct world *w);
struct wire_addr world_mesh_here(uint32_t zero);
int world_mesh_open(void *ctx, uint32_t node_rank, struct wire_addr *ret,
                    struct err *e);
void world_mesh_test(void *ctx, const struct wire_msg *m);
void world_mesh_close(void *ctx);
void world_mesh_event(struct world *w, const struct event *e);
/* It must end the job, before any worker starts. */
bool world_mesh_refuses(const struct world *w);
void world_check_mesh(struct world *w, uint32_t place,
                      const struct wire_msg *m);

/* world_fault.c: what goes wrong, and when. */
void world_plan_faults(struct world *w);
void world_with_zero(struct world *w);
void world_tempt(struct world *w);
void world_fault_event(struct world *w, const struct event *e);

/* world_past.c: the losses of pod 0. HELLO goes to that pod 0; a frame of it
 * came; a round starts; after each step; an END that is due to them. */
void world_note_hello(struct world *w, uint32_t place, uint64_t zero_life);
void world_note_heard(struct world *w, uint32_t place, uint64_t zero_life,
                      const struct wire_msg *m);
void world_check_past(struct world *w, uint32_t place);
void world_check_budget(struct world *w);
bool world_ends_by_zero(struct world *w);

/* world_scenario.c. NULL: there is none of this number. */
const char *world_scenario(unsigned i);
void world_plan_scenario(struct world *w, unsigned i);
void world_check_scenario(struct world *w, unsigned i);

/* world_group.c: who is in a round, and with which ranks. */
void world_check_group(struct world *w, uint32_t place,
                       const struct pod_round *round);
void world_check_gathering(struct world *w);
/* It takes part in the round of pod 0 that runs. */
bool world_is_member(const struct world *w, uint32_t place);

/* world_check.c: invariants after each step, and the end. */
void world_check_spawn(struct world *w, uint32_t place,
                       const struct pod_round *round);
/* After a death: rounds go on from the highest that somebody knows who is
 * left. */
void world_check_memory(struct world *w);
void world_check_again(struct world *w, uint32_t place, uint32_t worker,
                       uint32_t attempt);
void world_check_prepare(struct world *w, uint32_t place);
void world_check_kill(struct world *w, uint32_t place);
/* A worker, or --pre-start, ended by itself, or was stopped. */
void world_note_end(struct world *w, uint32_t place, uint32_t worker, int code);
void world_check_exit(struct world *w, uint32_t place);
void world_check_step(struct world *w);
void world_check_end(struct world *w);
/* How long a job may take once nothing goes wrong any more. */
uint64_t world_patience(const struct world *w);

struct sim_ctx { /* One a place: what `out.ctx` is. */
    struct world *w;
    uint32_t i;
};

#endif
