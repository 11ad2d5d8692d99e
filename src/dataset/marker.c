/* marker: see marker.h. */
#include "dataset/marker.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MAGIC "agent-stage 1\n"
#define ROW_START_MAX 256 /* A row's text before its path. */
#define LINE_MAX_BYTES (ROW_START_MAX + 2 * DATASET_PATH_MAX + 2)

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
    return S_ISREG(st->st_mode) && row->size == (uint64_t)st->st_size &&
           row->ino == st->st_ino && same_time(&row->mtime, &st->st_mtim) &&
           same_time(&row->ctime, &st->st_ctim);
}

static void escape(char *to, const char *path)
{
    for (; *path; path++) {
        if (*path == '\n' || *path == '\\')
            *to++ = '\\';
        *to++ = *path == '\n' ? 'n' : *path;
    }
    *to++ = '\n';
    *to = '\0';
}

static void set_line(char *line, const struct manifest *m)
{
    char hex[DIGEST_HEX_MAX];

    digest_hex(m->digest, sizeof m->digest, hex);
    (void)snprintf(line, LINE_MAX_BYTES, "set %s %zu %s\n", hex, m->n_outputs,
                   m->name);
}

static void row_line(char *line, const struct marker_row *row,
                     const char *path)
{
    char hex[DIGEST_HEX_MAX] = "-";
    int n;

    if (row->has_sha256)
        digest_hex(row->sha256, sizeof row->sha256, hex);
    n = snprintf(line, ROW_START_MAX,
                 "%" PRIu64 " %" PRId64 ".%09ld %" PRId64 ".%09ld %" PRIu64
                 " %s ",
                 row->size, (int64_t)row->mtime.tv_sec, row->mtime.tv_nsec,
                 (int64_t)row->ctime.tv_sec, row->ctime.tv_nsec, row->ino,
                 hex);
    if (n < 0 || n >= ROW_START_MAX) /* It cannot be so long. */
        n = 0;
    escape(line + n, path);
}

static void put(FILE *f, struct digest *d, const char *line)
{
    digest_add(d, line, strlen(line));
    (void)fputs(line, f);
}

static void put_all(FILE *f, const struct manifest *m,
                    const struct marker_row *rows)
{
    char line[LINE_MAX_BYTES], hex[DIGEST_HEX_MAX];
    uint8_t sum[DIGEST_MAX];
    struct digest d;

    digest_start(&d, DIGEST_SHA256);
    put(f, &d, MAGIC);
    set_line(line, m);
    put(f, &d, line);
    for (size_t i = 0; i < m->n_outputs; i++) {
        row_line(line, &rows[i], m->outputs[i].path);
        put(f, &d, line);
    }
    digest_end(&d, sum);
    digest_hex(sum, 32, hex);
    (void)fprintf(f, "end %s\n", hex);
}

int marker_write(int folder, const struct manifest *m,
                 const struct marker_row *rows)
{
    autofclose FILE *f = NULL;
    int fd;

    (void)unlinkat(folder, DATASET_MARKER_TMP, 0);
    fd = openat(folder, DATASET_MARKER_TMP,
                O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0)
        return -errno;
    f = fdopen(fd, "w");
    if (!f) {
        (void)close(fd);
        return -ENOMEM;
    }
    put_all(f, m, rows);
    errno = EIO; /* Where only ferror() knows. */
    if (fflush(f) != 0 || ferror(f) || fsync(fd) < 0)
        return -errno;
    if (renameat(folder, DATASET_MARKER_TMP, folder, DATASET_MARKER) < 0)
        return -errno;
    return fsync(folder) < 0 ? -errno : 0;
}

/* Read a line and compare it with `want`. */
static bool take(FILE *f, struct digest *d, const char *want)
{
    char line[LINE_MAX_BYTES];

    if (!fgets(line, sizeof line, f) || strcmp(line, want) != 0)
        return false;
    digest_add(d, line, strlen(line));
    return true;
}

/* Read a row. What it says is only believed once the last line fits. */
static bool take_row(FILE *f, struct digest *d, const char *path,
                     struct marker_row *row)
{
    char line[LINE_MAX_BYTES], again[LINE_MAX_BYTES], hex[65];
    int64_t mtime, ctime;

    if (!fgets(line, sizeof line, f))
        return false;
    if (sscanf(line,
               "%" SCNu64 " %" SCNd64 ".%ld %" SCNd64 ".%ld %" SCNu64 " %64s",
               &row->size, &mtime, &row->mtime.tv_nsec, &ctime,
               &row->ctime.tv_nsec, &row->ino, hex) != 7)
        return false;
    row->mtime.tv_sec = (time_t)mtime;
    row->ctime.tv_sec = (time_t)ctime;
    row->has_sha256 = digest_read_hex(hex, row->sha256, 32);
    row_line(again, row, path);
    if (strcmp(line, again) != 0) /* Another path, or not our spelling. */
        return false;
    digest_add(d, line, strlen(line));
    return true;
}

bool marker_read(int folder, const struct manifest *m, struct marker_row *rows)
{
    autofclose FILE *f = NULL;
    char line[LINE_MAX_BYTES], want[LINE_MAX_BYTES], hex[DIGEST_HEX_MAX];
    uint8_t sum[DIGEST_MAX];
    struct digest d;
    int fd = openat(folder, DATASET_MARKER,
                    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

    if (fd < 0)
        return false;
    f = fdopen(fd, "r");
    if (!f) {
        (void)close(fd);
        return false;
    }
    digest_start(&d, DIGEST_SHA256);
    set_line(line, m);
    if (!take(f, &d, MAGIC) || !take(f, &d, line))
        return false;
    for (size_t i = 0; i < m->n_outputs; i++)
        if (!take_row(f, &d, m->outputs[i].path, &rows[i]) ||
            rows[i].has_sha256 != m->outputs[i].unpacked)
            return false;
    digest_end(&d, sum);
    digest_hex(sum, 32, hex);
    (void)snprintf(want, sizeof want, "end %s\n", hex);
    return fgets(line, sizeof line, f) && strcmp(line, want) == 0 &&
           fgetc(f) == EOF;
}
