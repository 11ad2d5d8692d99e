/* args: agent-fetch's command line: one table, from which the help and the
 * manual page are made, too.
 *
 * Pure but for the printing. */
#ifndef FETCH_ARGS_H
#define FETCH_ARGS_H

#include "base/err.h"
#include "fetch/urls.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define ARGS_PARALLEL_MAX 64
#define ARGS_RETRIES_MAX 1000

enum args_help { ARGS_RUN, ARGS_HELP, ARGS_HELP_MAN, ARGS_VERSION };

struct args {
    enum args_help help;
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

/* ARGS_HELP, ARGS_HELP_MAN, ARGS_VERSION. */
void args_write_help(FILE *out, enum args_help view);

#endif
