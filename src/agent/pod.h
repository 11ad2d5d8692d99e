/* pod: the life of one pod: stage the data, meet the others, run the workers
 * of a round, stop them, and leave with the job's verdict.
 *
 * Pure: no I/O, no clock, no allocation. Feed it events with the time in them;
 * it calls `out` for what is to be done. These calls must not step it again:
 * what comes of them is a later event. Owns the local gang (supervisor) and,
 * on node rank 0, the barrier; pod 0's own side talks to its barrier by the
 * same messages as every other pod.
 *
 *  STAGING -> WAITING -START-> RUNNING -all 0-> FINISHED -END-> LEAVING -> GONE
 *     |          ^                |                 |             ^
 *  bad data      |        failure, STOP, TERM     STOP        END, TERM
 *     v          +---all gone-- STOPPING            |             |
 *  FAILING       +----------------------------------+-------------+
 *
 *  STOPPING goes to LEAVING where the job ended or the pod was told to stop.
 *  FAILING tells pod 0 of a permanent failure of this pod, then leaves. */
#ifndef AGENT_POD_H
#define AGENT_POD_H

#include "rendezvous/barrier.h"
#include "rendezvous/wire.h"
#include "supervise/supervisor.h"
#include "supervise/verdict.h"

#define POD_RETRY_MIN_MS 100  /* Between attempts to reach pod 0. */
#define POD_RETRY_MAX_MS 1000
#define POD_STALE_MS 500      /* For what came while all stood still. */
#define POD_PING_MS 8000      /* After that without anything to answer. */
#define POD_REPORT_MS 30000   /* How long a failure before the start is told. */
#define POD_FLUSH_MS 5000     /* For the last frames to leave. */
#define POD_SETTLE_MS 50      /* After a failure: was another one its cause? */
#define POD_LEFT_MS 1000      /* Before a word on who or what is waited for. */
#define POD_QUEUE_MAX 16      /* Messages of pod 0 to itself. */

enum pod_state {
    POD_STAGING,  /* The data set is staged or verified by a child. */
    POD_PREPARING, /* --pre-start runs, or failed and may run again. */
    POD_WAITING,  /* For START. Nothing runs here. */
    POD_RUNNING,  /* The workers of a round. */
    POD_FINISHED, /* They all ended with 0; the other pods may still run. */
    POD_STOPPING, /* For the workers and what they left behind to be gone. */
    POD_FAILING,  /* For pod 0 to hear of this pod's own permanent failure. */
    POD_LEAVING,  /* For the last frames; on pod 0: for all pods to hear. */
    POD_GONE,     /* exit_code is set. */
};

enum pod_link { LINK_DOWN, LINK_CONNECTING, LINK_UP, LINK_ADMITTED };

struct pod_config {
    uint32_t node_rank; /* WIRE_ANY_RANK: as pod 0 says in WELCOME. */
    bool any_rank;      /* It was not asked for. */
    uint32_t nnodes, nproc;
    uint32_t max_restarts;      /* From WELCOME on as node rank 0 has it, and */
    uint64_t restart_period_ms; /* of what time; 0: the job's life. */
    uint32_t n_servers; /* Behind the workers; as of supervisor.h. */
    uint64_t incarnation, command_hash;
    uint64_t barrier_timeout_ms, rejoin_timeout_ms, grace_ms;
    uint64_t stop_with; /* Bits of signals that stop the job, and that workers
                           get in place of TERM. */
    bool has_stage, has_pre_start;
    bool restart_always; /* With `held`: who ended with 0, too. */
    uint64_t restart_reset_ms; /* Health that ends a row of failures. */
    uint64_t hang_timeout_ms;  /* For texts; */
    int hang_signal;           /* what hanging workers get first. */
    struct auth auth;
    const char *job_id, *host; /* Borrowed for life. */
    const char *zero;          /* "host:port" of pod 0's barrier, for texts. */
    bool mesh;                 /* Take part in the mesh test; */
    bool mesh_port_given;      /* a port that is taken is a fault. */
};

struct pod_round {
    uint32_t round, rank_base, world_size, master_port;
    uint32_t group_rank, group_size; /* Among the pods of the round. */
    char hosts[WIRE_HOSTS_MAX];      /* As in START. */
};

/* --restart-scope worker: what is known of a worker that failed. */
struct pod_held {
    bool held;    /* Dead, and to be started again, maybe. */
    bool clean;   /* Nothing that it left behind lives. */
    bool told;    /* Pod 0 was asked; */
    bool allowed; /* and has agreed: not before `start_ms`. */
    bool killed, sweeping;
    bool left_told; /* What it left behind takes its time. */
    uint64_t start_ms, kill_ms, look_ms, poll_ms, poll_step_ms;
    uint32_t n_starts; /* After the first, over all rounds. */
    uint32_t in_a_row, same;
    int last_code;
    struct failure failure;
};

struct pod_past { /* What a new pod 0 is told: pod_past.c. */
    struct past past;    /* As pod 0 said, */
    uint64_t told_ms;    /* then. */
    uint32_t in_a_row;   /* Failures, of the job. */
    bool round_open;     /* Pod 0 has started a round here, and not ended it; */
    uint64_t open_ms;    /* when it was started. */
    bool zero_lost;      /* So it was under one that is lost, and the next one
                            has not said yet that it knows; */
    uint64_t zero_lost_ms; /* and when it was lost. */
};

struct pod_exit { /* How a worker ended. */
    uint32_t worker, pid;
    enum proc_role role;
    uint32_t index; /* Of a server, in the job. */
    int code; /* 0..255, or 128 + signo. */
    int signo;
    uint64_t ran_ms;
    const char *hint, *tail; /* Borrowed for the call. */
    bool from_file;          /* `tail` is of its error file. */
};

struct pod_out {
    void *ctx;
    void (*log)(void *ctx, enum log_level level, const char *text);
    void (*stage)(void *ctx);
    void (*stage_kill)(void *ctx);
    void (*spawn)(void *ctx, const struct pod_round *round); /* All workers. */
    /* One of them, alone: its `attempt` is the round and each such start. */
    void (*spawn_again)(void *ctx, const struct pod_round *round,
                        uint32_t worker, uint32_t attempt);
    void (*pre_start)(void *ctx, uint32_t round); /* It is worker 0 then. */
    void (*kill)(void *ctx, uint32_t worker, int signo);     /* Its group. */
    void (*sweep)(void *ctx, int signo); /* As in supervisor.h. */
    /* Nothing of a round runs here any more, no pod runs the next one yet,
     * and it may follow. NULL: there is nothing to do. */
    void (*tidy)(void *ctx);
    /* The same for what one dead worker left; pod_worker_swept(), later. */
    void (*sweep_worker)(void *ctx, uint32_t worker, int signo);
    /* How a hanging worker is, or was: pid, ran_ms, tail. NULL: unknown. */
    void (*describe)(void *ctx, uint32_t worker, struct pod_exit *ret);
    /* The connection to pod 0. */
    void (*connect)(void *ctx);
    void (*link_send)(void *ctx, const struct wire_msg *m);
    void (*link_close)(void *ctx, bool abort);
    /* Pod 0: connections of the others. */
    void (*conn_send)(void *ctx, uint32_t conn, const struct wire_msg *m);
    void (*conn_close)(void *ctx, uint32_t conn, bool abort);
    /* As in barrier.h. */
    void (*conn_admit)(void *ctx, uint32_t conn);
    /* The mesh test: listen for the other pods (again and again is fine);
     * carry out MESH; end all of it. */
    int (*mesh_open)(void *ctx, uint32_t node_rank, struct wire_addr *ret,
                     struct err *e);
    void (*mesh_test)(void *ctx, const struct wire_msg *m);
    void (*mesh_close)(void *ctx);
};

struct pod {
    struct pod_config cfg;
    struct pod_out out;
    struct supervisor sup;
    struct barrier *bar; /* Pod 0 only; borrowed. */
    uint32_t n_queue;

    enum pod_state state;
    uint64_t start_ms;
    uint32_t round;      /* That runs, or that this pod is ready for. */
    bool runs;           /* Workers of `round` may be alive. */
    uint32_t n_rounds, n_restarts, world_size;

    enum pod_link link;
    bool was_admitted;
    uint64_t zero_incarnation; /* Of the pod 0 that admitted it last, */
    uint8_t zero_end;          /* and how that ended: enum wire_end. */
    struct pod_past past;
    bool older_silent; /* One before that one was silent at its end, and no
                          round has started since: it may still run one. */
    bool zero_dropped; /* It has said that it takes this pod for lost. */
    uint64_t heard_ms; /* When pod 0 was last heard; */
    uint64_t lost_ms;  /* when the last connection that it admitted ended. */
    uint64_t stale_ms; /* Until when frames may be old, after silence; or 0. */
    uint64_t up_ms;    /* When the connection was made. */
    uint64_t retry_ms, retry_step_ms, ping_ms, say_ms;

    uint64_t n_nonces; /* With a token: of this connection and before, */
    bool challenged, proven;
    uint16_t hello_len; /* and what is proved on this one: of `hello`. */

    bool prepared;       /* --pre-start ended with 0 since the last round. */
    bool prepares;       /* It is what the supervisor has. */
    uint64_t prepare_ms; /* When it may run again; 0: not asked, or not yet
                            answered. */
    uint32_t in_a_row, same;
    int last_code;
    bool asks;           /* Pod 0, with `serial`, to try again; */
    uint32_t serial, asks_worker; /* a worker, or --pre-start. */
    struct pod_held *held; /* cfg.nproc; NULL: --restart-scope job. */
    uint32_t n_held;

    bool staged;
    uint8_t percent;
    uint8_t digest[WIRE_DIGEST];
    uint64_t settle_ms;     /* Until when `failure` may still change; or 0. */
    bool ended;             /* END or REFUSE came, or this pod gave up; */
    bool end_told;          /* people know, for workers are slow. */
    uint64_t hang_ms;       /* When hanging workers are stopped; 0: none. */
    uint32_t hang_worker;   /* That stands for them. */
    int stop_signo;         /* Told to stop from outside, */
    uint64_t stop_ms;       /* and when. */
    bool told_late;         /* To stop, once it had `ended`. */
    bool hurried;           /* Told twice: that ended the grace. */
    bool left_told;         /* What workers left behind takes its time. */
    uint64_t leave_ms;      /* When FAILING or LEAVING began. */
    int exit_code;

    /* What is large comes last, and most of it stays untouched: a page of
     * memory is 1.5 us of a start. */
    struct failure failure; /* This pod's own, of this round or for good,
                               until pod 0 has heard of it. */
    char waiting[WIRE_TEXT_MAX]; /* What pod 0 waits for, as it said. */
    struct pod_round at; /* As START said. */
    uint8_t hello[WIRE_GUEST_MAX];
    uint8_t script[AUTH_SCRIPT];
    char link_error[WIRE_TEXT_MAX];
    struct failure zero_stop; /* STOPPED: pod 0 has said that it is told to. */
    struct failure prepare_failure; /* The last one of --pre-start. */
    struct failure cause;   /* Of the end, or of the last stop. */
    char why[BARRIER_WHY_MAX]; /* Why the end is no restart, as END said. */
    struct wire_msg queue[POD_QUEUE_MAX]; /* From the own barrier. */
};

/* `p` is zeroed memory, most of whose pages are never touched (only `queue` may
 * be anything). Copies cfg and out. */
void pod_init(struct pod *p, const struct pod_config *cfg,
              const struct pod_out *out, uint64_t now_ms);
/* Start workers again one by one: `held` has cfg.nproc entries, zeroed;
 * borrowed for life. */
void pod_hold_workers(struct pod *p, struct pod_held *held);
/* On node rank 0: `bar` is initialised here (as of barrier_init()); borrowed
 * for life. */
void pod_own_barrier(struct pod *p, struct barrier *b,
                     const struct barrier_config *cfg, struct bar_peer *peers,
                     struct bar_conn *conns, uint32_t n_conns,
                     uint64_t now_ms);

/* Events, in any order after pod_start(). */
void pod_start(struct pod *p, uint64_t now_ms);
void pod_stage_progress(struct pod *p, uint64_t now_ms, unsigned percent);
void pod_stage_done(struct pod *p, uint64_t now_ms,
                    const uint8_t digest[WIRE_DIGEST]);
/* A permanent failure of this pod (stage, a port that is taken). */
void pod_fault(struct pod *p, uint64_t now_ms, int code, const char *text);
void pod_worker_exit(struct pod *p, uint64_t now_ms, const struct pod_exit *x);
void pod_swept(struct pod *p, uint64_t now_ms, uint32_t n_left,
               bool output_pending);
void pod_worker_swept(struct pod *p, uint64_t now_ms, uint32_t worker,
                      uint32_t n_left);
/* All workers hang; `worker` is one that lives. Ignored unless RUNNING. */
void pod_hang(struct pod *p, uint64_t now_ms, uint32_t worker);
void pod_signal(struct pod *p, uint64_t now_ms, int signo);
void pod_link_up(struct pod *p, uint64_t now_ms);
void pod_link_down(struct pod *p, uint64_t now_ms, const char *why);
void pod_link_message(struct pod *p, uint64_t now_ms,
                      const struct wire_msg *m);
void pod_conn_open(struct pod *p, uint64_t now_ms, uint32_t conn,
                   const char *addr);
/* After that: its address on this side. */
void pod_conn_here(struct pod *p, uint32_t conn, const struct wire_addr *here);
void pod_conn_closed(struct pod *p, uint64_t now_ms, uint32_t conn);
void pod_conn_message(struct pod *p, uint64_t now_ms, uint32_t conn,
                      const struct wire_msg *m);
void pod_conn_garbage(struct pod *p, uint64_t now_ms, uint32_t conn,
                      const char *why, unsigned version);
/* As of barrier_make_room(). */
bool pod_conn_make_room(struct pod *p);
/* A mesh test is over: MESHED as it is to be sent, but for the round. */
void pod_meshed(struct pod *p, uint64_t now_ms, const struct wire_msg *m);
void pod_timeout(struct pod *p, uint64_t now_ms);
uint64_t pod_deadline(const struct pod *p);

/* What there is to say at the end. */
void pod_verdict(const struct pod *p, uint64_t now_ms, struct verdict *ret);

#endif
