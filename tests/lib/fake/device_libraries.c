/* device_libraries: stands for libcudart and libnccl in the tests of libddp's
 * device memory, as one file under both names. "Device memory" is a range of
 * this process' own; a collective goes through a file that the unique id
 * names. NCCL_ONLY leaves libcudart out. FAKE says what goes wrong, on the
 * rank FAKE_RANK (all by default); two things with a + between them. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
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
    size_t n = fake ? strcspn(fake, "+") : 0;

    return fake &&
           ((strlen(how) == n && strncmp(fake, how, n) == 0) ||
            (fake[n] && strcmp(fake + n + 1, how) == 0)) &&
           (!where || (rank && strcmp(rank, where) == 0));
}

/* --- the file of a communicator --- */

struct shared {
    atomic_uint joined, aborted;
    atomic_uint arrived[2], left[2]; /* Of even and odd calls. */
    char slots[2][RANKS][SLOT];
};

struct comm {
    struct shared *s;
    int n, rank, looks, blocks, is_split;
    unsigned calls;
    int failed, by; /* The thread that began what goes on in it; 0: nothing. */
    char path[160];
    struct comm *made, **ret; /* Of a split that is under way. */
};

/* --- work that is on streams, in one row --- */

struct op {
    struct comm *c; /* NULL: a copy of `count` bytes. */
    const void *send;
    void *recv, *stream;
    size_t count, bytes;
    int what, op, root, has_sent;
    unsigned call;
};

#define OPS 512
static struct op ops[OPS];
static uint64_t n_put, n_done; /* Under the lock. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static float *slot(const struct op *o, int rank)
{
    return (float *)(void *)o->c->s->slots[o->call % 2][rank];
}

static float sum_at(const struct op *o, size_t i)
{
    float v = 0;

    for (int r = 0; r < o->c->n; r++)
        v += slot(o, r)[i];
    return o->op == 4 ? v / (float)o->c->n : v;
}

static void finish(const struct op *o)
{
    float *to = o->recv;
    size_t n = o->count;

    for (size_t i = 0; i < n; i++)
        if (o->what == 'r')
            to[i] = sum_at(o, i);
        else if (o->what == 's')
            to[i] = sum_at(o, (size_t)o->c->rank * n + i);
        else if (o->what == 'b')
            to[i] = slot(o, o->root)[i];
    for (int r = 0; o->what == 'g' && r < o->c->n; r++)
        memcpy(to + (size_t)r * n, slot(o, r), n * 4);
    atomic_fetch_add(&o->c->s->left[o->call % 2], 1);
}

/* Whether it is done. A call's slots are those of the call before the last,
 * which all ranks must have left. */
static int step(struct op *o)
{
    unsigned ranks = o->c ? (unsigned)o->c->n : 0, turn = o->call / 2;

    if (!o->c) {
        memmove(o->recv, o->send, o->count);
        return 1;
    }
    if (!o->has_sent) {
        if (atomic_load(&o->c->s->left[o->call % 2]) < ranks * turn)
            return 0;
        if (o->count > 0)
            memcpy(slot(o, o->c->rank), o->send, o->bytes);
        if (!goes_wrong("never arrives") && !goes_wrong("async error"))
            atomic_fetch_add(&o->c->s->arrived[o->call % 2], 1);
        o->has_sent = 1;
    }
    if (atomic_load(&o->c->s->arrived[o->call % 2]) < ranks * (turn + 1))
        return 0;
    finish(o);
    return 1;
}

static void go_on(void) /* Under the lock. */
{
    while (n_done < n_put && step(&ops[n_done % OPS]))
        n_done++;
}

static int put(const struct op *o)
{
    int is_full;

    (void)pthread_mutex_lock(&lock);
    is_full = n_put - n_done == OPS;
    if (!is_full)
        ops[n_put++ % OPS] = *o;
    (void)pthread_mutex_unlock(&lock);
    return is_full ? 1 : 0;
}

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

int cudaFree(void *p) { return p == (void *)1; }
int cudaGetLastError(void) { return 0; }
int cudaSetDevice(int d) { return d < 0; }
int cudaGetDevice(int *d) { return *d = 0, 0; }

int cudaPointerGetAttributes(int *ret, const void *p)
{
    if (goes_wrong("broken"))
        return 700;
    ret[0] = arena && (const char *)p >= arena &&
                     (const char *)p < arena + ARENA ? 2 : 0;
    return 0;
}

const char *cudaGetErrorString(int e)
{
    return e == 700 ? "an illegal memory access was encountered" : "fine";
}

/* Whether the stream has work; NULL: any has. */
static int is_busy(const void *s)
{
    int busy = 0;

    (void)pthread_mutex_lock(&lock);
    go_on();
    for (uint64_t i = n_done; i < n_put; i++)
        busy |= !s || ops[i % OPS].stream == s;
    (void)pthread_mutex_unlock(&lock);
    return busy;
}

int cudaStreamSynchronize(void *s)
{
    while (is_busy(s))
        (void)usleep(100);
    return 0;
}

int cudaMemcpyAsync(void *to, const void *from, size_t n, int kind, void *s)
{
    const struct op o = {.send = from, .recv = to, .count = n, .stream = s};

    if (kind < 1 || kind > 4)
        return 1;
    if (s && is_busy(s))
        return put(&o);
    if (!s)
        (void)cudaStreamSynchronize(s);
    memmove(to, from, n);
    return 0;
}

int cudaStreamCreate(void **ret) { return *ret = malloc(1), *ret == NULL; }

int cudaStreamCreateWithFlags(void **ret, unsigned flags)
{
    return flags == 1 ? cudaStreamCreate(ret) : 1;
}

int cudaStreamCreateWithPriority(void **ret, unsigned flags, int priority)
{
    return flags == 1 && priority < 0 ? cudaStreamCreate(ret) : 1;
}

int cudaStreamDestroy(void *s) { return s == NULL; }

int cudaEventCreateWithFlags(void **ret, unsigned flags)
{
    *ret = calloc(1, sizeof(uint64_t));
    return *ret && flags == 2 ? 0 : 1;
}

int cudaEventDestroy(void *e) { return free(e), e == NULL; }

int cudaEventRecord(void *e, void *s)
{
    (void)s;
    if (!e)
        return 1;
    (void)pthread_mutex_lock(&lock);
    *(uint64_t *)e = n_put;
    (void)pthread_mutex_unlock(&lock);
    return 0;
}

int cudaEventQuery(void *e)
{
    int is_over;

    if (!e)
        return 1;
    if (goes_wrong("stream hangs"))
        return NOT_READY;
    if (goes_wrong("illegal access"))
        return 700;
    (void)pthread_mutex_lock(&lock);
    go_on();
    is_over = n_done >= *(const uint64_t *)e;
    (void)pthread_mutex_unlock(&lock);
    return is_over ? 0 : NOT_READY;
}

/* Kernels and copies elsewhere do not queue: so it waits itself, but for the
 * stream's own work. */
int cudaStreamWaitEvent(void *s, void *e, unsigned flags)
{
    if (goes_wrong("no wait") || !e || flags)
        return 700;
    while (!is_busy(s) && cudaEventQuery(e) == NOT_READY)
        (void)usleep(100);
    return 0;
}

int cudaMemsetAsync(void *p, int v, size_t n, void *s)
{
    return memset(p, v, n), s == NULL;
}
#endif

/* --- collectives: floats alone --- */

static int begin(int what, const void *send, void *recv, size_t count,
                 size_t bytes, int type, int how, int root, struct comm *c,
                 void *stream)
{
    const struct op o = {.c = c, .what = what, .send = send, .recv = recv,
                         .count = count, .bytes = bytes, .op = how,
                         .root = root, .stream = stream, .call = c->calls};

    if (goes_wrong("call fails") || goes_wrong("abort hangs"))
        return 3;
    if (type != 7 || bytes > SLOT || c->failed)
        return 4;
    while (goes_wrong("call hangs"))
        (void)usleep(1000);
    c->calls++;
    if (put(&o) != 0)
        return 3;
    c->looks = 2;
    return c->blocks ? 0 : IN_PROGRESS;
}

int ncclAllReduce(const void *send, void *recv, size_t n, int type, int how,
                  struct comm *c, void *stream)
{
    return begin('r', send, recv, n, n * 4, type, how, 0, c, stream);
}

int ncclReduceScatter(const void *send, void *recv, size_t n, int type,
                      int how, struct comm *c, void *stream)
{
    return begin('s', send, recv, n, n * 4 * (size_t)c->n, type, how, 0, c,
                 stream);
}

int ncclAllGather(const void *send, void *recv, size_t n, int type,
                  struct comm *c, void *stream)
{
    return begin('g', send, recv, n, n * 4, type, 0, 0, c, stream);
}

int ncclBroadcast(const void *send, void *recv, size_t n, int type, int root,
                  struct comm *c, void *stream)
{
    return begin('b', send, recv, n, n * 4, type, 0, root, c, stream);
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
    *v = goes_wrong("below 0") ? -5 : goes_wrong("2.17") ? 21701
         : goes_wrong("2.18") ? 21801
         : goes_wrong("3.0") ? 30000 : goes_wrong("2.30") ? 23001 : 22703;
    return goes_wrong("no version");
}

int ncclGetUniqueId(struct id *id)
{
    static int n;

    if (goes_wrong("no id"))
        return 2;
    if (goes_wrong("no interface"))
        return 5;
    if (goes_wrong("id hangs"))
        for (;;)
            (void)pause();
    memset(id, 0, sizeof *id);
    (void)snprintf(id->bytes, sizeof id->bytes, "%s/nccl.%d.%d",
                   getenv("FAKE_DIR"), (int)getpid(), n++);
    return 0;
}

/* Wrong in the split alone, or in the start before it. */
static int goes_wrong_in(const struct comm *c, const char *how)
{
    char name[64];

    (void)snprintf(name, sizeof name, "split %s", how);
    return goes_wrong(c->is_split ? name : how);
}

/* NCCL 2.18 to 2.26 has what goes on in the storage of the thread that began
 * it, so no other one may look after it, nor may that one have ended. */
static int is_strange(const struct comm *c)
{
    return c->by && c->by != (int)syscall(SYS_gettid);
}

/* As NCCL_COMM_BLOCKING has it, else as asked. */
static int blocks(const struct config *config)
{
    return goes_wrong("blocks") ||
           (config->blocking && !goes_wrong("does not block"));
}

static int is_config(const struct config *config, int blocking)
{
    return config->magic == 0xcafebeef && config->blocking == blocking &&
           config->version <= 22703 && config->size >= 40;
}

static struct comm *join(const char *path, int n, int rank, int is_split)
{
    struct comm *c = calloc(1, sizeof *c);
    int fd = open(path, O_CREAT | O_RDWR, 0600);

    if (!c || fd < 0 || ftruncate(fd, sizeof *c->s) != 0)
        return NULL;
    c->s = mmap(NULL, sizeof *c->s, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    (void)close(fd);
    c->n = n;
    c->rank = rank;
    c->is_split = is_split;
    (void)snprintf(c->path, sizeof c->path, "%s", path);
    if (!goes_wrong_in(c, "init hangs") && !goes_wrong_in(c, "init fails"))
        atomic_fetch_add(&c->s->joined, 1);
    return c;
}

static int has_joined_but(const struct comm *c, int n)
{
    return atomic_load(&c->s->joined) == (unsigned)(c->n - n);
}

static int has_joined(const struct comm *c)
{
    return has_joined_but(c, 0);
}

int ncclCommInitRankConfig(struct comm **ret, int n, struct id id, int rank,
                           struct config *config)
{
    struct comm *c = is_config(config, 0) ? join(id.bytes, n, rank, 0) : NULL;

    if (!c)
        return 4;
    *ret = c;
    if (goes_wrong("init fails")) { /* Once the others are there. */
        for (int ms = 0; ms < 5000 && !has_joined_but(c, 1); ms++)
            (void)usleep(1000);
        return 2;
    }
    c->blocks = blocks(config);
    while (c->blocks && !has_joined(c))
        (void)usleep(1000);
    c->by = c->blocks ? 0 : (int)syscall(SYS_gettid);
    return c->blocks ? 0 : IN_PROGRESS;
}

/* The new one is there when all have joined. */
static int make(struct comm *c)
{
    if (!c->made || !has_joined(c->made))
        return !c->made;
    *c->ret = c->made;
    c->made = NULL;
    return 1;
}

int ncclCommSplit(struct comm *c, int color, int key, struct comm **ret,
                  struct config *config)
{
    char path[200];

    (void)snprintf(path, sizeof path, "%s.split", c->path);
    *ret = NULL;
    if (color != 0 || key != c->rank || !is_config(config, 1) || c->by)
        return 4;
    c->made = join(path, c->n, c->rank, 1);
    if (!c->made || goes_wrong("split init fails"))
        return 2;
    c->made->blocks = blocks(config);
    c->ret = ret;
    c->by = c->blocks ? 0 : (int)syscall(SYS_gettid);
    while (c->blocks && !make(c))
        (void)usleep(1000);
    return c->blocks ? 0 : IN_PROGRESS;
}

int ncclCommGetAsyncError(struct comm *c, int *state)
{
    if (is_strange(c))
        return 5;
    if (goes_wrong("async error") && c->calls > 0)
        return *state = 6, 0;
    if (goes_wrong(c->made ? "split async init error" : "async init error") &&
        has_joined(c->made ? c->made : c))
        return *state = 2, 0;
    *state = !has_joined(c) || c->looks-- > 0 || !make(c) ? IN_PROGRESS : 0;
    return 0;
}

/* The end of what went on. */
int ncclCommCount(struct comm *c, int *n)
{
    if (is_strange(c))
        return 5;
    c->by = 0;
    *n = c->n;
    return 0;
}

int ncclCommFinalize(struct comm *c)
{
    if (!c || c->by)
        return 4;
    c->by = c->blocks ? 0 : (int)syscall(SYS_gettid);
    return c->blocks ? 0 : IN_PROGRESS;
}

static void record(const char *what, const struct comm *c)
{
    char line[64];
    int fd, n = snprintf(line, sizeof line, "%s %s%d\n", what,
                         c->is_split ? "" : "start of ", c->rank);
    char path[512];

    (void)snprintf(path, sizeof path, "%s/log", getenv("FAKE_DIR"));
    fd = open(path, O_CREAT | O_WRONLY | O_APPEND, 0600);
    if (fd >= 0 && write(fd, line, (size_t)n) == n)
        (void)close(fd);
}

int ncclCommDestroy(struct comm *c)
{
    record(is_strange(c) ? "strangely destroy" : "destroy", c);
    return c == NULL;
}

int ncclCommAbort(struct comm *c)
{
    record(is_strange(c) ? "strangely abort" : "abort", c);
    if (goes_wrong("abort hangs"))
        for (;;)
            (void)pause();
    return c == NULL;
}

const char *ncclGetErrorString(int e)
{
    return e == 2   ? "unhandled system error"
           : e == 5 ? "invalid usage (run with NCCL_DEBUG=WARN for details)"
           : e == 6 ? "remote process error" : "internal error";
}

const char *ncclGetLastError(struct comm *c)
{
    (void)c;
    if (goes_wrong("no interface"))
        return "Bootstrap : no socket interface found";
    return goes_wrong("init fails") || goes_wrong("no id")
               ? "Call to socket failed: No route to host" : "";
}
