/* out_parts: whose bytes lie in a queue, in their order. Pure.
 *
 * Bytes that follow those of the same owner are one part with them. */
#ifndef SUPERVISE_OUT_PARTS_H
#define SUPERVISE_OUT_PARTS_H

#include "supervise/out.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OUT_PARTS_MAX 16384
#define OUT_NOBODY UINT32_MAX /* agent's own lines. */

struct out_part {
    uint32_t owner;
    uint32_t len; /* In the queue, */
    uint32_t raw; /* and of these from the owner: no prefix. */
};

struct out_parts {
    uint32_t first, n;
    struct out_part at[OUT_PARTS_MAX];
};

/* One place is agent's own: what it adds after that is the same part. */
static inline bool out_parts_has_room(const struct out_parts *p)
{
    return p->n < OUT_PARTS_MAX - 1;
}

void out_parts_add(struct out_parts *p, uint32_t owner, size_t len,
                   size_t raw);
/* The next `len` bytes of the queue, which lie at `at` in its ring of `size`,
 * are no longer there. Where they are lost, `lost_of` their owners has them: a
 * share of a part's raw bytes, where it is not all of it. Else NULL. */
void out_parts_pass(struct out_parts *p, const char *ring, size_t size,
                    uint64_t at, size_t len, struct out_lost *lost_of);

size_t out_count_lines(const char *s, size_t len);

#endif
