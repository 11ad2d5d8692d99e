/* supervisor: the local gang: started together, stopped together, and gone
 * only when nothing that it left behind is alive.
 *
 * Pure. It calls `out` for what is to be done; these calls must not step it
 * again. Whether the job restarts is not decided here but by pod 0
 * (rendezvous/barrier.h).
 *
 *  IDLE --start--> RUNNING --a worker fails, or stop--> STOPPING --gone--> IDLE
 *                     +-----all workers ended with 0--> CLEANING --gone--> IDLE
 *
 * A gang may have servers behind its workers, as mxnet's. When all workers
 * have ended with 0 these may be needed elsewhere yet: SERVING, until they end
 * by themselves, or are dismissed, which is CLEANING.
 */
#ifndef SUPERVISE_SUPERVISOR_H
#define SUPERVISE_SUPERVISOR_H

#include <stdbool.h>
#include <stdint.h>

#define SUP_MAX_WORKERS 1024
/* From TERM to the workers until TERM to what they left outside of their
 * groups: finding that takes longer than an obedient worker takes to end, and
 * once all have ended there is mostly nothing to look for. */
#define SUP_LOOK_MS 5
#define SUP_POLL_MS 20       /* First look at what is left; doubles. */
#define SUP_POLL_MAX_MS 320
#define SUP_STUCK_MS 10000   /* KILL to "cannot be killed". */
/* The same in a stop from outside: with the default grace there must be time
 * for the verdict before the pod is killed, 30 s after its TERM. */
#define SUP_STUCK_SOON_MS 3000
#define SUP_DISMISS_MS 2000  /* A dismissed server ends by itself; then TERM. */
#define SUP_LAST_LOOK_MS 100 /* From the last look to that. */

enum sup_state {
    SUP_IDLE,
    SUP_RUNNING,
    SUP_SERVING,
    SUP_STOPPING,
    SUP_CLEANING,
};

enum sup_news {
    SUP_QUIET,
    SUP_FAILED,  /* The first failure of this gang; it is being stopped. */
    SUP_STOPPED, /* After a failure or a stop: all gone. */
    SUP_DONE,    /* All ended with 0, and all gone. */
    SUP_STUCK,   /* Something outlives SIGKILL. */
    SUP_SERVES,  /* All workers ended with 0; servers run. */
};

struct sup_out {
    void *ctx;
    void (*kill)(void *ctx, uint32_t worker, int signo); /* Its group. */
    /* Look for what workers left behind, send it `signo` (0: only look), and
     * report by supervisor_swept(), later. */
    void (*sweep)(void *ctx, int signo);
};

struct supervisor {
    struct sup_out out;
    uint64_t grace_ms;
    enum sup_state state;
    uint32_t n_workers, n_alive; /* With the servers. */
    uint32_t n_servers, n_working; /* The last ones; of the others, alive. */
    uint32_t n_held;    /* Dead, to be started again. */
    bool alive[SUP_MAX_WORKERS];
    bool killed;        /* SIGKILL was sent. */
    bool soon;          /* A stop from outside. */
    bool stuck;         /* Something has outlived SIGKILL. */
    uint64_t look_ms;   /* See supervisor_stuck_ms(). */
    bool sweeping;      /* A sweep was asked for, no answer yet. */
    bool swept_term;    /* What was left got TERM after the last death. */
    uint64_t kill_ms;   /* STOPPING, CLEANING: when TERM becomes KILL. */
    uint64_t term_ms;   /* Dismissed servers get TERM then; 0: they have it. */
    uint64_t poll_ms;   /* When to look again; UINT64_MAX: not waiting. */
    uint64_t poll_step_ms;
};

/* When something outlives its KILL at `kill_ms`: first, with `look_ms` 0, it is
 * killed and looked for once more, since an agent that stood still has not read
 * yet what has ended meanwhile; after that look, at `look_ms`, it is stuck. */
uint64_t supervisor_stuck_ms(uint64_t kill_ms, uint64_t look_ms, bool soon);

void supervisor_init(struct supervisor *s, const struct sup_out *out,
                     uint32_t n_workers, uint64_t grace_ms);

/* The caller starts so many workers, at most as many as before, the last
 * `n_servers` of which are servers; a start that fails is a death. SUP_SERVES
 * where there are servers alone. */
enum sup_news supervisor_start(struct supervisor *s, uint32_t n_workers,
                               uint32_t n_servers);
enum sup_news supervisor_exited(struct supervisor *s, uint64_t now_ms,
                                uint32_t worker, bool ok);
/* RUNNING: it died and is to be started again, alone; it was; or it is not
 * to be after all. */
void supervisor_hold(struct supervisor *s, uint32_t worker);
void supervisor_again(struct supervisor *s, uint32_t worker);
enum sup_news supervisor_drop(struct supervisor *s, uint64_t now_ms);
/* TERM to all, KILL after the grace. Ignored unless RUNNING or SERVING. */
void supervisor_stop(struct supervisor *s, uint64_t now_ms);
/* A stop from outside: do not wait long for what outlives SIGKILL. */
void supervisor_soon(struct supervisor *s);
/* SERVING: nobody needs the servers any more. */
void supervisor_dismiss(struct supervisor *s, uint64_t now_ms);
/* End the grace now. */
void supervisor_hurry(struct supervisor *s, uint64_t now_ms);
/* Answer to a sweep: what is still alive, and whether output is pending. */
enum sup_news supervisor_swept(struct supervisor *s, uint64_t now_ms,
                               uint32_t n_left, bool output_pending);
/* A child was reaped that is no worker: look at once whether that was all. */
void supervisor_nudge(struct supervisor *s, uint64_t now_ms);
enum sup_news supervisor_timeout(struct supervisor *s, uint64_t now_ms);
/* How long what runs would have until KILL, if it had to end now; 0: nothing
 * runs, or KILL was sent. */
uint64_t supervisor_grace_left(const struct supervisor *s, uint64_t now_ms);
uint64_t supervisor_deadline(const struct supervisor *s);

#endif
