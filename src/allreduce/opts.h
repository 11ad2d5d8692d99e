/* opts: agent-allreduce's command line, that of nccl-tests; see tool/cli.h.
 * Pure but for the printing. */
#ifndef ALLREDUCE_OPTS_H
#define ALLREDUCE_OPTS_H

#include "base/err.h"
#include "tool/cli.h"

#include <stdbool.h>
#include <stdint.h>

#define OPTS_ALL (-1)                    /* Of types, of ops. */
#define OPTS_BYTES_MAX (UINT64_C(1) << 50)

struct opts {
    enum cli_view view;
    uint64_t min_bytes, max_bytes, step_bytes;
    unsigned factor; /* 1: in steps of step_bytes. */
    unsigned iters, warmup, check;
    int type, op; /* Rows of pattern_type(), pattern_op(), or OPTS_ALL. */
    uint64_t timeout_ms; /* 0: as libddp has it. */
    double min_busbw;    /* GB/s; 0: none. */
    bool json;
};

/* Fails with ERR_USAGE. */
int opts_read(struct opts *ret, int argc, char **argv, struct err *e);

/* Anything but CLI_RUN. */
void opts_write(FILE *out, enum cli_view view);

/* The size after `bytes`; 0 after the last one. */
uint64_t opts_next(const struct opts *o, uint64_t bytes);

#endif
