/* child: all checks as one child of agent, whose loop goes on meanwhile. */
#ifndef PREFLIGHT_CHILD_H
#define PREFLIGHT_CHILD_H

#include "base/err.h"
#include "preflight/preflight.h"

#include <sys/types.h>

/* Fork; the child runs job->checks and writes one struct preflight_finding
 * after the other, at last one whose level is PREFLIGHT_CHILD_OVER. Returns
 * its pid; *ret_fd is the non-blocking read end. Negative: ERR_RESOURCE. */
#define PREFLIGHT_CHILD_OVER 255
pid_t preflight_child_start(const struct preflight_job *job, int *ret_fd,
                            struct err *e);

enum preflight_got {
    PREFLIGHT_GOT_ONE,
    PREFLIGHT_GOT_NOTHING, /* So far. */
    PREFLIGHT_GOT_END,     /* Of the pipe. */
};

struct preflight_reader {
    struct preflight_finding finding;
    size_t got; /* Bytes of it. */
};

/* The next finding, with its texts ended, in r->finding. */
enum preflight_got preflight_child_read(struct preflight_reader *r, int fd);

#endif
