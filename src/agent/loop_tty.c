/* loop_tty: a lone worker that has the terminal itself (tty.h): when it gets
 * it, and what its user does there. */
#include "agent/loop_parts.h"

const struct tty *loop_tty_for(struct loop *l, uint32_t i)
{
    if (!l->tty.on || i != 0)
        return NULL;
    tty_prepare(&l->tty);
    return &l->tty;
}

/* Ctrl-C is for the worker. Where it ends by that, its user wants no restart:
 * it is the same as if agent had been told to stop. */
void loop_tty_ended(struct loop *l, uint32_t i, int code, int signo)
{
    struct worker *w = &l->workers[i];
    int stop = tty_ended_by(&l->tty, code, signo);
    pid_t pid = w->pid;

    if (!l->tty.on || i != 0)
        return;
    tty_take_back(&l->tty, signo != 0);
    if (stop == 0)
        return;
    w->pid = 0; /* Gone: no signal may go to its number. */
    w->asked = pid; /* By the terminal. */
    pod_signal(&l->pod, loop_now(), stop);
    w->pid = pid;
}

void loop_tty_stopped(struct loop *l, pid_t pid, int signo)
{
    if (l->tty.on && pid == l->workers[0].pid)
        tty_stopped(&l->tty, pid, signo);
}
