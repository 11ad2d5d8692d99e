/* cpu_bind: see cpu_bind.h. */
#include "agent/cpu_bind.h"

#include "agent/cpu_read.h"
#include "base/mem.h"
#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The nodes of the units: of the workers, or with torchrun of the GPUs. */
static int find_nodes(const struct cpu_ask *ask, const struct cpu_machine *m,
                      unsigned n_units, uint16_t *nodes, struct err *e)
{
    uint16_t gpus[CPU_GPUS_MAX];
    unsigned first = 0, per_gpu = ask->is_torchrun ? 1 : ask->procs_per_gpu;

    if (cpu_nodes(m, &first) <= 1) {
        for (unsigned i = 0; i < n_units; i++)
            nodes[i] = (uint16_t)first;
        return 0;
    }
    /* More workers than the GPUs are for: these do not have one each. */
    if (ask->n_gpus == 0 || n_units > ask->n_gpus * per_gpu) {
        cpu_spread(m, n_units, nodes);
        return 0;
    }
    if (ask->n_gpus > CPU_GPUS_MAX)
        return err_set(e, ERR_RESOURCE, "%u GPUs are more than the %d that "
                       "are looked up", ask->n_gpus, CPU_GPUS_MAX);
    if (cpu_gpu_nodes(ask->root, ask->visible, ask->order, ask->n_gpus, gpus,
                      e) != 0)
        return -ERR_RESOURCE;
    for (unsigned i = 0; i < n_units; i++)
        nodes[i] = gpus[i / per_gpu];
    return 0;
}

static int make_masks(const struct cpu_ask *ask, const struct cpu_machine *m,
                      struct cpu_binding *ret, struct err *e)
{
    unsigned n_units = ask->is_torchrun ? ask->n_gpus : ask->nproc, first;
    autofree uint16_t *nodes = calloc(n_units, sizeof *nodes);
    autofree struct cpu_mask *masks = calloc(ask->nproc, sizeof *masks);

    if (!nodes || !masks)
        return err_set(e, ERR_AGENT, "no memory for the CPUs of %u worker%s",
                       ask->nproc, text_plural(ask->nproc));
    if (find_nodes(ask, m, n_units, nodes, e) != 0)
        return -e->code;
    for (unsigned i = 0; i < ask->nproc; i++)
        if (cpu_share(m, ask->how, nodes, n_units, i, &masks[i], e) != 0)
            return -e->code;
    /* One node: its CPUs are all there are. A pod that is given more later
     * may use these, too. */
    if (ask->how != CPU_BIND_NODE || cpu_nodes(m, &first) > 1)
        ret->masks = steal(&masks);
    return 0;
}

static int bind_all(const struct cpu_ask *ask, struct cpu_binding *ret,
                    struct err *e)
{
    autofree struct cpu_machine *m = malloc(sizeof *m);
    struct cpu_mask allowed;

    if (!m)
        return err_set(e, ERR_AGENT, "no memory for the list of CPUs");
    if (ask->is_torchrun && ask->nproc > ask->n_gpus)
        return err_set(e, ERR_USAGE, "worker L belongs to GPU L, and %u GPU%s "
                       "visible here for %u worker%s", ask->n_gpus,
                       ask->n_gpus == 1 ? " is" : "s are", ask->nproc,
                       text_plural(ask->nproc));
    if (cpu_allowed(&allowed) != 0)
        return err_set(e, ERR_RESOURCE, "the kernel does not say which CPUs "
                       "may be used");
    if (cpu_read(ask->root, &allowed, m, e) != 0)
        return -e->code;
    return make_masks(ask, m, ret, e);
}

int cpu_bind_make(const struct cpu_ask *ask, struct cpu_binding *ret,
                  struct err *e)
{
    struct err own;

    memset(ret, 0, sizeof *ret);
    if (ask->how == CPU_BIND_NONE || ask->nproc == 0 ||
        bind_all(ask, ret, &own) == 0)
        return 0;
    if (ask->is_torchrun)
        return err_set(e, ERR_USAGE, "--numa-binding: %s; leave it out, or "
                       "use AGENT_CPU_BIND=numa", own.text);
    (void)snprintf(ret->why, sizeof ret->why, "%s", own.text);
    return 0;
}
