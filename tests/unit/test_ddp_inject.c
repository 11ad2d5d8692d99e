/* Each system call of libddp's fails once, the first one, the second one, and
 * so on: every rank of a small job must end in time, with right results or
 * with an error that has words. The functions below take the place of libc's;
 * one thread, a rank, has the failure. */
#include "ddp_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#define TIMEOUT_MS 700
#define LATE_MS (60 * TIMEOUT_MS) /* The machine may be busy. */
#define COUNT 30000
#define STEP 7 /* Of a call that is made often, each 7th. */

enum call {
    SOCKET, BIND, LISTEN, CONNECT, ACCEPT, SEND, RECV, POLL, GETSOCKOPT,
    SETSOCKOPT, GETSOCKNAME, EVENTFD, MEMFD, FALLOCATE, MMAP, OPEN, FSTAT,
    N_CALLS
};

static const char *const names[N_CALLS] = {
    "socket", "bind", "listen", "connect", "accept4", "send", "recv", "poll",
    "getsockopt", "setsockopt", "getsockname", "eventfd", "memfd_create",
    "posix_fallocate", "mmap", "open", "fstat"};

/* Of this thread: which call fails, the how manieth, and with what. */
static _Thread_local struct {
    bool is_on;
    enum call call;
    unsigned left; /* 1: the next one. */
    int error;
    bool was_there;
} plan;

static bool fails(enum call call)
{
    if (!plan.is_on || plan.call != call || --plan.left > 0)
        return false;
    plan.is_on = false;
    plan.was_there = true;
    errno = plan.error;
    return true;
}

int socket(int domain, int type, int protocol)
{
    return fails(SOCKET) ? -1
                         : (int)syscall(SYS_socket, domain, type, protocol);
}

int bind(int fd, const struct sockaddr *addr, socklen_t len)
{
    return fails(BIND) ? -1 : (int)syscall(SYS_bind, fd, addr, len);
}

int listen(int fd, int n)
{
    return fails(LISTEN) ? -1 : (int)syscall(SYS_listen, fd, n);
}

int connect(int fd, const struct sockaddr *addr, socklen_t len)
{
    return fails(CONNECT) ? -1 : (int)syscall(SYS_connect, fd, addr, len);
}

int accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags)
{
    return fails(ACCEPT) ? -1
                         : (int)syscall(SYS_accept4, fd, addr, len, flags);
}

ssize_t send(int fd, const void *buf, size_t n, int flags)
{
    return fails(SEND) ? -1 : syscall(SYS_sendto, fd, buf, n, flags, NULL, 0);
}

ssize_t recv(int fd, void *buf, size_t n, int flags)
{
    return fails(RECV) ? -1
                       : syscall(SYS_recvfrom, fd, buf, n, flags, NULL, NULL);
}

int poll(struct pollfd *fds, nfds_t n, int ms)
{
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};

    return fails(POLL) ? -1
                       : (int)syscall(SYS_ppoll, fds, n, ms < 0 ? NULL : &t,
                                      NULL, 0);
}

int getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
    return fails(GETSOCKOPT) ? -1
                             : (int)syscall(SYS_getsockopt, fd, level, name,
                                            value, len);
}

int setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
    return fails(SETSOCKOPT) ? -1
                             : (int)syscall(SYS_setsockopt, fd, level, name,
                                            value, len);
}

int getsockname(int fd, struct sockaddr *addr, socklen_t *len)
{
    return fails(GETSOCKNAME) ? -1
                              : (int)syscall(SYS_getsockname, fd, addr, len);
}

int eventfd(unsigned count, int flags)
{
    return fails(EVENTFD) ? -1 : (int)syscall(SYS_eventfd2, count, flags);
}

int memfd_create(const char *name, unsigned flags)
{
    return fails(MEMFD) ? -1 : (int)syscall(SYS_memfd_create, name, flags);
}

int posix_fallocate(int fd, off_t at, off_t len)
{
    if (fails(FALLOCATE))
        return plan.error;
    return syscall(SYS_fallocate, fd, 0, at, len) ? errno : 0;
}

void *mmap(void *at, size_t len, int prot, int flags, int fd, off_t from)
{
    return fails(MMAP) ? MAP_FAILED
                       : (void *)syscall(SYS_mmap, at, len, prot, flags, fd,
                                         from);
}

int open(const char *path, int flags, ...)
{
    return fails(OPEN) ? -1
                       : (int)syscall(SYS_openat, AT_FDCWD, path, flags, 0);
}

int fstat(int fd, struct stat *ret)
{
    return fails(FSTAT) ? -1
                        : (int)syscall(SYS_newfstatat, fd, "", ret,
                                       AT_EMPTY_PATH);
}

/* --- the job ------------------------------------------------------------- */

struct scene {
    int victim; /* The rank that has the failure. */
    enum call call;
    unsigned at;
    int error;
    atomic_bool was_there;
};

struct actor {
    pthread_t thread;
    struct job *job;
    struct scene *scene;
    int rank, size;
    char wrong[200];
};

static double now_ms(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int act(struct actor *a, struct ddp_comm *c, struct ddp_error *e)
{
    float *f = calloc(COUNT, sizeof *f);
    int rc = 0;

    for (unsigned turn = 0; turn < 3 && !rc && f; turn++) {
        for (unsigned i = 0; i < COUNT; i++)
            f[i] = (float)(i % 5 + (unsigned)a->rank);
        rc = ddp_all_reduce(c, f, f, COUNT, DDP_F32, DDP_SUM, NULL, e);
        for (unsigned i = 0; i < COUNT && !rc; i++)
            if (f[i] != (float)(i % 5 * (unsigned)a->size +
                                (unsigned)(a->size * (a->size - 1) / 2)))
                (void)snprintf(a->wrong, sizeof a->wrong, "wrong result");
        if (!rc)
            rc = ddp_broadcast(c, f, 100, DDP_F32, 1, NULL, e);
    }
    if (!rc)
        rc = ddp_barrier(c, e);
    free(f);
    return rc;
}

static void *actor_main(void *arg)
{
    struct actor *a = arg;
    const struct ddp_options opt = {
        .size = sizeof opt, .timeout_ms = TIMEOUT_MS, .rank = a->rank,
        .world_size = a->size, .master_addr = "127.0.0.1",
        .master_port = a->job->port, .job_id = a->job->id};
    struct ddp_comm *c = NULL;
    struct ddp_error e = {.code = 0};
    double began = now_ms();
    int rc;

    pods_sit((unsigned)a->rank, (unsigned)a->size);
    if (a->rank == a->scene->victim) {
        plan.is_on = true;
        plan.was_there = false;
        plan.call = a->scene->call;
        plan.left = a->scene->at;
        plan.error = a->scene->error;
    }
    rc = ddp_init(&c, &opt, &e);
    if (!rc)
        rc = act(a, c, &e);
    plan.is_on = false;
    ddp_free(c);
    if (a->rank == a->scene->victim)
        atomic_store(&a->scene->was_there, plan.was_there);
    if (rc && (e.code != rc || strlen(e.text) < 10 || e.rank != a->rank))
        (void)snprintf(a->wrong, sizeof a->wrong, "code %d/%d, rank %d: %.100s",
                       rc, e.code, e.rank, e.text);
    if (now_ms() - began > LATE_MS)
        (void)snprintf(a->wrong, sizeof a->wrong, "took %.0f ms",
                       now_ms() - began);
    return NULL;
}

static bool play(struct scene *s)
{
    const int n = pods_are == PODS_NONE ? 3 : 4;
    struct job j = {.n = (unsigned)n, .port = free_port()};
    struct actor a[4];

    (void)snprintf(j.id, sizeof j.id, "inject-%ld-%d", (long)getpid(), j.port);
    for (int i = 0; i < n; i++) {
        a[i] = (struct actor){.job = &j, .scene = s, .rank = i, .size = n};
        assert_int_equal(pthread_create(&a[i].thread, NULL, actor_main, &a[i]),
                         0);
    }
    for (int i = 0; i < n; i++)
        (void)pthread_join(a[i].thread, NULL);
    for (int i = 0; i < n; i++)
        if (*a[i].wrong)
            fail_msg("%s number %u of rank %d fails (%s): rank %d: %s",
                     names[s->call], s->at, s->victim, strerror(s->error), i,
                     a[i].wrong);
    return atomic_load(&s->was_there);
}

static const int errors[N_CALLS] = {
    [SOCKET] = EMFILE, [BIND] = EADDRNOTAVAIL, [LISTEN] = EADDRINUSE,
    [CONNECT] = ECONNREFUSED, [ACCEPT] = EMFILE, [SEND] = ECONNRESET,
    [RECV] = ECONNRESET, [POLL] = EINTR, [GETSOCKOPT] = ENOBUFS,
    [SETSOCKOPT] = ENOBUFS, [GETSOCKNAME] = ENOBUFS, [EVENTFD] = EMFILE,
    [MEMFD] = EMFILE, [FALLOCATE] = ENOSPC, [MMAP] = ENOMEM, [OPEN] = EMFILE,
    [FSTAT] = EIO};

static void test_each_call_fails_once(void **state)
{
    unsigned n_calls = 0, n_scenes = 0;
    /* Of pods the second one: its first rank, which makes its memory, and the
     * other one. It has more calls, most of which the others have, too. */
    const int first = pods_are == PODS_NONE ? 0 : 2;
    const unsigned all = pods_are == PODS_NONE ? 10 : 4;
    const unsigned step = pods_are == PODS_NONE ? STEP : 2 * STEP;

    (void)state;
    for (unsigned call = 0; call < N_CALLS; call++)
        for (int victim = first; victim < first + 2; victim++) {
            struct scene s = {.victim = victim, .call = (enum call)call,
                              .error = errors[call]};

            for (s.at = 1;; s.at += s.at < all ? 1 : step, n_scenes++)
                if (!play(&s) || s.at > 40)
                    break;
            n_calls += s.at > 1;
        }
    print_message("# %u failures, of %u calls\n", n_scenes, n_calls);
    assert_true(n_calls >= 20); /* Else libddp does not come by here. */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_call_fails_once),
    };
    /* Over shared memory, then over TCP, then both, of two pods. */
    int rc = cmocka_run_group_tests_name("ddp_inject", tests, use_memory,
                                         NULL);

    rc += cmocka_run_group_tests_name("ddp_inject_tcp", tests, use_tcp, NULL);
    return rc + cmocka_run_group_tests_name("ddp_inject_pods", tests, use_pods,
                                            end_pods);
}
