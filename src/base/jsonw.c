/* jsonw: see jsonw.h. */
#include "base/jsonw.h"

#include <inttypes.h>
#include <string.h>

#define PIECE 256 /* Bytes that are made valid at a time. */

static void indent(struct jsonw *j)
{
    text_add(j->t, "\n%*s", (int)(2 * j->depth), "");
}

static void name_it(struct jsonw *j, const char *name)
{
    if (j->has[j->depth])
        text_add(j->t, ",");
    j->has[j->depth] = true;
    indent(j);
    if (name)
        text_add(j->t, "\"%s\": ", name);
}

void jsonw_begin(struct jsonw *j, struct text *t)
{
    memset(j, 0, sizeof *j);
    j->t = t;
    text_add(t, "{");
    j->depth = 1;
}

void jsonw_open(struct jsonw *j, const char *name, char bracket)
{
    name_it(j, name);
    text_add(j->t, "%c", bracket);
    if (j->depth + 1 < JSONW_DEPTH)
        j->depth++;
    j->has[j->depth] = false;
}

void jsonw_close(struct jsonw *j, char bracket)
{
    bool has = j->has[j->depth];

    j->depth--;
    if (has)
        indent(j);
    text_add(j->t, "%c", bracket);
}

/* Valid UTF-8 but for what JSON escapes. */
static void add_escaped(struct text *t, const char *s)
{
    for (; *s; s++)
        if (*s == '"' || *s == '\\')
            text_add(t, "\\%c", *s);
        else if (*s == '\n')
            text_add(t, "\\n");
        else if (*s == '\t')
            text_add(t, "\\t");
        else
            text_add(t, "%c", *s);
}

void jsonw_string_n(struct jsonw *j, const char *name, const char *s, size_t n)
{
    char piece[PIECE + 1];

    name_it(j, name);
    text_add(j->t, "\"");
    while (n > 0) {
        size_t k = n > PIECE ? text_whole(s, PIECE) : n;

        if (k == 0)
            k = PIECE; /* Not UTF-8 anyway. */
        for (size_t i = 0; i < k; i++)
            piece[i] = s[i] ? s[i] : '?';
        piece[k] = '\0';
        (void)text_make_utf8(piece, PIECE);
        add_escaped(j->t, piece);
        s += k;
        n -= k;
    }
    text_add(j->t, "\"");
}

void jsonw_string(struct jsonw *j, const char *name, const char *s)
{
    jsonw_string_n(j, name, s, strlen(s));
}

void jsonw_int(struct jsonw *j, const char *name, int64_t v)
{
    name_it(j, name);
    text_add(j->t, "%" PRId64, v);
}

void jsonw_bool(struct jsonw *j, const char *name, bool v)
{
    name_it(j, name);
    text_add(j->t, v ? "true" : "false");
}

void jsonw_null(struct jsonw *j, const char *name)
{
    name_it(j, name);
    text_add(j->t, "null");
}

void jsonw_seconds(struct jsonw *j, const char *name, uint64_t ms)
{
    name_it(j, name);
    text_add(j->t, "%" PRIu64 ".%03u", ms / 1000, (unsigned)(ms % 1000));
}
