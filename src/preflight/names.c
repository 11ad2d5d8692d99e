/* names: see names.h. */
#include "preflight/names.h"

#include <stddef.h>
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

bool preflight_read_list(const char *list, unsigned *ret, const char **ret_bad,
                         unsigned *ret_len)
{
    unsigned bits = 0;

    if (strcmp(list, "off") == 0) {
        *ret = 0;
        return true;
    }
    for (const char *s = list;; s++) {
        size_t len = strcspn(s, ",");
        int i = find(s, len);

        if (i < 0) {
            *ret_bad = s;
            *ret_len = (unsigned)len;
            return false;
        }
        bits |= 1u << i;
        s += len;
        if (*s == '\0')
            break;
    }
    *ret = bits;
    return true;
}
