/* cpu_plan: which CPUs a worker is bound to, for --cpu-bind and torchrun's
 * --numa-binding.
 *
 * Pure: what the machine looks like goes in (cpu_read.h), masks come out. A
 * "unit" is what shares a node: a worker, or with torchrun a GPU. */
#ifndef AGENT_CPU_PLAN_H
#define AGENT_CPU_PLAN_H

#include "base/err.h"
#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>

#define CPU_MAX 4096 /* CPUs with higher numbers are not used. */
#define CPU_WORD (8 * sizeof(unsigned long))

enum cpu_bind {
    CPU_BIND_NONE,
    CPU_BIND_NODE,    /* All CPUs of the node. */
    CPU_BIND_CORES,   /* An exclusive share of the node's cores. */
    CPU_BIND_SOCKET,  /* All CPUs of the node's socket. */
    CPU_BIND_COMPLEX, /* The cores that share a last cache. */
};

/* As sched_setaffinity() takes it. */
struct cpu_mask {
    unsigned long bits[CPU_MAX / CPU_WORD];
};

struct cpu_machine {
    unsigned end;    /* The highest CPU that may be used, and one. */
    unsigned n_cpus; /* That may be used. */
    bool has_cores, has_sockets, has_caches; /* Known of each of them. */
    struct cpu_one {
        bool usable;
        uint16_t node, socket;
        uint16_t core, cache; /* The lowest CPU of it, usable or not. */
    } cpus[CPU_MAX];
};

/* Nodes with CPUs that may be used; *ret_first is one. */
unsigned cpu_nodes(const struct cpu_machine *m, unsigned *ret_first);

/* Units without a place of their own: spread over the nodes, by CPUs. */
void cpu_spread(const struct cpu_machine *m, unsigned n_units,
                uint16_t *ret_nodes);

/* The CPUs of `unit`, of the `n_units` whose nodes are given. Fails with
 * ERR_USAGE where there are none: fewer cores than units, say; or where the
 * machine does not say what is needed. */
int cpu_share(const struct cpu_machine *m, enum cpu_bind how,
              const uint16_t *nodes, unsigned n_units, unsigned unit,
              struct cpu_mask *ret, struct err *e);

/* As in "0-3,8". */
void cpu_print(const struct cpu_mask *m, struct text *t);
/* Such a list, as sysfs has it: adds to `ret`. False where it is none. */
bool cpu_parse(const char *s, struct cpu_mask *ret);
bool cpu_has(const struct cpu_mask *m, unsigned cpu);

#endif
