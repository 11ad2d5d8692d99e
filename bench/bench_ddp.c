/* bench_ddp: a rank of `make bench-ddp`: times libddp's all_reduce, or how
 * much of it a reducer hides. Rank 0 prints.
 *
 *   bench_ddp all_reduce COUNT CALLS   CALLS times COUNT floats
 *   bench_ddp overlap busy|idle        a backward pass that computes, or that
 *                                      waits as for a device */
#include "ddp.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define WARM_UP 3
#define LAYERS 24
#define LAYER_FLOATS (512 * 1024)
#define LAYER_MS 4.0
#define PASSES 7

static double clock_ms(clockid_t id)
{
    struct timespec t;

    (void)clock_gettime(id, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static double now_ms(void)
{
    return clock_ms(CLOCK_MONOTONIC);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static double median(double *ms, size_t n)
{
    qsort(ms, n, sizeof *ms, by_value);
    return ms[n / 2];
}

static int fail(const struct ddp_error *e)
{
    (void)fprintf(stderr, "bench_ddp: rank %d: %s\n", e->rank, e->text);
    return 1;
}

/* "least median" in microseconds; short calls are timed in rows. */
static int all_reduce(struct ddp_comm *c, size_t count, size_t calls)
{
    size_t row = count <= 65536 ? 200 : 1, n = calls / row;
    float *a = calloc(count, sizeof *a);
    double *ms = calloc(n + WARM_UP + 1, sizeof *ms);
    struct ddp_error e;
    int rc = a && ms && n > 0 ? 0 : 1;

    for (size_t i = 0; i < count && !rc; i++)
        a[i] = 0;
    for (size_t i = 0; i < n + WARM_UP && !rc; i++) {
        double began;

        if (ddp_barrier(c, &e))
            rc = fail(&e);
        began = now_ms();
        for (size_t k = 0; k < row && !rc; k++)
            if (ddp_all_reduce(c, a, a, count, DDP_F32, DDP_SUM, NULL, &e))
                rc = fail(&e);
        ms[i] = (now_ms() - began) / (double)row;
    }
    for (size_t i = 0; i < count && !rc; i++)
        rc = a[i] != 0;
    if (!rc && ddp_rank(c) == 0) {
        double middle = median(ms + WARM_UP, n);

        printf("%.2f %.2f\n", ms[WARM_UP] * 1e3, middle * 1e3);
    }
    free(a);
    free(ms);
    return rc;
}

/* --- overlap ------------------------------------------------------------- */

static void layer(bool is_busy, double ms)
{
    struct timespec pause = {.tv_nsec = (long)(ms * 1e6)};
    volatile float x = 1;
    double until = clock_ms(CLOCK_THREAD_CPUTIME_ID) + ms;

    if (!is_busy) {
        (void)nanosleep(&pause, NULL);
        return;
    }
    while (clock_ms(CLOCK_THREAD_CPUTIME_ID) < until)
        for (int i = 0; i < 1000; i++)
            x = x * 1.0001f;
}

struct model {
    struct ddp_comm *c;
    struct ddp_reducer *r;
    struct ddp_param params[LAYERS];
    struct ddp_error e;
};

enum mode { COMPUTE, REDUCE, BOTH };

/* One pass; its time, or -1. */
static double pass(struct model *m, enum mode mode, bool is_busy)
{
    double began;
    int rc = ddp_barrier(m->c, &m->e);

    began = now_ms();
    for (size_t i = LAYERS; i-- > 0 && !rc;) {
        if (mode != REDUCE)
            layer(is_busy, LAYER_MS);
        if (mode != COMPUTE)
            rc = ddp_reducer_ready(m->r, i, &m->e);
    }
    if (!rc && mode != COMPUTE)
        rc = ddp_reducer_wait(m->r, &m->e);
    return rc ? -1 : now_ms() - began;
}

/* "compute reduce both cpu": medians in ms, and what a reduction alone takes
 * of this rank's processor. */
static int overlap(struct model *m, bool is_busy)
{
    double ms[3][PASSES], middle[3], cpu = 0;

    for (unsigned i = 0; i < PASSES; i++)
        for (unsigned mode = COMPUTE; mode <= BOTH; mode++) {
            double before = clock_ms(CLOCK_PROCESS_CPUTIME_ID);

            ms[mode][i] = pass(m, mode, is_busy);
            if (mode == REDUCE)
                cpu += (clock_ms(CLOCK_PROCESS_CPUTIME_ID) - before) / PASSES;
            if (ms[mode][i] < 0)
                return fail(&m->e);
        }
    for (unsigned mode = COMPUTE; mode <= BOTH; mode++)
        middle[mode] = median(ms[mode], PASSES);
    if (ddp_rank(m->c) == 0)
        printf("%.2f %.2f %.2f %.2f\n", middle[0], middle[1], middle[2], cpu);
    return 0;
}

static int run_overlap(struct ddp_comm *c, bool is_busy)
{
    const struct ddp_reducer_options opt = {.size = sizeof opt,
                                            .bucket_mib = 4};
    struct model m = {.c = c};
    float *memory = calloc((size_t)LAYERS * LAYER_FLOATS, sizeof *memory);
    int rc = memory ? 0 : 1;

    for (size_t i = 0; i < LAYERS && !rc; i++)
        m.params[i] = (struct ddp_param){.grad = memory + i * LAYER_FLOATS,
                                         .count = LAYER_FLOATS,
                                         .type = DDP_F32};
    if (!rc && ddp_reducer_new(&m.r, c, m.params, LAYERS, &opt, &m.e))
        rc = fail(&m.e);
    if (!rc)
        rc = overlap(&m, is_busy);
    ddp_reducer_free(m.r);
    free(memory);
    return rc;
}

int main(int argc, char **argv)
{
    struct ddp_comm *c = NULL;
    struct ddp_error e;
    int rc = 64;

    if (ddp_init(&c, NULL, &e))
        return fail(&e);
    if (argc == 4 && !strcmp(argv[1], "all_reduce"))
        rc = all_reduce(c, strtoul(argv[2], NULL, 10),
                        strtoul(argv[3], NULL, 10));
    if (argc == 3 && !strcmp(argv[1], "overlap"))
        rc = run_overlap(c, !strcmp(argv[2], "busy"));
    ddp_free(c);
    return rc;
}
