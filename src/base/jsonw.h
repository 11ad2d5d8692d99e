/* jsonw: write JSON into a bounded text: objects and lists, members in order.
 *
 * Pure. Strings become valid UTF-8 without control characters. What does not
 * fit is cut, and `cut` of the text tells. */
#ifndef BASE_JSONW_H
#define BASE_JSONW_H

#include "base/text.h"

#define JSONW_DEPTH 8

struct jsonw {
    struct text *t;
    unsigned depth;
    bool has[JSONW_DEPTH]; /* Members at this depth so far. */
};

void jsonw_begin(struct jsonw *j, struct text *t); /* The outer object. */
/* `name` NULL: an element of a list. */
void jsonw_open(struct jsonw *j, const char *name, char bracket); /* { or [ */
void jsonw_close(struct jsonw *j, char bracket);                  /* } or ] */
void jsonw_string(struct jsonw *j, const char *name, const char *s);
void jsonw_string_n(struct jsonw *j, const char *name, const char *s, size_t n);
void jsonw_int(struct jsonw *j, const char *name, int64_t v);
void jsonw_bool(struct jsonw *j, const char *name, bool v);
void jsonw_null(struct jsonw *j, const char *name);
/* Milliseconds as seconds with three decimals. */
void jsonw_seconds(struct jsonw *j, const char *name, uint64_t ms);

#endif
