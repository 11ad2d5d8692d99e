/* relay: see relay.h.
 *
 * A line may have up to RELAY_LINE_MAX bytes with its newline. Of a longer one
 * the first RELAY_LINE_MAX - 1 bytes become a part as soon as RELAY_LINE_MAX
 * bytes are there, so where it is split follows from its bytes alone; a part
 * ends up to three bytes earlier rather than inside a UTF-8 sequence. */
#include "supervise/relay.h"

#include "base/text.h"

#include <string.h>

void relay_init(struct relay *r, char *buf, const char *prefix)
{
    memset(r, 0, sizeof *r);
    r->buf = buf;
    (void)text_copy(r->prefix, sizeof r->prefix, prefix);
    r->prefix_len = strlen(r->prefix);
}

char *relay_space(struct relay *r, size_t *ret_room)
{
    size_t held = r->len - r->start;

    /* Move only where the bytes moved are fewer than the bytes taken since
     * the last move, or where there is no room at all: either way a byte is
     * moved about once. */
    if (r->start > 0 && (r->len == RELAY_LINE_MAX ||
                         (r->len > RELAY_LINE_MAX / 2 && held <= r->start))) {
        memmove(r->buf, r->buf + r->start, held);
        r->scanned -= r->start;
        r->start = 0;
        r->len = held;
    }
    *ret_room = RELAY_LINE_MAX - r->len;
    return r->buf + r->len;
}

void relay_put(struct relay *r, size_t n)
{
    if (n > RELAY_LINE_MAX - r->len)
        n = RELAY_LINE_MAX - r->len;
    r->len += n;
    r->n_bytes += n;
}

/* Find the next line's bytes (without newline), how many bytes it takes from
 * the buffer, and what ends it in the output. False where none is complete. */
static bool next_line(struct relay *r, bool at_end, size_t *ret_bytes,
                      size_t *ret_taken, const char **ret_end)
{
    const char *line = r->buf + r->start;
    size_t held = r->len - r->start;
    const char *newline =
        memchr(r->buf + r->scanned, '\n', r->len - r->scanned);

    *ret_end = "\n";
    if (newline) {
        r->scanned = (size_t)(newline - r->buf);
        *ret_bytes = (size_t)(newline - line);
        *ret_taken = *ret_bytes + 1;
        return true;
    }
    r->scanned = r->len;
    if (held == RELAY_LINE_MAX) {
        *ret_bytes = text_whole(line, RELAY_LINE_MAX - 1);
        *ret_taken = *ret_bytes;
        *ret_end = RELAY_MARK "\n";
        return true;
    }
    *ret_bytes = *ret_taken = held;
    return at_end && held > 0;
}

size_t relay_take(struct relay *r, char *out, size_t cap, bool at_end)
{
    size_t n = 0, bytes, taken;
    const char *end;

    while (next_line(r, at_end, &bytes, &taken, &end)) {
        size_t end_len = strlen(end);

        if (r->prefix_len + bytes + end_len > cap - n)
            return n;
        memcpy(out + n, r->prefix, r->prefix_len);
        n += r->prefix_len;
        memcpy(out + n, r->buf + r->start, bytes);
        n += bytes;
        memcpy(out + n, end, end_len);
        n += end_len;
        r->n_lines++;
        r->start += taken;
        r->scanned = r->start;
    }
    if (r->start == r->len)
        r->start = r->len = r->scanned = 0;
    return n;
}
