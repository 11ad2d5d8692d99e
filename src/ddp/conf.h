/* conf: environment and options -> who am I, how many, where is rank 0.
 *
 * Pure: variables are read through a function that the caller passes. */
#ifndef DDP_CONF_H
#define DDP_CONF_H

#include "ddp.h"

#include <stdbool.h>

#define DDP_SIZE_MAX 4096     /* Ranks of a job. */
#define DDP_HOST_MAX 254      /* MASTER_ADDR, NUL included. */
#define DDP_JOB_MAX 129       /* TORCHELASTIC_RUN_ID, NUL included. */
#define DDP_NO_ATTEMPT UINT32_MAX
#define DDP_SOCKETS_MAX 16    /* Between two neighbours, for elements. */
#define DDP_SCAN_PORTS 8      /* Tried above MASTER_PORT under torchrun. */
#define DDP_TIMEOUT_DEFAULT_MS 60000
#define DDP_TIMEOUT_MAX_MS (UINT64_C(1000) * 3600 * 24 * 365)

struct ddp_conf {
    int rank, size, local_rank, local_size;
    char host[DDP_HOST_MAX]; /* Empty for a single process. */
    uint16_t master_port;    /* As all ranks were told: part of identity. */
    uint16_t port, n_ports;  /* Where rank 0 may listen: port, port + 1 ... */
    uint64_t timeout_ms;
    bool no_shm;             /* TCP alone. */
    unsigned n_sockets;      /* DDP_SOCKETS: rank 0's counts. */
    uint32_t attempt;        /* Or DDP_NO_ATTEMPT: not compared. */
    char job[DDP_JOB_MAX];   /* Empty where none; cut where too long. */
};

/* `get` is getenv with a context. 0, or DDP_EINVAL with *err filled. */
int ddp_conf_read(struct ddp_conf *ret, const struct ddp_options *opt,
                  const char *(*get)(void *ctx, const char *name), void *ctx,
                  struct ddp_error *err);

/* "500ms", "10s", "5m", "2h", "30" (seconds) -> milliseconds; -1 where it is
 * none of these, 0 or over DDP_TIMEOUT_MAX_MS. */
int ddp_conf_duration(const char *s, uint64_t *ret_ms);

#endif
