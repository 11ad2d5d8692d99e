/* loop_parts: what the files of the loop share. Internal to the loop. */
#ifndef AGENT_LOOP_PARTS_H
#define AGENT_LOOP_PARTS_H

#include "agent/contract.h"
#include "agent/loop.h"
#include "agent/scratch.h"
#include "base/log.h"
#include "dataset/stager.h"
#include "dataset/telling.h"
#include "rendezvous/peer.h"
#include "supervise/child.h"
#include "supervise/facts.h"
#include "supervise/log_files.h"
#include "supervise/log_stats.h"
#include "supervise/out.h"
#include "supervise/relay.h"
#include "supervise/shm.h"
#include "supervise/tail.h"
#include "supervise/tty.h"

#include <uv.h>

#define LOOP_COOKIE_MAX (PLAN_COOKIE_MAX + 8)
#define LOOP_ERROR_PATH (OPT_RUN_DIR_MAX + 64)
/* Of one read: with prefixes it still fits into a pipe's 64 KiB, so that it
 * may be written without the thread of out.h. */
#define STREAM_CHUNK (56u << 10)
#define STREAM_READ_MAX (256u << 10) /* Bytes of one stream in one go. */

struct stream_watch { /* Freed when libuv has closed it. */
    uv_poll_t poll;
    struct stream *stream; /* NULL: being closed. */
};

struct stream {
    struct loop *loop;
    struct stream_watch *watch; /* NULL: closed. */
    uint64_t read_ms, n_read; /* Of the last bytes: when, and which read. */
    int fd;
    /* The output has no room, or --log-dir; not read meanwhile. */
    bool stalled, file_stalled;
    unsigned file; /* Of log_files.h. */
    bool is_err;
    bool is_hidden; /* By --log-ranks. */
    bool has_file;  /* Of --log-dir. */
    bool is_filtered; /* torchrun's filters; see loop_filter_lines(). */
    struct out *out;
    struct tail *tail;
    struct relay relay;
    char base[RELAY_HEAD_MAX - 64]; /* Before a line, but for the time. */
    uint64_t bar_due_ms; /* A progress bar's state is shown then; 0: none. */
    struct log_stats stats; /* Lines: of earlier attempts. */
};

struct worker {
    pid_t pid; /* 0: none. */
    int exec_fd;
    uint64_t start_ms;
    pid_t last_pid; /* Also after its death. */
    pid_t asked;    /* Its group, where it was stopped by INT, say. */
    uint32_t attempt;   /* Of its folder for errors. */
    bool has_error_dir;
    struct facts_oom oom; /* Before its start. */
    struct stream_watch *beat_watch; /* Its heartbeats; NULL: closed. */
    int beat_fd;
    uint64_t beat_ms; /* The last one. */
    bool beats;
    bool stop_told;   /* That it was stopped, by SIGSTOP or the like. */
    bool sweep_asked; /* For what it left, alone. */
    int sweep_signo;
    bool unborn; /* Its fork failed; to be reported. */
    struct err unborn_err;
    struct stream out, err;
    struct tail tail, out_tail;
    uint32_t n_starts;
    uint64_t end_ms; /* Of its last death: when and how. */
    int code, signo;
    uint64_t cpu_ms; /* All that it and those it waited for had used then. */
    char rings[2][TAIL_MAX]; /* Of the tails; last, as most stays untouched. */
};

struct loop {
    const struct plan *plan;
    uv_loop_t uv; /* After loop_uv_open(). */
    bool uv_is_open;
    uv_timer_t timer, guard_timer, settle_timer;
    uint64_t timer_due; /* ms; 0: it was never set. */
    bool was_late; /* The timer: by so much that the agent stood still. */
    uv_poll_t signals, room;
    int signal_fd, room_fd, stdin_fd;
    uint64_t ignored; /* Signals that workers would ignore, too. */
    struct out *stdout_q, *stderr_q; /* The same where the file is the same. */
    struct log_files *files; /* --log-dir, else NULL. */
    uv_timer_t bar_timer;
    bool has_colour[2];           /* stdout, stderr: a terminal. */
    size_t line_room, want_room;  /* In a queue: to go on; to be woken. */
    unsigned next_room;           /* Whose turn it is. */
    uint64_t n_dropped, dropped_said; /* Lines of the workers. */
    uint64_t lost_said[2];        /* Bytes of stdout, stderr. */
    uint64_t file_lost_said;      /* Of --log-dir, with those dropped. */
    bool why_said;                /* Of --log-dir's trouble. */
    bool ranks_said;              /* See loop_warn_ranks(). */
    uint64_t say_missing_ms, say_step_ms; /* When it is said again. */
    uint64_t n_own_lost;          /* agent's own lines, since the last one. */
    uint64_t end_ms;              /* The deadline of all output, and */
    int stops_fd;                 /* what makes it shorter. */
    bool is_ending;               /* The last words have room of their own. */
    struct bar_peer *bar_peers;
    struct bar_conn *bar_conns;
    struct bar_guest *bar_guests;
    struct peers *peers;
    struct peer_mesh *mesh; /* NULL: not needed so far. */

    struct worker *workers; /* plan->n_procs; then --pre-start, if any: */
    uint32_t n_slots;       /* so many in all. */
    uint32_t n_worker_sweeps;
    struct pod_held *held;  /* --restart-scope worker, else NULL. */
    char cookie[LOOP_COOKIE_MAX]; /* Of the worker that is being started. */
    char *relay_bytes;      /* 2 * n_slots blocks of RELAY_BUF_BYTES. */
    char *scratch;          /* 2 * RELAY_OUT_MIN. */
    char *env_bytes;
    const char **envp;
    size_t env_cap, envp_max;
    char *word_bytes;       /* Of its command. */
    char **argv;
    size_t word_cap, argv_max;
    char *no_proxy;         /* OFFLINE_LIST_MAX; NULL: not offline. */
    struct scratch folder; /* With the error files. */
    struct shm_start shm;
    uint64_t round_ticks;   /* When the round started, for proc.h. */
    uint64_t node_oom_kills; /* Soon after the last start, */
    bool has_node_oom;       /* where it was taken. */
    uint32_t n_unborn;
    uint32_t said_rank; /* The node rank in front of agent's lines. */

    bool sweep_asked;
    int sweep_signo;
    pid_t stuck_pid;
    uint32_t n_reaped;
    bool is_init; /* PID 1. */
    pid_t guard_pid;
    int guard_fd;
    unsigned n_guards_lost;
    struct asks *asks; /* loop_ask.h */
    struct hang_watch *hang; /* loop_hang.c; NULL: no --hang-timeout. */
    uint64_t n_reads;

    struct tty tty; /* The worker has it itself where it is on. */
    pid_t stage_pid;
    int stage_fd;
    struct stream_watch *stage_watch;
    size_t stage_len;
    bool stage_over; /* It said its last word. */
    struct stage_result *sets; /* One for each --dataset. */
    struct contract_dataset *datasets;
    struct stage_request *requests;
    struct loop_preflight *preflight; /* NULL: no list was given. */
    struct telling telling; /* How far the stager is. */

    /* What is large comes last: see struct pod. */
    struct pod pod;
    struct barrier barrier;
    struct relay own_relay;       /* Writes agent's own lines as JSON. */
    char own_line[6 * LOG_LINE_MAX + RELAY_HEAD_MAX + 64];
    char stage_line[STAGER_LINE_MAX];
};

uint64_t loop_now(void);
/* After every event: carry out what was asked for, arm the timer. */
void loop_after(struct loop *l);

/* Whoever needs l->uv calls it first: in a pod alone that is while its workers
 * load, because it takes a while. */
int loop_uv_open(struct loop *l);

/* loop_hang.c */
int loop_hang_new(struct loop *l, struct err *e);
void loop_hang_begin(struct loop *l); /* A round starts. */
/* The end of the heartbeat pipe that worker `i` is to have, or -1; and once it
 * was started. */
int loop_beat_open(struct loop *l, uint32_t i);
void loop_beat_close(struct loop *l, uint32_t i);
void loop_hang_actions(struct pod_out *out);

/* loop_tty.c */
const struct tty *loop_tty_for(struct loop *l, uint32_t i);
void loop_tty_ended(struct loop *l, uint32_t i, int code, int signo);
void loop_tty_stopped(struct loop *l, pid_t pid, int signo);

/* loop_net.c */
int loop_net_open(struct loop *l, struct err *e);
/* The address of node rank 0 as this pod reaches it, or NULL. */
const char *loop_master_ip(struct loop *l);

/* loop_contract.c */
bool loop_is_pre_start(const struct loop *l, uint32_t i);
/* Its role, and a server's number. */
void loop_name_process(const struct loop *l, uint32_t i, struct pod_exit *x);
void loop_describe(struct loop *l, struct contract_in *in,
                   const struct pod_round *round, uint32_t i);
/* Room for all rounds; negative where there is no memory. */
int loop_contract_new(struct loop *l, const struct contract_in *in);
/* spec's argv and envp, in the loop's buffers: until the next call. */
int loop_write_contract(struct loop *l, const struct contract_in *in,
                        struct child_spec *spec, struct err *e);

/* loop_workers.c */
int loop_workers_new(struct loop *l, struct err *e);
void loop_spawn(struct loop *l, const struct pod_round *round);
/* A child that was reaped, if it is a worker. */
bool loop_worker_died(struct loop *l, pid_t pid, int status, uint64_t cpu_ms);
void loop_report_unborn(struct loop *l);
void loop_sweep(struct loop *l);
void loop_kill(struct loop *l, uint32_t worker, int signo);
/* Worker `i` alone; plan->n_procs: --pre-start. */
void loop_spawn_one(struct loop *l, const struct pod_round *round, uint32_t i);

/* loop_guard.c */
/* Start the guard, unless it runs or is not needed. */
void loop_guard_open(struct loop *l);
/* It is dead, and agent did not end it. */
void loop_guard_died(struct loop *l);
/* Workers were started: what can wait is done some ms later. */
void loop_settle(struct loop *l);
/* A worker is about to be started. */
void loop_shm_begin(struct loop *l);
void loop_tidy_actions(struct pod_out *out);

/* loop_errors.c */
/* The folder of attempt_<n>/; NULL: there is none. */
const char *loop_error_root(const struct loop *l);
void loop_make_error_dir(struct loop *l, uint32_t i, uint32_t attempt);
void loop_error_file(const struct loop *l, uint32_t i, char *path, size_t cap);
void loop_forget_errors_of(struct loop *l, uint32_t i);
void loop_forget_errors(struct loop *l);

/* loop_death.c */
/* All dead children; `first` died before the others. */
void loop_reap(struct loop *l, pid_t first);
/* Last words and a hint, for a failure with code and signo. */
void loop_explain_death(struct loop *l, uint32_t i, int exec_errno,
                        struct failure *f);
/* Soon after a start: what a later death is compared with. */
void loop_note_machine(struct loop *l);
/* The error file of the cause becomes agent's own, where it has one. */
void loop_hand_on_error(struct loop *l, const struct verdict *v);

/* loop_again.c */
int loop_again_new(struct loop *l, struct err *e);
void loop_again_actions(struct pod_out *out);
void loop_sweep_workers(struct loop *l);

/* loop_door.c */
/* Pod 0 only; one pod alone has a barrier, too, without a port. */
int loop_barrier_new(struct loop *l, struct err *e);
void loop_conn_admit(void *ctx, uint32_t conn);
bool loop_conn_make_room(void *ctx);
void loop_say_plan(const struct plan *p);
void loop_say_cpus(const struct plan *p);

/* loop_streams.c */
void stream_open(struct stream *s, int fd);
/* `is_dead`: its last words are read even where they cannot be shown. */
void stream_drain(struct stream *s, bool is_dead);
/* It is not read, since something has no room. */
bool stream_waits(const struct stream *s);
/* Write what is there as lines, and close. */
void stream_close(struct stream *s);
void loop_room(struct loop *l);

struct stream_watch *watch_new(struct loop *l, int fd, uv_poll_cb cb,
                               struct stream *s);
void watch_free(struct stream_watch *w);

/* loop_logs.c */
int loop_logs_new(struct loop *l, struct err *e);
/* The folder of --log-dir. */
int loop_files_new(struct loop *l, struct err *e);
/* Before a worker starts; `buf` is the relay's. */
void stream_begin(struct stream *s, const struct contract_in *in, char *buf);
/* Copy those of these lines that torchrun's filters let pass. */
void loop_filter_lines(struct stream *s, const char *lines, size_t n);
/* Put the time before the lines that follow, if that is asked for. */
void stream_stamp(struct stream *s);
void loop_log_stats(const struct loop *l, uint32_t local_rank, bool is_err,
                    struct log_stats *ret);

/* loop_lost.c */
/* Say what could not be written or was dropped; not too often. */
void loop_say_missing(struct loop *l);
/* Write out what the workers wrote; what that leaves is counted as lost. */
void loop_logs_settle(struct loop *l);
/* Say what is missing, and then the last words. */
void loop_logs_end(struct loop *l, void (*say)(struct loop *l, char *text),
                   char *text);

/* loop_ranks.c */
/* Once: of --log-ranks, what no job of this size has. */
void loop_warn_ranks(struct loop *l, const struct pod_round *round);

/* loop_stage.c */
int loop_stage_new(struct loop *l, struct err *e);
void loop_stage(struct loop *l);
void loop_stage_kill(struct loop *l);
bool loop_stage_died(struct loop *l, pid_t pid, int status);

/* loop_preflight.c */
/* The checks of --preflight LIST, if any; then loop_stage(). */
void loop_preflight(struct loop *l);
/* Once the job has begun no all-reduce of all pods comes about: a pod that was
 * lost, or comes late, goes on without. */
void loop_preflight_begun(struct loop *l);
void loop_preflight_kill(struct loop *l);
bool loop_preflight_died(struct loop *l, pid_t pid, int status);
/* By default: cheap look-ups that warn. */
void loop_preflight_look(struct loop *l);

/* loop_ask.c */
int loop_asks_new(struct loop *l, struct err *e);
/* Make the socket of `agent status`, if it is to be made yet. */
void loop_asks_open(struct loop *l);
void loop_asks_end(struct loop *l);

/* loop_mesh.c */
void loop_mesh_actions(struct pod_out *out);

/* loop_end.c */
int loop_end(struct loop *l);

#endif
