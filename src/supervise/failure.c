/* failure: see failure.h. */
#include "supervise/failure.h"

#include <signal.h>

static int weight(const struct failure *f)
{
    if (f->kind != FAILURE_WORKER)
        return 0;
    if (f->hung)
        return 3; /* Whatever follows from being stopped. */
    switch (f->signo) {
    case SIGKILL:
    case SIGSEGV:
    case SIGBUS:
    case SIGILL:
    case SIGFPE:
    case SIGSYS:
        return 2;
    default:
        return 1; /* SIGABRT, too: an uncaught exception about a peer. */
    }
}

bool failure_beats(const struct failure *a, const struct failure *b)
{
    return weight(a) > weight(b);
}
