/* A job's contract and the environment made of it, for the tests. */
#ifndef UNIT_CONTRACT_ENV_H
#define UNIT_CONTRACT_ENV_H

#include "agent/contract.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* What a worker would see. */
struct env {
    char *buf;
    const char **envp;
    size_t bytes, entries;
};

static const char *const no_env[] = {NULL};

static inline struct contract_in job(const char *const *base_env)
{
    struct contract_in in = {
        .base_env = base_env, .dialects = CONTRACT_TORCH,
        .node_rank = 1, .nnodes = 2, .nproc = 4,
        .local_rank = 2, .rank_base = 8, .world_size = 12, .round = 3,
        .max_restarts = 5, .master_addr = "w0", .master_port = 29501,
        .job_id = "job7", .role = "rank", .cookie = "c00c1e",
        .omp_threads = 6, .gpu = -1,
    };

    return in;
}

static inline struct env build(const struct contract_in *in)
{
    struct env v;
    struct err e = {0};

    contract_room(in, &v.bytes, &v.entries);
    v.buf = malloc(v.bytes);
    v.envp = calloc(v.entries, sizeof *v.envp);
    assert_true(v.buf && v.envp);
    if (contract_env(in, v.buf, v.bytes, v.envp, v.entries, &e) < 0)
        fail_msg("%s", e.text);
    return v;
}

static inline void env_free(struct env *v)
{
    free(v->buf);
    free(v->envp);
}

/* Value of `name`, which is there at most once; NULL where it is not. */
static inline const char *get(const struct env *v, const char *name)
{
    const char *found = NULL;
    size_t len = strlen(name);

    for (size_t i = 0; v->envp[i]; i++)
        if (strncmp(v->envp[i], name, len) == 0 && v->envp[i][len] == '=') {
            assert_null(found);
            found = v->envp[i] + len + 1;
        }
    return found;
}

static inline void assert_var(const struct env *v, const char *name,
                              const char *want)
{
    const char *is = get(v, name);

    if (is && want && strcmp(is, want) == 0)
        return;
    if (is || want)
        fail_msg("%s is %s, not %s", name, is ? is : "not set",
                 want ? want : "unset");
}

#endif
