/* manifest_reader: a cursor over the text of a manifest, for manifest_json and
 * the others.
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

#define READER_ITEM_MAX (1u << 20) /* Bytes of one entry or line. */

struct reader {
    const char *file, *text; /* Borrowed. */
    size_t len, pos;
    const struct manifest_input *input; /* NULL: all of the text is here. */
    char *window;                       /* What `text` is then. */
    bool ended;                         /* Of the input: no more comes. */
    uint64_t n_before;                  /* Bytes that have left the window; */
    unsigned line_before, column_before; /* and where they ended. */
    size_t line_pos; /* Where line_n was counted to. */
    uint32_t line_n; /* Starts as 1. */
    struct manifest *m;
    struct err *e;
};

/* "file:line:column: reason", for the byte at `pos`. */
int reader_fail(struct reader *r, size_t pos, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Get more of the input, so that the window holds the next READER_ITEM_MAX
 * bytes or all that is left. Places before the cursor are no longer valid. */
int reader_refill(struct reader *r);

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

/* The readers of the forms: from the start of the text. */
int manifest_read_ours(struct reader *r);
int manifest_read_dvc(struct reader *r);
int manifest_read_lfs(struct reader *r);
int manifest_read_lines(struct reader *r);

#endif
