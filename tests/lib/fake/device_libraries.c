/* device_libraries: stands for libcudart and libnccl in the tests of libddp's
 * device memory, as one file under both names. "Device memory" is a range of
 * this process' own; a collective goes through a file that the unique id
 * names. NCCL_ONLY leaves libcudart out. FAKE says what goes wrong, on the
 * rank FAKE_RANK (all by default). */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define ARENA ((size_t)64 << 20)
#define SLOT ((size_t)1 << 20) /* Bytes of one rank in one call. */
#define RANKS 16
#define NOT_READY 600
#define IN_PROGRESS 7

static char *arena;
static size_t used;

static int goes_wrong(const char *how)
{
    const char *fake = getenv("FAKE"), *where = getenv("FAKE_RANK");
    const char *rank = getenv("RANK");

    return fake && strcmp(fake, how) == 0 &&
           (!where || (rank && strcmp(rank, where) == 0));
}

/* --- the file of a communicator --- */

struct shared {
    atomic_uint joined, aborted;
    atomic_uint arrived[2]; /* Of even and odd calls. */
    char slots[2][RANKS][SLOT];
};

struct comm {
    struct shared *s;
    int n, rank, looks;
    unsigned calls;
    int failed;
};

static struct { /* The one call that may be under way. */
    struct comm *c;
    char *recv;
    size_t count, width;
    int what, op, root;
    unsigned call;
} op;

#ifndef NCCL_ONLY
/* --- libcudart --- */

int cudaMalloc(void **ret, size_t n)
{
    if (!arena)
        arena = mmap(NULL, ARENA, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    *ret = arena + used;
    used += (n + 255) / 256 * 256;
    return used > ARENA ? 2 : 0;
}

int cudaFree(void *p) { return p ? 0 : 1; }
int cudaGetLastError(void) { return 0; }
int cudaSetDevice(int d) { return d < 0; }

int cudaPointerGetAttributes(int *ret, const void *p)
{
    ret[0] = arena && (const char *)p >= arena &&
                     (const char *)p < arena + ARENA ? 2 : 0;
    return 0;
}

const char *cudaGetErrorString(int e)
{
    return e == 700 ? "an illegal memory access was encountered" : "fine";
}

int cudaMemcpyAsync(void *to, const void *from, size_t n, int kind, void *s)
{
    memmove(to, from, n);
    return kind == 4 && s ? 0 : 0;
}

int cudaStreamCreate(void **ret)
{
    static int stream;

    *ret = &stream;
    return 0;
}

int cudaStreamCreateWithFlags(void **ret, unsigned flags)
{
    return flags == 1 ? cudaStreamCreate(ret) : 1;
}

int cudaStreamDestroy(void *s) { return s == NULL; }
int cudaGetDevice(int *d) { return *d = 0, 0; }

int cudaStreamWaitEvent(void *s, void *e, unsigned flags)
{
    return goes_wrong("no wait") ? 700 : e == NULL || (flags && s);
}

int cudaEventCreateWithFlags(void **ret, unsigned flags)
{
    static int event;

    *ret = &event;
    return flags == 2 ? 0 : 1;
}

int cudaEventDestroy(void *e) { return e == NULL; }
int cudaEventRecord(void *e, void *s) { return e == NULL && s == NULL; }
#endif

/* --- collectives: floats alone --- */

static float *slot(unsigned call, int rank)
{
    return (float *)(void *)op.c->s->slots[call % 2][rank];
}

static float sum_at(size_t i)
{
    float v = 0;

    for (int r = 0; r < op.c->n; r++)
        v += slot(op.call, r)[i];
    return op.op == 4 ? v / (float)op.c->n : v;
}

static void finish(void)
{
    float *to = (float *)(void *)op.recv;
    size_t n = op.count;

    for (size_t i = 0; i < n; i++)
        if (op.what == 'r')
            to[i] = sum_at(i);
        else if (op.what == 's')
            to[i] = sum_at((size_t)op.c->rank * n + i);
        else if (op.what == 'b')
            to[i] = slot(op.call, op.root)[i];
    for (int r = 0; op.what == 'g' && r < op.c->n; r++)
        memcpy(to + (size_t)r * n, slot(op.call, r), n * 4);
    op.c = NULL;
}

#ifndef NCCL_ONLY
int cudaEventQuery(void *e)
{
    unsigned want;

    if (!e)
        return 1;
    if (goes_wrong("stream hangs"))
        return NOT_READY;
    if (goes_wrong("illegal access"))
        return 700;
    if (!op.c)
        return 0;
    want = (unsigned)op.c->n * (op.call / 2 + 1);
    if (atomic_load(&op.c->s->arrived[op.call % 2]) < want)
        return NOT_READY;
    finish();
    return 0;
}
#endif

static int begin(int what, const void *send, void *recv, size_t count,
                 size_t bytes, int type, int how, int root, struct comm *c)
{
    if (goes_wrong("call fails") || goes_wrong("abort hangs"))
        return 3;
    if (type != 7 || bytes > SLOT || c->failed)
        return 4;
    op.c = c;
    op.what = what;
    op.recv = recv;
    op.count = count;
    op.op = how;
    op.root = root;
    op.call = c->calls++;
    if (count > 0)
        memcpy(c->s->slots[op.call % 2][c->rank], send, bytes);
    if (!goes_wrong("never arrives"))
        atomic_fetch_add(&c->s->arrived[op.call % 2], 1);
    c->looks = 2;
    return IN_PROGRESS;
}

int ncclAllReduce(const void *send, void *recv, size_t n, int type, int how,
                  struct comm *c, void *stream)
{
    (void)stream;
    return begin('r', send, recv, n, n * 4, type, how, 0, c);
}

int ncclReduceScatter(const void *send, void *recv, size_t n, int type,
                      int how, struct comm *c, void *stream)
{
    (void)stream;
    return begin('s', send, recv, n, n * 4 * (size_t)c->n, type, how, 0, c);
}

int ncclAllGather(const void *send, void *recv, size_t n, int type,
                  struct comm *c, void *stream)
{
    (void)stream;
    return begin('g', send, recv, n, n * 4, type, 0, 0, c);
}

int ncclBroadcast(const void *send, void *recv, size_t n, int type, int root,
                  struct comm *c, void *stream)
{
    (void)stream;
    return begin('b', send, recv, n, n * 4, type, 0, root, c);
}

/* --- libnccl --- */

struct id {
    char bytes[128];
};

struct config {
    size_t size;
    unsigned magic, version;
    int blocking;
};

int ncclGetVersion(int *v)
{
    *v = goes_wrong("2.17") ? 21701 : goes_wrong("2.18") ? 21801
         : goes_wrong("3.0") ? 30000 : goes_wrong("2.30") ? 23001 : 22703;
    return goes_wrong("no version");
}

int ncclGetUniqueId(struct id *id)
{
    static int n;

    if (goes_wrong("no id"))
        return 2;
    memset(id, 0, sizeof *id);
    (void)snprintf(id->bytes, sizeof id->bytes, "%s/nccl.%d.%d",
                   getenv("FAKE_DIR"), (int)getpid(), n++);
    return 0;
}

int ncclCommInitRankConfig(struct comm **ret, int n, struct id id, int rank,
                           struct config *config)
{
    struct comm *c = calloc(1, sizeof *c);
    int fd = open(id.bytes, O_CREAT | O_RDWR, 0600);

    if (!c || fd < 0 || config->magic != 0xcafebeef || config->blocking != 0 ||
        config->version > 22703 || config->size < 40 ||
        ftruncate(fd, sizeof *c->s) != 0)
        return 4;
    c->s = mmap(NULL, sizeof *c->s, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    (void)close(fd);
    c->n = n;
    c->rank = rank;
    *ret = c;
    if (goes_wrong("init fails"))
        return 2;
    if (goes_wrong("init hangs"))
        c->looks = 1 << 30;
    if (!goes_wrong("init hangs"))
        atomic_fetch_add(&c->s->joined, 1);
    return IN_PROGRESS;
}

int ncclCommGetAsyncError(struct comm *c, int *state)
{
    if (goes_wrong("async error") && c->calls > 0)
        return *state = 6, 0;
    if (goes_wrong("async init error"))
        return *state = 2, 0;
    *state = atomic_load(&c->s->joined) < (unsigned)c->n || c->looks-- > 0
                 ? IN_PROGRESS
                 : 0;
    return 0;
}

int ncclCommFinalize(struct comm *c) { return c ? IN_PROGRESS : 4; }

static void record(const char *what)
{
    char line[64];
    int fd, n = snprintf(line, sizeof line, "%s %s\n", what, getenv("RANK"));
    char path[512];

    (void)snprintf(path, sizeof path, "%s/log", getenv("FAKE_DIR"));
    fd = open(path, O_CREAT | O_WRONLY | O_APPEND, 0600);
    if (fd >= 0 && write(fd, line, (size_t)n) == n)
        (void)close(fd);
}

int ncclCommDestroy(struct comm *c)
{
    record("destroy");
    return c == NULL;
}

int ncclCommAbort(struct comm *c)
{
    record("abort");
    if (goes_wrong("abort hangs"))
        for (;;)
            (void)pause();
    return c == NULL;
}

const char *ncclGetErrorString(int e)
{
    return e == 2 ? "unhandled system error" : e == 6 ? "remote process error"
                                                      : "internal error";
}

const char *ncclGetLastError(struct comm *c)
{
    (void)c;
    return goes_wrong("init fails") || goes_wrong("no id")
               ? "Call to socket failed: No route to host" : "";
}
