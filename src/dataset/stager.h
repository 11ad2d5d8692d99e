/* stager: staging as a child of agent, so that PID 1 parses no foreign byte
 * and a crash in a parser is an exit status. The child says how far it is by
 * lines on a pipe; agent reads them with a bound. */
#ifndef DATASET_STAGER_H
#define DATASET_STAGER_H

#include "base/err.h"
#include "dataset/stage.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define STAGER_LINE_MAX (PATH_MAX + STAGE_NAME_MAX + 256)

/* Fork; the child stages `n` sets one after the other and ends. Returns its
 * pid; *ret_fd is the non-blocking read end. Negative: ERR_RESOURCE. */
pid_t stager_start(const struct stage_request *req, unsigned n, int *ret_fd,
                   struct err *e);

enum stager_kind { STAGER_PROGRESS, STAGER_SET, STAGER_ERROR };

struct stager_line { /* A parsed line. */
    enum stager_kind kind;
    unsigned percent; /* PROGRESS, over all sets. */
    struct stage_progress now; /* PROGRESS of this set; its name is `set`'s. */
    unsigned index;   /* SET: which request. */
    struct stage_result set;
    struct err err;
};

/* Pure. False where the line (NUL-terminated, no newline) is malformed. */
bool stager_parse(const char *line, struct stager_line *ret);
/* Pure. Write a line, newline included; false where it does not fit. */
bool stager_format(const struct stager_line *l, char *out, size_t cap);

/* The digest that pods compare: of the one set, or of the sets' digests. */
void stager_digest(const struct stage_result *sets, unsigned n,
                   uint8_t ret[32]);

#endif
