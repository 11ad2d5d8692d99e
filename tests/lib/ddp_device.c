/* ddp_device: one rank of a test of libddp's device memory, over whatever
 * libcudart and libnccl are found. Links neither.
 *
 *   ddp_device sums        each call against a reference
 *   ddp_device wrong       arguments that do not fit
 *   ddp_device loop N      N all_reduce; prints nothing but errors
 *   ddp_device die N       the same, and the last rank exits before the last
 *   ddp_device queue N     N queued calls, each on the result of the last
 *   ddp_device queue-die N the same, and the last rank exits in the middle
 *   ddp_device unwaited N  N queued calls that nobody waits for
 *   ddp_device drop N      the same, and they are aborted
 *   ddp_device reducer     gradients in device memory, over some steps
 *   ddp_device leave       a reducer is freed while its buckets are queued
 *   ddp_device abort       rank 0 is aborted by a thread while all wait
 *   ddp_device aborted N   rank 0 is aborted between calls; 1: it waits then
 * An error is `rank R: code C peer P: TEXT`, and status 3. */
#include "ddp.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define N 1000

static struct {
    int (*malloc)(void **, size_t);
    int (*stream_new)(void **);
    int (*copy)(void *, const void *, size_t, int, void *);
    int (*set_device)(int);
} cuda;
static struct ddp_comm *comm;
static void *stream;

static int find(void)
{
    static const char *const names[] = {"libcudart.so.13", "libcudart.so.12",
                                        "libcudart.so"};
    void *h = NULL, *at[4];

    for (unsigned i = 0; !h && i < 3; i++)
        h = dlopen(names[i], RTLD_LAZY);
    if (!h)
        return -1;
    at[0] = dlsym(h, "cudaMalloc");
    at[1] = dlsym(h, "cudaStreamCreate");
    at[2] = dlsym(h, "cudaMemcpyAsync");
    at[3] = dlsym(h, "cudaSetDevice");
    memcpy(&cuda, at, sizeof cuda);
    return at[0] && at[1] && at[2] && at[3] ? 0 : -1;
}

static int fail(const struct ddp_error *e)
{
    printf("rank %d: code %d peer %d: %s\n", e->rank, e->code, e->peer,
           e->text);
    return 3;
}

static float *device(size_t n)
{
    void *p = NULL;

    if (cuda.malloc(&p, n * sizeof(float)) != 0)
        exit(9);
    return p;
}

/* Blocking, as the memory of the other side is pageable. */
static void put(float *to, const float *from, size_t n)
{
    if (cuda.copy(to, from, n * sizeof *to, 4, NULL) != 0)
        exit(9);
}

static int differs(const char *what, const float *got, const float *want,
                   size_t n)
{
    static float host[N * 16];

    put(host, got, n);
    for (size_t i = 0; i < n; i++)
        if (host[i] - want[i] > 1e-3f || want[i] - host[i] > 1e-3f) {
            printf("%s: element %zu is %g, not %g\n", what, i,
                   (double)host[i], (double)want[i]);
            return 1;
        }
    return 0;
}

static int sums(struct ddp_error *e)
{
    static float in[N * 16], want[N * 16];
    int size = ddp_size(comm), rank = ddp_rank(comm), bad = 0;
    float *a = device((size_t)(N * size)), *b = device((size_t)(N * size));
    float ranks = (float)(size * (size + 1)) / 2;

    for (int i = 0; i < N * size; i++)
        in[i] = (float)((rank + 1) * (i % 100));
    put(a, in, (size_t)(N * size));
    for (int i = 0; i < N; i++)
        want[i] = ranks * (float)(i % 100);
    if (ddp_all_reduce(comm, a, b, N, DDP_F32, DDP_SUM, stream, e))
        return fail(e);
    bad |= differs("all_reduce", b, want, N);
    if (ddp_all_reduce(comm, a, a, N, DDP_F32, DDP_AVG, stream, e))
        return fail(e);
    for (int i = 0; i < N; i++)
        want[i] /= (float)size;
    bad |= differs("average in place", a, want, N);
    put(a, in, (size_t)(N * size));
    if (ddp_reduce_scatter(comm, a, b, N, DDP_F32, DDP_SUM, stream, e))
        return fail(e);
    for (int i = 0; i < N; i++)
        want[i] = ranks * (float)((rank * N + i) % 100);
    bad |= differs("reduce_scatter", b, want, N);
    if (ddp_all_gather(comm, a, b, N, DDP_F32, stream, e))
        return fail(e);
    for (int i = 0; i < N * size; i++)
        want[i] = (float)((i / N + 1) * (i % N % 100));
    bad |= differs("all_gather", b, want, (size_t)(N * size));
    if (ddp_broadcast(comm, a, N, DDP_F32, size - 1, NULL, e))
        return fail(e);
    for (int i = 0; i < N; i++)
        want[i] = (float)(size * (i % 100));
    bad |= differs("broadcast", a, want, N);
    if (ddp_all_reduce(comm, a, a, 0, DDP_F32, DDP_SUM, stream, e) ||
        ddp_all_reduce(comm, want, want, N, DDP_F32, DDP_AVG, NULL, e) ||
        ddp_barrier(comm, e))
        return fail(e); /* Host memory goes on as ever. */
    if (!bad && rank == 0)
        printf("all sums are right\n");
    return bad;
}

static int wrong(struct ddp_error *e)
{
    float host[4] = {0}, *a = device(4);
    const struct ddp_param p[] = {{.grad = a, .count = 4, .type = DDP_F32},
                                  {.grad = host, .count = 4, .type = DDP_F32}};
    struct ddp_reducer_options o = {.size = sizeof o, .wire = DDP_BF16};
    struct ddp_reducer *r = NULL;

    if (ddp_all_reduce(comm, host, a, 4, DDP_F32, DDP_SUM, stream, e))
        (void)fail(e);
    if (ddp_all_reduce(comm, host, host, 4, DDP_F32, DDP_SUM, stream, e))
        (void)fail(e);
    if (ddp_reducer_new(&r, comm, p, 2, NULL, e))
        (void)fail(e);
    if (ddp_reducer_new(&r, comm, p, 1, &o, e))
        (void)fail(e);
    return ddp_barrier(comm, e) ? fail(e) : 0;
}

static int loop(int n, int dies, struct ddp_error *e)
{
    float *a = device(N);

    for (int i = 0; i < n; i++) {
        if (dies && i == n - 1 && ddp_rank(comm) == ddp_size(comm) - 1)
            _exit(7);
        if (ddp_all_reduce(comm, a, a, N, DDP_F32, DDP_SUM, stream, e))
            return fail(e);
    }
    return 0;
}

static int unwaited(int n, struct ddp_error *e)
{
    return ddp_queued(comm, 1, e) ? fail(e) : loop(n, 0, e);
}

/* Averages of averages stay what they are, so each call must see the result
 * of the one before; more than may be under way at a time. */
static int queue(int n, int dies, struct ddp_error *e)
{
    static float in[N], want[N];
    float *a = device(N), *b = device(N);

    for (int i = 0; i < N; i++) {
        in[i] = (float)((ddp_rank(comm) + 1) * (i % 100));
        want[i] = (float)(ddp_size(comm) + 1) / 2 * (float)(i % 100);
    }
    put(a, in, N);
    if (ddp_queued(comm, 1, e))
        return fail(e);
    for (int i = 0; i < n; i++) {
        if (dies && i == n / 2 && ddp_rank(comm) == ddp_size(comm) - 1)
            _exit(7);
        if (ddp_all_reduce(comm, i % 2 ? b : a, i % 2 ? a : b, N, DDP_F32,
                           DDP_AVG, stream, e))
            return fail(e);
    }
    if (ddp_wait(comm, e))
        return fail(e);
    if (differs("queued", n % 2 ? b : a, want, N))
        return 1;
    if (ddp_all_reduce(comm, a, a, N, DDP_F32, DDP_AVG, stream, e) ||
        ddp_queued(comm, 0, e) || ddp_wait(comm, e) || ddp_wait(comm, e) ||
        ddp_all_reduce(comm, a, b, N, DDP_F32, DDP_AVG, stream, e))
        return fail(e);
    if (differs("no longer queued", b, want, N))
        return 1;
    if (ddp_rank(comm) == 0)
        printf("all that was queued is right\n");
    return 0;
}

/* Two gradients side by side, and two that are copied to a bucket. */
static int reducer(struct ddp_error *e)
{
    const size_t counts[] = {N, 2 * N, 7, 3 * N};
    float *pair = device(3 * N), host[3 * N], want[3 * N];
    struct ddp_param p[4];
    struct ddp_reducer_options o = {.size = sizeof o, .bucket_mib = 0.008,
                                    .stream = stream};
    struct ddp_reducer *r = NULL;
    int bad = 0, size = ddp_size(comm);

    for (int i = 0; i < 4; i++)
        p[i] = (struct ddp_param){.grad = i == 0   ? pair
                                          : i == 1 ? pair + N
                                                   : device(counts[i] + 64),
                                  .count = counts[i], .type = DDP_F32};
    if (ddp_reducer_new(&r, comm, p, 4, &o, e))
        return fail(e);
    for (int step = 0; step < 5 && !bad; step++) {
        for (int i = 3; i >= 0; i--) {
            for (size_t k = 0; k < counts[i]; k++) {
                host[k] = (float)((ddp_rank(comm) + 1) * (step + i) +
                                  (int)(k % 10));
                want[k] = (float)((size + 1) * (step + i)) / 2 +
                          (float)(k % 10);
            }
            put(p[i].grad, host, counts[i]);
            if (ddp_reducer_ready(r, (size_t)i, e))
                return fail(e);
        }
        if (ddp_reducer_wait(r, e))
            return fail(e);
        for (int i = 0; i < 4; i++) {
            for (size_t k = 0; k < counts[i]; k++)
                want[k] = (float)((size + 1) * (step + i)) / 2 +
                          (float)(k % 10);
            bad |= differs("average", p[i].grad, want, counts[i]);
        }
    }
    ddp_reducer_free(r);
    if (!bad && ddp_rank(comm) == 0)
        printf("all averages are right\n");
    return bad;
}

/* The last rank has no gradients ready, so the others' cannot be reduced. */
static int leave(struct ddp_error *e)
{
    const struct ddp_param p = {.grad = device(N), .count = N,
                                .type = DDP_F32};
    struct ddp_reducer_options o = {.size = sizeof o, .stream = stream};
    struct ddp_reducer *r = NULL;

    if (loop(1, 0, e) || ddp_reducer_new(&r, comm, &p, 1, &o, e))
        return fail(e);
    if (ddp_rank(comm) < ddp_size(comm) - 1) {
        if (ddp_reducer_ready(r, 0, e))
            return fail(e);
        (void)usleep(100000);
    }
    ddp_reducer_free(r);
    return ddp_barrier(comm, e) ? fail(e) : 0;
}

/* A call that would be over at once is none any more. */
static int aborted(int waits, struct ddp_error *e)
{
    if (loop(2, 0, e))
        return 1; /* Said. */
    if (ddp_rank(comm) == 0) {
        (void)ddp_abort(comm);
        if (waits)
            return ddp_wait(comm, e) ? fail(e) : 0;
    }
    return loop(1, 0, e);
}

static void *abort_it(void *arg)
{
    (void)usleep(300000);
    (void)ddp_abort(arg);
    return NULL;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    int n = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 1, rc = 2;
    struct ddp_error e;
    pthread_t thread;

    if (find() != 0) {
        printf("no libcudart\n");
        return 8;
    }
    if (ddp_init(&comm, NULL, &e))
        return fail(&e);
    if (cuda.set_device(ddp_local_rank(comm)) != 0 ||
        cuda.stream_new(&stream) != 0)
        return 9;
    if (!strcmp(what, "sums"))
        rc = sums(&e);
    else if (!strcmp(what, "reducer"))
        rc = reducer(&e);
    else if (!strcmp(what, "leave"))
        rc = leave(&e);
    else if (!strcmp(what, "wrong"))
        rc = wrong(&e);
    else if (!strcmp(what, "queue") || !strcmp(what, "queue-die"))
        rc = queue(n, what[5] == '-', &e);
    else if (!strcmp(what, "unwaited") || !strcmp(what, "drop")) {
        rc = unwaited(n, &e);
        if (what[0] == 'd')
            (void)ddp_abort(comm);
    }
    else if (!strcmp(what, "loop") || !strcmp(what, "die"))
        rc = loop(n, what[0] == 'd', &e);
    else if (!strcmp(what, "aborted"))
        rc = aborted(n, &e);
    else if (!strcmp(what, "abort")) {
        if (ddp_rank(comm) == 0 &&
            pthread_create(&thread, NULL, abort_it, comm) != 0)
            return 9;
        rc = loop(1, 0, &e);
    }
    ddp_free(comm);
    return rc;
}
