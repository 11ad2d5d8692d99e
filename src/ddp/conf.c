/* conf: see conf.h. */
#include "ddp/conf.h"
#include "ddp/fault.h"
#include "ddp/names.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a read needs at every step. */
struct reader {
    const char *(*get)(void *ctx, const char *name);
    void *ctx;
    struct ddp_error *err;
    const struct ddp_names *names; /* Of the launcher. */
};

static bool read_digits(const char *s, char **ret_end, uint64_t *ret)
{
    if (*s < '0' || *s > '9')
        return false;
    errno = 0;
    *ret = strtoull(s, ret_end, 10);
    return errno == 0;
}

int ddp_conf_duration(const char *s, uint64_t *ret_ms)
{
    static const struct {
        const char *word;
        uint64_t ms;
    } units[] = {{"", 1000},     {"ms", 1},       {"s", 1000},
                 {"m", 60000},   {"h", 3600000}};
    uint64_t n;
    char *end;

    if (!read_digits(s, &end, &n) || n == 0)
        return -1;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (strcmp(end, units[i].word))
            continue;
        if (n > DDP_TIMEOUT_MAX_MS / units[i].ms)
            return -1;
        *ret_ms = n * units[i].ms;
        return 0;
    }
    return -1;
}

/* An empty variable counts as unset: some platforms inject such. */
static const char *look(const struct reader *r, const char *name)
{
    const char *s = r->get(r->ctx, name);

    return s && *s ? s : NULL;
}

/* The launcher whose variables are set; torchrun where none is. */
static const struct ddp_names *find_names(const struct reader *r)
{
    for (unsigned i = 0; i < DDP_N_NAMES; i++) {
        const struct ddp_names *n = &ddp_names[i];
        bool has_rank = look(r, n->rank), has_size = look(r, n->size);

        if (has_rank ? has_size || !n->step : has_size && i == 0)
            return n;
    }
    return &ddp_names[DDP_NAMES_TORCHRUN];
}

static bool is_foreign(const struct reader *r)
{
    return r->names != &ddp_names[DDP_NAMES_TORCHRUN];
}

/* Read variable `name` into *ret where it is set. */
static int read_int(const struct reader *r, const char *name, int min, int max,
                    bool *ret_found, int *ret)
{
    const char *s = look(r, name);
    uint64_t n;
    char *end;

    *ret_found = s != NULL;
    if (!s)
        return 0;
    if (read_digits(s, &end, &n) && !*end && n >= (uint64_t)min &&
        n <= (uint64_t)max) {
        *ret = (int)n;
        return 0;
    }
    if (strstr(s, "://"))
        return ddp_fault(r->err, DDP_EINVAL, -1, -1,
                         "%s is '%s', a Kubernetes service link and no "
                         "number: rename that Service, or set %s for the "
                         "program", name, s, name);
    return ddp_fault(r->err, DDP_EINVAL, -1, -1,
                     "%s is '%s', but must be a number from %d to %d", name, s,
                     min, max);
}

/* A pair rank < size, from options where `size` > 0, else from variables. */
static int read_pair(const struct reader *r, int rank, int size,
                     const char *rank_name, const char *size_name,
                     int *ret_rank, int *ret_size)
{
    bool has_rank, has_size;

    if (size > 0) {
        *ret_rank = rank;
        *ret_size = size;
    } else {
        if (read_int(r, rank_name, 0, DDP_SIZE_MAX - 1, &has_rank, ret_rank) ||
            read_int(r, size_name, 1, DDP_SIZE_MAX, &has_size, ret_size))
            return DDP_EINVAL;
        if (has_rank != has_size)
            return ddp_fault(r->err, DDP_EINVAL, -1, -1,
                             "%s is set but %s is not: a launcher (agent, "
                             "torchrun) sets both",
                             has_rank ? rank_name : size_name,
                             has_rank ? size_name : rank_name);
    }
    if (*ret_rank < 0 || *ret_rank >= *ret_size || *ret_size > DDP_SIZE_MAX)
        return ddp_fault(r->err, DDP_EINVAL, -1, -1,
                         "%s %d does not fit %s %d (at most %d)", rank_name,
                         *ret_rank, size_name, *ret_size, DDP_SIZE_MAX);
    return 0;
}

static int read_text(const struct reader *r, const char *name, const char *own,
                     bool may_cut, char *ret, size_t cap)
{
    const char *s = own && *own ? own : look(r, name);
    size_t len = s ? strlen(s) : 0;

    if (len >= cap && !may_cut)
        return ddp_fault(r->err, DDP_EINVAL, -1, -1,
                         "%s is longer than %zu bytes", name, cap - 1);
    if (len >= cap)
        len = cap - 1;
    if (len)
        memcpy(ret, s, len);
    ret[len] = '\0';
    return 0;
}

/* The port that rank 0 listens on; see ENVIRONMENT in ddp.h. */
static int read_ports(const struct reader *r, const struct ddp_options *o,
                      bool agent_store, struct ddp_conf *c)
{
    int master = o->master_port, own = o->bootstrap_port;
    bool has_master = master != 0, has_own = own != 0;

    if (!has_master &&
        read_int(r, "MASTER_PORT", 1, 65535, &has_master, &master))
        return DDP_EINVAL;
    if (!has_own &&
        read_int(r, "DDP_BOOTSTRAP_PORT", 1, 65535, &has_own, &own))
        return DDP_EINVAL;
    if (!has_master && !has_own && is_foreign(r) && *c->job) {
        c->master_port = c->port = ddp_names_port(c->job);
        c->n_ports = DDP_SCAN_PORTS; /* Others may hold it. */
        return 0;
    }
    if (!has_master && !has_own)
        return ddp_fault(r->err, DDP_EINVAL, -1, -1,
                         "MASTER_PORT is not set: a launcher (agent, "
                         "torchrun) sets it, alike for all ranks");
    if (master < 0 || master > 65535 || own < 0 || own > 65535)
        return ddp_fault(r->err, DDP_EINVAL, -1, -1,
                         "port %d is not from 1 to 65535",
                         master < 0 || master > 65535 ? master : own);
    c->master_port = (uint16_t)(has_master ? master : own);
    c->port = (uint16_t)(has_own ? own : master);
    c->n_ports = 1;
    if (has_own || !agent_store)
        return 0;
    if (master > 65535 - DDP_SCAN_PORTS)
        return ddp_fault(r->err, DDP_EINVAL, -1, -1,
                         "torchrun listens on MASTER_PORT %d itself and there "
                         "are no %d ports above it: set DDP_BOOTSTRAP_PORT",
                         master, DDP_SCAN_PORTS);
    c->port = (uint16_t)(master + 1);
    c->n_ports = DDP_SCAN_PORTS;
    return 0;
}

static int read_timeout(const struct reader *r, uint64_t own, uint64_t *ret)
{
    const char *s = look(r, "DDP_TIMEOUT");

    *ret = own ? own : DDP_TIMEOUT_DEFAULT_MS;
    if (own > DDP_TIMEOUT_MAX_MS)
        return ddp_fault(r->err, DDP_EINVAL, -1, -1,
                         "timeout_ms is more than a year");
    if (!own && s && ddp_conf_duration(s, ret))
        return ddp_fault(r->err, DDP_EINVAL, -1, -1,
                         "DDP_TIMEOUT is '%s', but must be a duration such as "
                         "500ms, 30s, 5m or 2h, at most a year", s);
    return 0;
}

static int read_transport(const struct reader *r, bool *ret_no_shm)
{
    const char *s = look(r, "DDP_TRANSPORT");

    *ret_no_shm = s && !strcmp(s, "tcp");
    if (!s || *ret_no_shm || !strcmp(s, "auto"))
        return 0;
    return ddp_fault(r->err, DDP_EINVAL, -1, -1, "DDP_TRANSPORT is '%.100s', "
                     "but must be auto or tcp", s);
}

static int read_sockets(const struct reader *r, unsigned *ret)
{
    bool is_set;
    int n = 1;

    if (read_int(r, "DDP_SOCKETS", 1, DDP_SOCKETS_MAX, &is_set, &n))
        return DDP_EINVAL;
    *ret = (unsigned)n;
    return 0;
}

/* Copy the caller's options, of whichever version, to *ret. */
static int take_options(const struct ddp_options *opt, struct ddp_options *ret,
                        struct ddp_error *err)
{
    const unsigned char *at = (const unsigned char *)opt;

    memset(ret, 0, sizeof *ret);
    if (!opt)
        return 0;
    if (opt->size < sizeof opt->size || opt->size > 4096)
        return ddp_fault(err, DDP_EINVAL, -1, -1,
                         "ddp_options.size is %zu: set it to sizeof(struct "
                         "ddp_options)", opt->size);
    for (size_t i = sizeof *ret; i < opt->size; i++)
        if (at[i])
            return ddp_fault(err, DDP_EINVAL, -1, -1,
                             "ddp_options has a field that this libddp does "
                             "not know: the program was built for a newer "
                             "one");
    memcpy(ret, opt, opt->size < sizeof *ret ? opt->size : sizeof *ret);
    return 0;
}

static int read_identity(const struct reader *r, const struct ddp_options *o,
                         bool agent_store, struct ddp_conf *c)
{
    const char *step = r->names->step ? look(r, r->names->step) : NULL;
    bool has_attempt;
    int attempt = 0;

    if (read_int(r, "TORCHELASTIC_RESTART_COUNT", 0, 1 << 30, &has_attempt,
                 &attempt))
        return DDP_EINVAL;
    c->attempt = DDP_NO_ATTEMPT;
    if (has_attempt && !agent_store)
        c->attempt = (uint32_t)attempt;
    if (read_text(r, r->names->job, o->job_id, true, c->job, sizeof c->job))
        return DDP_EINVAL;
    if (step && !o->job_id && strlen(c->job) + strlen(step) + 2 < DDP_JOB_MAX) {
        strncat(c->job, ".", sizeof c->job - strlen(c->job) - 1);
        strncat(c->job, step, sizeof c->job - strlen(c->job) - 1);
    }
    return 0;
}

/* This rank's place within its machine. */
static int read_local(const struct reader *r, const struct ddp_options *o,
                      struct ddp_conf *c)
{
    const struct ddp_names *n = r->names;
    const char *tasks = n->tasks ? look(r, n->tasks) : NULL;
    int rank = 0, node = 0, size = 1;
    bool has_rank, has_node;

    if (n->local_size || o->local_world_size > 0)
        return read_pair(r, o->local_rank, o->local_world_size, n->local_rank,
                         n->local_size, &c->local_rank, &c->local_size);
    if (read_int(r, n->local_rank, 0, DDP_SIZE_MAX - 1, &has_rank, &rank) ||
        read_int(r, n->node, 0, DDP_SIZE_MAX - 1, &has_node, &node))
        return DDP_EINVAL;
    if (!tasks || ddp_names_tasks(tasks, (unsigned)node, &size) ||
        rank >= size)
        return ddp_fault(r->err, DDP_EINVAL, -1, -1, "%s is '%.100s' and %s "
                         "%d: where are the ranks of this machine?", n->tasks,
                         tasks ? tasks : "", n->local_rank, rank);
    c->local_rank = rank;
    c->local_size = size;
    return 0;
}

/* Where rank 0 is, if MASTER_ADDR does not say: here where all ranks are,
 * else on the first of Slurm's nodes. */
static int read_host(const struct reader *r, const struct ddp_options *o,
                     struct ddp_conf *c)
{
    const char *nodes = r->names->nodes ? look(r, r->names->nodes) : NULL;

    if (read_text(r, "MASTER_ADDR", o->master_addr, false, c->host,
                  sizeof c->host))
        return DDP_EINVAL;
    if (!*c->host && is_foreign(r) && c->local_size == c->size)
        (void)snprintf(c->host, sizeof c->host, "127.0.0.1");
    if (*c->host ||
        (nodes && !ddp_names_first_host(nodes, c->host, sizeof c->host)))
        return 0;
    return ddp_fault(r->err, DDP_EINVAL, -1, -1,
                     "MASTER_ADDR is not set: a launcher (agent, torchrun) "
                     "sets it, alike for all ranks%s",
                     is_foreign(r) ? "; give mpirun -x MASTER_ADDR=HOST of "
                                     "rank 0" : "");
}

int ddp_conf_read(struct ddp_conf *ret, const struct ddp_options *opt,
                  const char *(*get)(void *ctx, const char *name), void *ctx,
                  struct ddp_error *err)
{
    struct reader r = {get, ctx, err, NULL};
    struct ddp_conf c = {.size = 1, .local_size = 1};
    struct ddp_options o;
    const char *store = look(&r, "TORCHELASTIC_USE_AGENT_STORE");
    bool agent_store = store && !strcmp(store, "True");

    r.names = find_names(&r);
    if (take_options(opt, &o, err) ||
        read_pair(&r, o.rank, o.world_size, r.names->rank, r.names->size,
                  &c.rank, &c.size) ||
        read_local(&r, &o, &c) ||
        read_timeout(&r, o.timeout_ms, &c.timeout_ms) ||
        read_transport(&r, &c.no_shm) || read_sockets(&r, &c.n_sockets))
        return DDP_EINVAL;
    if (c.size > 1 && (read_identity(&r, &o, agent_store, &c) ||
                       read_ports(&r, &o, agent_store, &c) ||
                       read_host(&r, &o, &c)))
        return DDP_EINVAL;
    *ret = c;
    return 0;
}
