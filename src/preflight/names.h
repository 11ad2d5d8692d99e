/* names: THE table of preflight's checks. Option values, help, what runs by
 * default and how long a check may take are readings of it. Pure. */
#ifndef PREFLIGHT_NAMES_H
#define PREFLIGHT_NAMES_H

#include <stdbool.h>
#include <stdint.h>

/* X(name, word, has a cheap form, needs another program, deadline in ms,
 *   what is looked at) */
#define PREFLIGHT_TABLE(X)                                                     \
    X(SHM, "shm", true, NULL, 30000, "/dev/shm, by real allocation")           \
    X(MEMLOCK, "memlock", true, NULL, 10000, "memory that may be locked")      \
    X(LIMITS, "limits", true, NULL, 5000, "limits of files, processes, memory")\
    X(IFACE, "iface", true, NULL, 15000, "interfaces, the way to node rank 0") \
    X(DNS, "dns", false, NULL, 20000, "the name of node rank 0")               \
    X(STORAGE, "storage", false, NULL, 30000, "folders, read and written")     \
    X(ENV, "env", false, NULL, 5000, "variables that name missing things")     \
    X(GPU, "gpu", false, "agent-probe", 60000, "GPUs and their driver")        \
    X(RDMA, "rdma", false, "agent-probe", 60000, "RDMA ports, registration")   \
    X(NCCL, "nccl", false, "agent-probe", 60000, "which NCCL is found")        \
    X(ALLREDUCE, "allreduce", false, "agent-allreduce", 600000,                \
      "an all-reduce over all pods")

enum preflight_check {
#define X(name, word, cheap, tool, ms, text) PREFLIGHT_##name,
    PREFLIGHT_TABLE(X)
#undef X
    PREFLIGHT_CHECKS,
};

#define PREFLIGHT_BIT(name) (1u << PREFLIGHT_##name)
/* What `run` looks at where nothing is said. */
#define PREFLIGHT_DEFAULT "shm,memlock,limits,iface"

struct preflight_row {
    const char *word;
    bool cheap;        /* Has look-ups that take no time. */
    const char *tool;  /* Another program, or NULL. */
    uint32_t limit_ms; /* Then it has failed. */
    const char *text;
};

const struct preflight_row *preflight_row(enum preflight_check check);

struct preflight_list {
    unsigned bits;  /* Of the checks. */
    unsigned busbw; /* allreduce=GBS: at least so many MB/s; 0: any. */
};

/* A list with commas, or "off" (none). False where there is another word;
 * `*ret_bad` and `*ret_len` are that word. */
bool preflight_read_list(const char *list, struct preflight_list *ret,
                         const char **ret_bad, unsigned *ret_len);

#endif
