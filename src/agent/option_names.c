/* option_names: how a name is found in the tables of option_table.h, and which
 * one was meant where it is not there. */
#include "agent/option_table.h"

#include <ctype.h>
#include <string.h>

const struct opt_command *opt_find_command(const char *word)
{
    unsigned n;
    const struct opt_command *commands = opt_commands(&n);

    for (unsigned i = 0; i < n; i++)
        if (strcmp(commands[i].word, word) == 0)
            return &commands[i];
    return NULL;
}

/* Dashes and underscores are the same; `upper`: of a variable's name. */
static bool same_name(const char *name, const char *s, size_t len, bool upper)
{
    if (strlen(name) != len)
        return false;
    for (size_t i = 0; i < len; i++) {
        char c = s[i] == '_' ? '-' : s[i];

        if (upper && islower((unsigned char)c))
            return false;
        if (upper)
            c = (char)tolower((unsigned char)c);
        if (c != name[i] || (upper && s[i] == '-'))
            return false;
    }
    return true;
}

static const struct opt_table *own(void)
{
    return opt_table_of(opt_find_command("run"));
}

const struct opt_row *opt_find(const char *name, size_t len)
{
    return opt_find_in(own(), name, len);
}

/* The one row whose name begins so, or NULL. */
static const struct opt_row *find_begun(const struct opt_table *t,
                                        const char *name, size_t len)
{
    const struct opt_row *found = NULL;

    for (unsigned i = 0; len > 0 && i < t->n; i++) {
        const char *full = t->rows[i].name;
        size_t n = 0;

        while (n < len && full[n] == (name[n] == '_' ? '-' : name[n]))
            n++;
        if (n < len)
            continue;
        if (found)
            return NULL;
        found = &t->rows[i];
    }
    return found;
}

const struct opt_row *opt_find_in(const struct opt_table *t, const char *name,
                                  size_t len)
{
    const struct opt_row *rows = t->rows;

    for (unsigned i = 0; i < t->n; i++)
        if (same_name(rows[i].name, name, len, false) ||
            (rows[i].alias && same_name(rows[i].alias, name, len, false)))
            return &rows[i];
    return t->is_abbreviated ? find_begun(t, name, len) : NULL;
}

const struct opt_row *opt_find_letter(const struct opt_table *t, char letter)
{
    for (unsigned i = 0; i < t->n; i++)
        if (letter && t->rows[i].letter == letter)
            return &t->rows[i];
    return NULL;
}

const struct opt_row *opt_find_variable(const struct opt_table *t,
                                        const char *name, size_t len,
                                        bool *ret_alias)
{
    const struct opt_row *rows = t->rows;

    for (unsigned i = 0; i < t->n; i++) {
        if (rows[i].no_variable)
            continue;
        *ret_alias = rows[i].alias && same_name(rows[i].alias, name, len, true);
        if (*ret_alias || same_name(rows[i].name, name, len, true))
            return &rows[i];
    }
    return NULL;
}

const char *opt_variable_of(const struct opt_table *t,
                            char buf[OPT_NAME_MAX + 8], const char *name)
{
    size_t n = strlen(t->prefix);
    char *at = buf + n;

    memcpy(buf, t->prefix, n);
    for (; *name && at < buf + OPT_NAME_MAX + 7; name++)
        *at++ = *name == '-' ? '_' : (char)toupper((unsigned char)*name);
    *at = '\0';
    return buf;
}

const char *opt_variable(char buf[OPT_NAME_MAX + 8], const char *name)
{
    return opt_variable_of(own(), buf, name);
}

/* Edits between two names (a swap of neighbours is one), at most `max`. */
static unsigned distance(const char *a, size_t n, const char *b, size_t m)
{
    unsigned d[OPT_NAME_MAX + 1][OPT_NAME_MAX + 1];

    if (n > OPT_NAME_MAX || m > OPT_NAME_MAX)
        return OPT_NAME_MAX;
    for (size_t i = 0; i <= n; i++)
        for (size_t j = 0; j <= m; j++) {
            unsigned best, sub;

            if (i == 0 || j == 0) {
                d[i][j] = (unsigned)(i + j);
                continue;
            }
            sub = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            best = d[i - 1][j] + 1 < d[i][j - 1] + 1 ? d[i - 1][j] + 1
                                                     : d[i][j - 1] + 1;
            if (sub < best)
                best = sub;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] &&
                a[i - 2] == b[j - 1] && d[i - 2][j - 2] + 1 < best)
                best = d[i - 2][j - 2] + 1;
            d[i][j] = best;
        }
    return d[n][m];
}

/* `src` as names are written in the table. False where it is too long. A
 * variable's name has no lower case: such a letter is like none of a name. */
static bool plain_name(char out[OPT_NAME_MAX + 1], const char *src, size_t len,
                       bool upper)
{
    if (len > OPT_NAME_MAX)
        return false;
    for (size_t i = 0; i < len; i++) {
        char c = src[i] == '_' ? '-' : src[i];

        if (upper)
            c = islower((unsigned char)c) ? '?'
                                          : (char)tolower((unsigned char)c);
        out[i] = c;
    }
    out[len] = '\0';
    return true;
}

/* How far `plain` is from `name`: an abbreviation and a part are near. */
static unsigned far_from(const char *plain, size_t len, const char *name)
{
    size_t n = strlen(name);

    if (len >= 3 && len < n && strncmp(plain, name, len) == 0)
        return 1;
    if (len >= 4 && len < n && strstr(name, plain))
        return 2;
    return distance(plain, len, name, n);
}

/* The name at the smallest distance, at most `limit`; the first of several. */
static const char *nearest(const struct opt_table *t, const char *name,
                           size_t len, unsigned of, unsigned limit,
                           bool variables)
{
    char plain[OPT_NAME_MAX + 1];
    const char *best = NULL;
    unsigned n_rows = t->n;
    const struct opt_row *rows = t->rows;

    if (!plain_name(plain, name, len, variables))
        return NULL;
    for (unsigned i = 0; i < 2 * n_rows; i++) {
        const struct opt_row *r = &rows[i / 2];
        const char *n = i % 2 ? r->alias : r->name;
        unsigned d;

        if (!n || !(r->commands & of) ||
            (variables && (r->no_variable || strlen(n) < 5)))
            continue;
        d = variables ? distance(plain, len, n, strlen(n))
                      : far_from(plain, len, n);
        if (d <= limit) {
            best = n;
            if (d == 0)
                break;
            limit = d - 1;
        }
    }
    return best;
}

const char *opt_nearest(const struct opt_table *t, const char *name, size_t len,
                        unsigned of)
{
    return nearest(t, name, len, of, len < 5 ? 1 : len < 9 ? 2 : 3, false);
}

const char *opt_near_command(const char *word)
{
    static const char *const as_options[] = {"--help", "--version"};
    size_t len = strlen(word);
    unsigned n;
    const struct opt_command *c = opt_commands(&n);

    for (unsigned i = 0; i < 2; i++)
        if (strcmp(word, as_options[i] + 2) == 0)
            return as_options[i];
    for (unsigned i = 0; len > 3 && i < n; i++)
        if (c[i].kind != OPT_LATER &&
            distance(word, len, c[i].word, strlen(c[i].word)) <= 1)
            return c[i].word;
    return NULL;
}

const char *opt_one_edit(const char *name, size_t len, unsigned of)
{
    const char *near = nearest(own(), name, len, of, 1, true);
    char plain[OPT_NAME_MAX + 1];

    /* AGENT_TOKEN is no option's, but must not be missed either. */
    if (!near && of == OPT_RUN && plain_name(plain, name, len, true) &&
        distance(plain, len, "token", 5) <= 1)
        near = "token";
    return near;
}
