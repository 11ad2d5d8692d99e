/* check: what the checks share. Internal to preflight. */
#ifndef PREFLIGHT_CHECK_H
#define PREFLIGHT_CHECK_H

#include "preflight/preflight.h"

#include <stdio.h>

#define MIB ((uint64_t)1 << 20)

struct preflight_sink { /* Where findings of one check go. */
    const struct preflight_job *job;
    enum preflight_check check;
    void *ctx;
    void (*add)(void *ctx, const struct preflight_finding *f);
};

typedef void preflight_fn(const struct preflight_sink *s);

/* The real forms; of some the cheap ones. */
preflight_fn check_shm, check_memlock, check_limits, check_iface, check_dns,
    check_storage, check_env, check_gpu, check_rdma, check_nccl,
    check_allreduce;
preflight_fn look_shm, look_memlock, look_limits, look_iface;

#define FINDING_SET(field, ...)                                                \
    (void)snprintf((field), sizeof(field), __VA_ARGS__)

/* An empty finding of this check; finding_add() hands it on. */
struct preflight_finding finding_new(enum preflight_level level);
/* One that was read from a pipe: texts end, the check is one, and what values
 * of variables and names of files bring along does no harm to a terminal. */
void finding_end(struct preflight_finding *f);
void finding_add(const struct preflight_sink *s, struct preflight_finding *f);

/* Nothing is wrong, and this was seen. */
void finding_pass(const struct preflight_sink *s, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* What is done now: told where the check does not come back from it. */
void finding_step(const struct preflight_sink *s, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Of the job's environment; NULL or "" are the same: NULL. */
const char *check_variable(const struct preflight_job *job, const char *name);

/* What may be taken without waking the OOM killer: half of the memory that is
 * left to the pod. */
uint64_t check_safe_bytes(const char *root);

/* /dev/infiniband has a device, and NCCL may use it. */
bool check_has_rdma(const struct preflight_job *job);

/* NCCL_IB_DISABLE keeps NCCL from all RDMA devices: it is a number other than
 * 0. */
bool check_rdma_is_off(const struct preflight_job *job);

/* Variables that name interfaces that are not there; env.c. */
void check_ifname_variables(const struct preflight_sink *s);

/* What happens where the plug-in of this variable of NCCL's is not there. */
const char *check_plugin_why(const char *variable);

#endif
