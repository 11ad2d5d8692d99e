/* option_types: see option_types.h. */
#include "agent/option_types.h"

#include "agent/option_table.h"

#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* The field of struct options that a row writes to. */
#define FIELD(o, row, type) ((type *)(void *)((char *)(o) + (row)->at))
#define CONST_FIELD(o, row, type)                                              \
    ((const type *)(const void *)((const char *)(o) + (row)->at))

const char *opt_shown(char buf[OPT_SHOWN_MAX], const char *src, size_t len)
{
    size_t n = len < OPT_SHOWN_MAX - 4 ? len : OPT_SHOWN_MAX - 4;

    memcpy(buf, src, n);
    buf[n] = '\0';
    n = text_make_line(buf, n);
    if (n < len)
        (void)text_copy(buf + n, OPT_SHOWN_MAX - n, len > n ? "..." : "");
    return buf;
}

int opt_fault(const struct opt_value *v, struct err *e, const char *fmt, ...)
{
    char name[OPT_SHOWN_MAX], value[OPT_SHOWN_MAX], why[ERR_TEXT_MAX];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(why, sizeof why, fmt, ap);
    va_end(ap);
    (void)opt_shown(name, v->spelled, v->spelled_len);
    if (!v->text)
        return err_set(e, ERR_USAGE, "%s: %.300s", name, why);
    return err_set(e, ERR_USAGE, "%s=%s: %.300s", name,
                   opt_shown(value, v->text, strlen(v->text)), why);
}

bool opt_read_uint(const char *s, size_t len, uint64_t min, uint64_t max,
                   uint64_t *ret)
{
    uint64_t v = 0;

    if (len == 0 || len > 18)
        return false;
    for (size_t i = 0; i < len; i++) {
        if (s[i] < '0' || s[i] > '9')
            return false;
        v = v * 10 + (uint64_t)(s[i] - '0');
    }
    *ret = v;
    return v >= min && v <= max;
}

/* 1 for yes, 0 for no, -1 for neither; in any case, as YAML has them. */
static int yes_or_no(const char *s)
{
    static const char *const words[] = {"0", "1", "false", "true", "no", "yes",
                                        "off", "on"};

    for (int i = 0; i < 8; i++)
        if (strcasecmp(s, words[i]) == 0)
            return i % 2;
    return -1;
}

static int flag_read(const struct opt_value *v, struct options *o,
                     struct err *e)
{
    int yes;

    if (!v->text) {
        *FIELD(o, v->row, bool) = true;
        return 0;
    }
    if (!v->is_variable)
        return opt_fault(v, e, "it takes no value");
    yes = yes_or_no(v->text);
    if (yes < 0)
        return opt_fault(v, e, "use 1 or 0");
    *FIELD(o, v->row, bool) = yes;
    return 0;
}

static void flag_print(const struct opt_row *row, const struct options *o,
                       struct text *t)
{
    text_add(t, "%s", *CONST_FIELD(o, row, bool) ? "1" : "0");
}

static int count_read(const struct opt_value *v, struct options *o,
                      struct err *e)
{
    uint64_t n = 0;
    int yes;

    if (!v->text) {
        ++*FIELD(o, v->row, unsigned);
        return 0;
    }
    if (!v->is_variable)
        return opt_fault(v, e, "it takes no value; repeat it");
    yes = yes_or_no(v->text);
    if (yes >= 0)
        n = (uint64_t)yes;
    else if (!opt_read_uint(v->text, strlen(v->text), 0, 9, &n))
        return opt_fault(v, e, "use a number from 0 to 9");
    *FIELD(o, v->row, unsigned) = (unsigned)n;
    return 0;
}

static void uint_print(const struct opt_row *row, const struct options *o,
                       struct text *t)
{
    text_add(t, "%u", *CONST_FIELD(o, row, unsigned));
}

static int number_read(const struct opt_value *v, struct options *o,
                       struct err *e)
{
    uint64_t n = 0;

    if (!opt_read_uint(v->text, strlen(v->text), v->row->min, v->row->max, &n))
        return opt_fault(v, e, "use a whole number from %" PRIu64 " to %"
                         PRIu64, v->row->min, v->row->max);
    *FIELD(o, v->row, unsigned) = (unsigned)n;
    return 0;
}

static void note_given(const struct opt_value *v, struct options *o)
{
    if (v->row->given_at)
        *(bool *)((char *)o + v->row->given_at) = true;
}

static int port_read(const struct opt_value *v, struct options *o,
                     struct err *e)
{
    uint64_t n = 0;

    if (strncmp(v->text, "tcp://", 6) == 0)
        return opt_fault(v, e, "this is a Kubernetes service link, no port: "
                         "a Service of that name is in the namespace; rename "
                         "it, or set enableServiceLinks: false");
    if (!opt_read_uint(v->text, strlen(v->text), 1, 65535, &n))
        return opt_fault(v, e, "a port is a number from 1 to 65535");
    *FIELD(o, v->row, unsigned) = (unsigned)n;
    note_given(v, o);
    return 0;
}

static bool has_control(const char *s)
{
    for (; *s; s++)
        if ((unsigned char)*s < 0x20 || *s == 0x7f)
            return true;
    return false;
}

/* For a shell: newlines are fine. */
static int script_read(const struct opt_value *v, struct options *o,
                       struct err *e)
{
    if (v->text[0] == '\0')
        return opt_fault(v, e, "it must not be empty");
    *FIELD(o, v->row, const char *) = v->text;
    return 0;
}

static int word_read(const struct opt_value *v, struct options *o,
                     struct err *e)
{
    if (has_control(v->text))
        return opt_fault(v, e, "control characters are not allowed in it");
    if (strlen(v->text) > v->row->max)
        return opt_fault(v, e, "at most %" PRIu64 " bytes", v->row->max);
    if (strlen(v->text) < v->row->min)
        return opt_fault(v, e, "it must not be empty");
    *FIELD(o, v->row, const char *) = v->text;
    note_given(v, o);
    return 0;
}

static void string_print(const struct opt_row *row, const struct options *o,
                         struct text *t)
{
    const char *s = *CONST_FIELD(o, row, char *);

    if (s)
        text_add(t, "%s", s);
}

static int host_read(const struct opt_value *v, struct options *o,
                     struct err *e)
{
    const char *colon = strchr(v->text, ':');
    bool has_port = colon && !strchr(colon + 1, ':'); /* No IPv6 address. */

    if (has_port || strpbrk(v->text, " \t/[]"))
        return opt_fault(v, e, "use a host name or an address, without a port "
                         "and brackets; see --master-port, --barrier-port");
    return word_read(v, o, e);
}

/* As a no_proxy variable has them. "*" would be all hosts. */
static int hosts_read(const struct opt_value *v, struct options *o,
                      struct err *e)
{
    for (const char *s = v->text;; s++) {
        size_t len = strcspn(s, ",");

        if (len == 0)
            return opt_fault(v, e, "use hosts with commas between them: "
                             "hub.local,10.0.0.7,.example.org");
        if (len == 1 && *s == '*')
            return opt_fault(v, e, "name the hosts; to allow all, leave "
                             "--offline out");
        s += len;
        if (*s == '\0')
            break;
    }
    if (strpbrk(v->text, " \t"))
        return opt_fault(v, e, "use commas between the hosts, no blanks");
    return word_read(v, o, e);
}

static int path_read(const struct opt_value *v, struct options *o,
                     struct err *e)
{
    if (v->text[0] == '\0')
        return opt_fault(v, e, "it must not be empty");
    if (has_control(v->text))
        return opt_fault(v, e, "control characters are not allowed in it");
    if (strlen(v->text) >= PATH_MAX)
        return opt_fault(v, e, "the path is too long");
    if (v->row->max && strlen(v->text) > v->row->max)
        return opt_fault(v, e, "the path is too long: at most %" PRIu64
                         " bytes", v->row->max);
    *FIELD(o, v->row, const char *) = v->text;
    return 0;
}

static int add_path(const struct opt_value *v, struct options *o,
                    const char *path, struct err *e)
{
    const char **list = FIELD(o, v->row, const char *);
    unsigned *n = (unsigned *)(void *)((char *)o + v->row->count_at);

    if (path[0] == '\0')
        return opt_fault(v, e, "it must not be empty");
    if (*n == OPT_MAX_DATASETS)
        return opt_fault(v, e, "at most %d of them", OPT_MAX_DATASETS);
    list[(*n)++] = path;
    return 0;
}

/* On the command line one path each; in the environment a comma list. */
static int paths_read(const struct opt_value *v, struct options *o,
                      struct err *e)
{
    char *piece;
    size_t len;
    int r = 0;

    if (!v->is_variable || !strchr(v->text, ','))
        return add_path(v, o, v->text, e);
    len = strlen(v->text) + 1;
    if (len > OPT_PIECES_MAX - o->pieces_len)
        return opt_fault(v, e, "the list is too long");
    piece = o->pieces + o->pieces_len;
    memcpy(piece, v->text, len);
    o->pieces_len += len;
    while (r == 0 && piece) {
        char *comma = strchr(piece, ',');

        if (comma)
            *comma = '\0';
        r = add_path(v, o, piece, e);
        piece = comma ? comma + 1 : NULL;
    }
    return r;
}

static void paths_print(const struct opt_row *row, const struct options *o,
                        struct text *t)
{
    const char *const *list = CONST_FIELD(o, row, char *);
    unsigned n = *(const unsigned *)(const void *)((const char *)o +
                                                   row->count_at);

    for (unsigned i = 0; i < n; i++)
        text_add(t, "%s%s", i ? "," : "", list[i]);
}

static int component_read(const struct opt_value *v, struct options *o,
                          struct err *e)
{
    if (strchr(v->text, '/') || strcmp(v->text, ".") == 0 ||
        strcmp(v->text, "..") == 0)
        return opt_fault(v, e, "use one path component");
    return word_read(v, o, e);
}

#define TYPE(id, name, arg, read, print)                                       \
    const struct opt_type opt_type_##id = {name, arg, NULL, false, read, print}
TYPE(flag, "flag", NULL, flag_read, flag_print);
TYPE(count, "count", NULL, count_read, uint_print);
TYPE(number, "number", "N", number_read, uint_print);
TYPE(port, "port", "PORT", port_read, uint_print);
TYPE(word, "word", "WORD", word_read, string_print);
TYPE(script, "shell command", "CMD", script_read, string_print);
TYPE(host, "host", "HOST", host_read, string_print);
TYPE(hosts, "list of hosts", "HOST,...", hosts_read, string_print);
TYPE(template, "template", "TEMPLATE", word_read, string_print);
TYPE(path, "path", "PATH", path_read, string_print);
TYPE(paths, "list of paths", "PATH", paths_read, paths_print);
TYPE(component, "path component", "NAME", component_read, string_print);
