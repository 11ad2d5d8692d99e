/* cli: the command line of a helper program (agent-fetch, agent-allreduce):
 * one table, from which its help and its manual page are made, too.
 *
 * Pure but for the printing. */
#ifndef TOOL_CLI_H
#define TOOL_CLI_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum cli_kind {
    CLI_FLAG,     /* bool */
    CLI_COUNT,    /* unsigned: how often it was given */
    CLI_NUMBER,   /* unsigned */
    CLI_DURATION, /* uint64_t, milliseconds */
    CLI_PATH,     /* const char *, borrowed; `initial` is only shown */
    CLI_OTHER,    /* What `take` makes of it */
    CLI_HELP,
    CLI_VERSION
};

struct cli_row {
    const char *name; /* With dashes; underscores are read, too. */
    char letter;      /* '\0': none. */
    enum cli_kind kind;
    size_t at; /* Of the field. */
    uint64_t min, max;
    const char *arg, *initial; /* NULL: takes none; has none. */
    const char *help;          /* NULL: not shown. */
    int (*take)(void *to, const struct cli_row *row, const char *text,
                struct err *e);
};

enum cli_view { CLI_RUN, CLI_SHOW_HELP, CLI_SHOW_MAN, CLI_SHOW_VERSION };

struct cli {
    const char *program;
    const struct cli_row *rows;
    unsigned n_rows;
    /* A word that is no option, the n-th; borrowed. */
    int (*word)(void *to, unsigned n, const char *word, struct err *e);
    const char *help_head, *help_tail; /* Around the list of options. */
    const char *man_head, *man_tail;
};

/* Fill *to, zeroed by the caller, by defaults and words. Fails with
 * ERR_USAGE. */
int cli_read(const struct cli *cli, void *to, int argc, char **argv,
             enum cli_view *ret_view, struct err *e);

/* "--name=text: why", ERR_USAGE. */
int cli_bad(const struct cli_row *row, const char *text, const char *why,
            struct err *e);

/* Anything but CLI_RUN. */
void cli_write(const struct cli *cli, FILE *out, enum cli_view view);

#define CLI_FIELD(to, row, type) ((type *)(void *)((char *)(to) + (row)->at))

#endif
