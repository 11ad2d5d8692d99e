/* result_file: see result_file.h. */
#include "base/result_file.h"

#include "base/mem.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINKS_MAX 16

/* A name of an open descriptor: the file behind it is somebody else's, even
 * where it is a plain one. */
static bool is_descriptor(const char *path)
{
    static const char *const names[] = {"/dev/stdout", "/dev/stderr",
                                        "/dev/stdin", "/dev/fd/", "/proc/"};

    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strncmp(path, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

/* The number of the descriptor of this process that `path` names, or -1. */
static int number_of(const char *path)
{
    static const char *const names[] = {"/dev/stdin", "/dev/stdout",
                                        "/dev/stderr"};
    static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
    char *end;

    for (int i = 0; i < 3; i++)
        if (strcmp(path, names[i]) == 0)
            return i;
    for (unsigned i = 0; i < 2; i++) {
        size_t n = strlen(folders[i]);
        long fd;

        if (strncmp(path, folders[i], n) != 0)
            continue;
        fd = strtol(path + n, &end, 10);
        return end != path + n && *end == '\0' && fd >= 0 && fd < INT_MAX
                   ? (int)fd : -1;
    }
    return -1;
}

int result_file_own(const char *path)
{
    struct stat st;
    int fd = number_of(path);

    if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) ||
        (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY)
        return -1;
    return fcntl(fd, F_DUPFD_CLOEXEC, 3);
}

/* What a link names that is yet to be made, as open(2) would find it; links of
 * its folder may stay. */
static int follow(const char *path, char real[PATH_MAX])
{
    char to[PATH_MAX];
    ssize_t n = -1;

    if (!text_copy(real, PATH_MAX, path))
        return -ENAMETOOLONG;
    for (int i = 0; i < LINKS_MAX; i++) {
        char *slash = strrchr(real, '/');
        size_t at = slash ? (size_t)(slash + 1 - real) : 0;

        n = readlink(real, to, sizeof to - 1);
        if (n < 0)
            return 0;
        to[n] = '\0';
        if (to[0] == '/')
            at = 0;
        if (!text_copy(real + at, PATH_MAX - at, to))
            return -ENAMETOOLONG;
    }
    return -ELOOP;
}

int result_file_open(struct result_file *f, const char *path)
{
    struct stat st;
    bool exists = stat(path, &st) == 0;
    int r;

    f->temp[0] = '\0';
    f->fd = result_file_own(path);
    if (f->fd >= 0)
        return 0;
    if (exists && (!S_ISREG(st.st_mode) || is_descriptor(path))) {
        /* Where nobody reads a FIFO it must not wait. */
        f->fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY |
                               O_NONBLOCK);
        return f->fd < 0 ? -errno : 0;
    }
    if (exists && !realpath(path, f->real))
        return -errno;
    r = exists ? 0 : follow(path, f->real);
    if (r != 0)
        return r;
    (void)snprintf(f->temp, sizeof f->temp, "%s.%d.part", f->real,
                   (int)getpid());
    /* In a container the pid is always the same: of one that was killed. */
    (void)unlink(f->temp);
    f->fd = open(f->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    return f->fd < 0 ? -errno : 0;
}

int result_file_write(struct result_file *f, const void *bytes, size_t len)
{
    const char *at = bytes;

    while (len > 0) {
        struct pollfd p = {.fd = f->fd, .events = POLLOUT};
        ssize_t n = write(f->fd, at, len);

        if (n >= 0) {
            at += n;
            len -= (size_t)n;
        } else if (errno == EAGAIN) {
            if (poll(&p, 1, RESULT_FILE_WAIT_MS) == 0)
                return -ETIMEDOUT;
        } else if (errno != EINTR) {
            return -errno;
        }
    }
    return 0;
}

int result_file_close(struct result_file *f, bool whole)
{
    int failed = 0;

    if (close(steal_fd(&f->fd)) != 0)
        failed = errno;
    if (!f->temp[0])
        return -failed;
    if (whole && !failed && rename(f->temp, f->real) != 0)
        failed = errno;
    if (!whole || failed)
        (void)unlink(f->temp);
    return -failed;
}
