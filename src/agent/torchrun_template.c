/* torchrun_template: text as Python takes it: its blanks, and the templates of
 * its string module, as torchrun has them in the script's arguments and in the
 * prefix; see torchrun.h. */
#include "agent/torchrun.h"

#include "base/text.h"

#include <string.h>

/* Bytes of the name at `s`, 0 where there is none. */
static size_t name_len(const char *s)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";

    return *s >= '0' && *s <= '9' ? 0 : strspn(s, letters);
}

static const char *find(const struct torchrun_name *names, unsigned n,
                        const char *name, size_t len)
{
    for (unsigned i = 0; i < n; i++)
        if (strlen(names[i].name) == len &&
            memcmp(names[i].name, name, len) == 0)
            return names[i].value;
    return NULL;
}

bool torchrun_is_option(const char *word)
{
    static const char digits[] = "0123456789";
    size_t whole = strspn(word + 1, digits);
    const char *rest = word + 1 + whole;

    if (word[0] != '-' || word[1] == '\0' || strchr(word, ' '))
        return false;
    if (*rest == '.')
        return rest[1] == '\0' || rest[1 + strspn(rest + 1, digits)] != '\0';
    return whole == 0 || *rest != '\0';
}

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

void torchrun_strip(const char **s, size_t *len)
{
    while (*len > 0 && is_blank(**s)) {
        ++*s;
        --*len;
    }
    while (*len > 0 && is_blank((*s)[*len - 1]))
        --*len;
}

bool torchrun_substitute(const struct torchrun_name *names, unsigned n,
                         const char *src, char *out, size_t cap)
{
    struct text t;

    text_init(&t, out, cap);
    while (*src && !t.cut) {
        bool braced = src[0] == '$' && src[1] == '{';
        const char *name = src + 1 + braced, *value = NULL;
        size_t len = src[0] == '$' ? name_len(name) : 0;

        if (len > 0 && (!braced || name[len] == '}'))
            value = find(names, n, name, len);
        if (value) {
            text_add(&t, "%s", value);
            src = name + len + braced;
        } else {
            text_add(&t, "%c", src[0]);
            src += src[0] == '$' && src[1] == '$' ? 2 : 1;
        }
    }
    return !t.cut;
}
