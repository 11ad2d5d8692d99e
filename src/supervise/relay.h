/* relay: a worker's bytes become whole lines with a prefix.
 *
 * Pure. The caller reads into relay_space(), says how much with relay_put(),
 * and takes finished lines with relay_take(). How the bytes were cut into
 * reads never changes the output. Nothing is allocated. */
#ifndef SUPERVISE_RELAY_H
#define SUPERVISE_RELAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RELAY_LINE_MAX 65536 /* Longer lines are split and marked. */
#define RELAY_PREFIX_MAX 256
#define RELAY_MARK " [line goes on]" /* Ends each part but the last. */
/* Room for at least one line; relay_take() with less may take nothing. */
#define RELAY_OUT_MIN (RELAY_LINE_MAX + RELAY_PREFIX_MAX + 64)

struct relay {
    char *buf;    /* RELAY_LINE_MAX bytes, borrowed. */
    size_t start; /* First byte not yet taken. */
    size_t len;   /* End of the bytes in buf. */
    size_t scanned; /* No newline in buf[start..scanned). */
    char prefix[RELAY_PREFIX_MAX];
    size_t prefix_len;
    uint64_t n_lines, n_bytes; /* Lines out; bytes in. */
};

/* `prefix` is copied (cut at RELAY_PREFIX_MAX - 1 bytes); "" for none. */
void relay_init(struct relay *r, char *buf, const char *prefix);

/* Where to read to; *ret_room > 0 whenever relay_take() returned 0 last. */
char *relay_space(struct relay *r, size_t *ret_room);

/* `n` bytes were read there. */
void relay_put(struct relay *r, size_t n);

/* Move as many whole lines as fit to `out`; returns the bytes written. Call
 * until it returns 0. With `at_end` the last line is given a newline. */
size_t relay_take(struct relay *r, char *out, size_t cap, bool at_end);

#endif
