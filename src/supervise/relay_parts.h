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
};

/* Write the line with what goes around it; it must fit. Returns the bytes. */
size_t relay_write(const struct relay *r, const struct relay_line *line,
                   char *out);

/* The most that relay_write() may need. */
size_t relay_write_max(const struct relay *r, const struct relay_line *line);

#define RELAY_NOT_SHOWN SIZE_MAX

/* The bytes that follow `start` are a new line's. */
void relay_begin_line(struct relay *r);

/* Whether there is a carriage return in buf[scanned..end). One search serves
 * the lines of a window. */
bool relay_has_cr(struct relay *r, size_t end);

/* As relay_take(), of the lines before the first carriage return; nothing
 * where there is more to a line than that. */
size_t relay_take_plain(struct relay *r, char *out, size_t cap);

#endif
