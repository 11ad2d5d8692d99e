/* stops: see stops.h. */
#include "base/stops.h"

#include <stddef.h>

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
