/* options_topology: see options_parts.h. */
#include "agent/options_parts.h"

#include <string.h>

static const struct opt_row *row_of(enum topo_key key)
{
    const char *name = topology_option(key);

    return opt_find(name, strlen(name));
}

static int take(struct options *o, enum topo_key key, enum opt_origin *from,
                struct err *e)
{
    const struct topo_value *said = &o->topology.at[key];
    struct opt_value v = {.row = row_of(key), .text = said->text,
                          .spelled = said->source, .is_variable = true};
    int r = 0;

    if (v.text && *from == BY_DEFAULT) {
        v.spelled_len = strlen(v.spelled);
        r = v.row->type->read(&v, o, e);
        *from = BY_PLATFORM;
    }
    o->origins[key] = *from;
    return r;
}

int options_read_topology(struct options *o, enum opt_origin *from,
                          char *const *envp,
                          const struct topo_place *(*place)(void *ctx),
                          struct err *e)
{
    struct topology_in in = {.envp = envp, .place = place};
    int r;

    for (int k = 0; k < TOPO_KEYS; k++) {
        enum topo_key key = (enum topo_key)k;

        if (from[option_row_index(row_of(key))] > BY_DEFAULT)
            in.given[k] = key == TOPO_NNODES && o->nnodes == 1 ? "1" : "N";
    }
    r = topology_read(&o->topology, &in, e);
    for (int k = 0; r == 0 && k < TOPO_KEYS; k++) {
        enum topo_key key = (enum topo_key)k;

        r = take(o, key, &from[option_row_index(row_of(key))], e);
    }
    return r;
}

const char *options_said_by(const struct options *o, enum topo_key key)
{
    if (o->origins[key] == BY_PLATFORM)
        return o->topology.at[key].source;
    return key == TOPO_NODE_RANK ? "--node-rank" : "--nnodes";
}
