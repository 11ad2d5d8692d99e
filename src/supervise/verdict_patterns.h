/* verdict_patterns: the one table from what a line of stderr says to a hint: a
 * likely cause and what to do. Pure. */
#ifndef SUPERVISE_VERDICT_PATTERNS_H
#define SUPERVISE_VERDICT_PATTERNS_H

#include <stdbool.h>

#define HINT_SHM_FIX                                                        \
    "in Kubernetes mount an emptyDir of medium: Memory at /dev/shm, with "     \
    "docker use --shm-size, or use fewer data workers"

enum verdict_more { /* What of verdict_facts is added to the hint. */
    HINT_PLAIN,
    HINT_PEER, /* Nothing. The line is of a rank that saw another one end. */
    HINT_AT_END, /* Nothing. It comes after the cause, if there was one. */
    HINT_SHM,  /* The state of /dev/shm. */
    HINT_KILL, /* As for SIGKILL. */
    HINT_PORT, /* Who holds the port. */
    HINT_DISK, /* Which file systems are full. */
    HINT_PIDS, /* How many processes the pod may have. */
};

struct verdict_pattern {
    const char *words, *also; /* In the line, both; `also` may be NULL. */
    const char *hint;
    enum verdict_more more;
};

/* NULL: the line says nothing that is known. */
const struct verdict_pattern *verdict_pattern_of(const char *line);
/* "torch.OutOfMemoryError: ...": the exception that ended a Python program. */
bool verdict_is_exception(const char *line);

#endif
