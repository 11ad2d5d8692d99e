/* bench_device: one rank that times libddp's all-reduce of device memory.
 *
 *   bench_device table         JSON lines: bytes, microseconds of a call
 *   bench_device first         init and one all-reduce that is right
 *   bench_device train STEPS   all-reduces that count; in the first attempt
 *                              the last rank kills itself in the middle
 *   bench_device overlap       a reducer beside copies that stand for a
 *                              backward pass: milliseconds of each, and both
 *   bench_device stop          the last rank stops; the others' error and
 *                              how long it took
 * Links no CUDA: it takes the libcudart that the dynamic linker finds. */
#include "ddp.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)
#define WARM 10
#define LAYERS 16u
#define GRAD (25 * MIB)
#define WORK (512 * MIB)
#define COPIES 3
#define STEPS 20

static struct {
    int (*malloc)(void **, size_t);
    int (*stream_new)(void **);
    int (*copy)(void *, const void *, size_t, int);
    int (*set_device)(int);
    int (*memset)(void *, int, size_t);
    int (*copy_async)(void *, const void *, size_t, int, void *);
    int (*wait)(void *);
} cuda;
static struct ddp_comm *comm;
static struct ddp_error err;
static void *stream;

static double now(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static bool open_cuda(void)
{
    static const char *const libs[] = {"libcudart.so.13", "libcudart.so.12"};
    static const char *const names[] = {"cudaMalloc", "cudaStreamCreate",
                                        "cudaMemcpy", "cudaSetDevice",
                                        "cudaMemset", "cudaMemcpyAsync",
                                        "cudaStreamSynchronize"};
    void *h = NULL, *at[7];

    for (unsigned i = 0; !h && i < 2; i++)
        h = dlopen(libs[i], RTLD_LAZY);
    for (unsigned i = 0; h && i < 7; i++)
        at[i] = dlsym(h, names[i]);
    if (h)
        memcpy(&cuda, at, sizeof cuda);
    return h != NULL;
}

static int fail(double since)
{
    printf("rank %d: code %d after %.1f s: %s\n", err.rank, err.code,
           now() - since, err.text);
    return 3;
}

static int reduce(float *buf, size_t n)
{
    return ddp_all_reduce(comm, buf, buf, n, DDP_F32, DDP_SUM, stream, &err);
}

static int table(float *buf, size_t max)
{
    static const size_t sizes[] = {1024,     64 << 10, MIB,       25 * MIB,
                                   64 * MIB, 256 * MIB, 1024 * MIB};

    for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        int times = sizes[i] > 200 * MIB ? 20 : sizes[i] > MIB ? 50 : 500;
        double began = 0;

        if (sizes[i] > max)
            break;
        for (int k = -WARM; k < times; k++) {
            if (k == 0 && ddp_barrier(comm, &err))
                return fail(now());
            if (k == 0)
                began = now();
            if (reduce(buf, sizes[i] / 4))
                return fail(now());
        }
        if (ddp_rank(comm) == 0)
            printf("{\"who\": \"libddp\", \"ranks\": %d, \"bytes\": %zu, "
                   "\"us\": %.1f}\n", ddp_size(comm), sizes[i],
                   (now() - began) / times * 1e6);
    }
    return 0;
}

/* All elements are 1 on all ranks. */
static int check(float *buf, float want)
{
    float host[256], ones[256];

    for (unsigned i = 0; i < 256; i++)
        ones[i] = 1;
    if (cuda.copy(buf, ones, sizeof ones, 4) != 0 || reduce(buf, 256))
        return fail(now());
    if (cuda.copy(host, buf, sizeof host, 4) != 0)
        return 9;
    for (unsigned i = 0; i < 256; i++)
        if (host[i] < want || host[i] > want) {
            printf("element %u is %g, not %g\n", i, (double)host[i],
                   (double)want);
            return 1;
        }
    return 0;
}

static int train(float *buf, int steps)
{
    const char *attempt = getenv("TORCHELASTIC_RESTART_COUNT");
    bool last = ddp_rank(comm) == ddp_size(comm) - 1;
    float want = (float)ddp_size(comm);

    for (int i = 0; i < steps; i++) {
        int rc;

        if (last && i == steps / 2 && attempt && !strcmp(attempt, "0"))
            (void)raise(SIGKILL);
        rc = check(buf, want);
        if (rc)
            return rc;
    }
    if (last)
        printf("trained %d steps in attempt %s\n", steps, attempt);
    return 0;
}

/* One step: each layer's work, then its gradient is ready. */
static int step(struct ddp_reducer *r, char *work, bool computes)
{
    for (size_t i = LAYERS; i-- > 0;) {
        for (int k = 0; computes && k < COPIES; k++)
            if (cuda.copy_async(work, work + WORK, WORK, 4, stream) != 0)
                return 9;
        if (r && ddp_reducer_ready(r, i, &err))
            return fail(now());
    }
    if (r && ddp_reducer_wait(r, &err))
        return fail(now());
    return cuda.wait(stream) == 0 ? 0 : 9;
}

static int timed(struct ddp_reducer *r, char *work, bool computes,
                 double *ret_ms)
{
    double began = 0;
    int rc = 0;

    for (int i = -3; i < STEPS && !rc; i++) {
        if (i == 0 && ddp_barrier(comm, &err))
            return fail(now());
        if (i == 0)
            began = now();
        rc = step(r, work, computes);
    }
    *ret_ms = (now() - began) * 1e3 / STEPS;
    return rc;
}

static int overlap(char *grads)
{
    struct ddp_param p[LAYERS];
    struct ddp_reducer_options o = {.size = sizeof o, .bucket_mib = 25,
                                    .stream = stream};
    struct ddp_reducer *r = NULL;
    double compute, reduce_only, both;
    void *work = NULL;
    int rc;

    for (size_t i = 0; i < LAYERS; i++)
        p[i] = (struct ddp_param){.grad = grads + i * GRAD, .count = GRAD / 4,
                                  .type = DDP_F32};
    if (cuda.malloc(&work, 2 * WORK) != 0)
        return 9;
    if (ddp_reducer_new(&r, comm, p, LAYERS, &o, &err))
        return fail(now());
    rc = timed(NULL, work, true, &compute);
    if (!rc)
        rc = timed(r, work, false, &reduce_only);
    if (!rc)
        rc = timed(r, work, true, &both);
    if (!rc && ddp_rank(comm) == 0)
        printf("{\"who\": \"libddp\", \"backward_ms\": %.2f, "
               "\"reduce_ms\": %.2f, \"both_ms\": %.2f, \"overlap\": "
               "%.2f}\n", compute, reduce_only, both,
               1 - (both - compute) / reduce_only);
    ddp_reducer_free(r);
    return rc;
}

static int stop(float *buf)
{
    double began;

    if (check(buf, (float)ddp_size(comm)))
        return 3;
    began = now();
    if (ddp_rank(comm) == ddp_size(comm) - 1)
        (void)raise(SIGSTOP);
    return reduce(buf, 256) ? fail(began) : 0;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "table";
    size_t max = !strcmp(what, "table") || !strcmp(what, "overlap")
                     ? 1024 * MIB : MIB;
    void *buf = NULL;
    int rc = 2;

    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    if (!open_cuda()) {
        printf("no libcudart\n");
        return 8;
    }
    if (ddp_init(&comm, NULL, &err))
        return fail(now());
    if (cuda.set_device(ddp_local_rank(comm)) != 0 ||
        cuda.stream_new(&stream) != 0 || cuda.malloc(&buf, max) != 0 ||
        cuda.memset(buf, 0, max) != 0) {
        printf("rank %d: CUDA fails\n", ddp_rank(comm));
        return 9;
    }
    if (!strcmp(what, "table"))
        rc = table(buf, max);
    else if (!strcmp(what, "overlap"))
        rc = overlap(buf);
    else if (!strcmp(what, "first"))
        rc = check(buf, (float)ddp_size(comm));
    else if (!strcmp(what, "train"))
        rc = train(buf, argc > 2 ? (int)strtol(argv[2], NULL, 10) : 1000);
    else if (!strcmp(what, "stop"))
        rc = stop(buf);
    ddp_free(comm);
    return rc;
}
