/* args: agent-fetch's command line; see tool/cli.h. Pure but for the
 * printing. */
#ifndef FETCH_ARGS_H
#define FETCH_ARGS_H

#include "base/err.h"
#include "fetch/urls.h"
#include "tool/cli.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define ARGS_PARALLEL_MAX 64
#define ARGS_RETRIES_MAX 1000

struct args {
    enum cli_view view;
    const char *manifest, *folder; /* Borrowed from argv. */
    bool check;
    const char *mirrors[URLS_MIRRORS_MAX];
    unsigned n_mirrors;
    const char *netrc; /* NULL: ~/.netrc. */
    unsigned parallel, retries;
    uint64_t stall_ms, connect_ms, give_up_ms;
    unsigned quiet, verbose;
};

/* Fails with ERR_USAGE. */
int args_read(struct args *ret, int argc, char **argv, struct err *e);

/* Anything but CLI_RUN. */
void args_write_help(FILE *out, enum cli_view view);

#endif
