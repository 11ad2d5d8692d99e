/* bench_device: one rank that times libddp's all-reduce of device memory.
 *
 *   bench_device table         JSON lines: bytes, microseconds of a call that
 *                              is waited for, and of queued ones
 *   bench_device first         init and one all-reduce that is right
 *   bench_device train STEPS   all-reduces that count; in the first attempt
 *                              the last rank kills itself in the middle
 *   bench_device overlap       a reducer beside the two matrix products of
 *                              each layer's backward pass (libcublas) in
 *                              float, as PyTorch has it by default,
 *   bench_device tf32          in TF32, which takes all the power that the
 *                              GPU may, or
 *   bench_device copies        beside copies, which want the same memory
 *                              bandwidth: milliseconds of each, and both,
 *                              and the power of the GPU of rank 0
 *   bench_device stop          the last rank stops; the others' error and
 *                              how long it took
 * Links no CUDA: it takes the libcudart that the dynamic linker finds. */
#include "bench_device.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define WARM 10

struct bench_cuda cuda;
struct ddp_comm *comm;
struct ddp_error err;
void *stream;

double now(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

bool find(const char *const libs[2], const char *const *names, unsigned n,
          void *ret)
{
    void *h = NULL, *at[10];

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
                                        "cudaStreamSynchronize",
                                        "cudaDeviceGetPCIBusId"};

    return find(libs, names, 8, &cuda);
}

int fail(void)
{
    printf("rank %d: code %d: %s\n", err.rank, err.code, err.text);
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
            return fail();
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
        return fail();
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

static int stop(float *buf)
{
    double began;

    if (check(buf, (float)ddp_size(comm)))
        return 3;
    began = now();
    if (ddp_rank(comm) == ddp_size(comm) - 1)
        (void)raise(SIGSTOP);
    if (!reduce(buf, 256))
        return 0;
    printf("rank %d: code %d after %.1f s: %s\n", err.rank, err.code,
           now() - began, err.text);
    return 3;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "table";
    bool is_small = !strcmp(what, "first") || !strcmp(what, "train") ||
                    !strcmp(what, "stop");
    size_t max = is_small ? MIB : 1024 * MIB;
    void *buf = NULL;
    int rc = 2;

    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    if (!open_cuda()) {
        printf("no libcudart\n");
        return 8;
    }
    if (ddp_init(&comm, NULL, &err))
        return fail();
    if (cuda.set_device(ddp_local_rank(comm)) != 0 ||
        cuda.stream_new(&stream) != 0 || cuda.malloc(&buf, max) != 0 ||
        cuda.memset(buf, 0, max) != 0) {
        printf("rank %d: CUDA fails\n", ddp_rank(comm));
        return 9;
    }
    if (!strcmp(what, "table"))
        rc = table(buf, max);
    else if (!strcmp(what, "overlap"))
        rc = overlap(buf, BESIDE_FP32);
    else if (!strcmp(what, "tf32"))
        rc = overlap(buf, BESIDE_TF32);
    else if (!strcmp(what, "copies"))
        rc = overlap(buf, BESIDE_COPIES);
    else if (!strcmp(what, "first"))
        rc = check(buf, (float)ddp_size(comm));
    else if (!strcmp(what, "train"))
        rc = train(buf, argc > 2 ? (int)strtol(argv[2], NULL, 10) : 1000);
    else if (!strcmp(what, "stop"))
        rc = stop(buf);
    ddp_free(comm);
    return rc;
}
