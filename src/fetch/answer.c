/* answer: see answer.h. */
#include "fetch/answer.h"

#include "base/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define SHOWN_BYTES 60 /* Of what came instead of a file. */

static bool read_number(const char **s, uint64_t *ret)
{
    uint64_t v = 0;
    unsigned n = 0;

    for (; **s >= '0' && **s <= '9' && n < 19; ++*s, n++)
        v = v * 10 + (uint64_t)(**s - '0');
    *ret = v;
    return n > 0 && !(**s >= '0' && **s <= '9');
}

/* "bytes 100-199/200", "bytes 100-199/" and a star; "bytes", a star and a
 * length with 416. */
static void read_range(struct answer *a, const char *s)
{
    if (strncasecmp(s, "bytes ", 6) != 0)
        return;
    s += 6;
    if (!read_number(&s, &a->range_from) || *s++ != '-' ||
        !read_number(&s, &a->range_to) || *s++ != '/')
        return;
    a->has_range = true;
    if (!read_number(&s, &a->range_total))
        a->range_total = 0;
}

static void read_status(struct answer *a, const char *line)
{
    const char *s = strchr(line, ' ');
    uint64_t status = 0;

    memset(a, 0, sizeof *a);
    a->is_http = true;
    if (s)
        (void)(s++, read_number(&s, &status));
    a->status = (unsigned)status;
}

void answer_header(struct answer *a, const char *line, size_t len)
{
    char buf[512];
    char *value;
    const char *s;
    uint64_t n;

    while (len > 0 && strchr("\r\n", line[len - 1]))
        len--;
    if (len >= sizeof buf)
        len = sizeof buf - 1;
    memcpy(buf, line, len);
    buf[len] = '\0';
    if (strncmp(buf, "HTTP/", 5) == 0) {
        read_status(a, buf);
        return;
    }
    value = strchr(buf, ':');
    if (!value)
        return;
    *value++ = '\0';
    value += strspn(value, " \t");
    s = value;
    if (strcasecmp(buf, "Content-Length") == 0)
        a->has_length = read_number(&s, &a->length);
    else if (strcasecmp(buf, "Content-Range") == 0)
        read_range(a, value);
    else if (strcasecmp(buf, "Content-Type") == 0)
        (void)text_copy(a->type, sizeof a->type, value);
    else if (strcasecmp(buf, "Transfer-Encoding") == 0)
        a->is_chunked = strcasecmp(value, "chunked") == 0;
    else if (strcasecmp(buf, "Content-Encoding") == 0)
        a->is_encoded = strcasecmp(value, "identity") != 0;
    else if (strcasecmp(buf, "Retry-After") == 0 && read_number(&s, &n))
        a->retry_after_ms = n < 86400 ? n * 1000 : 86400000;
}

/* What came, as people know it. */
static const char *kind_of(const char *first, size_t n)
{
    char low[24] = "";

    while (n > 0 && strchr(" \t\r\n", *first) && *first)
        first++, n--;
    if (n >= 22 && memcmp(first, "version https://git-lfs", 22) == 0)
        return "a Git LFS pointer";
    for (size_t i = 0; i < n && i < sizeof low - 1; i++)
        low[i] = (char)(first[i] >= 'A' && first[i] <= 'Z' ? first[i] + 32
                                                            : first[i]);
    if (strncmp(low, "<!doctype html", 14) == 0 ||
        strncmp(low, "<html", 5) == 0 || strncmp(low, "<head", 5) == 0)
        return "an HTML page";
    return NULL;
}

static void add_first(struct text *t, const char *first, size_t n)
{
    char buf[SHOWN_BYTES + 1];
    size_t len = n < SHOWN_BYTES ? n : SHOWN_BYTES;

    if (n == 0)
        return;
    for (size_t i = 0; i < len; i++)
        buf[i] = first[i] && !strchr("\r\n\t", first[i]) ? first[i] : ' ';
    buf[len] = '\0';
    (void)text_make_utf8(buf, sizeof buf - 1);
    text_add(t, "; it begins: %s%s", buf, n > len ? " ..." : "");
}

static bool is_page_wanted(const char *path)
{
    const char *dot = strrchr(path, '.');

    return dot && (strcasecmp(dot, ".html") == 0 ||
                   strcasecmp(dot, ".htm") == 0 ||
                   strcasecmp(dot, ".xhtml") == 0);
}

static const char *advice(unsigned status)
{
    switch (status) {
    case 401:
    case 403:
        return ": user and password belong into ~/.netrc, or --netrc-file";
    case 407:
        return ": the proxy wants a user and a password, in http_proxy";
    default:
        return "";
    }
}

static enum item_outcome judge_status(const struct answer *a, struct text *t,
                                      const char *first, size_t n)
{
    bool again = a->status == 408 || a->status == 425 || a->status == 429 ||
                 a->status >= 500;

    text_add(t, "HTTP status %u%s", a->status, advice(a->status));
    if (again)
        return ITEM_AGAIN;
    if (a->status == 416)
        return ITEM_NO_RANGE;
    add_first(t, first, n);
    return ITEM_NO_FILE;
}

/* Sizes that the head tells of. A length of what is encoded says nothing. */
static bool is_wrong_size(const struct answer *a,
                          const struct answer_want *want, bool from_start,
                          struct text *t)
{
    uint64_t rest = want->size - (from_start ? 0 : want->offset);
    uint64_t total = from_start || !a->has_range ? 0 : a->range_total;

    if (want->size == ANSWER_ANY_SIZE)
        return false;
    if (total > 0 && total != want->size) {
        text_add(t, "the file there has %" PRIu64 " byte%s, the manifest "
                 "says %" PRIu64, total, text_plural(total), want->size);
        return true;
    }
    if (!a->has_length || a->is_encoded || a->length == rest)
        return false;
    if (!a->is_http && a->length == want->size)
        return false; /* Of the file, whatever the range. */
    text_add(t, "the answer has %" PRIu64 " byte%s, %" PRIu64 " %s wanted",
             a->length, text_plural(a->length), rest,
             rest == 1 ? "is" : "are");
    return true;
}

/* A range of the right file that is another one than asked for; it may end
 * early, which some caches do. */
static bool is_other_range(const struct answer *a,
                           const struct answer_want *want)
{
    uint64_t total = want->size == ANSWER_ANY_SIZE ? a->range_total
                                                   : want->size;

    if (a->status != 206)
        return false;
    if (!a->has_range || a->range_from != want->offset)
        return true;
    return total > 0 && a->range_to + 1 != total &&
           (a->range_total == 0 || a->range_total == total);
}

enum item_outcome answer_judge(const struct answer *a,
                               const struct answer_want *want,
                               const char *first, size_t n,
                               bool *ret_from_start,
                               char text[ANSWER_TEXT_MAX])
{
    const char *kind = kind_of(first, n);
    struct text t;

    text_init(&t, text, ANSWER_TEXT_MAX);
    *ret_from_start = want->offset == 0;
    if (a->is_http && a->status != 200 && a->status != 206)
        return judge_status(a, &t, first, n);
    if (a->is_http && a->status == 200)
        *ret_from_start = true;
    if (is_other_range(a, want)) {
        text_add(&t, "a range from %" PRIu64 " was asked for and another one "
                 "came", want->offset);
        return ITEM_NO_RANGE;
    }
    if (is_wrong_size(a, want, *ret_from_start, &t)) {
        if (kind)
            text_add(&t, ": it is %s", kind);
        add_first(&t, first, n);
        return ITEM_NO_DATA;
    }
    if (a->is_encoded) {
        text_add(&t, "the answer is compressed by the server, which was not "
                 "asked for");
        return ITEM_NO_DATA;
    }
    if (*ret_from_start && kind &&
        (!a->has_length || want->size == ANSWER_ANY_SIZE) &&
        !is_page_wanted(want->path)) {
        text_add(&t, "%s came instead of the file", kind);
        add_first(&t, first, n);
        return ITEM_NO_DATA;
    }
    return ITEM_DONE;
}

enum item_outcome answer_judge_head(const struct answer *a,
                                    const struct answer_want *want,
                                    char text[ANSWER_TEXT_MAX])
{
    struct text t;
    static const char html[] = "text/html";

    text_init(&t, text, ANSWER_TEXT_MAX);
    if (a->status == 405 || a->status == 501) {
        text_add(&t, "HTTP status %u: the server takes no HEAD, so this URL "
                 "cannot be checked", a->status);
        return ITEM_NO_FILE;
    }
    if (a->is_http && a->status != 200)
        return judge_status(a, &t, NULL, 0);
    if (is_wrong_size(a, want, true, &t)) {
        if (strncasecmp(a->type, html, sizeof html - 1) == 0)
            text_add(&t, ": it is an HTML page");
        return ITEM_NO_DATA;
    }
    return ITEM_DONE;
}

enum item_outcome answer_judge_end(const struct answer *a,
                                   const struct answer_want *want,
                                   char text[ANSWER_TEXT_MAX])
{
    struct text t;

    text_init(&t, text, ANSWER_TEXT_MAX);
    text_add(&t, "it ends after %" PRIu64 " of %" PRIu64 " bytes",
             want->offset, want->size);
    /* Only where the end was marked it is surely no cut connection. */
    return a->is_chunked || a->has_length || !a->is_http ? ITEM_NO_DATA
                                                         : ITEM_AGAIN;
}

const char *answer_show_url(char buf[ANSWER_URL_MAX], const char *url)
{
    const char *rest = strstr(url, "://");
    size_t scheme = rest ? (size_t)(rest - url) + 3 : 0, host, at, len;
    struct text t;

    host = scheme + strcspn(url + scheme, "/?#");
    at = host;
    while (at > scheme && url[at - 1] != '@')
        at--;
    len = at + strcspn(url + at, "?#");
    text_init(&t, buf, ANSWER_URL_MAX - 4);
    text_add(&t, "%.*s%.*s", (int)scheme, url, (int)(len - at), url + at);
    t.cap = ANSWER_URL_MAX;
    if (t.cut || url[len])
        memcpy(buf + t.len, t.cut ? "..." : "?...", t.cut ? 4 : 5);
    (void)text_make_utf8(buf, ANSWER_URL_MAX - 1);
    for (char *s = buf; *s; s++)
        if (*s == '\n' || *s == '\t')
            *s = '?';
    return buf;
}
