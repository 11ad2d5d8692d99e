/* cpu_plan: see cpu_plan.h. What torchrun's modes mean is from PyTorch's
 * torch/numa/binding.py: a core is known by its lowest CPU, a node's cores are
 * dealt out in that order, the first units get one more; core complexes in the
 * order of their usable CPUs, then of the lowest. */
#include "agent/cpu_plan.h"

#include "base/text.h"

#include <string.h>

bool cpu_has(const struct cpu_mask *m, unsigned cpu)
{
    return cpu < CPU_MAX && (m->bits[cpu / CPU_WORD] >> cpu % CPU_WORD & 1);
}

static void add(struct cpu_mask *m, unsigned cpu)
{
    m->bits[cpu / CPU_WORD] |= 1ul << cpu % CPU_WORD;
}

unsigned cpu_nodes(const struct cpu_machine *m, unsigned *ret_first)
{
    static const struct cpu_mask none;
    struct cpu_mask seen = none;
    unsigned n = 0;

    for (unsigned i = 0; i < m->end; i++) {
        const struct cpu_one *c = &m->cpus[i];

        if (!c->usable || cpu_has(&seen, c->node))
            continue;
        if (n++ == 0)
            *ret_first = c->node;
        add(&seen, c->node);
    }
    return n;
}

/* The next node after `node`, or the first; false where there is none. */
static bool next_node(const struct cpu_machine *m, bool first, unsigned node,
                      unsigned *ret, unsigned *ret_cpus)
{
    unsigned best = CPU_MAX, n = 0;

    for (unsigned i = 0; i < m->end; i++) {
        const struct cpu_one *c = &m->cpus[i];

        if (!c->usable || (!first && c->node <= node) || c->node > best)
            continue;
        n = c->node < best ? 1 : n + 1;
        best = c->node;
    }
    *ret = best;
    *ret_cpus = n;
    return best < CPU_MAX;
}

void cpu_spread(const struct cpu_machine *m, unsigned n_units,
                uint16_t *ret_nodes)
{
    unsigned node = 0, n = 0, before = 0, unit = 0;
    bool first = true;

    while (unit < n_units && next_node(m, first, node, &node, &n)) {
        first = false;
        before += n;
        for (; unit < n_units && (uint64_t)unit * m->n_cpus <
                                     (uint64_t)before * n_units; unit++)
            ret_nodes[unit] = (uint16_t)node;
    }
}

/* Where the unit is among those of its node, and how many these are. */
static unsigned place(const uint16_t *nodes, unsigned n_units, unsigned unit,
                      unsigned *ret_n)
{
    unsigned at = 0, n = 0;

    for (unsigned i = 0; i < n_units; i++) {
        at += i < unit && nodes[i] == nodes[unit];
        n += nodes[i] == nodes[unit];
    }
    *ret_n = n;
    return at;
}

static bool is_of(const struct cpu_one *c, uint16_t node)
{
    return c->usable && c->node == node;
}

static int share_cores(const struct cpu_machine *m, uint16_t node,
                       unsigned at, unsigned n_units, struct cpu_mask *ret,
                       struct err *e)
{
    static const struct cpu_mask none;
    struct cpu_mask cores = none;
    unsigned n = 0, each, more, begin, end, index = 0;
    uint16_t index_of[CPU_MAX];

    for (unsigned i = 0; i < m->end; i++)
        if (is_of(&m->cpus[i], node) && !cpu_has(&cores, m->cpus[i].core)) {
            add(&cores, m->cpus[i].core);
            n++;
        }
    if (n < n_units)
        return err_set(e, ERR_USAGE, "NUMA node %u has %u core%s that may be "
                       "used, for %u worker%s or GPU%s: no share for each",
                       node, n, text_plural(n), n_units, text_plural(n_units),
                       text_plural(n_units));
    for (unsigned i = 0; i < CPU_MAX; i++)
        if (cpu_has(&cores, i))
            index_of[i] = (uint16_t)index++;
    each = n / n_units;
    more = n % n_units;
    begin = at * each + (at < more ? at : more);
    end = begin + each + (at < more);
    for (unsigned i = 0; i < m->end; i++) {
        const struct cpu_one *c = &m->cpus[i];

        if (is_of(c, node) && index_of[c->core] >= begin &&
            index_of[c->core] < end)
            add(ret, i);
    }
    return 0;
}

/* The at-th complex: those with more CPUs first, then by the lowest CPU. */
static void share_complex(const struct cpu_machine *m, uint16_t node,
                          unsigned at, struct cpu_mask *ret)
{
    uint16_t size[CPU_MAX] = {0};
    unsigned n = 0, best = 0;

    for (unsigned i = 0; i < m->end; i++)
        if (is_of(&m->cpus[i], node) && size[m->cpus[i].cache]++ == 0)
            n++;
    if (n == 0)
        return;
    for (at %= n;; at--) {
        best = 0;
        for (unsigned i = 1; i < CPU_MAX; i++)
            if (size[i] > size[best])
                best = i;
        if (at == 0)
            break;
        size[best] = 0;
    }
    for (unsigned i = 0; i < m->end; i++)
        if (is_of(&m->cpus[i], node) && m->cpus[i].cache == best)
            add(ret, i);
}

static void share_socket(const struct cpu_machine *m, uint16_t node,
                         struct cpu_mask *ret)
{
    unsigned first = 0;

    while (first < m->end && !is_of(&m->cpus[first], node))
        first++;
    if (first == m->end)
        return;
    for (unsigned i = 0; i < m->end; i++)
        if (m->cpus[i].usable && m->cpus[i].socket == m->cpus[first].socket)
            add(ret, i);
}

static bool is_known(const struct cpu_machine *m, enum cpu_bind how)
{
    return how == CPU_BIND_CORES     ? m->has_cores
           : how == CPU_BIND_SOCKET  ? m->has_sockets
           : how == CPU_BIND_COMPLEX ? m->has_caches
                                     : true;
}

int cpu_share(const struct cpu_machine *m, enum cpu_bind how,
              const uint16_t *nodes, unsigned n_units, unsigned unit,
              struct cpu_mask *ret, struct err *e)
{
    static const struct cpu_mask none;
    unsigned n, at = place(nodes, n_units, unit, &n);
    uint16_t node = nodes[unit];
    bool any = false;

    *ret = none;
    if (!is_known(m, how))
        return err_set(e, ERR_USAGE, "/sys/devices/system/cpu does not say "
                       "which CPUs make up a core, socket or cache");
    if (how == CPU_BIND_CORES &&
        share_cores(m, node, at, n, ret, e) != 0)
        return -ERR_USAGE;
    if (how == CPU_BIND_COMPLEX)
        share_complex(m, node, at, ret);
    if (how == CPU_BIND_SOCKET)
        share_socket(m, node, ret);
    for (unsigned i = 0; i < m->end; i++) {
        if (how == CPU_BIND_NODE && is_of(&m->cpus[i], node))
            add(ret, i);
        any = any || cpu_has(ret, i);
    }
    if (any)
        return 0;
    return err_set(e, ERR_USAGE, "of the CPUs of NUMA node %u this pod may "
                   "use none", node);
}

void cpu_print(const struct cpu_mask *m, struct text *t)
{
    const char *comma = "";

    for (unsigned i = 0; i < CPU_MAX; i++) {
        unsigned last = i;

        if (!cpu_has(m, i))
            continue;
        while (cpu_has(m, last + 1))
            last++;
        text_add(t, "%s%u", comma, i);
        if (last > i)
            text_add(t, "-%u", last);
        comma = ",";
        i = last;
    }
}

static const char *number(const char *s, unsigned *ret)
{
    unsigned v = 0;

    if (*s < '0' || *s > '9')
        return NULL;
    for (; *s >= '0' && *s <= '9' && v < CPU_MAX * 16; s++)
        v = v * 10 + (unsigned)(*s - '0');
    *ret = v;
    return s;
}

bool cpu_parse(const char *s, struct cpu_mask *ret)
{
    unsigned first = 0, last;

    if (*s == '\0' || *s == '\n')
        return true; /* A node without CPUs. */
    for (;;) {
        s = number(s, &first);
        last = first;
        if (s && *s == '-')
            s = number(s + 1, &last);
        if (!s || last < first)
            return false;
        for (unsigned i = first; i <= last && i < CPU_MAX; i++)
            add(ret, i);
        if (*s != ',')
            return *s == '\0' || *s == '\n';
        s++;
    }
}
