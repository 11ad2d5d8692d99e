/* log_file: see log_file.h. */
#include "supervise/log_file.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* As mkdir -p; what is there already is fine. `path` is given back as it was.
 * With `last` the last component is made, too. */
static int make_dirs(int at, char *path, bool last)
{
    char *slash = path;

    while ((slash = strchr(slash + 1, '/'))) {
        int r;

        *slash = '\0';
        r = mkdirat(at, path, 0777);
        *slash = '/';
        if (r != 0 && errno != EEXIST && errno != EISDIR && errno != EROFS)
            return errno;
    }
    if (last && mkdirat(at, path, 0777) != 0 && errno != EEXIST)
        return errno;
    return 0;
}

const char *log_files_advice(int why)
{
    /* Below /proc no folder can be made. */
    if (err_wants_other_path(why) || why == ENOENT || why == EOPNOTSUPP)
        return ": give a folder that can be written to";
    if (why == ENOSPC || why == EDQUOT)
        return ": make room there, or give another folder";
    return "";
}

int log_file_open_dir(struct log_file_rules *r)
{
    char path[PATH_MAX];
    int why;

    r->dir_fd = -1;
    if (!text_copy(path, sizeof path, r->dir))
        return ENAMETOOLONG;
    why = make_dirs(AT_FDCWD, path, true);
    if (why != 0)
        return why;
    r->dir_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    /* Not faccessat(), which asks faccessat2 and takes EPERM for an answer:
     * seccomp profiles that do not know that call say so to it. */
    if (r->dir_fd < 0 || access(path, W_OK | X_OK) != 0)
        return errno;
    return 0;
}

static int reopen(struct log_file *f, const struct log_file_rules *r)
{
    struct stat st;

    f->fd = openat(r->dir_fd, f->name,
                   O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0666);
    if (f->fd < 0)
        return errno;
    f->size = fstat(f->fd, &st) == 0 && st.st_size > 0 ? (uint64_t)st.st_size
                                                       : 0;
    f->in_line = false;
    return 0;
}

static bool is_removed(int fd)
{
    struct stat st;

    return fstat(fd, &st) == 0 && st.st_nlink == 0;
}

int log_file_open(struct log_file *f, struct log_file_rules *r,
                  const char *name)
{
    int why = 0;

    mem_close_at(&f->fd);
    f->fd = -1;
    if (name != f->name)
        (void)text_copy(f->name, sizeof f->name, name);
    if (r->dir_fd < 0 || is_removed(r->dir_fd)) {
        mem_close_at(&r->dir_fd);
        why = log_file_open_dir(r);
    }
    if (why == 0)
        why = make_dirs(r->dir_fd, f->name, false);
    return why ? why : reopen(f, r);
}

/* name.1 becomes name.2 and so on, name becomes name.1, a new one begins. */
static int rotate(struct log_file *f, const struct log_file_rules *r)
{
    char from[LOG_FILES_NAME_MAX + 16], to[LOG_FILES_NAME_MAX + 16];

    mem_close_at(&f->fd);
    f->fd = -1;
    for (unsigned i = r->keep; i > 0; i--) {
        (void)snprintf(to, sizeof to, "%s.%u", f->name, i);
        (void)snprintf(from, sizeof from, i > 1 ? "%s.%u" : "%s", f->name,
                       i - 1);
        if (renameat(r->dir_fd, from, r->dir_fd, to) != 0 && errno != ENOENT)
            return errno;
    }
    if (r->keep == 0 && unlinkat(r->dir_fd, f->name, 0) != 0 &&
        errno != ENOENT)
        return errno;
    return reopen(f, r);
}

/* How much of the bytes may still go to this file. */
static size_t part_len(const struct log_file *f,
                       const struct log_file_rules *r, const char *s,
                       size_t len)
{
    uint64_t left = r->max_bytes > f->size ? r->max_bytes - f->size : 0;
    const char *newline;

    if (r->max_bytes == 0 || len <= left)
        return len;
    newline = memrchr(s, '\n', (size_t)left);
    if (newline)
        return (size_t)(newline + 1 - s);
    /* A line that began in this file, or is longer than any may be. */
    return f->in_line || f->size == 0 ? (size_t)left : 0;
}

void log_file_lose(struct log_file *f, bool ends_line)
{
    f->has_hole = true;
    f->in_hole = !ends_line;
    f->n_left_out = 0;
}

/* How many of the bytes are the rest of a line whose beginning was lost. */
static size_t left_out(struct log_file *f, const char *s, size_t len)
{
    const char *newline = memchr(s, '\n', len);
    size_t n = newline ? (size_t)(newline + 1 - s) : len;

    if (!f->in_hole)
        return 0;
    if (f->n_left_out + n > LOG_FILE_SKIP_MAX)
        n = (size_t)(LOG_FILE_SKIP_MAX - f->n_left_out);
    else if (newline)
        f->in_hole = false;
    f->n_left_out += n;
    f->in_hole = f->in_hole && f->n_left_out < LOG_FILE_SKIP_MAX;
    return n;
}

/* End the line that was torn. False where that cannot be written. */
static bool end_torn(struct log_file *f, int *ret_why)
{
    ssize_t n = 1;

    if (f->has_hole && f->in_line) {
        do
            n = write(f->fd, "\n", 1);
        while (n < 0 && errno == EINTR);
        if (n < 0)
            *ret_why = errno;
        else
            f->size++;
    }
    if (n == 1)
        f->has_hole = f->in_line = false;
    return n == 1;
}

static size_t write_part(struct log_file *f, const char *s, size_t len,
                         int *ret_why)
{
    const char *end = s + len;
    size_t left = len;

    while (left > 0 && (!f->has_hole || end_torn(f, ret_why))) {
        ssize_t n = write(f->fd, s, left);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            *ret_why = errno;
            break;
        }
        s += n;
        left -= (size_t)n;
        f->size += (uint64_t)n;
    }
    if (left < len)
        f->in_line = s[-1] != '\n';
    if (left > 0)
        log_file_lose(f, end[-1] == '\n');
    return left;
}

/* It is open, and somebody who removed the file, or the folder, gets another:
 * what is written to one without a name is lost, and nothing says so. */
static int look_after(struct log_file *f, struct log_file_rules *r)
{
    return f->fd >= 0 && !is_removed(f->fd) ? 0 : log_file_open(f, r, f->name);
}

size_t log_file_write(struct log_file *f, struct log_file_rules *r,
                      const char *bytes, size_t len, int *ret_why)
{
    size_t lost = 0, part;

    for (; len > 0; bytes += part, len -= part) {
        int why;

        part = left_out(f, bytes, len);
        lost += part;
        if (part > 0)
            continue;
        why = look_after(f, r);
        part = why ? 0 : part_len(f, r, bytes, len);
        if (why == 0 && part < len && part == 0)
            why = rotate(f, r);
        if (why != 0) {
            *ret_why = why;
            log_file_lose(f, bytes[len - 1] == '\n');
            return lost + len; /* The next bytes try again. */
        }
        lost += write_part(f, bytes, part, ret_why);
    }
    return lost;
}

int log_file_sync(struct log_file *f)
{
    if (f->fd < 0)
        return 0;
    /* A pipe or a device that somebody put there cannot be synced. */
    return fsync(f->fd) == 0 || errno == EINVAL || errno == EROFS ? 0 : errno;
}
