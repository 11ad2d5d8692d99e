/* net_rules: see net_rules.h. */
#include "preflight/net_rules.h"

#include "base/text.h"

#include <stdlib.h>
#include <string.h>

#define NO_PORTS (-1)

/* `name` is one of the words, whole or by its beginning. A port may follow a
 * colon in a word: it must be `port`, unless that is 0; with NO_PORTS a colon
 * is a letter. */
static bool in_words(const char *words, const char *name, bool whole, int port)
{
    for (const char *s = words;; s++) {
        size_t len = strcspn(s, ","), part = len;
        const char *colon = memchr(s, ':', len);

        if (port != NO_PORTS && colon)
            part = (size_t)(colon - s);
        if (part > 0 && strncmp(s, name, part) == 0 &&
            (!whole || name[part] == '\0') &&
            (port <= 0 || !colon || strtol(colon + 1, NULL, 10) == port))
            return true;
        s += len;
        if (*s == '\0')
            return false;
    }
}

static bool matches(const char *spec, const char *name, int port)
{
    bool but = *spec == '^', whole;

    spec += but;
    whole = *spec == '=';
    spec += whole;
    return in_words(spec, name, whole, port) != but;
}

bool net_matches(const char *spec, const char *name)
{
    return matches(spec, name, NO_PORTS);
}

bool net_hca_matches(const char *spec, const char *device, unsigned port)
{
    return matches(spec, device, (int)port);
}

static const struct net_if *first(const struct net_list *l, const char *spec)
{
    for (unsigned i = 0; i < l->n; i++)
        if (l->at[i].is_up && net_matches(spec, l->at[i].name))
            return &l->at[i];
    return NULL;
}

const struct net_if *net_choice(const struct net_list *l, const char *spec)
{
    static const char *const order[] = {"ib", "^docker,lo,virbr", "docker",
                                        "lo", "virbr"};
    const struct net_if *found = NULL;

    if (spec)
        return first(l, spec);
    for (unsigned i = 0; !found && i < sizeof order / sizeof order[0]; i++)
        found = first(l, order[i]);
    return found;
}

const struct net_if *net_find(const struct net_list *l, const char *name,
                              size_t len)
{
    for (unsigned i = 0; i < l->n; i++)
        if (strlen(l->at[i].name) == len &&
            memcmp(l->at[i].name, name, len) == 0)
            return &l->at[i];
    return NULL;
}

const char *net_unknown(const struct net_list *l, const char *list,
                        size_t *ret_len)
{
    for (const char *s = list;; s++) {
        size_t len = strcspn(s, ",");

        if (len > 0 && !net_find(l, s, len)) {
            *ret_len = len;
            return s;
        }
        s += len;
        if (*s == '\0')
            break;
    }
    *ret_len = 0;
    return NULL;
}

void net_names(const struct net_list *l, char *out, size_t cap)
{
    struct text t;

    text_init(&t, out, cap);
    for (unsigned i = 0; i < l->n; i++)
        text_add(&t, "%s%s", i ? ", " : "", l->at[i].name);
}
