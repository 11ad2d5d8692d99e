/* text: a bounded string that grows by printf and never overflows.
 *
 * Pure. A text that does not fit is cut, never inside a UTF-8 sequence, and
 * stays terminated; `cut` tells, and nothing is added after a cut. */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text {
    char *at;
    size_t len, cap; /* `cap` counts the terminating NUL. */
    bool cut;
};

/* Start an empty text in `buf` (borrowed) of `cap` >= 1 bytes. */
void text_init(struct text *t, char *buf, size_t cap);

void text_add(struct text *t, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void text_vadd(struct text *t, const char *fmt, va_list ap)
    __attribute__((format(printf, 2, 0)));

/* Add the numbers i < n for which `member(ctx, i)` is true, folded:
 * "3-17,20". Ends with ",..." where the rest might not fit in `max` bytes
 * (at least 3), the dots included. */
void text_add_ranges(struct text *t, unsigned n,
                     bool (*member)(const void *ctx, unsigned i),
                     const void *ctx, size_t max);

/* "350 ms", "3.2 s", "12 s", "3 min 20 s", "10 min", "2 h 5 min": for people,
 * rounded down. */
void text_add_duration(struct text *t, uint64_t ms);

/* The end of a noun that a number stands before: "%u worker%s". */
static inline const char *text_plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

/* Copy `src` to `dst`, cut to fit `cap` >= 1. True where nothing was cut. */
bool text_copy(char *dst, size_t cap, const char *src);

/* `len` less the bytes of a UTF-8 sequence that s[0..len) begins but does not
 * end: where to cut so that no character is torn. */
size_t text_whole(const char *s, size_t len);

/* Bytes of the UTF-8 sequence at `s` (NUL-terminated), or 0 where there is
 * none. */
size_t text_utf8_len(const char *s);

/* Cut `s` (NUL-terminated) to at most `max` bytes of valid UTF-8: bytes that
 * are no UTF-8, and of controls (C0, DEL, C1) but tab and newline each byte,
 * become '?'. Returns the new length. */
size_t text_make_utf8(char *s, size_t max);

/* The same, and tab and newline become '?', too: one line. */
size_t text_make_line(char *s, size_t max);

#endif
