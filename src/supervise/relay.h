/* relay: a worker's bytes become whole lines with a prefix.
 *
 * Pure. The caller reads into relay_space(), says how much with relay_put(),
 * and takes finished lines with relay_take(). How the bytes were cut into
 * reads never changes the output. Nothing is allocated.
 *
 * A line that carriage returns rewrite (a progress bar) ends as its last
 * state. While it is not finished relay_take_state() gives its present one;
 * the caller decides how often. Bars below one another, between which the
 * cursor moves, are rows: each is treated so. */
#ifndef SUPERVISE_RELAY_H
#define SUPERVISE_RELAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RELAY_LINE_MAX 65536 /* Longer lines are split and marked. */
#define RELAY_ROWS 64      /* Bars below one another; of more the upper ones */
#define RELAY_ROW_MAX 1024 /* are lines. Of a longer bar the rest is hidden. */
/* A line of one byte more, and the rows. */
#define RELAY_BUF_BYTES (RELAY_LINE_MAX + 64 + RELAY_ROWS * RELAY_ROW_MAX)
#define RELAY_PREFIX_MAX 256
#define RELAY_HEAD_MAX 1024 /* Time, colour, prefix; or JSON's keys. */
/* Ends each part but the last: in text, in JSON (after the line). */
#define RELAY_MARK " [line goes on]"
#define RELAY_JSON_MARK ",\"goes_on\":true"
/* Room for at least one line; relay_take() with less may take nothing. In
 * JSON a byte may take six. */
#define RELAY_OUT_MIN (RELAY_LINE_MAX + RELAY_HEAD_MAX + 64)
#define RELAY_JSON_MIN (6 * RELAY_LINE_MAX + RELAY_HEAD_MAX + 64)

struct relay_row {
    uint16_t len;
    bool is_due; /* Not shown yet. */
    bool is_erased; /* By ESC [ K, and not written since. */
};

struct relay {
    char *buf;    /* RELAY_BUF_BYTES, borrowed. */
    size_t start; /* First byte not yet taken. */
    size_t len;   /* End of the bytes in buf. */
    size_t scanned; /* buf[start..scanned) is known: no line ends there. */
    size_t no_cr; /* No carriage return in buf[scanned..no_cr). */
    /* Of the line in buf[start..scanned), while it has carriage returns: */
    bool is_bar;  /* It had another state before. */
    bool is_over; /* The next byte begins a new state. */
    size_t text_end; /* is_over: where the state's text ends. */
    size_t shown;    /* Length of the text when it was shown; else none. */
    /* Bars below one another: buf[start..scanned) is of the cursor's row. */
    bool has_rows;
    bool is_below;   /* After a newline: it leads to the next row, or away. */
    bool is_leaving; /* The rows are lines from here on. */
    uint32_t cursor;
    struct relay_row rows[RELAY_ROWS];

    bool json; /* `head` begins an object whose last value is the line. */
    char head[RELAY_HEAD_MAX];
    size_t head_len;
    uint64_t n_lines, n_bytes; /* Lines out; bytes in. */
    uint64_t n_hidden; /* Bytes of states that others took the place of. */
};

/* `prefix` is copied (cut at RELAY_PREFIX_MAX - 1 bytes); "" for none. */
void relay_init(struct relay *r, char *buf, const char *prefix);

/* What goes before each line from here on; cut at RELAY_HEAD_MAX - 1 bytes. */
void relay_set_head(struct relay *r, const char *head, bool json);

/* Where to read to; *ret_room > 0 whenever relay_take() returned 0 last. */
char *relay_space(struct relay *r, size_t *ret_room);

/* `n` bytes were read there. */
void relay_put(struct relay *r, size_t n);

/* Move as many whole lines as fit to `out`; returns the bytes written. Call
 * until it returns 0. With `at_end` the last line is given a newline. */
size_t relay_take(struct relay *r, char *out, size_t cap, bool at_end);

/* Whether there is a state of an unfinished line that was not shown yet. Blank
 * ones do not count. Ask after relay_take() has returned 0. */
bool relay_has_state(const struct relay *r);

/* Write it as a line, or those of rows as lines, and note that they were shown:
 * where nothing is added, the end gives no second one. 0: none, or no room. */
size_t relay_take_state(struct relay *r, char *out, size_t cap);

/* Write the one line s[0..len) with its head, as relay_take() would, to `out`,
 * which has room for it: 6 * len + RELAY_HEAD_MAX + 64 bytes. */
size_t relay_format(const struct relay *r, const char *s, size_t len,
                    char *out);

/* Throw away what relay_take() would give; returns the number of lines, and
 * adds the bytes (without prefix) to *bytes. */
uint64_t relay_drop(struct relay *r, bool at_end, uint64_t *bytes);

#endif
