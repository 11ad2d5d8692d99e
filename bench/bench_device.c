/* bench_device: one rank that times libddp's all-reduce of device memory.
 *
 *   bench_device table         JSON lines: bytes, microseconds of a call that
 *                              is waited for, and of queued ones
 *   bench_device first         init and one all-reduce that is right
 *   bench_device train STEPS   all-reduces that count; in the first attempt
 *                              the last rank kills itself in the middle
 *   bench_device overlap       a reducer beside the two matrix products of
 *                              each layer's backward pass (libcublas), or
 *   bench_device copies        beside copies, which want the same memory
 *                              bandwidth: milliseconds of each, and both
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
#define SIDE 2560  /* SIDE * SIDE floats are GRAD. */
#define BATCH 8192 /* BATCH * SIDE floats are less than WORK / 2. */
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
static struct {
    int (*create)(void **);
    int (*set_stream)(void *, void *);
    int (*set_math)(void *, int);
    int (*gemm)(void *, int, int, int, int, int, const float *, const float *,
                int, const float *, int, const float *, float *, int);
    void *handle;
} cublas;
static struct ddp_comm *comm;
static struct ddp_error err;
static void *stream;

static double now(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static bool find(const char *const libs[2], const char *const *names,
                 unsigned n, void *ret)
{
    void *h = NULL, *at[8];

    for (unsigned i = 0; !h && i < 2; i++)
        h = dlopen(libs[i], RTLD_LAZY);
    for (unsigned i = 0; h && i < n; i++) {
        at[i] = dlsym(h, names[i]);
        if (!at[i])
            return false;
    }
    if (h)
        memcpy(ret, at, n * sizeof at[0]);
    return h != NULL;
}

static bool open_cuda(void)
{
    static const char *const libs[] = {"libcudart.so.13", "libcudart.so.12"};
    static const char *const names[] = {"cudaMalloc", "cudaStreamCreate",
                                        "cudaMemcpy", "cudaSetDevice",
                                        "cudaMemset", "cudaMemcpyAsync",
                                        "cudaStreamSynchronize"};

    return find(libs, names, 7, &cuda);
}

static bool open_cublas(void)
{
    static const char *const libs[] = {"libcublas.so.13", "libcublas.so.12"};
    static const char *const names[] = {"cublasCreate_v2",
                                        "cublasSetStream_v2",
                                        "cublasSetMathMode",
                                        "cublasSgemm_v2"};

    return find(libs, names, 4, &cublas) &&
           cublas.create(&cublas.handle) == 0 &&
           cublas.set_stream(cublas.handle, stream) == 0 &&
           cublas.set_math(cublas.handle, 3) == 0; /* TF32, as PyTorch may. */
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

/* Microseconds of a call, or less than 0. */
static double time_calls(float *buf, size_t bytes, bool is_queued)
{
    int times = bytes > 200 * MIB ? 20 : bytes > MIB ? 50 : 500;
    double began = 0;

    if (ddp_queued(comm, is_queued, &err))
        return -1;
    for (int k = -WARM; k < times; k++) {
        if (k == 0 && (ddp_wait(comm, &err) || ddp_barrier(comm, &err)))
            return -1;
        if (k == 0)
            began = now();
        if (reduce(buf, bytes / 4))
            return -1;
    }
    return ddp_queued(comm, 0, &err) ? -1 : (now() - began) / times * 1e6;
}

static int table(float *buf, size_t max)
{
    static const size_t sizes[] = {1024,     64 << 10, MIB,       25 * MIB,
                                   64 * MIB, 256 * MIB, 1024 * MIB};

    for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        double waited, queued;

        if (sizes[i] > max)
            break;
        queued = time_calls(buf, sizes[i], true);
        waited = queued < 0 ? -1 : time_calls(buf, sizes[i], false);
        if (waited < 0)
            return fail(now());
        if (ddp_rank(comm) == 0)
            printf("{\"who\": \"libddp\", \"ranks\": %d, \"bytes\": %zu, "
                   "\"us\": %.1f, \"us_queued\": %.1f}\n", ddp_size(comm),
                   sizes[i], waited, queued);
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

/* A layer's backward pass: the gradient of SIDE x SIDE weights, in its place,
 * and of the layer's inputs. Or copies. */
static int compute(size_t layer, char *grads, char *work)
{
    const float one = 1, none = 0;
    float *x = (float *)(void *)work, *dy = (float *)(void *)(work + WORK / 2);
    float *dx = (float *)(void *)(work + WORK);
    float *dw = (float *)(void *)(grads + layer * GRAD);
    int e = 0;

    for (int k = 0; !cublas.handle && k < COPIES && !e; k++)
        e = cuda.copy_async(work, work + WORK, WORK, 4, stream);
    if (cublas.handle)
        e = cublas.gemm(cublas.handle, 0, 1, SIDE, SIDE, BATCH, &one, x, SIDE,
                        dy, SIDE, &none, dw, SIDE);
    if (cublas.handle && !e)
        e = cublas.gemm(cublas.handle, 0, 0, SIDE, BATCH, SIDE, &one, dw, SIDE,
                        dy, SIDE, &none, dx, SIDE);
    return e;
}

/* One step: each layer's work, then its gradient is ready. */
static int step(struct ddp_reducer *r, char *grads, char *work)
{
    for (size_t i = LAYERS; i-- > 0;) {
        if (work && compute(i, grads, work) != 0)
            return 9;
        if (r && ddp_reducer_ready(r, i, &err))
            return fail(now());
    }
    if (r && ddp_reducer_wait(r, &err))
        return fail(now());
    return cuda.wait(stream) == 0 ? 0 : 9;
}

/* On the slowest rank: without it the others' steps would be no faster. */
static int timed(struct ddp_reducer *r, char *grads, char *work,
                 double *ret_ms)
{
    double began = 0;
    int rc = 0;

    for (int i = -3; i < STEPS && !rc; i++) {
        if (i == 0 && ddp_barrier(comm, &err))
            return fail(now());
        if (i == 0)
            began = now();
        rc = step(r, grads, work);
    }
    *ret_ms = (now() - began) * 1e3 / STEPS;
    if (!rc && ddp_all_reduce(comm, ret_ms, ret_ms, 1, DDP_F64, DDP_MAX, NULL,
                              &err))
        return fail(now());
    return rc;
}

/* Products of zeros are faster than those of data. */
static bool fill(char *work, size_t size)
{
    float *host = malloc(size);
    unsigned state = 1;

    for (size_t i = 0; host && i < size / sizeof *host; i++) {
        state = state * 1664525u + 1013904223u;
        host[i] = (float)(state >> 8) / 8388608.0f - 1;
    }
    if (!host || cuda.copy(work, host, size, 4) != 0) {
        free(host);
        return false;
    }
    free(host);
    return true;
}

static int overlap(char *grads)
{
    struct ddp_param p[LAYERS];
    struct ddp_reducer_options o = {.size = sizeof o, .bucket_mib = 25,
                                    .stream = stream};
    struct ddp_reducer *r = NULL;
    double alone, reduce_only, both;
    void *work = NULL;
    int rc;

    for (size_t i = 0; i < LAYERS; i++)
        p[i] = (struct ddp_param){.grad = grads + i * GRAD, .count = GRAD / 4,
                                  .type = DDP_F32};
    if (cuda.malloc(&work, 2 * WORK) != 0 ||
        !fill(work, WORK))
        return 9;
    if (ddp_reducer_new(&r, comm, p, LAYERS, &o, &err))
        return fail(now());
    rc = timed(NULL, grads, work, &alone);
    if (!rc)
        rc = timed(r, grads, NULL, &reduce_only);
    if (!rc)
        rc = timed(r, grads, work, &both);
    if (!rc && ddp_rank(comm) == 0)
        printf("{\"who\": \"libddp\", \"beside\": \"%s\", "
               "\"backward_ms\": %.2f, \"reduce_ms\": %.2f, \"both_ms\": "
               "%.2f, \"overlap\": %.2f}\n",
               cublas.handle ? "products" : "copies", alone, reduce_only, both,
               1 - (both - alone) / reduce_only);
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
    size_t max = !strcmp(what, "table") || !strcmp(what, "overlap") ||
                         !strcmp(what, "copies")
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
    else if (!strcmp(what, "copies"))
        rc = overlap(buf);
    else if (!strcmp(what, "overlap"))
        rc = open_cublas() ? overlap(buf) : 8;
    else if (!strcmp(what, "first"))
        rc = check(buf, (float)ddp_size(comm));
    else if (!strcmp(what, "train"))
        rc = train(buf, argc > 2 ? (int)strtol(argv[2], NULL, 10) : 1000);
    else if (!strcmp(what, "stop"))
        rc = stop(buf);
    ddp_free(comm);
    return rc;
}
