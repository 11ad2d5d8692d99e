/* names: see names.h. */
#include "preflight/names.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static const struct preflight_row rows[] = {
#define X(name, word, cheap, tool, ms, text) {word, cheap, tool, ms, text},
    PREFLIGHT_TABLE(X)
#undef X
};

const struct preflight_row *preflight_row(enum preflight_check check)
{
    return &rows[check];
}

static int find(const char *s, size_t len)
{
    for (int i = 0; i < PREFLIGHT_CHECKS; i++)
        if (strlen(rows[i].word) == len && memcmp(rows[i].word, s, len) == 0)
            return i;
    return -1;
}

/* "allreduce=12.5": GB/s, at most a million. */
static bool read_floor(const char *s, size_t len, unsigned *ret)
{
    char text[16];
    char *end;
    double v;

    if (len == 0 || len >= sizeof text || *s < '0' || *s > '9')
        return false;
    memcpy(text, s, len);
    text[len] = '\0';
    if (text[strspn(text, "0123456789.")] != '\0')
        return false;
    v = strtod(text, &end);
    if (*end || v > 1e6)
        return false;
    *ret = (unsigned)(v * 1000);
    return true;
}

static bool read_word(const char *s, size_t len, struct preflight_list *l)
{
    const char *eq = memchr(s, '=', len);
    size_t name = eq ? (size_t)(eq - s) : len;
    int i = find(s, name);

    if (i < 0 || (eq && (i != PREFLIGHT_ALLREDUCE ||
                         !read_floor(eq + 1, len - name - 1, &l->busbw))))
        return false;
    l->bits |= 1u << i;
    return true;
}

bool preflight_read_list(const char *list, struct preflight_list *ret,
                         const char **ret_bad, unsigned *ret_len)
{
    struct preflight_list l = {0};

    for (const char *s = list; strcmp(list, "off") != 0; s++) {
        size_t len = strcspn(s, ",");

        if (!read_word(s, len, &l)) {
            *ret_bad = s;
            *ret_len = (unsigned)len;
            return false;
        }
        s += len;
        if (*s == '\0')
            break;
    }
    *ret = l;
    return true;
}
