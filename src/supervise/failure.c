/* failure: see failure.h. */
#include "supervise/failure.h"

#include "supervise/verdict_patterns.h"

#include <signal.h>

bool failure_follows(const struct failure *f)
{
    return f->kind == FAILURE_WORKER && !f->hung && f->signo != SIGKILL &&
           verdict_pattern_of_peer(f->tail);
}

bool failure_is_death(const struct failure *f)
{
    switch (f->signo) {
    case SIGKILL:
        return true;
    case SIGSEGV:
    case SIGBUS:
    case SIGILL:
    case SIGFPE:
    case SIGSYS:
        /* Threads of gloo and NCCL crash, too, as such a program ends
         * (pytorch/pytorch#190489). */
        return !failure_follows(f);
    default:
        return false; /* SIGABRT, too: an uncaught exception about a peer. */
    }
}

static int weight(const struct failure *f)
{
    if (f->kind != FAILURE_WORKER)
        return 0;
    if (f->hung)
        return 4; /* Whatever follows from being stopped. */
    if (failure_is_death(f))
        return 3;
    return failure_follows(f) ? 1 : 2;
}

bool failure_beats(const struct failure *a, const struct failure *b)
{
    return weight(a) > weight(b);
}
