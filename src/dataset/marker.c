/* marker: the rows and how they are written; see marker.h. */
#include "dataset/marker.h"

#include "base/mem.h"
#include "dataset/marker_text.h"
#include "dataset/space.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void marker_free(struct marker *m)
{
    for (size_t i = 0; i < m->n; i++)
        free(m->rows[i].own);
    free(m->rows);
    *m = (struct marker){.n = 0};
}

struct marker_row *marker_add(struct marker *m, size_t output,
                              const char *path, char *own)
{
    struct marker_row *row;

    if (m->n == m->cap) {
        size_t cap = m->cap ? 2 * m->cap : 64;
        void *more = reallocarray(m->rows, cap, sizeof *m->rows);

        if (!more) {
            free(own);
            return NULL;
        }
        m->rows = more;
        m->cap = cap;
    }
    row = &m->rows[m->n++];
    memset(row, 0, sizeof *row);
    row->output = output;
    row->path = own ? own : path;
    row->own = own;
    return row;
}

void marker_row_set(struct marker_row *row, const struct stat *st)
{
    row->size = (uint64_t)st->st_size;
    row->ino = st->st_ino;
    row->mtime = st->st_mtim;
    row->ctime = st->st_ctim;
}

static bool same_time(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

bool marker_row_same(const struct marker_row *row, const struct stat *st)
{
    return (row->link ? S_ISLNK(st->st_mode) : S_ISREG(st->st_mode)) &&
           row->size == (uint64_t)st->st_size && row->ino == st->st_ino &&
           same_time(&row->mtime, &st->st_mtim) &&
           same_time(&row->ctime, &st->st_ctim);
}

/* --- writing ------------------------------------------------------------- */

#define BUFFER (64u << 10)

struct out {
    int fd, error;
    char *buf;
    size_t n;
    struct digest d;
};

static void flush(struct out *o)
{
    size_t done = 0;

    while (done < o->n && !o->error) {
        ssize_t n = write(o->fd, o->buf + done, o->n - done);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            o->error = n < 0 ? errno : EIO;
        else
            done += (size_t)n;
    }
    digest_add(&o->d, o->buf, o->n);
    o->n = 0;
}

static char *room(struct out *o)
{
    if (BUFFER - o->n < MARKER_LINE_MAX)
        flush(o);
    return o->buf + o->n;
}

static void put_row(struct out *o, const struct marker_row *row)
{
    char hex[DIGEST_HEX_MAX] = "-", *line = room(o);
    int n;

    if (row->has_sha256)
        digest_hex(row->sha256, sizeof row->sha256, hex);
    n = snprintf(line, MARKER_LINE_MAX,
                 "%" PRIu64 " %" PRId64 ".%09ld %" PRId64 ".%09ld %" PRIu64
                 " %s%s ",
                 row->size, (int64_t)row->mtime.tv_sec, row->mtime.tv_nsec,
                 (int64_t)row->ctime.tv_sec, row->ctime.tv_nsec, row->ino,
                 row->link ? "l:" : "", hex);
    if (n > 0)
        o->n += (size_t)n;
    o->n += marker_escape(o->buf + o->n, row->path);
}

static void put_all(struct out *o, const struct manifest *m,
                    const struct marker *marker)
{
    char hex[DIGEST_HEX_MAX];
    uint8_t sum[DIGEST_MAX];

    digest_start(&o->d, DIGEST_SHA256);
    o->n = marker_head(o->buf, m, marker->n);
    for (size_t i = 0; i < marker->n; i++)
        put_row(o, &marker->rows[i]);
    flush(o);
    digest_end(&o->d, sum);
    digest_hex(sum, 32, hex);
    o->n = (size_t)snprintf(o->buf, BUFFER, "end %s\n", hex);
    flush(o);
}

int marker_write(int folder, const struct manifest *m,
                 const struct marker *marker)
{
    autofree char *buf = malloc(BUFFER);
    autoclose int fd = -1;
    struct out o = {.buf = buf};

    if (!buf)
        return -ENOMEM;
    (void)unlinkat(folder, DATASET_MARKER_TMP, 0);
    fd = openat(folder, DATASET_MARKER_TMP,
                O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0)
        return -errno;
    o.fd = fd;
    put_all(&o, m, marker);
    if (o.error)
        return -o.error;
    if (fsync(fd) < 0)
        return -errno;
    if (close(steal_fd(&fd)) < 0 && errno != EINTR)
        return -errno;
    if (renameat(folder, DATASET_MARKER_TMP, folder, DATASET_MARKER) < 0)
        return -errno;
    return -space_sync_folder(folder);
}
