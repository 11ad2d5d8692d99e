/* option_logs: the types of option_types.h that --log-* take. */
#include "agent/option_types.h"

#include "agent/option_table.h"

#include <inttypes.h>
#include <string.h>

#define LOG_MAX_MIN 4096
#define LOG_KEEP_MAX 1000

static const char *const log_format_words[] = {"text", "json", NULL};

static int log_format_read(const struct opt_value *v, struct options *o,
                           struct err *e)
{
    int i = opt_read_choice(v, e);

    if (i < 0)
        return -ERR_USAGE;
    o->log_format = (enum log_format)i;
    return 0;
}

static void log_format_print(const struct opt_row *row,
                             const struct options *o, struct text *t)
{
    (void)row;
    text_add(t, "%s", log_format_words[o->log_format]);
}

static const char *const overflow_words[] = {"block", "drop", NULL};

static int overflow_read(const struct opt_value *v, struct options *o,
                         struct err *e)
{
    int i = opt_read_choice(v, e);

    if (i < 0)
        return -ERR_USAGE;
    o->log_overflow = (enum log_overflow)i;
    return 0;
}

static void overflow_print(const struct opt_row *row, const struct options *o,
                           struct text *t)
{
    (void)row;
    text_add(t, "%s", overflow_words[o->log_overflow]);
}

/* "3" or "4-7" at s[0..len). */
static bool read_range(const char *s, size_t len, uint32_t *ret_first,
                       uint32_t *ret_last)
{
    const char *dash = memchr(s, '-', len);
    size_t n = dash ? (size_t)(dash - s) : len;
    uint64_t first = 0, last = 0;

    if (!opt_read_uint(s, n, 0, UINT32_MAX, &first))
        return false;
    last = first;
    if (dash && !opt_read_uint(dash + 1, len - n - 1, first, UINT32_MAX,
                               &last))
        return false;
    *ret_first = (uint32_t)first;
    *ret_last = (uint32_t)last;
    return true;
}

static int ranks_read(const struct opt_value *v, struct options *o,
                      struct err *e)
{
    struct rank_list list = {.n = 0};
    const char *s = v->text;

    if (strcmp(s, "all") == 0) {
        o->log_ranks = list;
        return 0;
    }
    for (;; s++) {
        size_t len = strcspn(s, ",");

        if (list.n == OPT_RANGES_MAX)
            return opt_fault(v, e, "at most %d ranks and ranges",
                             OPT_RANGES_MAX);
        if (!read_range(s, len, &list.first[list.n], &list.last[list.n]))
            return opt_fault(v, e, "use ranks and ranges of them, 0,4-7, or "
                             "all");
        list.n++;
        s += len;
        if (*s == '\0')
            break;
    }
    o->log_ranks = list;
    return 0;
}

static void ranks_print(const struct opt_row *row, const struct options *o,
                        struct text *t)
{
    const struct rank_list *list = &o->log_ranks;

    (void)row;
    if (list->n == 0)
        text_add(t, "all");
    for (unsigned i = 0; i < list->n; i++) {
        text_add(t, "%s%" PRIu32, i ? "," : "", list->first[i]);
        if (list->last[i] != list->first[i])
            text_add(t, "-%" PRIu32, list->last[i]);
    }
}

bool options_has_rank(const struct rank_list *list, uint32_t rank)
{
    for (unsigned i = 0; i < list->n; i++)
        if (rank >= list->first[i] && rank <= list->last[i])
            return true;
    return list->n == 0;
}

bool options_ranks_beyond(const struct rank_list *list, uint64_t n_ranks,
                          struct text *t)
{
    bool any = false;

    for (unsigned i = 0; i < list->n; i++) {
        if (list->first[i] < n_ranks)
            continue;
        text_add(t, "%s%" PRIu32, any ? "," : "", list->first[i]);
        if (list->last[i] != list->first[i])
            text_add(t, "-%" PRIu32, list->last[i]);
        any = true;
    }
    return any;
}

/* "100M", "2GiB", "65536", in powers of 1024. */
static bool read_size(const char *s, size_t len, uint64_t *ret)
{
    static const char units[] = "KMGT";
    size_t digits = strspn(s, "0123456789"), left;
    unsigned shift = 0;
    const char *unit;

    if (digits > len || !opt_read_uint(s, digits, 0, UINT64_MAX, ret))
        return false;
    s += digits;
    left = len - digits;
    unit = left > 0 && *s ? strchr(units, *s == 'k' ? 'K' : *s) : NULL;
    if (unit) {
        shift = 10 * (unsigned)(unit - units + 1);
        s++;
        left--;
    }
    if (unit && left > 0 && *s == 'i') {
        s++;
        left--;
    }
    if (left > 0 && *s == 'B')
        left--;
    if (left > 0 || *ret > (UINT64_MAX >> 1) >> shift)
        return false;
    *ret <<= shift;
    return true;
}

static int log_max_read(const struct opt_value *v, struct options *o,
                        struct err *e)
{
    size_t len = strcspn(v->text, ":");
    const char *keep_text = v->text[len] ? v->text + len + 1 : "1";
    uint64_t size = 0, keep = 0;

    if (!read_size(v->text, len, &size))
        return opt_fault(v, e, "use SIZE or SIZE:KEEP, 100M:3");
    if (size < LOG_MAX_MIN)
        return opt_fault(v, e, "at least %d bytes", LOG_MAX_MIN);
    if (!opt_read_uint(keep_text, strlen(keep_text), 0, LOG_KEEP_MAX, &keep))
        return opt_fault(v, e, "KEEP, the number of old files, is from 0 to "
                         "%d", LOG_KEEP_MAX);
    o->log_max_bytes = size;
    o->log_keep = (unsigned)keep;
    return 0;
}

static void log_max_print(const struct opt_row *row, const struct options *o,
                          struct text *t)
{
    (void)row;
    if (o->log_max_bytes)
        text_add(t, "%" PRIu64 ":%u", o->log_max_bytes, o->log_keep);
}

#define TYPE(id, name, arg, words, read, print)                                \
    const struct opt_type opt_type_##id = {name, arg, words, false, read,      \
                                           print}
TYPE(log_format, "word", "text|json", log_format_words, log_format_read,
     log_format_print);
TYPE(overflow, "word", "block|drop", overflow_words, overflow_read,
     overflow_print);
TYPE(ranks, "list of ranks", "LIST", NULL, ranks_read, ranks_print);
TYPE(log_max, "size", "SIZE[:KEEP]", NULL, log_max_read, log_max_print);
