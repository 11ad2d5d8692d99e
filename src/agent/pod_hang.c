/* pod_hang: all workers of a pod stand still (supervise/hang.h says so). They
 * get a signal, to say where they are, and are stopped 5 s later, or once they
 * have all ended; that is a failure of the round like any other. */
#include "agent/pod_parts.h"

#include "base/err.h"
#include "base/text.h"
#include "supervise/hang.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

/* Whether a program that has no handler for it dies of it, and one that has
 * may say something first. */
static bool kills_unheard(int signo)
{
    return signo != SIGKILL && signo != SIGSTOP && signo != SIGTSTP &&
           signo != SIGTTIN && signo != SIGTTOU && signo != SIGCONT &&
           signo != SIGCHLD && signo != SIGURG && signo != SIGWINCH;
}

void pod_hang(struct pod *p, uint64_t now_ms, uint32_t worker)
{
    char name[16], buf[96];
    struct text t;

    if (p->state != POD_RUNNING || p->hang_ms || p->n_held > 0 ||
        worker >= p->cfg.nproc || !p->sup.alive[worker])
        return;
    p->hang_ms = now_ms + HANG_SIGNAL_MS;
    p->hang_worker = worker;
    text_init(&t, buf, sizeof buf);
    text_add_duration(&t, p->cfg.hang_timeout_ms);
    pod_say(p, LOG_WARNING, "the workers of this pod hang: no output, and less "
            "than 1 %% of a core, or no heartbeat, for %s; %s to them%s, and "
            "in 5 s they are stopped", buf,
            verdict_signal_name(p->cfg.hang_signal, name),
            kills_unheard(p->cfg.hang_signal)
                ? ", of which a program without a handler dies" : "");
    for (uint32_t i = 0; i < p->cfg.nproc; i++)
        if (p->sup.alive[i])
            p->out.kill(p->out.ctx, i, p->cfg.hang_signal);
}

static void describe_hang(const struct pod *p, const struct pod_exit *x,
                          struct failure *f)
{
    char buf[96];
    struct text t;

    pod_describe_exit(p, x, f);
    f->code = ERR_HANG;
    f->signo = 0;
    f->hung = true;
    text_init(&t, buf, sizeof buf);
    text_add_duration(&t, p->cfg.hang_timeout_ms);
    (void)snprintf(f->text, sizeof f->text,
                   "all workers of the pod were silent and idle, or without a "
                   "heartbeat, for %s (--hang-timeout); look for the rank that "
                   "does not take part in a collective", buf);
}

/* How the worker that stands for all is described; it may be dead by now.
 * `signo` ended the last of them, or is 0. */
static void describe(const struct pod *p, int signo, struct failure *f)
{
    char name[16];
    size_t len;
    struct pod_exit x = {.worker = p->hang_worker, .hint = "", .tail = ""};

    if (p->out.describe)
        p->out.describe(p->out.ctx, p->hang_worker, &x);
    describe_hang(p, &x, f);
    len = strlen(f->text);
    if (signo == p->cfg.hang_signal)
        (void)snprintf(f->text + len, sizeof f->text - len, "; it "
                       "was %s (--hang-signal) that ended them%s",
                       verdict_signal_name(signo, name),
                       kills_unheard(signo) ? ": they had no handler for it"
                                            : "");
}

bool pod_hang_exit(struct pod *p, const struct pod_exit *x)
{
    bool is_last = p->sup.n_working <= 1 || x->role != PROC_WORKER;

    if (is_last) {
        p->hang_ms = 0;
        describe(p, x->role == PROC_WORKER ? x->signo : 0, &p->failure);
    }
    return !is_last;
}

void pod_hang_timeout(struct pod *p, uint64_t now_ms)
{
    if (!p->hang_ms || now_ms < p->hang_ms)
        return;
    p->hang_ms = 0;
    describe(p, 0, &p->failure);
    pod_move(p, POD_STOPPING);
    pod_say_stopping(p);
    supervisor_stop(&p->sup, now_ms);
    pod_report(p, now_ms);
}
