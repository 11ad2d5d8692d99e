/* tail: see tail.h. */
#include "supervise/tail.h"

#include "base/text.h"
#include "supervise/box.h"

#include <stdbool.h>
#include <string.h>

void tail_init(struct tail *t, char *ring)
{
    *t = (struct tail){.ring = ring}; /* Which need not be touched. */
}

void tail_clear(struct tail *t)
{
    tail_init(t, t->ring);
}

void tail_put(struct tail *t, const char *bytes, size_t n)
{
    size_t first;

    if (n > TAIL_MAX) {
        bytes += n - TAIL_MAX;
        n = TAIL_MAX;
    }
    first = TAIL_MAX - t->next < n ? TAIL_MAX - t->next : n;
    memcpy(t->ring + t->next, bytes, first);
    memcpy(t->ring, bytes + first, n - first);
    t->next = (t->next + n) % TAIL_MAX;
    t->len = t->len + n < TAIL_MAX ? t->len + n : TAIL_MAX;
}

static bool in_range(char c, int low, int high)
{
    return (unsigned char)c >= low && (unsigned char)c <= high;
}

/* Length of the escape sequence at s[0..n), s[0] being ESC (ECMA-48). One that
 * is not complete ends at the first byte that cannot belong to it. */
static size_t escape_len(const char *s, size_t n)
{
    size_t i = 1;

    if (i < n && strchr("]PX^_", s[i]) && s[i] != '\0') {
        /* A string (window title, hyperlink), up to BEL or ESC \. */
        for (i++; i < n && s[i] != '\n'; i++) {
            if (s[i] == '\a')
                return i + 1;
            if (s[i] == '\033')
                return i + 1 < n && s[i + 1] == '\\' ? i + 2 : i;
        }
        return i;
    }
    if (i < n && s[i] == '[') {
        for (i++; i < n && in_range(s[i], 0x30, 0x3f);)
            i++;
        while (i < n && in_range(s[i], 0x20, 0x2f))
            i++;
        return i < n && in_range(s[i], 0x40, 0x7e) ? i + 1 : i;
    }
    while (i < n && in_range(s[i], 0x20, 0x2f))
        i++;
    return i < n && in_range(s[i], 0x30, 0x7e) ? i + 1 : i;
}

/* The ring's bytes in order, without escape sequences, NUL as '?', ended by a
 * NUL. Returns the length. */
static size_t straighten(const struct tail *t, char *ret)
{
    size_t from = (t->next + TAIL_MAX - t->len) % TAIL_MAX;
    size_t first = TAIL_MAX - from < t->len ? TAIL_MAX - from : t->len;
    size_t n = 0;

    memcpy(ret, t->ring + from, first);
    memcpy(ret + first, t->ring, t->len - first);
    for (size_t i = 0; i < t->len;) {
        if (ret[i] == '\033') {
            i += escape_len(ret + i, t->len - i);
            continue;
        }
        ret[n++] = ret[i] == '\0' ? '?' : ret[i];
        i++;
    }
    ret[n] = '\0';
    return n;
}

/* Leave of each line of s[0..n) only its last state: what follows the last
 * carriage return that is not at the line's end. Returns the new length. */
static size_t keep_last_states(char *s, size_t n)
{
    size_t to = 0;

    for (size_t i = 0; i < n;) {
        char *line = s + i;
        char *newline = memchr(line, '\n', n - i);
        size_t len = newline ? (size_t)(newline - line) : n - i;
        char *cr;

        i += len + 1;
        while (len > 0 && line[len - 1] == '\r')
            len--;
        cr = memrchr(line, '\r', len);
        if (cr) {
            len -= (size_t)(cr + 1 - line);
            line = cr + 1;
        }
        memmove(s + to, line, len);
        to += len;
        if (newline)
            s[to++] = '\n';
    }
    s[to] = '\0';
    return to;
}

/* Where the last at most `max_lines` lines begin, that have at most `max`
 * bytes; s + n where not even one fits. */
static size_t find_start(const char *s, size_t n, unsigned max_lines,
                         size_t max)
{
    size_t start = n;

    for (unsigned i = 0; i < max_lines && start > 0; i++) {
        size_t end = i == 0 ? n : start - 1;
        const char *newline = memrchr(s, '\n', end);
        size_t next = newline ? (size_t)(newline + 1 - s) : 0;

        if (n - next > max)
            break;
        start = next;
    }
    return start;
}

/* In a full ring the oldest line has most likely lost its beginning: leave it
 * out, or at least a torn character where it is the only one. */
static size_t skip_torn(const char *s, size_t n)
{
    const char *newline = memchr(s, '\n', n);
    size_t i = 0;

    if (newline)
        return (size_t)(newline + 1 - s);
    while (i < 3 && in_range(s[i], 0x80, 0xbf))
        i++;
    return i;
}

size_t tail_text(const struct tail *t, unsigned max_lines, char *out,
                 size_t cap)
{
    char s[TAIL_MAX + 1];
    size_t n = keep_last_states(s, straighten(t, s)), start = 0;

    n = box_strip(s, n);
    while (n > 0 && strchr("\n\t ", s[n - 1]))
        n--;
    s[n] = '\0';
    if (cap > 0)
        out[0] = '\0';
    if (cap == 0 || max_lines == 0 || n == 0)
        return 0;
    if (t->len == TAIL_MAX)
        start = skip_torn(s, n);
    start += find_start(s + start, n - start, max_lines, cap - 1);
    while (s[start] == '\n')
        start++;
    if (start == n) {
        start = find_start(s, n, 1, n);
        n = start + text_whole(s + start, cap - 1);
    }
    memcpy(out, s + start, n - start);
    out[n - start] = '\0';
    return text_make_utf8(out, cap - 1);
}
