/* relay_parts: what the files of the relay share. Pure. */
#ifndef SUPERVISE_RELAY_PARTS_H
#define SUPERVISE_RELAY_PARTS_H

#include "supervise/relay.h"

/* A line that may be whole, and its newline. */
#define RELAY_FULL (RELAY_LINE_MAX + 1)

struct relay_line {
    const char *at;
    size_t len;     /* Without newline. */
    size_t taken;   /* Bytes of the buffer that it stands for. */
    bool is_part;   /* The line goes on. */
    struct relay_row *row; /* That it is, of the rows; else NULL. */
};

/* Write the line with what goes around it; it must fit. Returns the bytes. */
size_t relay_write(const struct relay *r, const struct relay_line *line,
                   char *out);

/* The most that relay_write() may need. */
size_t relay_write_max(const struct relay *r, const struct relay_line *line);

#define RELAY_NOT_SHOWN SIZE_MAX
#define RELAY_UP_MAX 7 /* Bytes of ESC [ digits A. */

/* Blanks, and what clears a line: ESC [ K and the like. */
bool relay_is_blank(const char *s, size_t n);

/* Length of the "erase the line" that a state begins with: ESC [ 2 K and the
 * like. It is not shown: behind a prefix it would erase that. */
size_t relay_erase(const char *s, size_t n);

/* Length of the "cursor up" at s[0..n), which begins with ESC, and *ret_rows;
 * 0: it is something else; -1: more bytes will tell. */
int relay_up(const char *s, size_t n, unsigned *ret_rows);
/* The present line, of which buf[start..end) is a bar's state, is followed by
 * "cursor up" of `len` bytes over `rows` rows. */
void relay_rows_begin(struct relay *r, size_t end, size_t len, unsigned rows);
/* With has_rows: the next of them that is a line. False: none is, and either
 * more bytes must come, or has_rows is over. */
bool relay_rows_next(struct relay *r, bool at_end, struct relay_line *ret);
/* It was written, or thrown away. */
void relay_row_taken(struct relay *r, const struct relay_line *line);
/* As relay_has_state() and relay_take_state(). */
bool relay_rows_have_state(const struct relay *r);
size_t relay_rows_take_state(struct relay *r, char *out, size_t cap);

/* The bytes that follow `start` are a new line's. */
void relay_begin_line(struct relay *r);

/* Whether there is a carriage return in buf[scanned..end). One search serves
 * the lines of a window. */
bool relay_has_cr(struct relay *r, size_t end);

/* As relay_take(), of the lines before the first carriage return; nothing
 * where there is more to a line than that. */
size_t relay_take_plain(struct relay *r, char *out, size_t cap);

#endif
