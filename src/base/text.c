/* text: see text.h. */
#include "base/text.h"

#include <stdio.h>
#include <string.h>

void text_init(struct text *t, char *buf, size_t cap)
{
    t->at = buf;
    t->len = 0;
    t->cap = cap;
    t->cut = false;
    buf[0] = '\0';
}

size_t text_whole(const char *s, size_t len)
{
    for (size_t back = 1; back <= 3 && back <= len; back++) {
        unsigned char c = (unsigned char)s[len - back];
        size_t n = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;

        if (c < 0x80)
            break;
        if (c >= 0xc0)
            return n > back && c <= 0xf4 ? len - back : len;
    }
    return len;
}

void text_vadd(struct text *t, const char *fmt, va_list ap)
{
    size_t room = t->cap - t->len;
    int n;

    if (t->cut)
        return;
    n = vsnprintf(t->at + t->len, room, fmt, ap);
    if (n > 0 && (size_t)n >= room) {
        t->cut = true;
        t->len = text_whole(t->at, t->cap - 1);
    } else if (n > 0) {
        t->len += (size_t)n;
    }
    t->at[t->len] = '\0';
}

void text_add(struct text *t, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    text_vadd(t, fmt, ap);
    va_end(ap);
}

void text_add_ranges(struct text *t, unsigned n,
                     bool (*member)(const void *ctx, unsigned i),
                     const void *ctx, size_t max)
{
    char item[32];
    size_t used = 0;
    unsigned i = 0;

    while (i < n && !member(ctx, i))
        i++;
    while (i < n) {
        unsigned first = i, last;
        const char *comma = used > 0 ? "," : "";
        size_t len;

        for (i++; i < n && member(ctx, i);)
            i++;
        last = i - 1;
        while (i < n && !member(ctx, i))
            i++;
        if (last == first)
            (void)snprintf(item, sizeof item, "%s%u", comma, first);
        else
            (void)snprintf(item, sizeof item, "%s%u-%u", comma, first, last);
        len = strlen(item);
        /* Keep room for ",..." as long as something follows. */
        if (used + len + (i < n ? 4 : 0) > max) {
            text_add(t, "%s...", comma);
            return;
        }
        text_add(t, "%s", item);
        used += len;
    }
}

/* "<whole> <unit> <part> <part's unit>", without the part where it is 0. */
static void add_two(struct text *t, uint64_t whole, const char *unit,
                    uint64_t part, const char *part_unit)
{
    text_add(t, "%llu %s", (unsigned long long)whole, unit);
    if (part > 0)
        text_add(t, " %llu %s", (unsigned long long)part, part_unit);
}

void text_add_duration(struct text *t, uint64_t ms)
{
    uint64_t s = ms / 1000;

    if (ms < 1000)
        text_add(t, "%llu ms", (unsigned long long)ms);
    else if (s < 10 && ms % 1000 >= 100)
        text_add(t, "%llu.%llu s", (unsigned long long)s,
                 (unsigned long long)(ms % 1000 / 100));
    else if (s < 120)
        text_add(t, "%llu s", (unsigned long long)s);
    else if (s < 7200)
        add_two(t, s / 60, "min", s % 60, "s");
    else
        add_two(t, s / 3600, "h", s / 60 % 60, "min");
}

bool text_copy(char *dst, size_t cap, const char *src)
{
    size_t n = strlen(src);
    bool fits = n < cap;

    if (!fits)
        n = text_whole(src, cap - 1);
    memcpy(dst, src, n);
    dst[n] = '\0';
    return fits;
}

/* A NUL is no continuation, so nothing after the end of a string is read. */
size_t text_utf8_len(const char *at)
{
    const unsigned char *s = (const unsigned char *)at;
    unsigned cp;
    size_t n;

    if (s[0] < 0x80)
        return 1;
    if (s[0] >= 0xc2 && s[0] <= 0xdf)
        n = 2, cp = s[0] & 0x1fu;
    else if ((s[0] & 0xf0) == 0xe0)
        n = 3, cp = s[0] & 0x0fu;
    else if (s[0] >= 0xf0 && s[0] <= 0xf4)
        n = 4, cp = s[0] & 0x07u;
    else
        return 0;
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        cp = cp << 6 | (s[i] & 0x3fu);
    }
    if ((n == 3 && cp < 0x800) || (n == 4 && (cp < 0x10000 || cp > 0x10ffff)))
        return 0;
    return cp >= 0xd800 && cp <= 0xdfff ? 0 : n;
}

/* C0 (but tab and newline), DEL, and C1: U+009B starts an escape sequence as
 * ESC [ does. `s` is a valid sequence. */
static bool is_control(const unsigned char *s)
{
    if (s[0] == 0xc2)
        return s[1] < 0xa0;
    return (s[0] < 0x20 && s[0] != '\n' && s[0] != '\t') || s[0] == 0x7f;
}

size_t text_make_utf8(char *s, size_t max)
{
    size_t i = 0;

    while (i < max && s[i] != '\0') {
        size_t n = text_utf8_len(s + i);

        if (n == 0 || is_control((const unsigned char *)s + i)) {
            s[i++] = '?';
            continue;
        }
        if (i + n > max)
            break;
        i += n;
    }
    s[i] = '\0';
    return i;
}

size_t text_make_line(char *s, size_t max)
{
    size_t n = text_make_utf8(s, max);

    for (size_t i = 0; i < n; i++)
        if (s[i] == '\n' || s[i] == '\t')
            s[i] = '?';
    return n;
}
