/* option_time: the types of option_types.h that are durations. */
#include "agent/option_types.h"

#include "agent/option_table.h"

#include <inttypes.h>
#include <string.h>

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
    if (!opt_read_uint(s, whole, 0, UINT32_MAX, &v))
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

static uint64_t *ms_field(struct options *o, const struct opt_row *row)
{
    return (uint64_t *)(void *)((char *)o + row->at);
}

static int duration_read(const struct opt_value *v, struct options *o,
                         struct err *e)
{
    uint64_t ms = 0;

    if (!read_duration(v->text, strlen(v->text), &ms))
        return opt_fault(v, e, DURATION_FORM);
    *ms_field(o, v->row) = ms;
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
    add_ms(t, *(const uint64_t *)(const void *)((const char *)o + row->at));
}

static int backoff_read(const struct opt_value *v, struct options *o,
                        struct err *e)
{
    const char *colon = strchr(v->text, ':');
    uint64_t low = 0, high = 0;

    if (!colon && opt_read_duration(v->text, &low))
        return opt_fault(v, e, "MAX is missing: use MIN:MAX, such as 1s:30s");
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

const struct opt_type opt_type_duration = {
    "duration", "T", NULL, false, duration_read, duration_print};
const struct opt_type opt_type_backoff = {
    "range of durations", "MIN:MAX", NULL, false, backoff_read, backoff_print};
