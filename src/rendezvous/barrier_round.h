/* barrier_round: the decisions of barrier.c about rounds: start one, end one,
 * lose a pod, finish the job. Internal to the barrier. */
#ifndef RENDEZVOUS_BARRIER_ROUND_H
#define RENDEZVOUS_BARRIER_ROUND_H

#include "rendezvous/barrier.h"

void bar_say(const struct barrier *b, enum log_level level, const char *fmt,
             ...) __attribute__((format(printf, 3, 4)));
uint64_t bar_random(struct barrier *b); /* Never 0. */
void bar_phase(struct barrier *b, enum barrier_phase to);
void bar_wake(struct barrier *b, uint64_t at_ms);

/* When the next heartbeats are due. A pod alone has nobody to send them to,
 * and sleeps. */
uint64_t bar_next_ping(const struct barrier *b, uint64_t now_ms);
/* For a wait in which others must have had the time: it looks often, since only
 * what is late at a look is known as time in which this machine stood still. */
void bar_wake_often(struct barrier *b, uint64_t now_ms, uint64_t at_ms);
void bar_move(struct barrier *b, struct bar_peer *p, enum bar_state to);
void bar_send(const struct barrier *b, const struct bar_peer *p,
              const struct wire_msg *m);

/* To be called first at each event: time in which pod 0 stood still does not
 * count where it waits for something to be over elsewhere. */
void bar_woken(struct barrier *b, uint64_t now_ms);
/* The rank that a HELLO is about; UINT32_MAX: none is left. It may take the
 * rank from a pod that has it by arrival, and whose connection is reset. */
uint32_t bar_rank_of(struct barrier *b, uint64_t now_ms,
                     const struct wire_msg *m);
/* After so long nothing runs any more that pod 0 does not hear of. */
uint64_t bar_lease_ms(const struct barrier *b);
/* Workers may run that nobody can be told to stop: start nothing before. */
void bar_fence(struct barrier *b, uint64_t until_ms);
/* Fewer pods than nnodes will do. */
bool bar_is_elastic(const struct barrier *b);
/* Enough have arrived to start, be it without some. */
bool bar_has_enough(const struct barrier *b);
/* Until when those that are missing may run workers of an older pod 0's round;
 * 0: none may. */
uint64_t bar_missing_until(const struct barrier *b);
/* A pod is there that the running round does not have: start anew with it. */
void bar_grow(struct barrier *b, uint64_t now_ms, uint32_t rank);
/* barrier_hosts.c: the pods of the round, for START; "" where cfg has no
 * tell_hosts. False where they do not fit: then it is "", too. */
bool bar_list_hosts(const struct barrier *b, char out[WIRE_HOSTS_MAX]);
/* START as this peer must get it. */
void bar_send_start(const struct barrier *b, uint64_t now_ms, uint32_t rank);
void bar_send_stop(const struct barrier *b, uint64_t now_ms,
                   const struct bar_peer *p, uint32_t round,
                   const struct failure *cause, uint64_t delay_ms,
                   const char *why);
/* barrier_past.c. Put into a frame what a next pod 0 must know. */
void bar_tell_past(const struct barrier *b, uint64_t now_ms,
                   struct wire_msg *m);
/* A pod is admitted: go on from the highest that any pod reports; count that
 * the last pod 0 was lost, which may end the job. */
void bar_take_past(struct barrier *b, uint64_t now_ms,
                   const struct bar_hello *hello);
/* Another pod was lost in a round that ran, so long ago. */
void bar_note_lost(struct barrier *b, uint64_t now_ms, uint32_t rank,
                   uint64_t age_ms);
/* It was in a round whose pod 0 was lost, and that was before this one. */
bool bar_has_lost_zero(const struct barrier *b, const struct bar_hello *hello);

/* Start the round where all have arrived and nothing forbids it. */
void bar_try_start(struct barrier *b, uint64_t now_ms);
/* A failure in the running round, whose cause may yet be another. */
void bar_suspect(struct barrier *b, uint64_t now_ms, const struct failure *f);
/* Act on it where its time is over, or nobody is left to be the cause. */
void bar_settle(struct barrier *b, uint64_t now_ms);
/* mesh_words.c: pods do not reach each other: say so, or end the job. */
void mesh_warn(const struct barrier *b);
void mesh_give_up(struct barrier *b, uint64_t now_ms);
/* A worker failed, or all are done and the policy is `always`. */
void bar_worker_failed(struct barrier *b, uint64_t now_ms,
                       const struct failure *cause);
/* A pod asks to try something again, alone. */
void bar_again(struct barrier *b, uint64_t now_ms, uint32_t rank,
               const struct wire_msg *m);
/* A pod said that it was told to stop. */
void bar_left(struct barrier *b, uint64_t now_ms, uint32_t rank,
              const struct failure *cause);
/* A pod is lost: how. After silence its workers may still run for a while. */
enum bar_loss { BAR_CLOSED, BAR_SILENT, BAR_REPLACED, BAR_REPLACED_SILENT };
void bar_lose(struct barrier *b, uint64_t now_ms, uint32_t rank,
              enum bar_loss how);
/* The job ends: tell everyone. `cause` NULL for success. */
void bar_finish(struct barrier *b, uint64_t now_ms, int code,
                const struct failure *cause);
/* The same, and why there is no restart. */
void bar_finish_because(struct barrier *b, uint64_t now_ms, int code,
                        const struct failure *cause, const char *why);
/* Leave ENDING where everyone has heard, or (`look_at_all`: one pod after the
 * other, for time-outs) where nobody is left to wait for. */
void bar_try_over(struct barrier *b, uint64_t now_ms, bool look_at_all);
/* barrier_time.c. What ends the wait for those that are missing, if they do not
 * come, and in how long. */
enum wire_bound bar_bound(const struct barrier *b, uint64_t now_ms,
                          uint64_t *ret_ms);
/* barrier_words.c. A pod with this rank, if there is such a rank, or with
 * WIRE_ANY_RANK is refused for this. */
void bar_note_refused(struct barrier *b, uint64_t now_ms, uint32_t conn,
                      uint32_t rank, enum bar_refused why);
/* This connection is refused: `what` as of bar_stray. */
void bar_note_stray(struct barrier *b, struct bar_stray *s, uint64_t now_ms,
                    uint32_t conn, uint32_t what);
/* All is said, or not worth it any more. */
void bar_forget_news(struct barrier *b);
/* After each event: what has changed is told soon. */
void bar_plan_news(struct barrier *b, uint64_t now_ms);
/* Tell the pods what it is time for; while gathering. */
void bar_tell_waiting(struct barrier *b, uint64_t now_ms);
/* HELLO came on a connection that is not admitted. */
void bar_hello(struct barrier *b, uint64_t now_ms, uint32_t conn,
               const struct wire_msg *m);
/* The round is over on a pod that was cut off. */
void bar_interrupted(struct barrier *b, uint64_t now_ms, uint32_t rank);
/* Refuse this connection alone. */
void bar_refuse(struct barrier *b, uint32_t conn, int code, const char *text);
/* Admit it, and bring it to where the job is. */
void bar_welcome(struct barrier *b, uint64_t now_ms, uint32_t rank,
                 uint32_t conn, const struct bar_hello *hello);
/* A newcomer claims the rank of a pod that may be alive. */
void bar_challenge(struct barrier *b, uint64_t now_ms, uint32_t rank,
                   uint32_t conn, const struct bar_hello *hello);
void bar_end_challenge(struct barrier *b, uint64_t now_ms, uint32_t rank,
                       bool old_lives);
bool bar_may_come_back(const struct bar_peer *p);
/* Settle what a newcomer with a held rank waits for, if anything. */
void barrier_check_challenge(struct barrier *b, uint64_t now_ms,
                             uint32_t rank);
/* A failure of class `code` found by pod 0 about the job. */
struct failure bar_fault(const struct barrier *b, int code, const char *fmt,
                         ...) __attribute__((format(printf, 3, 4)));

#endif
