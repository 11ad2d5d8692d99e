/* marker_read: see marker.h. What it says is only believed once the last line
 * fits all before it. */
#include "dataset/marker.h"

#include "base/mem.h"
#include "dataset/marker_text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BUFFER (64u << 10)

struct lines {
    int fd;
    char *buf;
    size_t at, n;
    struct digest d;
};

/* Have a whole line in the buffer: its length, newline included; 0: none. */
static size_t next_line(struct lines *l)
{
    for (;;) {
        char *newline = memchr(l->buf + l->at, '\n', l->n - l->at);
        ssize_t n;

        if (newline)
            return (size_t)(newline - (l->buf + l->at)) + 1;
        memmove(l->buf, l->buf + l->at, l->n - l->at);
        l->n -= l->at;
        l->at = 0;
        if (l->n == BUFFER)
            return 0;
        n = read(l->fd, l->buf + l->n, BUFFER - l->n);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return 0;
        l->n += (size_t)n;
    }
}

/* Take the line if it is `want`. */
static bool take(struct lines *l, const char *want, size_t len)
{
    bool same = next_line(l) == len && memcmp(l->buf + l->at, want, len) == 0;

    if (same) {
        digest_add(&l->d, want, len);
        l->at += len;
    }
    return same;
}

/* The number of rows, from the second line, which says the set, too. */
static bool take_head(struct lines *l, const struct manifest *m,
                      size_t *ret_n)
{
    char want[MARKER_LINE_MAX];
    size_t first, second, n, len;

    first = sizeof "agent-stage 1\n" - 1;
    if (!take(l, "agent-stage 1\n", first))
        return false;
    second = next_line(l);
    if (second < 70 || memcmp(l->buf + l->at, "set ", 4) != 0)
        return false;
    n = strtoul(l->buf + l->at + 69, NULL, 10);
    len = marker_head(want, m, n);
    *ret_n = n;
    return take(l, want + first, len - first);
}

/* A row is the next output's, or of a file from an archive. */
static bool take_row(struct lines *l, const struct manifest *m, bool archives,
                     size_t *next, struct marker *ret)
{
    char path[DATASET_PATH_MAX + 1], *own = NULL;
    const struct manifest_output *out =
        *next < m->n_outputs ? &m->outputs[*next] : NULL;
    struct marker_row row, *added;
    size_t len = next_line(l);

    if (len == 0 || !marker_parse(l->buf + l->at, len - 1, &row, path))
        return false;
    digest_add(&l->d, l->buf + l->at, len);
    l->at += len;
    if (out && strcmp(out->path, path) == 0) {
        if (row.has_sha256 != out->unpacked || row.link)
            return false;
        added = marker_add(ret, (*next)++, out->path, NULL);
    } else {
        if (!archives || !row.has_sha256 || path_fault(path))
            return false;
        own = strdup(path);
        added = own ? marker_add(ret, MARKER_NO_OUTPUT, NULL, own) : NULL;
    }
    if (!added)
        return false;
    row.path = added->path;
    row.own = added->own;
    row.output = added->output;
    *added = row;
    return true;
}

static bool read_all(struct lines *l, const struct manifest *m,
                     struct marker *ret)
{
    bool archives = manifest_has_archives(m);
    char hex[DIGEST_HEX_MAX], want[80];
    uint8_t sum[DIGEST_MAX];
    size_t n, next = 0;
    int len;

    digest_start(&l->d, DIGEST_SHA256);
    if (!take_head(l, m, &n))
        return false;
    for (size_t i = 0; i < n; i++)
        if (!take_row(l, m, archives, &next, ret))
            return false;
    digest_end(&l->d, sum);
    digest_hex(sum, 32, hex);
    len = snprintf(want, sizeof want, "end %s\n", hex);
    digest_start(&l->d, DIGEST_SHA256);
    return next == m->n_outputs && take(l, want, (size_t)len) &&
           next_line(l) == 0 && l->n == l->at;
}

bool marker_read(int folder, const struct manifest *m, struct marker *ret)
{
    autofree char *buf = malloc(BUFFER);
    autoclose int fd = openat(folder, DATASET_MARKER,
                              O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct lines l = {.fd = fd, .buf = buf};

    *ret = (struct marker){.n = 0};
    return buf && fd >= 0 && read_all(&l, m, ret);
}
