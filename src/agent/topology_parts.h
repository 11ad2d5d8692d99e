/* topology_parts: what the dialects of topology.h share. Internal to it. */
#ifndef AGENT_TOPOLOGY_PARTS_H
#define AGENT_TOPOLOGY_PARTS_H

#include "agent/topology.h"

#include <stdint.h>

/* One dialect's reading of the environment. */
struct topo_guess {
    const struct topology_in *in;
    struct topology *to; /* Where texts and what is ignored go. */
    struct topo_value at[TOPO_KEYS];
    bool is_complete;
    struct err *e;
};

struct topo_dialect {
    const char *name;
    const char *why; /* "PET_* come first", of those that are ignored. */
    /* Fill g->at and g->is_complete. Fails where the platform's set-up is such
     * that no job can come of it. */
    int (*read)(struct topo_guess *g);
};

/* A variable that is there and not empty, or NULL. */
const char *topo_get(const struct topo_guess *g, const char *name);
/* Take over the first of these variables that is there. */
bool topo_take(struct topo_guess *g, enum topo_key key, const char *name);
/* Say a value of one's own. False where there is no room. */
bool topo_say(struct topo_guess *g, enum topo_key key, const char *source,
              const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* A plain number. */
bool topo_number(const char *s, uint32_t *ret);
const struct topo_place *topo_place(const struct topo_guess *g);
void topo_ignore(struct topology *t, const char *name, const char *text,
                 const char *why);
int topo_fail(struct topo_guess *g, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* "1", or "1:1" as torchrun has it by default. */
bool topo_is_one_pod(const struct topo_guess *g);

/* Pods are one, or pod 0 has an address, be it by option. */
bool topo_has_zero(const struct topo_guess *g);

/* topology_dialects.c, topology_lists.c */
int topo_read_pet(struct topo_guess *g);
int topo_read_plain(struct topo_guess *g);
int topo_read_lws(struct topo_guess *g);
int topo_read_indexed(struct topo_guess *g);
int topo_read_volcano(struct topo_guess *g);
int topo_read_slurm(struct topo_guess *g);
int topo_read_open_mpi(struct topo_guess *g);
int topo_read_pmi(struct topo_guess *g);
int topo_read_hostfile(struct topo_guess *g);

#endif
