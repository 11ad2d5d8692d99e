/* bench_device's reducer beside what else a GPU does in a backward pass: how
 * much of the reductions costs no time. */
#include "bench_device.h"

#include <stdio.h>
#include <stdlib.h>

#define LAYERS 16u
#define GRAD (25 * MIB)
#define WORK (512 * MIB)
#define COPIES 3
#define SIDE 2560       /* SIDE * SIDE floats are GRAD. */
#define BATCH_FP32 2048 /* For steps of about the same length. */
#define BATCH_TF32 8192 /* BATCH * SIDE floats are less than WORK / 2. */
#define STEPS 200

static struct {
    int (*create)(void **);
    int (*set_stream)(void *, void *);
    int (*set_math)(void *, int);
    int (*gemm)(void *, int, int, int, int, int, const float *, const float *,
                int, const float *, int, const float *, float *, int);
    void *handle;
    int batch;
} cublas;

static const struct {
    const char *name;
    int math, batch;
} kinds[] = {
    [BESIDE_FP32] = {"products, float", 0, BATCH_FP32},
    [BESIDE_TF32] = {"products, TF32", 3, BATCH_TF32},
    [BESIDE_COPIES] = {"copies", 0, 0},
};

static bool open_cublas(enum beside beside)
{
    static const char *const libs[] = {"libcublas.so.13", "libcublas.so.12"};
    static const char *const names[] = {"cublasCreate_v2",
                                        "cublasSetStream_v2",
                                        "cublasSetMathMode",
                                        "cublasSgemm_v2"};

    cublas.batch = kinds[beside].batch;
    return find(libs, names, 4, &cublas) &&
           cublas.create(&cublas.handle) == 0 &&
           cublas.set_stream(cublas.handle, stream) == 0 &&
           cublas.set_math(cublas.handle, kinds[beside].math) == 0;
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
        e = cublas.gemm(cublas.handle, 0, 1, SIDE, SIDE, cublas.batch, &one, x,
                        SIDE, dy, SIDE, &none, dw, SIDE);
    if (cublas.handle && !e)
        e = cublas.gemm(cublas.handle, 0, 0, SIDE, cublas.batch, SIDE, &one,
                        dw, SIDE, dy, SIDE, &none, dx, SIDE);
    return e;
}

/* One step: each layer's work, then its gradient is ready. */
static int step(struct ddp_reducer *r, char *grads, char *work)
{
    for (size_t i = LAYERS; i-- > 0;) {
        if (work && compute(i, grads, work) != 0)
            return 9;
        if (r && ddp_reducer_ready(r, i, &err))
            return fail();
    }
    power_look();
    if (r && ddp_reducer_wait(r, &err))
        return fail();
    return cuda.wait(stream) == 0 ? 0 : 9;
}

struct times {
    double ms;
    struct power power;
};

/* On the slowest rank: without it the others' steps would be no faster. */
static int timed(struct ddp_reducer *r, char *grads, char *work,
                 struct times *ret)
{
    double began = 0;
    int rc = 0;

    for (int i = -3; i < STEPS && !rc; i++) {
        if (i == 0 && ddp_barrier(comm, &err))
            return fail();
        if (i == 0) {
            power_begin();
            began = now();
        }
        rc = step(r, grads, work);
    }
    ret->ms = (now() - began) * 1e3 / STEPS;
    ret->power = power_end();
    if (!rc && ddp_all_reduce(comm, &ret->ms, &ret->ms, 1, DDP_F64, DDP_MAX,
                              NULL, &err))
        return fail();
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

static void print(const char *beside, const struct times *alone,
                  const struct times *only, const struct times *both)
{
    const struct times *all[] = {alone, only, both};
    static const char *const names[] = {"backward", "reduce", "both"};

    printf("{\"who\": \"libddp\", \"beside\": \"%s\"", beside);
    for (int i = 0; i < 3; i++)
        printf(", \"%s_ms\": %.2f", names[i], all[i]->ms);
    printf(", \"overlap\": %.2f", 1 - (both->ms - alone->ms) / only->ms);
    for (int i = 0; i < 3; i += 2) /* The reductions are too short for it. */
        printf(", \"%s_watts\": %.0f, \"%s_mhz\": %.0f, \"%s_capped\": %.2f",
               names[i], all[i]->power.watts, names[i], all[i]->power.mhz,
               names[i], all[i]->power.capped);
    puts("}");
}

int overlap(char *grads, enum beside beside)
{
    struct ddp_param p[LAYERS];
    struct ddp_reducer_options o = {.size = sizeof o, .bucket_mib = 25,
                                    .stream = stream};
    struct ddp_reducer *r = NULL;
    struct times alone, again, only, both;
    void *work = NULL;
    int rc;

    for (size_t i = 0; i < LAYERS; i++)
        p[i] = (struct ddp_param){.grad = grads + i * GRAD, .count = GRAD / 4,
                                  .type = DDP_F32};
    if (beside != BESIDE_COPIES && !open_cublas(beside)) {
        puts("no libcublas");
        return 8;
    }
    if (cuda.malloc(&work, 2 * WORK) != 0 || !fill(work, WORK))
        return 9;
    if (ddp_reducer_new(&r, comm, p, LAYERS, &o, &err))
        return fail();
    rc = timed(NULL, grads, work, &alone);
    if (!rc)
        rc = timed(r, grads, NULL, &only);
    if (!rc)
        rc = timed(r, grads, work, &both);
    if (!rc) /* A GPU grows warm, and slower: once before, once after. */
        rc = timed(NULL, grads, work, &again);
    alone.ms = (alone.ms + again.ms) / 2;
    if (!rc && ddp_rank(comm) == 0)
        print(kinds[beside].name, &alone, &only, &both);
    ddp_reducer_free(r);
    return rc;
}
