/* failure: see failure.h. */
#include "supervise/failure.h"

#include "supervise/verdict_patterns.h"

#include <signal.h>
#include <string.h>

/* The last line that tells of a cause decides, as for the hint; what threads
 * say that crash as the program ends is none. */
static bool tells_of_peer(const char *tail)
{
    bool of_peer = false;

    while (*tail) {
        size_t n = strcspn(tail, "\n");
        char line[FAILURE_TAIL_MAX];
        const struct verdict_pattern *p;

        memcpy(line, tail, n < sizeof line ? n : sizeof line - 1);
        line[n < sizeof line ? n : sizeof line - 1] = '\0';
        p = verdict_pattern_of(line);
        if (p ? p->more != HINT_AT_END : verdict_is_exception(line))
            of_peer = p && p->more == HINT_PEER;
        tail += n + (tail[n] == '\n');
    }
    return of_peer;
}

bool failure_follows(const struct failure *f)
{
    return f->kind == FAILURE_WORKER && !f->hung && f->signo != SIGKILL &&
           tells_of_peer(f->tail);
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
