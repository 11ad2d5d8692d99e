/* nccl_hangs: LD_PRELOAD of the real libnccl with a rank that hangs: the last
 * one does not come back from what NCCL_HANGS names (init, split, call). Says
 * on the others how aborts go. For bench/gpu.sh. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct id {
    char bytes[128];
};

static void *real(const char *name)
{
    static void *lib;
    void *at;

    if (!lib) /* Global, so that what is not here is found there. */
        lib = dlopen("libnccl.so.2", RTLD_LAZY | RTLD_GLOBAL);
    at = lib ? dlsym(lib, name) : NULL;
    if (!at) {
        (void)fprintf(stderr, "nccl_hangs: %s: %s\n", name, dlerror());
        _exit(9);
    }
    return at;
}

static int rank(void)
{
    const char *s = getenv("RANK");

    return s ? (int)strtol(s, NULL, 10) : -1;
}

static void may_hang(const char *where)
{
    const char *s = getenv("NCCL_HANGS"), *size = getenv("WORLD_SIZE");

    while (s && size && strcmp(s, where) == 0 &&
           rank() + 1 == (int)strtol(size, NULL, 10))
        (void)pause();
}

#define REAL(f, name)                                                          \
    do {                                                                       \
        void *at_ = real(name);                                                \
        memcpy(&(f), &at_, sizeof at_);                                        \
    } while (0)

int ncclGetVersion(int *v);
int ncclGetVersion(int *v)
{
    int (*f)(int *);

    REAL(f, "ncclGetVersion");
    return f(v);
}

int ncclCommInitRankConfig(void **ret, int n, struct id id, int r, void *c);
int ncclCommInitRankConfig(void **ret, int n, struct id id, int r, void *c)
{
    int (*f)(void **, int, struct id, int, void *);

    may_hang("init");
    REAL(f, "ncclCommInitRankConfig");
    return f(ret, n, id, r, c);
}

int ncclCommSplit(void *of, int color, int key, void **ret, void *c);
int ncclCommSplit(void *of, int color, int key, void **ret, void *c)
{
    int (*f)(void *, int, int, void **, void *);

    may_hang("split");
    REAL(f, "ncclCommSplit");
    return f(of, color, key, ret, c);
}

int ncclAllReduce(const void *from, void *to, size_t n, int type, int op,
                  void *comm, void *stream);
int ncclAllReduce(const void *from, void *to, size_t n, int type, int op,
                  void *comm, void *stream)
{
    int (*f)(const void *, void *, size_t, int, int, void *, void *);

    may_hang("call");
    REAL(f, "ncclAllReduce");
    return f(from, to, n, type, op, comm, stream);
}

int ncclCommAbort(void *comm);
int ncclCommAbort(void *comm)
{
    int (*f)(void *), r;
    struct timespec a, b;

    REAL(f, "ncclCommAbort");
    (void)clock_gettime(CLOCK_MONOTONIC, &a);
    r = f(comm);
    (void)clock_gettime(CLOCK_MONOTONIC, &b);
    (void)fprintf(stderr, "rank %d: an abort gave %d after %.3f s\n", rank(),
                  r, (double)(b.tv_sec - a.tv_sec) +
                         (double)(b.tv_nsec - a.tv_nsec) / 1e9);
    return r;
}
