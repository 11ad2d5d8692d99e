/* hostlist: see hostlist.h. */
#include "agent/hostlist.h"

#include "base/text.h"

#include <inttypes.h>
#include <string.h>

#define DIGITS_MAX 12 /* Of a number in brackets. */

/* Bytes of the element at `s`: up to a comma outside of brackets. */
static size_t element_len(const char *s)
{
    size_t n = 0;
    bool inside = false;

    for (; s[n] && (inside || s[n] != ','); n++)
        inside = s[n] == '[' || (inside && s[n] != ']');
    return n;
}

static bool read_number(const char **s, const char *end, uint64_t *ret,
                        unsigned *ret_digits)
{
    *ret = 0;
    *ret_digits = 0;
    for (; *s < end && **s >= '0' && **s <= '9'; ++*s) {
        if (++*ret_digits > DIGITS_MAX)
            return false;
        *ret = *ret * 10 + (uint64_t)(**s - '0');
    }
    return *ret_digits > 0;
}

/* One range of a bracket, "7" or "08-10", and what follows it. */
struct range {
    uint64_t low, n;
    unsigned width; /* 0: not padded. */
};

static bool read_range(const char **s, const char *end, struct range *ret)
{
    const char *first = *s;
    uint64_t high;
    unsigned digits, more;

    if (!read_number(s, end, &ret->low, &digits))
        return false;
    high = ret->low;
    if (*s < end && **s == '-') {
        ++*s;
        if (!read_number(s, end, &high, &more))
            return false;
    }
    ret->width = *first == '0' ? digits : 0;
    ret->n = high - ret->low + 1;
    return high >= ret->low && ret->n <= HOSTLIST_MAX &&
           (*s == end || *(*s)++ == ',');
}

/* Numbers of the bracket whose inside is s[0..len); 0: none such. Where `pick`
 * is one of them, it is put in *ret. */
static uint64_t bracket(const char *s, size_t len, uint64_t pick,
                        struct range *ret)
{
    const char *end = s + len;
    uint64_t n = 0;
    bool comma = len > 0 && s[len - 1] == ',';
    struct range r;

    while (s < end) {
        if (!read_range(&s, end, &r))
            return 0;
        if (pick >= n && pick < n + r.n)
            *ret = (struct range){r.low + (pick - n), 1, r.width};
        n += r.n;
        if (n > HOSTLIST_MAX)
            return 0;
    }
    return comma ? 0 : n;
}

struct brackets {
    unsigned n;
    const char *at[HOSTLIST_BRACKETS_MAX]; /* Inside. */
    size_t len[HOSTLIST_BRACKETS_MAX];
    uint64_t count[HOSTLIST_BRACKETS_MAX];
};

/* Hosts of one element; 0 where it is none. */
static uint64_t element(const char *s, size_t len, struct brackets *b)
{
    struct range unused;
    uint64_t total = 1;
    size_t i = 0;

    b->n = 0;
    while (i < len) {
        const char *close;

        if (s[i] == ']' || (unsigned char)s[i] <= ' ' || s[i] == 0x7f)
            return 0;
        if (s[i++] != '[')
            continue;
        close = memchr(s + i, ']', len - i);
        if (!close || b->n == HOSTLIST_BRACKETS_MAX)
            return 0;
        b->at[b->n] = s + i;
        b->len[b->n] = (size_t)(close - s) - i;
        b->count[b->n] = bracket(s + i, b->len[b->n], 0, &unused);
        total *= b->count[b->n++];
        if (total == 0 || total > HOSTLIST_MAX)
            return 0;
        i = (size_t)(close - s) + 1;
    }
    return len > 0 ? total : 0;
}

uint32_t hostlist_count(const char *list)
{
    struct brackets b;
    uint64_t total = 0, n;

    for (;;) {
        size_t len = element_len(list);

        n = element(list, len, &b);
        total += n;
        if (n == 0 || total > HOSTLIST_MAX)
            return 0;
        if (list[len] == '\0')
            return (uint32_t)total;
        list += len + 1;
    }
}

/* The i-th host of an element. */
static bool expand(const char *s, size_t len, const struct brackets *b,
                   uint64_t i, char *out)
{
    uint64_t pick[HOSTLIST_BRACKETS_MAX];
    struct text t;
    struct range r = {0};

    for (unsigned k = b->n; k-- > 0; i /= b->count[k])
        pick[k] = i % b->count[k];
    text_init(&t, out, HOSTLIST_NAME_MAX);
    for (unsigned k = 0; k < b->n; k++) {
        text_add(&t, "%.*s", (int)(b->at[k] - 1 - s), s);
        (void)bracket(b->at[k], b->len[k], pick[k], &r);
        text_add(&t, "%0*" PRIu64, (int)r.width, r.low);
        len -= (size_t)(b->at[k] + b->len[k] + 1 - s);
        s = b->at[k] + b->len[k] + 1;
    }
    text_add(&t, "%.*s", (int)len, s);
    return !t.cut;
}

bool hostlist_at(const char *list, uint32_t i, char out[HOSTLIST_NAME_MAX])
{
    struct brackets b;
    uint64_t left = i;

    if (i >= hostlist_count(list))
        return false;
    for (;;) {
        size_t len = element_len(list);
        uint64_t n = element(list, len, &b);

        if (left < n)
            return expand(list, len, &b, left, out);
        left -= n;
        list += len + 1;
    }
}
