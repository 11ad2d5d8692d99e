/* relay_plain: lines of text without carriage returns: the common case, and
 * the one that must be fast. */
#include "supervise/relay_parts.h"

#include <string.h>

#define WINDOW 8192 /* Looked through at a time: it stays in a core's cache. */
#define SHORT_HEAD 32

void relay_begin_line(struct relay *r)
{
    r->scanned = r->start;
    r->is_bar = r->is_over = false;
    r->shown = RELAY_NOT_SHOWN;
}

bool relay_has_cr(struct relay *r, size_t end)
{
    const char *cr;
    size_t to;

    if (end <= r->no_cr)
        return false;
    if (r->no_cr < r->scanned)
        r->no_cr = r->scanned;
    to = r->no_cr + WINDOW < r->len ? r->no_cr + WINDOW : r->len;
    if (to < end)
        to = end;
    cr = memchr(r->buf + r->no_cr, '\r', to - r->no_cr);
    r->no_cr = cr ? (size_t)(cr - r->buf) : to;
    return r->no_cr < end;
}

/* `head` before a line, for which there is room behind it. A short one is
 * copied with what follows it: a fixed length takes no call. */
static void copy_head(const struct relay *r, char *out, size_t room)
{
    if (r->head_len <= SHORT_HEAD && room >= SHORT_HEAD)
        memcpy(out, r->head, SHORT_HEAD);
    else
        memcpy(out, r->head, r->head_len);
}

/* The lines that end in [*from, stop), the first of which begins at *at; false
 * where one has no room. */
static bool copy_lines(struct relay *r, const char **at, const char *from,
                       const char *stop, char *out, size_t cap, size_t *n)
{
    const char *newline;

    while (from < stop &&
           (newline = memchr(from, '\n', (size_t)(stop - from)))) {
        size_t len = (size_t)(newline + 1 - *at);

        if (r->head_len + len > cap - *n)
            return false;
        copy_head(r, out + *n, cap - *n);
        memcpy(out + *n + r->head_len, *at, len);
        *n += r->head_len + len;
        r->n_lines++;
        *at = from = newline + 1;
    }
    return true;
}

size_t relay_take_plain(struct relay *r, char *out, size_t cap)
{
    const char *at = r->buf + r->start;
    size_t from = r->scanned, n = 0;
    bool has_more = true;

    if (r->json || r->is_bar || r->is_over || r->has_rows ||
        r->shown != RELAY_NOT_SHOWN)
        return 0;
    while (has_more && from < r->len) {
        size_t to = r->len - from > WINDOW ? from + WINDOW : r->len;
        bool cr = relay_has_cr(r, to);

        to = cr ? r->no_cr : to;
        has_more = copy_lines(r, &at, r->buf + from, r->buf + to, out, cap,
                              &n) && !cr;
        from = to;
    }
    if (n > 0) {
        r->start = (size_t)(at - r->buf);
        relay_begin_line(r);
    }
    return n;
}
