/* option_types: see option_types.h. */
#include "agent/option_types.h"

#include "agent/option_table.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The field of struct options that a row writes to. */
#define FIELD(o, row, type) ((type *)(void *)((char *)(o) + (row)->at))
#define CONST_FIELD(o, row, type)                                              \
    ((const type *)(const void *)((const char *)(o) + (row)->at))

const char *opt_shown(char buf[OPT_SHOWN_MAX], const char *src, size_t len)
{
    size_t n = len < OPT_SHOWN_MAX - 4 ? len : OPT_SHOWN_MAX - 4;

    memcpy(buf, src, n);
    buf[n] = '\0';
    n = text_make_utf8(buf, n);
    if (n < len)
        (void)text_copy(buf + n, OPT_SHOWN_MAX - n, len > n ? "..." : "");
    for (char *s = buf; *s; s++)
        if (*s == '\n' || *s == '\t')
            *s = '?';
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

int opt_fault_later(const struct opt_value *v, struct err *e)
{
    return opt_fault(v, e, "not in this version (agent " AGENT_VERSION ")");
}

/* A whole number in [min, max]; false where it is none. */
static bool read_uint(const char *s, size_t len, uint64_t min, uint64_t max,
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

static int flag_read(const struct opt_value *v, struct options *o,
                     struct err *e)
{
    static const char *const yes[] = {"1", "true", "yes", "on"};
    static const char *const no[] = {"0", "false", "no", "off"};

    if (!v->text) {
        *FIELD(o, v->row, bool) = true;
        return 0;
    }
    if (!v->is_variable)
        return opt_fault(v, e, "it takes no value");
    for (unsigned i = 0; i < 4; i++) {
        if (strcmp(v->text, yes[i]) != 0 && strcmp(v->text, no[i]) != 0)
            continue;
        *FIELD(o, v->row, bool) = strcmp(v->text, yes[i]) == 0;
        return 0;
    }
    return opt_fault(v, e, "use 1 or 0");
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

    if (!v->text) {
        ++*FIELD(o, v->row, unsigned);
        return 0;
    }
    if (!v->is_variable)
        return opt_fault(v, e, "it takes no value; repeat it");
    if (!read_uint(v->text, strlen(v->text), 0, 9, &n))
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

    if (!read_uint(v->text, strlen(v->text), v->row->min, v->row->max, &n))
        return opt_fault(v, e, "use a whole number from %" PRIu64 " to %"
                         PRIu64, v->row->min, v->row->max);
    *FIELD(o, v->row, unsigned) = (unsigned)n;
    return 0;
}

/* "500ms", "10s", "5m", "2h", "1.5s"; a bare number is seconds. */
static bool read_duration(const char *s, size_t len, uint64_t *ret_ms)
{
    static const struct {
        const char *unit;
        uint64_t ms;
    } units[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000},
                 {"", 1000}};
    size_t whole = 0, frac;
    uint64_t v = 0, f = 0, scale = 1;

    while (whole < len && s[whole] >= '0' && s[whole] <= '9')
        whole++;
    if (!read_uint(s, whole, 0, UINT32_MAX, &v))
        return false;
    frac = whole;
    if (frac < len && s[frac] == '.') {
        for (frac++; frac < len && s[frac] >= '0' && s[frac] <= '9'; frac++) {
            if (scale == 1000000)
                return false;
            f = f * 10 + (uint64_t)(s[frac] - '0');
            scale *= 10;
        }
        if (scale == 1)
            return false;
    }
    for (unsigned i = 0; i < sizeof units / sizeof units[0]; i++)
        if (strlen(units[i].unit) == len - frac &&
            memcmp(units[i].unit, s + frac, len - frac) == 0) {
            *ret_ms = v * units[i].ms + f * units[i].ms / scale;
            return true;
        }
    return false;
}

bool opt_read_duration(const char *s, uint64_t *ret_ms)
{
    return read_duration(s, strlen(s), ret_ms);
}

#define DURATION_FORM "a duration is a number and ms, s, m or h: 500ms, 10s, 5m"

static int duration_check(const struct opt_value *v, uint64_t ms,
                          struct err *e)
{
    char low[64], high[64];
    struct text a, b;

    if (ms >= v->row->min && ms <= v->row->max)
        return 0;
    text_init(&a, low, sizeof low);
    text_init(&b, high, sizeof high);
    text_add_duration(&a, v->row->min);
    text_add_duration(&b, v->row->max);
    return opt_fault(v, e, "it must be from %s to %s", low, high);
}

static int duration_read(const struct opt_value *v, struct options *o,
                         struct err *e)
{
    uint64_t ms = 0;

    if (!read_duration(v->text, strlen(v->text), &ms))
        return opt_fault(v, e, DURATION_FORM);
    *FIELD(o, v->row, uint64_t) = ms;
    return duration_check(v, ms, e);
}

static void add_ms(struct text *t, uint64_t ms)
{
    if (ms % 3600000 == 0 && ms > 0)
        text_add(t, "%" PRIu64 "h", ms / 3600000);
    else if (ms % 60000 == 0 && ms > 0)
        text_add(t, "%" PRIu64 "m", ms / 60000);
    else if (ms % 1000 == 0)
        text_add(t, "%" PRIu64 "s", ms / 1000);
    else
        text_add(t, "%" PRIu64 "ms", ms);
}

static void duration_print(const struct opt_row *row, const struct options *o,
                           struct text *t)
{
    add_ms(t, *CONST_FIELD(o, row, uint64_t));
}

static int backoff_read(const struct opt_value *v, struct options *o,
                        struct err *e)
{
    const char *colon = strchr(v->text, ':');
    uint64_t low = 0, high = 0;

    if (!colon || !read_duration(v->text, (size_t)(colon - v->text), &low) ||
        !read_duration(colon + 1, strlen(colon + 1), &high))
        return opt_fault(v, e, "use MIN:MAX; " DURATION_FORM);
    if (low > high)
        return opt_fault(v, e, "MIN is more than MAX");
    o->backoff_min_ms = low;
    o->backoff_max_ms = high;
    return duration_check(v, high, e);
}

static void backoff_print(const struct opt_row *row, const struct options *o,
                          struct text *t)
{
    (void)row;
    add_ms(t, o->backoff_min_ms);
    text_add(t, ":");
    add_ms(t, o->backoff_max_ms);
}

static int port_read(const struct opt_value *v, struct options *o,
                     struct err *e)
{
    uint64_t n = 0;

    if (strncmp(v->text, "tcp://", 6) == 0)
        return opt_fault(v, e, "this is a Kubernetes service link, no port: "
                         "a Service of that name is in the namespace; rename "
                         "it, or set enableServiceLinks: false");
    if (!read_uint(v->text, strlen(v->text), 1, 65535, &n))
        return opt_fault(v, e, "a port is a number from 1 to 65535");
    *FIELD(o, v->row, unsigned) = (unsigned)n;
    if (v->row->given_at)
        *(bool *)((char *)o + v->row->given_at) = true;
    return 0;
}

static bool has_control(const char *s)
{
    for (; *s; s++)
        if ((unsigned char)*s < 0x20 || *s == 0x7f)
            return true;
    return false;
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
    if (strpbrk(v->text, " \t/"))
        return opt_fault(v, e, "use a host name or an address, without port");
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

static int later_read(const struct opt_value *v, struct options *o,
                      struct err *e)
{
    (void)o;
    return opt_fault_later(v, e);
}

static void later_print(const struct opt_row *row, const struct options *o,
                        struct text *t)
{
    (void)row;
    (void)o;
    (void)t;
}

#define TYPE(id, name, arg, read, print)                                       \
    const struct opt_type opt_type_##id = {name, arg, NULL, false, read, print}
TYPE(flag, "flag", NULL, flag_read, flag_print);
TYPE(count, "count", NULL, count_read, uint_print);
TYPE(number, "number", "N", number_read, uint_print);
TYPE(duration, "duration", "T", duration_read, duration_print);
TYPE(backoff, "range of durations", "MIN:MAX", backoff_read, backoff_print);
TYPE(port, "port", "PORT", port_read, uint_print);
TYPE(word, "word", "WORD", word_read, string_print);
TYPE(host, "host", "HOST", host_read, string_print);
TYPE(template, "template", "TEMPLATE", word_read, string_print);
TYPE(path, "path", "PATH", path_read, string_print);
TYPE(paths, "list of paths", "PATH", paths_read, paths_print);
TYPE(component, "path component", "NAME", component_read, string_print);
TYPE(later, "later", "VALUE", later_read, later_print);
TYPE(later_flag, "later", NULL, later_read, later_print);
