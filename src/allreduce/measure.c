/* measure: see measure.h. */
#include "allreduce/measure.h"

#include "allreduce/pattern.h"
#include "allreduce/table.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define POISON 0xa5

struct run {
    struct ddp_comm *c;
    const struct opts *o;
    struct table table;
    struct pattern pattern;
    uint8_t *send, *recv; /* Of o->max_bytes each. */
    struct err *e;
};

int measure_fault(const struct ddp_error *d, struct err *e)
{
    int class = d->code == DDP_EINVAL      ? ERR_USAGE
                : d->code == DDP_EMISMATCH ? ERR_MISMATCH
                                           : ERR_RESOURCE;

    if (d->rank < 0)
        return err_set(e, class, "%s", d->text);
    return err_set(e, class, "rank %d: %s", d->rank, d->text);
}

static double now_us(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* One number of all ranks. */
static int combine(struct run *r, void *value, enum ddp_type type,
                   enum ddp_op op)
{
    struct ddp_error d;

    if (ddp_all_reduce(r->c, value, value, 1, type, op, NULL, &d))
        return measure_fault(&d, r->e);
    return 0;
}

static int call(struct run *r, const void *send, void *recv, size_t count,
                unsigned times)
{
    struct ddp_error d;

    for (unsigned i = 0; i < times; i++)
        if (ddp_all_reduce(r->c, send, recv, count, r->pattern.type->type,
                           r->pattern.op->op, NULL, &d))
            return measure_fault(&d, r->e);
    return 0;
}

static void say_wrong(const struct run *r, size_t count, bool in_place,
                      const struct pattern_wrong *w)
{
    fprintf(stderr, "agent-allreduce: rank %d: %zu of %zu x %s are wrong, %s "
            "%s; the first is element %zu: %g, not %g\n", ddp_rank(r->c),
            w->n, count, r->pattern.type->name, r->pattern.op->name,
            in_place ? "in place" : "out of place", w->first, w->got,
            w->wanted);
}

/* Wrong elements of all ranks, in o->check calls. */
static int compare(struct run *r, size_t count, bool in_place,
                   uint64_t *ret_wrong)
{
    uint8_t *send = in_place ? r->recv : r->send;
    struct pattern_wrong wrong;

    *ret_wrong = 0;
    for (unsigned i = 0; i < r->o->check; i++) {
        memset(r->recv, POISON, count * r->pattern.type->width);
        pattern_fill(&r->pattern, send, count);
        if (call(r, send, r->recv, count, 1))
            return -r->e->code;
        pattern_check(&r->pattern, r->recv, count, &wrong);
        if (wrong.n > 0 && *ret_wrong == 0)
            say_wrong(r, count, in_place, &wrong);
        *ret_wrong += wrong.n;
    }
    return combine(r, ret_wrong, DDP_U64, DDP_SUM);
}

static int half(struct run *r, size_t count, bool in_place,
                struct table_cell *ret)
{
    uint8_t *send = in_place ? r->recv : r->send;
    size_t bytes = count * r->pattern.type->width;
    struct ddp_error d;
    double began;

    memset(r->send, 0, bytes); /* Zeros stay what they are. */
    memset(r->recv, 0, bytes);
    if (call(r, send, r->recv, count, r->o->warmup))
        return -r->e->code;
    if (ddp_barrier(r->c, &d))
        return measure_fault(&d, r->e);
    began = now_us();
    if (call(r, send, r->recv, count, r->o->iters))
        return -r->e->code;
    ret->time_us = (now_us() - began) / r->o->iters;
    if (combine(r, &ret->time_us, DDP_F64, DDP_AVG))
        return -r->e->code;
    return compare(r, count, in_place, &ret->n_wrong);
}

/* All sizes of the pattern's type and op. */
static int sizes(struct run *r)
{
    for (uint64_t b = r->o->min_bytes; b; b = opts_next(r->o, b)) {
        struct table_line line = {.type = r->pattern.type,
                                  .op = r->pattern.op};

        line.count = b / line.type->width;
        line.bytes = line.count * line.type->width;
        if (half(r, line.count, false, &line.out_of_place) ||
            half(r, line.count, true, &line.in_place))
            return -r->e->code;
        table_add(&r->table, &line);
    }
    return 0;
}

static int kinds(struct run *r)
{
    const struct pattern_type *type;
    const struct pattern_op *op;

    for (unsigned t = 0; (type = pattern_type(t)) != NULL; t++)
        for (unsigned k = 0; (op = pattern_op(k)) != NULL; k++) {
            if ((r->o->type != OPTS_ALL && r->o->type != (int)t) ||
                (r->o->op != OPTS_ALL && r->o->op != (int)k))
                continue;
            pattern_init(&r->pattern, type, op, ddp_rank(r->c),
                         ddp_size(r->c));
            if (sizes(r))
                return -r->e->code;
        }
    return 0;
}

/* What this machine's memory has left; 0: unknown. */
static uint64_t available(void)
{
    char line[128];
    uint64_t kib = 0;
    FILE *f = fopen("/proc/meminfo", "re");

    while (f && kib == 0 && fgets(line, sizeof line, f))
        if (strncmp(line, "MemAvailable:", 13) == 0)
            kib = strtoull(line + 13, NULL, 10);
    if (f)
        (void)fclose(f);
    return kib * 1024;
}

/* The ranks of this machine are taken to be LOCAL_WORLD_SIZE, each with two
 * buffers; all ranks fail where one must. */
static int buffers(struct run *r)
{
    const char *local = getenv("LOCAL_WORLD_SIZE");
    uint64_t n = local ? strtoul(local, NULL, 10) : 1;
    uint64_t here = available(), need = r->o->max_bytes * 2;
    uint8_t fails;

    fails = n > 0 && here > 0 && need > here / n;
    if (!fails) {
        r->send = malloc(r->o->max_bytes);
        r->recv = malloc(r->o->max_bytes);
        fails = !r->send || !r->recv;
    }
    if (combine(r, &fails, DDP_U8, DDP_MAX))
        return -r->e->code;
    if (fails)
        return err_set(r->e, ERR_RESOURCE, "rank %d: two buffers of %" PRIu64
                       " bytes for each rank do not fit in the memory of this "
                       "or another rank's machine (%" PRIu64 " MiB are "
                       "available here); use a smaller --maxbytes",
                       ddp_rank(r->c), r->o->max_bytes, here >> 20);
    return 0;
}

/* Who takes part, told to all. */
static int begin(struct run *r)
{
    struct table_rank mine = {.pid = getpid()};
    struct table_rank *all = calloc((size_t)ddp_size(r->c), sizeof *all);
    struct ddp_error d;
    int rc;

    if (!all)
        return err_set(r->e, ERR_RESOURCE, "out of memory");
    (void)gethostname(mine.host, sizeof mine.host - 1);
    rc = ddp_all_gather(r->c, &mine, all, sizeof mine, DDP_U8, NULL, &d);
    if (rc)
        rc = measure_fault(&d, r->e);
    else
        table_begin(&r->table, all);
    free(all);
    return rc;
}

/* A launcher stops the others once a rank has failed, so none leaves before
 * rank 0 has printed all. */
static int end(struct run *r)
{
    bool ok = table_end(&r->table);
    struct ddp_error d;

    if (r->table.out)
        (void)fflush(r->table.out); /* main() tells of a failure. */
    if (ddp_barrier(r->c, &d))
        return measure_fault(&d, r->e);
    return !ok;
}

int measure_all(struct ddp_comm *c, const struct opts *o, FILE *out,
                struct err *e)
{
    struct run *r = calloc(1, sizeof *r);
    int rc;

    if (!r)
        return err_set(e, ERR_RESOURCE, "out of memory");
    r->c = c;
    r->o = o;
    r->e = e;
    r->table = (struct table){.out = ddp_rank(c) == 0 ? out : NULL, .opts = o,
                              .size = ddp_size(c)};
    rc = buffers(r);
    if (!rc)
        rc = begin(r);
    if (!rc)
        rc = kinds(r);
    if (!rc)
        rc = end(r);
    free(r->send);
    free(r->recv);
    free(r);
    return rc;
}
