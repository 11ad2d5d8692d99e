/* options_parts: what the files of options share. Internal to them. */
#ifndef AGENT_OPTIONS_PARTS_H
#define AGENT_OPTIONS_PARTS_H

#include "agent/option_table.h"

static inline unsigned option_row_index(const struct opt_row *row)
{
    unsigned n;

    return (unsigned)(row - opt_rows(&n));
}

/* options_topology.c: what options leave open, the platform may say. `from` has
 * each row's origin, by its index. */
int options_read_topology(struct options *o, enum opt_origin *from,
                          char *const *envp,
                          const struct topo_place *(*place)(void *ctx),
                          struct err *e);

/* "--nnodes", or the variable that it is from; after the above. */
const char *options_said_by(const struct options *o, enum topo_key key);

#endif
