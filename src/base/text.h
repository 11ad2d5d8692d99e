/* text: a bounded string that grows by printf and never overflows.
 *
 * Pure. A text that does not fit is cut and stays terminated; `cut` tells. */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

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

/* Add the numbers i < n for which `member(ctx, i)` is true, folded:
 * "3-17,20". Ends with ",..." where the rest does not fit in `max` bytes. */
void text_add_ranges(struct text *t, unsigned n,
                     bool (*member)(const void *ctx, unsigned i),
                     const void *ctx, size_t max);

/* "350 ms", "12 s", "3 min 20 s", "2 h 5 min": for people. */
void text_add_duration(struct text *t, uint64_t ms);

/* Copy `src` to `dst`, cut to fit `cap`. True where nothing was cut. */
bool text_copy(char *dst, size_t cap, const char *src);

/* Cut `s` (NUL-terminated) to at most `max` bytes of valid UTF-8: bytes that
 * are no UTF-8, and controls but tab and newline, become '?'. Returns the
 * new length. */
size_t text_make_utf8(char *s, size_t max);

#endif
