/* pod_parts: what pod.c (signals, states), pod_worker.c (workers),
 * pod_link.c and pod_zero.c (pod 0) and pod_time.c (deadlines) need of each
 * other. Internal to the pod. */
#ifndef AGENT_POD_PARTS_H
#define AGENT_POD_PARTS_H

#include "agent/pod.h"

void pod_say(const struct pod *p, enum log_level level, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void pod_move(struct pod *p, enum pod_state to);
/* pod_time.c: this pod was told to stop; its grace is over. */
void pod_say_told(const struct pod *p, uint64_t now_ms, const char *signal);
void pod_say_kill(const struct pod *p);
/* `who` has ended, and `n_left` processes that it left behind take their time,
 * at most `ms` more. False where that is not worth a line yet. */
bool pod_say_left(const struct pod *p, uint64_t ms, uint32_t n_left,
                  const char *who);
/* The job has failed, but its workers take their time: the verdict, which waits
 * for them, is not the first that is heard of it. Said once. */
void pod_say_slow_end(struct pod *p);
/* The same of pod 0, whose verdict waits for the other pods; now and then. */
void pod_say_stays(struct pod *p, uint64_t now_ms);

/* The likely reason of a failure that is tried again, where one is known: it
 * may be the last that is heard of it. */
void pod_say_hint(const struct pod *p, const struct failure *f);

/* How long a wait may last yet, and the option that says so, or NULL. */
void pod_add_left(struct text *t, uint64_t ms, const char *option);

/* The restarts that are used, in `buf`, which is returned. */
#define POD_BUDGET_MAX 128
const char *pod_budget(const struct pod *p, char buf[POD_BUDGET_MAX]);

/* To pod 0, wherever it is; dropped while there is no connection, for
 * pod_report() says it again. */
void pod_tell(struct pod *p, uint64_t now_ms, const struct wire_msg *m);
void pod_say_hello(struct pod *p, uint64_t now_ms);
/* pod_past.c: what HELLO tells of the job's past; what START and STOP say of
 * it; a WELCOME, of the pod 0 so far or of a new one; AGAIN. */
void pod_past_tell(const struct pod *p, uint64_t now_ms, struct wire_msg *m);
void pod_past_take(struct pod *p, uint64_t now_ms, const struct wire_msg *m);
void pod_past_welcome(struct pod *p, const struct wire_msg *m);
void pod_past_again(struct pod *p, uint64_t now_ms, const struct wire_msg *m);
/* A new connection: make HELLO one that asks for a proof. */
void pod_auth_begin(struct pod *p, struct wire_msg *hello);
/* Whether the frame comes from the job's pod 0; takes part in the proof. */
bool pod_auth_trusts(struct pod *p, uint64_t now_ms, const struct wire_msg *m);
/* Tell pod 0 where this pod stands; after WELCOME and after each change. */
void pod_report(struct pod *p, uint64_t now_ms);
/* Take what the own barrier has sent meanwhile. */
void pod_take_queue(struct pod *p, uint64_t now_ms);

/* Stop what runs; once nothing runs, go on or leave. */
void pod_stop_workers(struct pod *p, uint64_t now_ms);
/* The job is over for this pod, with `code`. */
void pod_end(struct pod *p, uint64_t now_ms, int code,
             const struct failure *cause);
void pod_nothing_runs(struct pod *p, uint64_t now_ms);
void pod_begin_round(struct pod *p, uint64_t now_ms,
                     const struct wire_msg *m);
/* What the supervisor says of the workers. */
void pod_take_news(struct pod *p, uint64_t now_ms, enum sup_news news);
/* Which failure was first is as clear as it gets: tell pod 0. */
void pod_settle(struct pod *p, uint64_t now_ms);
/* The failure that an exit is. */
void pod_describe_exit(const struct pod *p, const struct pod_exit *x,
                       struct failure *ret);
/* pod_again.c: --pre-start, and --restart-scope worker. */
/* Nothing runs: go to WAITING, by way of PREPARING where that is asked for. */
void pod_get_ready(struct pod *p, uint64_t now_ms);
void pod_prepare_ended(struct pod *p, uint64_t now_ms,
                       const struct pod_exit *x);
/* A worker ended; true where it is held, to be started again. */
bool pod_hold(struct pod *p, uint64_t now_ms, const struct pod_exit *x);
/* The round is over: nobody is started again. */
void pod_hold_none(struct pod *p);
void pod_ask_again(struct pod *p, uint64_t now_ms);
void pod_on_again(struct pod *p, uint64_t now_ms, const struct wire_msg *m);
void pod_again_timeout(struct pod *p, uint64_t now_ms);
uint64_t pod_again_deadline(const struct pod *p);
/* pod_hang.c */
/* A worker ended while it hung: whether the others are still waited for. Else
 * the failure is noted. */
bool pod_hang_exit(struct pod *p, const struct pod_exit *x);
void pod_hang_timeout(struct pod *p, uint64_t now_ms);
/* How many are told to stop, and how long they have; for -v. */
void pod_say_stopping(const struct pod *p);
void pod_leave(struct pod *p, uint64_t now_ms);
void pod_gone(struct pod *p);
/* ARRIVED gets the address of this pod for the mesh test. False where that
 * was a fault: there is nothing more to report. */
bool pod_mesh_open(struct pod *p, uint64_t now_ms, struct wire_msg *m);
void pod_mesh_close(struct pod *p);
/* Close the connection to pod 0 where it is silent and nothing runs here. */
void pod_drop_silent(struct pod *p, uint64_t now_ms);
/* The deadlines of the link and of the last words. */
void pod_check_time(struct pod *p, uint64_t now_ms);

#endif
