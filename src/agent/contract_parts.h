/* contract_parts: what the files of the contract share. Internal to it. */
#ifndef AGENT_CONTRACT_PARTS_H
#define AGENT_CONTRACT_PARTS_H

#include "agent/contract.h"

#define CONTRACT_SLOTS_MIN 256u /* Of the table of names; powers of two. */
#define CONTRACT_SLOTS_MAX 16384u
#define CONTRACT_DROPS_MAX 64
/* The kernel takes no longer string (MAX_ARG_STRLEN), NUL included. */
#define CONTRACT_STRING_MAX 131072u

/* The strings and addresses that are being written, and a table of the names
 * in envp: 1 + index, by hash. An environment of thousands of entries
 * (service links) is built for each worker, so each name is looked up once. */
struct env {
    char *buf;
    size_t cap, len;
    const char **envp;
    size_t max, n;
    bool full;
    const char *fault; /* Why there can be no such environment, or NULL. */
    unsigned n_names, n_drops;
    const char *drops[CONTRACT_DROPS_MAX]; /* Not to be taken from the base. */
    uint32_t n_slots; /* So many of these, as the room asks for: to clear all
                         of them would cost more than the rest. */
    uint32_t *slots;
};

/* Add "NAME=value", unless there is an entry with its name. Of conversions
 * there are %s and %u. */
void env_add(struct env *v, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* The same for one that was written to buf + len: `n` bytes without the NUL;
 * too many: it did not fit. */
void env_take(struct env *v, size_t n);

/* Whether there is an entry of that name, given with its '='. */
bool env_has(const struct env *v, const char *name);

/* The variables of the dialects that were chosen, and which ones of the base
 * would be wrong in this process. */
void contract_add_dialects(struct env *v, const struct contract_in *in);

/* Those that stand back where the base has them. */
void contract_add_unset(struct env *v, const struct contract_in *in);

/* What contract_add_dialects() needs at most. */
void contract_room_dialects(const struct contract_in *in, size_t *bytes,
                            size_t *entries);

/* TF_CONFIG. */
void contract_add_tf_config(struct env *v, const struct contract_in *in);

const char *contract_dataset_dir(const struct contract_in *in);

#endif
