/* manifest_reader: a cursor over JSON text, for manifest_json.
 *
 * Pure. Walks objects and arrays itself and hands single values to jansson,
 * which knows strings, escapes, numbers and UTF-8. So a set of a million files
 * needs no tree in memory, and every fault has the line and column it is at.
 * Negative returns have set `e`: ERR_DATA, or ERR_RESOURCE without memory. */
#ifndef DATASET_MANIFEST_READER_H
#define DATASET_MANIFEST_READER_H

#include "base/err.h"
#include "dataset/manifest.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct reader {
    const char *file, *text; /* Borrowed. */
    size_t len, pos;
    size_t line_pos; /* Where line_n was counted to. */
    uint32_t line_n; /* Starts as 1. */
    struct manifest *m;
    struct err *e;
};

/* "file:line:column: reason", for the byte at `pos`. */
int reader_fail(struct reader *r, size_t pos, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The next character that is no space, or NUL at the end. */
char reader_peek(struct reader *r);

/* Take `c`; `where` says for what, for the fault. */
int reader_expect(struct reader *r, char c, const char *where);

/* The line of the cursor. Never asked for a place before the last one. */
uint32_t reader_line(struct reader *r);

/* One whole value, no array or object, owned by the caller; `*ret_at` is where
 * it begins. NULL on a fault. */
json_t *reader_value(struct reader *r, size_t *ret_at);

/* The same for a string, with no NUL in it, to be freed by the caller. */
char *reader_string(struct reader *r, const char *key, size_t *ret_at);

int reader_size(struct reader *r, const char *key, uint64_t *ret);
int reader_bool(struct reader *r, const char *key, bool *ret);

/* Go to the next item of an object or array that ends with `end`; `*first`
 * starts as true. Returns 1, 0 after the end, or negative. */
int reader_item(struct reader *r, bool *first, char end, const char *where);

/* The next key of an object, as its index in `keys`; an unknown one and one
 * that is in `*seen` already are faults. Returns as reader_item(). */
int reader_key(struct reader *r, bool *first, const char *const *keys,
               unsigned n_keys, uint32_t *seen, unsigned *ret);

#endif
