/* text: see text.h. */
#include "base/text.h"

#include <stdarg.h>
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

void text_add(struct text *t, const char *fmt, ...)
{
    size_t room = t->cap - t->len;
    int n;
    va_list ap;

    va_start(ap, fmt);
    n = vsnprintf(t->at + t->len, room, fmt, ap);
    va_end(ap);
    if (n < 0)
        return;
    if ((size_t)n >= room) {
        t->cut = true;
        t->len = t->cap - 1;
    } else {
        t->len += (size_t)n;
    }
}

void text_add_ranges(struct text *t, unsigned n,
                     bool (*member)(const void *ctx, unsigned i),
                     const void *ctx, size_t max)
{
    size_t start = t->len;
    const char *comma = "";

    for (unsigned i = 0; i < n; i++) {
        unsigned last;

        if (!member(ctx, i))
            continue;
        for (last = i; last + 1 < n && member(ctx, last + 1);)
            last++;
        if (t->len - start + 28 > max) {
            text_add(t, "%s...", comma);
            return;
        }
        if (last == i)
            text_add(t, "%s%u", comma, i);
        else
            text_add(t, "%s%u-%u", comma, i, last);
        comma = ",";
        i = last;
    }
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
        text_add(t, "%llu min %llu s", (unsigned long long)(s / 60),
                 (unsigned long long)(s % 60));
    else
        text_add(t, "%llu h %llu min", (unsigned long long)(s / 3600),
                 (unsigned long long)(s / 60 % 60));
}

bool text_copy(char *dst, size_t cap, const char *src)
{
    size_t n = strlen(src);
    bool fits = n < cap;

    if (!fits)
        n = cap - 1;
    memcpy(dst, src, n);
    dst[n] = '\0';
    return fits;
}

/* Bytes of the UTF-8 sequence at `s`, or 0 where there is none. */
static size_t utf8_len(const unsigned char *s)
{
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

size_t text_make_utf8(char *s, size_t max)
{
    size_t i = 0;

    while (s[i] != '\0' && i < max) {
        unsigned char c = (unsigned char)s[i];
        size_t n = utf8_len((const unsigned char *)s + i);

        if (n == 0 || ((c < 0x20 || c == 0x7f) && c != '\n' && c != '\t')) {
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
