/* tty: the terminal, where a lone worker has it itself.
 *
 * The worker gets a process group of its own in agent's session, and this
 * group is the terminal's foreground while agent's own would be: Ctrl-C,
 * Ctrl-Z and the window's size reach the worker, not agent. Where the
 * terminal is nobody's, the worker gets a session and takes it. All signals
 * are blocked in agent, so that SIGTTOU does not stop it here. */
#ifndef SUPERVISE_TTY_H
#define SUPERVISE_TTY_H

#include <stdbool.h>
#include <sys/types.h>
#include <termios.h>

struct tty {
    bool on;     /* The worker has the terminal: no pipes. */
    bool shared; /* It is the terminal of agent's own session. */
    bool given;  /* The worker's group was made the foreground. */
    bool has_modes;
    pid_t group; /* agent's own. */
    struct termios modes;
};

/* On where descriptors 0 and 1 are a terminal. */
void tty_open(struct tty *t);

/* Before the worker is started; then, in the child, before exec: only
 * async-signal-safe calls. */
void tty_prepare(struct tty *t);
void tty_enter(const struct tty *t);

/* The terminal is agent's again. `broken`: its modes, too; the worker was
 * killed and could not set them back. */
void tty_take_back(struct tty *t, bool broken);

/* The worker was stopped (Ctrl-Z, or it read in the background): stop as it
 * did, with all of agent's group, until someone says CONT; where there is no
 * shell that could, the worker goes on at once. */
void tty_stopped(struct tty *t, pid_t worker, int signo);

/* agent got CONT: the worker has the terminal again if agent has it. */
void tty_continued(struct tty *t, pid_t worker);

/* The signal by which a user at the terminal ended the worker, or 0. `code` is
 * 128 + `signo`, or what a program returned after it caught the signal. */
int tty_ended_by(const struct tty *t, int code, int signo);

#endif
