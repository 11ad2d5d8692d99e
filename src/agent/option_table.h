/* option_table: THE table of options and the table of commands, and how a name
 * is found in them. Everything that agent says of its options comes from here.
 *
 * Pure. To add an option: a row here, a field in struct options. */
#ifndef AGENT_OPTION_TABLE_H
#define AGENT_OPTION_TABLE_H

#include "agent/option_types.h"
#include "agent/options.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OPT_MAX_ROWS 128 /* Of both tables. */

/* Commands that an option belongs to. */
enum opt_command_bit {
    OPT_RUN = 1,
    OPT_STAGE = 2,
    OPT_VERIFY = 4,
    OPT_MANIFEST = 8,
    OPT_STATUS = 16,
    OPT_ENV = 32,
    OPT_PREFLIGHT = 64,
    OPT_EVERY = 127,
    OPT_TORCHRUN = 128, /* Of torchrun's table alone. */
};

enum opt_group {
    OPT_GROUP_JOB,
    OPT_GROUP_WORKERS,
    OPT_GROUP_DATA,
    OPT_GROUP_RESTART,
    OPT_GROUP_OUTPUT,
    OPT_GROUP_MANIFEST,
    OPT_GROUP_ASK,
    OPT_GROUP_OTHER,
    OPT_GROUPS,
};

struct opt_row {
    const char *name, *alias; /* Without dashes; alias may be NULL. */
    const char *arg;          /* Name of the value; NULL: the type's. */
    const char *initial;      /* Default, as read() takes it; NULL: none. */
    const char *none;         /* What no default means, for people. */
    const char *help;         /* One line. */
    const char *more;         /* Further sentences of the manual, or NULL. */
    const struct opt_type *type;
    uint64_t min, max;   /* Of numbers and durations (ms); bytes of words. */
    uint16_t at, count_at; /* Field of struct options; of a list, its length. */
    uint16_t given_at;   /* A bool that tells "not by default", or 0. */
    enum opt_group group;
    unsigned commands;
    char letter;         /* As in -q, or 0. */
    bool no_variable;    /* There is no AGENT_<NAME>. */
};

enum opt_command_kind {
    OPT_OWN,    /* Its options are in the table. */
    OPT_PASSED, /* Another program takes all words as they are. */
    OPT_LATER,  /* A promise: refused in this version. */
};

struct opt_command {
    const char *word;
    enum opt_command_kind kind;
    enum command command;
    unsigned bit;
    int min_words, max_words; /* OWN, but for `run`. */
    const char *usage;        /* What follows "agent <word>". */
    const char *help;         /* One line. */
};

/* agent's own options, or those of the torchrun command line. */
struct opt_table {
    const struct opt_row *rows;
    unsigned n;
    const char *prefix;  /* Of its variables. */
    bool is_abbreviated; /* The beginning of one name alone stands for it. */
};

const struct opt_table *opt_table_of(const struct opt_command *c);
/* agent's own. */
const struct opt_row *opt_rows(unsigned *ret_n);
const struct opt_command *opt_commands(unsigned *ret_n);
const char *opt_group_title(enum opt_group group);
const char *opt_arg(const struct opt_row *row);

const struct opt_command *opt_find_command(const char *word);
/* What was most likely meant by a program that is not there: a command one edit
 * away, or "--help" for "help"; or NULL. */
const char *opt_near_command(const char *word);

/* Dashes and underscores are the same. NULL where there is none. */
const struct opt_row *opt_find(const char *name, size_t len);
const struct opt_row *opt_find_in(const struct opt_table *t, const char *name,
                                  size_t len);
const struct opt_row *opt_find_letter(const struct opt_table *t, char letter);

/* `name` is what follows the prefix. `*ret_alias`: by the other name. */
const struct opt_row *opt_find_variable(const struct opt_table *t,
                                        const char *name, size_t len,
                                        bool *ret_alias);

/* Write "AGENT_<NAME>" of an option's name to `buf`. */
const char *opt_variable(char buf[OPT_NAME_MAX + 8], const char *name);
/* The same with the prefix of `t`. */
const char *opt_variable_of(const struct opt_table *t,
                            char buf[OPT_NAME_MAX + 8], const char *name);

/* The option of `commands` that was likely meant, or NULL. */
const char *opt_nearest(const struct opt_table *t, const char *name, size_t len,
                        unsigned commands);

/* The name of five letters or more whose variable is one edit away from
 * "AGENT_" `name`, or NULL. "token" is such a name, too. */
const char *opt_one_edit(const char *name, size_t len, unsigned commands);

#endif
