/* options_parts: what the files of options share. Internal to them. */
#ifndef AGENT_OPTIONS_PARTS_H
#define AGENT_OPTIONS_PARTS_H

#include "agent/option_table.h"
#include "agent/torchrun.h"

struct reader {
    struct options *o;
    const struct opt_command *command;
    const struct opt_table *table; /* The command's. */
    enum opt_origin from[OPT_MAX_ROWS]; /* Of each row of agent's own table, */
    enum opt_origin from_torchrun[OPT_MAX_ROWS]; /* and of torchrun's. */
    const struct topo_place *(*place)(void *ctx);
    bool help, version;
    int argc;
    char **argv;
    struct err *e;
};

static inline unsigned option_row_index(const struct opt_row *row)
{
    unsigned n;

    return (unsigned)(row - opt_rows(&n));
}

/* Where a row's value is from. */
static inline enum opt_origin *option_from(struct reader *r,
                                           const struct opt_row *row)
{
    const struct opt_table *t = torchrun_table();

    if (row >= t->rows && row < t->rows + t->n)
        return &r->from_torchrun[row - t->rows];
    return &r->from[option_row_index(row)];
}

/* options_variables.c: what the words left open, by the variables of `t`. */
int options_read_variables(struct reader *r, const struct opt_table *t,
                           char *const *envp);

/* torchrun.c: PET_*, and then what torchrun's options mean together. */
int torchrun_read(struct reader *r, char *const *envp);

/* options_topology.c: what options leave open, the platform may say. `from` has
 * each row's origin, by its index. */
int options_read_topology(struct options *o, enum opt_origin *from,
                          char *const *envp,
                          const struct topo_place *(*place)(void *ctx),
                          struct err *e);

/* "--nnodes", or the variable that it is from; after the above. */
const char *options_said_by(const struct options *o, enum topo_key key);

#endif
