/* tail: the last lines that a worker wrote to stderr, for the verdict. Pure. */
#ifndef SUPERVISE_TAIL_H
#define SUPERVISE_TAIL_H

#include <stddef.h>

#define TAIL_MAX 16384 /* A launcher inside a worker says that much last. */

struct tail {
    char *ring;  /* TAIL_MAX, borrowed. */
    size_t len;  /* Bytes held, at most TAIL_MAX. */
    size_t next; /* Where the next byte goes. */
};

void tail_init(struct tail *t, char *ring);
void tail_clear(struct tail *t);
void tail_put(struct tail *t, const char *bytes, size_t n);

/* Copy the last at most `max_lines` lines, oldest first, without a final
 * newline, as valid UTF-8, to `out` of `cap` bytes (the newest are kept where
 * not all fits; of a last line that does not fit alone, its beginning).
 * Escape sequences, what a carriage return overwrote, and blank lines at the
 * end are left out, and so is what box.h knows. Returns the length. */
size_t tail_text(const struct tail *t, unsigned max_lines, char *out,
                 size_t cap);

#endif
