/* out_parts: see out_parts.h. */
#include "supervise/out_parts.h"

#include <string.h>

void out_parts_add(struct out_parts *p, uint32_t owner, size_t len, size_t raw)
{
    struct out_part *last = &p->at[(p->first + p->n - 1) % OUT_PARTS_MAX];

    if (len == 0)
        return;
    if (p->n == 0)
        p->first = 0; /* More likely in the cache. */
    if (p->n == 0 || last->owner != owner) {
        last = &p->at[(p->first + p->n) % OUT_PARTS_MAX];
        *last = (struct out_part){.owner = owner};
        p->n++;
    }
    last->len += (uint32_t)len;
    last->raw += (uint32_t)raw;
}

/* Take up to `len` bytes off the first part, of which there is one. */
static struct out_part take(struct out_parts *p, size_t len)
{
    struct out_part *first = &p->at[p->first], part = *first;

    if (len < part.len) {
        part.raw = (uint32_t)((uint64_t)part.raw * len / part.len);
        part.len = (uint32_t)len;
    }
    first->len -= part.len;
    first->raw -= part.raw;
    if (first->len == 0) {
        p->first = (p->first + 1) % OUT_PARTS_MAX;
        p->n--;
    }
    return part;
}

size_t out_count_lines(const char *s, size_t len)
{
    const char *end = s + len;
    size_t n = 0;

    while (s < end && (s = memchr(s, '\n', (size_t)(end - s)))) {
        s++;
        n++;
    }
    return n;
}

void out_parts_pass(struct out_parts *p, const char *ring, size_t size,
                    uint64_t at, size_t len, struct out_lost *lost_of)
{
    while (len > 0 && p->n > 0) {
        struct out_part part = take(p, len);
        size_t from = (size_t)(at % size);
        size_t first = size - from < part.len ? size - from : part.len;

        if (lost_of && part.owner != OUT_NOBODY) {
            struct out_lost *l = &lost_of[part.owner];

            l->bytes += part.raw;
            l->lines += out_count_lines(ring + from, first) +
                        out_count_lines(ring, part.len - first);
        }
        at += part.len;
        len -= part.len;
    }
}
