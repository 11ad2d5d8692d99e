/* stops: the signals that end agent. */
#ifndef BASE_STOPS_H
#define BASE_STOPS_H

#include <signal.h>

/* TERM, INT, QUIT, and HUP unless it is ignored: under nohup the end of the
 * session is no reason to stop. */
void stops_fill(sigset_t *ret);

/* PID 1 has no default actions, so that a tool that is all of a container
 * would not hear of its end: these signals end it as they end any other. */
void stops_end_init(void);

#endif
