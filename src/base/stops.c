/* stops: see stops.h. */
#include "base/stops.h"

#include <stddef.h>
#include <unistd.h>

void stops_fill(sigset_t *ret)
{
    struct sigaction hup;

    sigemptyset(ret);
    (void)sigaddset(ret, SIGTERM);
    (void)sigaddset(ret, SIGINT);
    (void)sigaddset(ret, SIGQUIT);
    if (sigaction(SIGHUP, NULL, &hup) != 0 || hup.sa_handler != SIG_IGN)
        (void)sigaddset(ret, SIGHUP);
}

static void end(int signo)
{
    _exit(128 + signo);
}

void stops_end_init(void)
{
    struct sigaction action = {.sa_handler = end};
    sigset_t stops;

    stops_fill(&stops);
    for (int i = 1; i < NSIG && getpid() == 1; i++)
        if (sigismember(&stops, i) == 1)
            (void)sigaction(i, &action, NULL);
}
