/* proc: what the workers of this agent left behind, read from /proc.
 *
 * A process belongs to the workers where it carries their brand (brand.h), or
 * where its environment holds the cookie that only they got. An exec session
 * or a side-car has neither: never ours. Where brands cannot be used, a child
 * adopted since `since` whose environment cannot say (cleared, overwritten,
 * unreadable) is taken for theirs, too. */
#ifndef SUPERVISE_PROC_H
#define SUPERVISE_PROC_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* False where /proc is missing, or that of another PID namespace (`unshare -pf`
 * alone): its numbers are others' here, and a signal would go to these. Then
 * all of this does as without /proc. */
bool proc_is_own(void);

struct proc_query {
    const char *cookie;      /* Looked for anywhere in the environment. */
    uint64_t brand;          /* 0: cannot be used. */
    uint64_t brand_ignore;   /* Bits of it that may differ. */
    pid_t self;              /* Adopted children have this parent; 0: none. */
    uint64_t since;          /* Start time, clock ticks since boot. */
    const pid_t *skip;       /* Not to be counted: helpers of agent. */
    unsigned n_skip;
    const pid_t *groups;     /* Process groups that got the signal already. */
    unsigned n_groups;
    const pid_t *sessions;   /* Members of these belong too; may be NULL. */
    unsigned n_sessions;
    const pid_t *asked;      /* Process groups that got the signal `asked_by`
                                before: who catches that gets no TERM. */
    unsigned n_asked;
    int asked_by;
};

/* Send `signo` (0: none) to all of them but the members of `groups`; returns
 * how many live outside of `groups`, and one of them in *ret_pid. Zombies do
 * not count, but where threads of theirs run on. Without /proc: 0. */
unsigned proc_signal_left(const struct proc_query *q, int signo,
                          pid_t *ret_pid);

/* Clock ticks since boot at which the calling process would start now. */
uint64_t proc_now_ticks(void);

/* True where this process has a child that is not in `known`. */
bool proc_has_other_children(const pid_t *known, unsigned n_known);

/* What the kernel says a process waits for, for people: "wchan"; or "". */
void proc_wchan(pid_t pid, char *out, unsigned cap);

#endif
