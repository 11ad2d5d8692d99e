/* relay: see relay.h.
 *
 * A line may have up to RELAY_LINE_MAX bytes before its newline. Of a longer
 * one the first RELAY_LINE_MAX bytes become a part as soon as one more is
 * there, so where it is split follows from its bytes alone; a part ends up to
 * three bytes earlier rather than inside a UTF-8 sequence.
 *
 * A carriage return ends a state only when another byte than a newline follows
 * it: "\r\n" is the end of a line and passes as it is. Bars that stand below
 * others are written as newline, state, cursor up: relay_rows.c. */
#include "supervise/relay_parts.h"

#include "base/text.h"

#include <stddef.h>
#include <string.h>

void relay_init(struct relay *r, char *buf, const char *prefix)
{
    memset(r, 0, sizeof *r);
    r->buf = buf;
    (void)text_copy(r->head, RELAY_PREFIX_MAX, prefix);
    r->head_len = strlen(r->head);
    relay_begin_line(r);
}

void relay_set_head(struct relay *r, const char *head, bool json)
{
    (void)text_copy(r->head, sizeof r->head, head);
    r->head_len = strlen(r->head);
    r->json = json;
}

char *relay_space(struct relay *r, size_t *ret_room)
{
    size_t held = r->len - r->start;

    /* Move only where the bytes moved are fewer than the bytes taken since
     * the last move, or where there is no room at all: either way a byte is
     * moved about once. */
    if (r->start > 0 && (r->len == RELAY_FULL ||
                         (r->len > RELAY_FULL / 2 && held <= r->start))) {
        memmove(r->buf, r->buf + r->start, held);
        r->scanned -= r->start;
        r->text_end -= r->is_over ? r->start : 0;
        r->no_cr -= r->no_cr < r->start ? r->no_cr : r->start;
        r->start = 0;
        r->len = held;
    }
    *ret_room = RELAY_FULL - r->len;
    return r->buf + r->len;
}

void relay_put(struct relay *r, size_t n)
{
    if (n > RELAY_FULL - r->len)
        n = RELAY_FULL - r->len;
    r->len += n;
    r->n_bytes += n;
}

/* Where a bar's state goes over to another row: what of it is in buf[from..end)
 * may have begun before. */
static bool begins_rows(struct relay *r, size_t from, size_t end)
{
    size_t at = from > r->start + RELAY_UP_MAX ? from - RELAY_UP_MAX : r->start;
    const char *esc;

    while (r->is_bar && (esc = memchr(r->buf + at, '\033', end - at))) {
        unsigned rows;
        int len;

        at = (size_t)(esc - r->buf);
        len = relay_up(esc, end - at, &rows);
        if (len > 0) {
            relay_rows_begin(r, at, (size_t)len, rows);
            return true;
        }
        at++;
    }
    return false;
}

/* Look through buf[scanned..end), in which no line ends; what an earlier state
 * had goes. True where rows begin. */
static bool skip_states(struct relay *r, size_t end)
{
    size_t at = r->scanned;

    while (at < end) {
        const char *cr;
        size_t from = at;

        if (r->buf[at] == '\r') {
            if (!r->is_over)
                r->text_end = at;
            r->is_over = true;
            at++;
        } else if (r->is_over) {
            r->n_hidden += at - r->start;
            r->start = at;
            r->shown = RELAY_NOT_SHOWN;
            r->is_over = false;
            r->is_bar = true;
        } else {
            cr = memchr(r->buf + at, '\r', end - at);
            at = cr ? (size_t)(cr - r->buf) : end;
            if (begins_rows(r, from, at))
                return true;
        }
    }
    r->scanned = end;
    return false;
}

/* Length of the present state's text. */
static size_t state_len(const struct relay *r)
{
    return (r->is_over ? r->text_end : r->scanned) - r->start;
}

/* Of a bar's state. */
static void skip_erase(const struct relay *r, struct relay_line *line)
{
    size_t erase = r->is_bar ? relay_erase(line->at, line->len) : 0;

    line->at += erase;
    line->len -= erase;
}

bool relay_has_state(const struct relay *r)
{
    size_t text;

    if (r->has_rows)
        return relay_rows_have_state(r);
    if (!r->is_bar && !r->is_over)
        return false;
    text = state_len(r);
    if (text == r->shown)
        return false;
    if (!r->is_over)
        text = text_whole(r->buf + r->start, text);
    return !relay_is_blank(r->buf + r->start, text);
}

/* The line that ends with the newline at `end`. False where it was shown
 * already, as a state to which nothing was added. */
static bool finish(struct relay *r, size_t end, struct relay_line *ret)
{
    size_t text = state_len(r);

    ret->at = r->buf + r->start;
    ret->taken = end + 1 - r->start;
    ret->len = end - r->start;
    ret->is_part = false;
    skip_erase(r, ret);
    if (r->shown != text)
        return true;
    r->n_hidden += ret->taken;
    r->start = end + 1;
    relay_begin_line(r);
    return false;
}

/* What is left at the end of the stream. */
static bool finish_stream(struct relay *r, struct relay_line *ret)
{
    size_t text = state_len(r);

    if (r->start == r->len)
        return false;
    ret->at = r->buf + r->start;
    ret->taken = r->len - r->start;
    ret->len = r->is_over || r->is_bar ? text : ret->taken;
    ret->is_part = false;
    skip_erase(r, ret);
    if (r->shown != text && (ret->len > 0 || !r->is_bar))
        return true;
    r->n_hidden += ret->taken;
    r->start = r->len;
    relay_begin_line(r);
    return false;
}

/* The buffer is full and no line ends in it. */
static bool split(struct relay *r, struct relay_line *ret)
{
    ret->at = r->buf + r->start;
    ret->is_part = true;
    ret->len = ret->taken = text_whole(ret->at, RELAY_LINE_MAX);
    return true;
}

/* Find the next line; false where none is complete. */
static bool next_line(struct relay *r, bool at_end, struct relay_line *ret)
{
    ret->row = NULL;
    for (;;) {
        const char *newline;
        size_t end;

        if (r->has_rows && relay_rows_next(r, at_end, ret))
            return true;
        if (r->has_rows)
            return false;
        newline = memchr(r->buf + r->scanned, '\n', r->len - r->scanned);
        end = newline ? (size_t)(newline - r->buf) : r->len;
        if ((r->is_bar || r->is_over || relay_has_cr(r, end)) &&
            skip_states(r, end))
            continue;
        r->scanned = end;
        if (!newline)
            break;
        if (finish(r, end, ret))
            return true;
    }
    if (r->len - r->start == RELAY_FULL)
        return split(r, ret);
    return at_end && finish_stream(r, ret);
}

static void take(struct relay *r, const struct relay_line *line)
{
    size_t extra = line->taken - line->len;

    if (line->row) {
        relay_row_taken(r, line);
        return;
    }
    if (extra > 0 && r->buf[r->start + line->taken - 1] == '\n')
        extra--; /* It is written again. */
    r->n_hidden += extra;
    r->start += line->taken;
    relay_begin_line(r);
}

static void forget_taken(struct relay *r)
{
    if (r->start == r->len)
        r->start = r->len = r->scanned = r->no_cr = 0;
}

size_t relay_take(struct relay *r, char *out, size_t cap, bool at_end)
{
    struct relay_line line;
    size_t n = relay_take_plain(r, out, cap);

    while (next_line(r, at_end, &line)) {
        if (relay_write_max(r, &line) > cap - n)
            return n;
        n += relay_write(r, &line, out + n);
        r->n_lines++;
        take(r, &line);
    }
    forget_taken(r);
    return n;
}

size_t relay_take_state(struct relay *r, char *out, size_t cap)
{
    struct relay_line line = {.at = r->buf + r->start, .len = state_len(r)};

    if (!relay_has_state(r))
        return 0;
    if (r->has_rows)
        return relay_rows_take_state(r, out, cap);
    r->shown = line.len;
    if (!r->is_over)
        line.len = text_whole(line.at, line.len);
    skip_erase(r, &line);
    if (relay_write_max(r, &line) > cap) {
        r->shown = RELAY_NOT_SHOWN;
        return 0;
    }
    r->n_lines++;
    return relay_write(r, &line, out);
}

uint64_t relay_drop(struct relay *r, bool at_end, uint64_t *bytes)
{
    struct relay_line line;
    uint64_t n = 0;

    while (next_line(r, at_end, &line)) {
        n++;
        *bytes += line.row ? line.len : line.taken;
        if (line.row) {
            relay_row_taken(r, &line);
            continue;
        }
        r->start += line.taken;
        relay_begin_line(r);
    }
    forget_taken(r);
    return n;
}
