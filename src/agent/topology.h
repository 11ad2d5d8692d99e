/* topology: what the platform says of this pod in its environment: how many
 * pods, which one this is, where pod 0 is; and which variable said so.
 *
 * Pure: environ in, values out. A value is text, as an option takes it. Each
 * dialect (a platform's set of variables) is read by itself; the first one
 * that is complete counts, and of a later one that disagrees one warning is
 * made. Options come before all of it. */
#ifndef AGENT_TOPOLOGY_H
#define AGENT_TOPOLOGY_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

#define TOPO_TEXTS_MAX 4096
#define TOPO_IGNORED_MAX 16
#define TOPO_NOTE_MAX 512
#define TOPO_HOSTFILE_MAX 65536 /* Bytes that are read of one. */

/* X(name, option): what a platform may say; the options are in this order in
 * `agent env`. */
#define TOPO_TABLE(X)                                                          \
    X(NNODES, "nnodes")                                                        \
    X(NODE_RANK, "node-rank")                                                  \
    X(NPROC, "nproc")                                                          \
    X(MASTER_ADDR, "master-addr")                                              \
    X(MASTER_PORT, "master-port")                                              \
    X(BARRIER_PORT, "barrier-port")                                            \
    X(JOB_ID, "job-id")                                                        \
    X(MAX_RESTARTS, "max-restarts")

enum topo_key {
#define X(name, option) TOPO_##name,
    TOPO_TABLE(X)
#undef X
    TOPO_KEYS
};

struct topo_value {
    const char *text;   /* NULL: it does not say. */
    const char *source; /* Name of the variable. */
};

struct topo_ignored {
    const char *name, *text, *why;
};

/* What is not in environ; looked up only where a dialect needs it. */
struct topo_place {
    const char *host;   /* This pod's name; "": not known. */
    const char *domain; /* What follows it in its full name; "": none. */
    const char *hostfile;      /* Text of MPI's host file, or NULL; */
    const char *hostfile_name; /* and its path. */
};

struct topology_in {
    char *const *envp;
    const struct topo_place *(*place)(void *ctx); /* NULL: nothing known. */
    void *ctx;
    const char *given[TOPO_KEYS]; /* By options; NULL: left open. */
};

struct topology {
    const char *dialect; /* "PET", ...; NULL: none, so one pod. */
    struct topo_value at[TOPO_KEYS];
    struct topo_ignored ignored[TOPO_IGNORED_MAX];
    unsigned n_ignored;
    char warning[TOPO_NOTE_MAX]; /* "": none. */
    size_t n_texts;
    char texts[TOPO_TEXTS_MAX];  /* What is not borrowed from environ. */
};

/* Fails with ERR_USAGE where what is said cannot be served, and says why and
 * what to do. Values point into environ, the place and *ret, which must not
 * be moved. */
int topology_read(struct topology *ret, const struct topology_in *in,
                  struct err *e);

/* The option of a key, without dashes. */
const char *topology_option(enum topo_key key);

#endif
