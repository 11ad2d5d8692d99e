/* fault_wrap: system calls of the code under test that fail, do less than
 * asked or kill the process when told to. The Makefile gives the linker
 * --wrap for each; include it once. */
#ifndef TESTS_FAULT_WRAP_H
#define TESTS_FAULT_WRAP_H

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

/* X(name) */
#define FAULT_TABLE(X)                                                         \
    X(open)                                                                    \
    X(openat)                                                                  \
    X(read)                                                                    \
    X(pread)                                                                   \
    X(write)                                                                   \
    X(close)                                                                   \
    X(fsync)                                                                   \
    X(syncfs)                                                                  \
    X(mkdirat)                                                                 \
    X(unlinkat)                                                                \
    X(renameat)                                                                \
    X(renameat2)                                                               \
    X(symlinkat)                                                               \
    X(linkat)                                                                  \
    X(fstat)                                                                   \
    X(fstatat)                                                                 \
    X(openat2)

enum fault_op {
#define X(name) FAULT_##name,
    FAULT_TABLE(X)
#undef X
    N_FAULTS,
    FAULT_ANY
};

static const char *const fault_names[] = {
#define X(name) #name,
    FAULT_TABLE(X)
#undef X
};

enum fault_what { FAULT_NOTHING, FAULT_FAIL, FAULT_SHORT, FAULT_KILL };

#define FAULT_FDS 1024

/* What is to happen, and what has. The code under test has threads. */
static struct {
    enum fault_what what;
    enum fault_op op;
    unsigned n; /* The n-th such call, from 1; with `on` all from there. */
    bool on;
    int error;
    atomic_uint count[N_FAULTS], all;
    atomic_uint n_done; /* How often it happened. */
    /* Written and not yet on the disk. */
    atomic_bool dirty[FAULT_FDS];
    atomic_uint n_lost; /* Files that were closed so. */
    atomic_uint n_early; /* Renames before all was on the disk. */
    bool is_shared; /* The file system is one that hosts share. */
    bool has_no_folder_sync;
} fault;

static void fault_set(enum fault_what what, enum fault_op op, unsigned n,
                      int error, bool on)
{
    for (unsigned i = 0; i < N_FAULTS; i++)
        atomic_store(&fault.count[i], 0);
    for (unsigned i = 0; i < FAULT_FDS; i++)
        atomic_store(&fault.dirty[i], false);
    atomic_store(&fault.all, 0);
    atomic_store(&fault.n_done, 0);
    atomic_store(&fault.n_lost, 0);
    atomic_store(&fault.n_early, 0);
    fault.op = op;
    fault.n = n;
    fault.error = error;
    fault.on = on;
    fault.what = what;
}

/* True where this call is the one. */
static bool fault_trips(enum fault_op op)
{
    unsigned all = atomic_fetch_add(&fault.all, 1) + 1;
    unsigned n = atomic_fetch_add(&fault.count[op], 1) + 1;

    if (fault.what == FAULT_NOTHING ||
        (fault.op != FAULT_ANY && fault.op != op))
        return false;
    n = fault.op == FAULT_ANY ? all : n;
    if (n != fault.n && !(fault.on && n > fault.n))
        return false;
    atomic_fetch_add(&fault.n_done, 1);
    if (fault.what == FAULT_KILL)
        (void)kill(getpid(), SIGKILL);
    errno = fault.error;
    return true;
}

static void fault_mark(int fd, bool dirty)
{
    if (fd >= 0 && fd < FAULT_FDS)
        atomic_store(&fault.dirty[fd], dirty);
}

static void fault_before_rename(void)
{
    for (unsigned i = 0; i < FAULT_FDS; i++)
        if (atomic_load(&fault.dirty[i]))
            atomic_fetch_add(&fault.n_early, 1);
    atomic_fetch_add(&fault.n_early, atomic_load(&fault.n_lost));
}

#define FAULT_WRAP(type, name, params, args)                                   \
    type __real_##name params;                                                 \
    type __wrap_##name params;                                                 \
    type __wrap_##name params                                                  \
    {                                                                          \
        return fault_trips(FAULT_##name) ? (type)-1 : __real_##name args;      \
    }

FAULT_WRAP(int, mkdirat, (int d, const char *p, mode_t m), (d, p, m))
FAULT_WRAP(int, unlinkat, (int d, const char *p, int f), (d, p, f))
FAULT_WRAP(int, symlinkat, (const char *t, int d, const char *p), (t, d, p))
FAULT_WRAP(int, linkat, (int a, const char *b, int c, const char *d, int f),
           (a, b, c, d, f))
FAULT_WRAP(int, fstat, (int fd, struct stat *st), (fd, st))
FAULT_WRAP(int, fstatat, (int d, const char *p, struct stat *st, int f),
           (d, p, st, f))

#define FAULT_DECLARE(type, name, params)                                      \
    type __real_##name params;                                                 \
    type __wrap_##name params;

FAULT_DECLARE(int, open, (const char *path, int flags, ...))
FAULT_DECLARE(int, openat, (int folder, const char *path, int flags, ...))
FAULT_DECLARE(ssize_t, read, (int fd, void *buf, size_t n))
FAULT_DECLARE(ssize_t, pread, (int fd, void *buf, size_t n, off_t at))
FAULT_DECLARE(ssize_t, write, (int fd, const void *buf, size_t n))
FAULT_DECLARE(int, close, (int fd))
FAULT_DECLARE(int, fsync, (int fd))
FAULT_DECLARE(int, syncfs, (int fd))
FAULT_DECLARE(int, renameat, (int a, const char *b, int c, const char *d))
FAULT_DECLARE(int, renameat2,
              (int a, const char *b, int c, const char *d, unsigned f))
FAULT_DECLARE(long, syscall, (long number, ...))

int __wrap_open(const char *path, int flags, ...)
{
    va_list ap;
    unsigned mode;

    va_start(ap, flags);
    mode = flags & O_CREAT ? va_arg(ap, unsigned) : 0;
    va_end(ap);
    return fault_trips(FAULT_open) ? -1 : __real_open(path, flags, mode);
}

int __wrap_openat(int folder, const char *path, int flags, ...)
{
    va_list ap;
    unsigned mode;

    va_start(ap, flags);
    mode = flags & O_CREAT ? va_arg(ap, unsigned) : 0;
    va_end(ap);
    return fault_trips(FAULT_openat)
               ? -1
               : __real_openat(folder, path, flags, mode);
}

ssize_t __wrap_read(int fd, void *buf, size_t n)
{
    if (!fault_trips(FAULT_read))
        return __real_read(fd, buf, n);
    return fault.what == FAULT_SHORT ? __real_read(fd, buf, n > 0) : -1;
}

ssize_t __wrap_pread(int fd, void *buf, size_t n, off_t at)
{
    if (!fault_trips(FAULT_pread))
        return __real_pread(fd, buf, n, at);
    return fault.what == FAULT_SHORT ? __real_pread(fd, buf, n > 0, at) : -1;
}

ssize_t __wrap_write(int fd, const void *buf, size_t n)
{
    fault_mark(fd, true);
    if (!fault_trips(FAULT_write))
        return __real_write(fd, buf, n);
    return fault.what == FAULT_SHORT ? __real_write(fd, buf, n > 0) : -1;
}

/* As on Linux the descriptor is gone, whatever it returns. */
int __wrap_close(int fd)
{
    bool trips = fault_trips(FAULT_close);
    int error = errno;

    if (fd >= 0 && fd < FAULT_FDS &&
        atomic_exchange(&fault.dirty[fd], false))
        atomic_fetch_add(&fault.n_lost, 1);
    if (!trips)
        return __real_close(fd);
    (void)__real_close(fd);
    errno = error;
    return -1;
}

/* Not the true ones: they would wait for the disk some thousand times. */
int __wrap_fsync(int fd)
{
    struct stat st;

    if (fault_trips(FAULT_fsync))
        return -1;
    fault_mark(fd, false);
    if (fault.has_no_folder_sync && __real_fstat(fd, &st) == 0 &&
        S_ISDIR(st.st_mode)) {
        errno = EINVAL;
        return -1;
    }
    return 0;
}

int __wrap_syncfs(int fd)
{
    (void)fd;
    if (fault_trips(FAULT_syncfs))
        return -1;
    for (unsigned i = 0; i < FAULT_FDS; i++)
        atomic_store(&fault.dirty[i], false);
    atomic_store(&fault.n_lost, 0);
    return 0;
}

int __wrap_renameat(int a, const char *b, int c, const char *d)
{
    fault_before_rename();
    return fault_trips(FAULT_renameat) ? -1 : __real_renameat(a, b, c, d);
}

int __wrap_renameat2(int a, const char *b, int c, const char *d, unsigned f)
{
    fault_before_rename();
    return fault_trips(FAULT_renameat2) ? -1 : __real_renameat2(a, b, c, d, f);
}

int __real_fstatfs(int fd, struct statfs *v);
int __wrap_fstatfs(int fd, struct statfs *v);
int __wrap_fstatfs(int fd, struct statfs *v)
{
    int rc = __real_fstatfs(fd, v);

    if (fault.is_shared)
        v->f_type = 0x6969; /* NFS */
    return rc;
}

/* Nobody is there who would be given time by a pause. */
int __wrap_nanosleep(const struct timespec *t, struct timespec *left);
int __wrap_nanosleep(const struct timespec *t, struct timespec *left)
{
    (void)t;
    (void)left;
    return 0;
}

/* Only openat2(2) is called so, with five arguments. */
long __wrap_syscall(long number, ...)
{
    long a[5];
    va_list ap;

    va_start(ap, number);
    for (unsigned i = 0; i < 5; i++)
        a[i] = va_arg(ap, long);
    va_end(ap);
    if (number == SYS_openat2 && fault_trips(FAULT_openat2))
        return -1;
    return __real_syscall(number, a[0], a[1], a[2], a[3], a[4]);
}

#endif
