/* tty: see tty.h. */
#include "supervise/tty.h"

#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

void tty_open(struct tty *t)
{
    memset(t, 0, sizeof *t);
    t->on = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    if (!t->on)
        return;
    t->group = getpgrp();
    t->shared = tcgetpgrp(STDIN_FILENO) >= 0;
    t->has_modes = tcgetattr(STDIN_FILENO, &t->modes) == 0;
    /* In a new PID namespace the group may be one that has no number here,
     * and no terminal could be given back to it. */
    if (t->group > 0 || setpgid(0, 0) != 0)
        return;
    t->group = getpgrp();
    if (t->shared)
        (void)tcsetpgrp(STDIN_FILENO, t->group);
}

static bool in_foreground(const struct tty *t)
{
    return tcgetpgrp(STDIN_FILENO) == t->group;
}

void tty_prepare(struct tty *t)
{
    t->given = t->shared && in_foreground(t);
}

void tty_enter(const struct tty *t)
{
    if (!t->shared) {
        (void)setsid();
        (void)ioctl(STDIN_FILENO, TIOCSCTTY, 0);
        return;
    }
    (void)setpgid(0, 0);
    if (t->given)
        (void)tcsetpgrp(STDIN_FILENO, getpid());
}

void tty_take_back(struct tty *t, bool broken)
{
    if (!t->on)
        return;
    if (t->given)
        (void)tcsetpgrp(STDIN_FILENO, t->group);
    t->given = false;
    if (broken && t->has_modes)
        (void)tcsetattr(STDIN_FILENO, TCSANOW, &t->modes);
}

static void give(struct tty *t, pid_t worker)
{
    t->given = tcsetpgrp(STDIN_FILENO, worker) == 0;
}

void tty_stopped(struct tty *t, pid_t worker, int signo)
{
    sigset_t stop, pending;

    if (!t->shared ||
        (signo != SIGTSTP && signo != SIGTTIN && signo != SIGTTOU))
        return;
    tty_take_back(t, false);
    /* To the group, as it would have come from the terminal: who ignores TTIN
     * there, as timeout(1) does, goes on. The kernel ignores it where no shell
     * could wake this group again, and where this is PID 1. */
    sigemptyset(&stop);
    (void)sigaddset(&stop, signo);
    (void)sigprocmask(SIG_UNBLOCK, &stop, NULL);
    (void)kill(0, signo);
    (void)sigprocmask(SIG_BLOCK, &stop, NULL);
    if (sigpending(&pending) == 0 && sigismember(&pending, SIGCONT) == 1)
        return; /* tty_continued() follows. */
    if (!in_foreground(t))
        return;
    give(t, worker);
    (void)kill(-worker, SIGCONT);
}

void tty_continued(struct tty *t, pid_t worker)
{
    if (t->shared && !t->given && worker > 0 && in_foreground(t))
        give(t, worker);
}

int tty_ended_by(const struct tty *t, int code, int signo)
{
    static const int signals[] = {SIGINT, SIGQUIT, SIGHUP};

    for (unsigned i = 0; t->on && i < 3; i++)
        if (signo == signals[i] || (signo == 0 && code == 128 + signals[i]))
            return signals[i];
    return 0;
}
