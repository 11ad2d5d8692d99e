/* show: how far long work on files is: one line that is redrawn on a terminal,
 * else a line each 5 s.
 *
 * Pure but for show_now(). */
#ifndef BASE_SHOW_H
#define BASE_SHOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHOW_LOG_MS 5000
#define SHOW_BAR_MS 200
#define SHOW_COLUMNS_MAX 200

struct show_state {
    size_t n_files, n_done;
    uint64_t bytes, total; /* That are there, of all. */
    const char *name;      /* What it is of; NULL: that is plain. */
    bool waiting;          /* Another process does it. */
};

struct show {
    bool is_on, is_terminal;
    unsigned columns;
    uint64_t next_ms, start_ms;
    uint64_t rate;    /* Bytes a second, smoothed. */
    uint64_t last_ms, last_arrived;
    bool drawn;       /* A bar stands on the terminal. */
    /* Where the bar goes; NULL: stderr. `ctx` is borrowed. */
    void (*put)(void *ctx, const char *text, size_t len);
    void *ctx;
};

void show_init(struct show *s, bool is_on, uint64_t now_ms);

/* When to call show_now() next; UINT64_MAX: never. */
uint64_t show_next(const struct show *s);

/* Show it where it is time. `arrived`: bytes that the rate is made of: those
 * that were worked on since the start of this process. */
void show_now(struct show *s, const struct show_state *st, uint64_t arrived,
              uint64_t now_ms);

/* Take the bar away. */
void show_clear(struct show *s);

/* "3 of 10 files, 1.2 of 4.0 GiB (31 %), 85.0 MiB/s, 32 s left"; with a bar in
 * front where `columns` has room for it. */
void show_text(const struct show_state *st, uint64_t rate, unsigned columns,
               char *out, size_t cap);

/* "4.0 GiB" */
#define SHOW_BYTES_MAX 24
const char *show_bytes(char buf[SHOW_BYTES_MAX], uint64_t n);

#endif
