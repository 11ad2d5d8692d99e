/* http: see http.h. */
#include "agent/http.h"

#include <string.h>

static const struct {
    enum http_page page;
    const char *path, *type;
} pages[] = {
#define X(name, path, type) {HTTP_##name, path, type},
    HTTP_PAGES(X)
#undef X
};
#define N_PAGES (sizeof pages / sizeof pages[0])

#define X(name, path, type) " " path
#define ALL_PATHS HTTP_PAGES(X)

static const struct {
    int status;
    const char *reason, *text;
} errors[] = {
    {400, "Bad Request", "this is no HTTP request\n"},
    {403, "Forbidden", "only the uid that agent runs as, and root, may ask\n"},
    {404, "Not Found", "no such page; there are:" ALL_PATHS "\n"},
    {405, "Method Not Allowed", "only GET and HEAD\n"},
    {431, "Request Header Fields Too Large", "the request is too long\n"},
    {503, "Service Unavailable", "too much is asked at once\n"},
    {505, "HTTP Version Not Supported", "only HTTP/1.0 and HTTP/1.1\n"},
};
#undef X

size_t http_head_len(const char *buf, size_t len, size_t searched)
{
    /* An end that began before: "\r\n\r" is its longest part. */
    size_t i = searched > 3 ? searched - 3 : 0;

    for (; i < len; i++) {
        if (buf[i] != '\n')
            continue;
        if (i + 1 < len && buf[i + 1] == '\n')
            return i + 2;
        if (i + 2 < len && buf[i + 1] == '\r' && buf[i + 2] == '\n')
            return i + 3;
    }
    return 0;
}

static bool is_token_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') || (c && strchr("!#$%&'*+-.^_`|~", c));
}

static size_t token_len(const char *s, size_t len)
{
    size_t n = 0;

    while (n < len && is_token_char(s[n]))
        n++;
    return n;
}

static bool is(const char *s, size_t len, const char *word)
{
    return len == strlen(word) && memcmp(s, word, len) == 0;
}

/* The bytes of the line that begins at s, without its end. */
static size_t line_len(const char *s, size_t len)
{
    const char *end = memchr(s, '\n', len);
    size_t n = end ? (size_t)(end - s) : len;

    return n > 0 && s[n - 1] == '\r' ? n - 1 : n;
}

/* "name: value", neither folded nor with a control in it. */
static bool is_field(const char *s, size_t len)
{
    size_t n = token_len(s, len);

    if (n == 0 || n == len || s[n] != ':')
        return false;
    for (; n < len; n++)
        if (((unsigned char)s[n] < 0x20 && s[n] != '\t') || s[n] == 0x7f)
            return false;
    return true;
}

/* The path of a target: "/status", "/status?x", "http://host/status". */
static bool find_path(const char **s, size_t *len)
{
    const char *query;

    for (size_t i = 0; i < *len; i++)
        if ((unsigned char)(*s)[i] <= 0x20 || (unsigned char)(*s)[i] >= 0x7f)
            return false;
    if (*len > 7 && memcmp(*s, "http://", 7) == 0) {
        const char *slash = memchr(*s + 7, '/', *len - 7);

        if (!slash)
            return false;
        *len -= (size_t)(slash - *s);
        *s = slash;
    }
    query = memchr(*s, '?', *len);
    if (query)
        *len = (size_t)(query - *s);
    return *len > 0 && (*s)[0] == '/';
}

/* "GET /status HTTP/1.1" */
static int parse_first(const char *s, size_t len, struct http_request *ret)
{
    size_t method = token_len(s, len), rest;
    const char *target, *space;
    bool is_get = is(s, method, "GET");

    ret->is_head = is(s, method, "HEAD");
    if (method == 0 || method == len || s[method] != ' ')
        return 400;
    target = s + method + 1;
    rest = len - method - 1;
    space = memchr(target, ' ', rest);
    if (!space)
        return 400;
    len = (size_t)(space - target);
    rest -= len + 1;
    if (rest != 8 || memcmp(space + 1, "HTTP/", 5) != 0 || space[7] != '.' ||
        space[6] < '0' || space[6] > '9' || space[8] < '0' || space[8] > '9')
        return 400;
    if (space[6] != '1')
        return 505;
    if (!is_get && !ret->is_head)
        return 405;
    if (!find_path(&target, &len))
        return 400;
    for (size_t i = 0; i < N_PAGES; i++)
        if (is(target, len, pages[i].path)) {
            ret->page = pages[i].page;
            return 200;
        }
    return 404;
}

int http_parse(const char *head, size_t len, struct http_request *ret)
{
    size_t n = line_len(head, len);
    int status;

    ret->page = HTTP_NONE;
    status = parse_first(head, n, ret);
    for (;;) {
        const char *end = memchr(head, '\n', len);

        if (!end)
            break;
        len -= (size_t)(end + 1 - head);
        head = end + 1;
        n = line_len(head, len);
        if (n > 0 && !is_field(head, n)) {
            ret->page = HTTP_NONE;
            return 400;
        }
    }
    return status;
}

static const char *reason(int status)
{
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
        if (errors[i].status == status)
            return errors[i].reason;
    return "OK";
}

const char *http_error_text(int status)
{
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
        if (errors[i].status == status)
            return errors[i].text;
    return "\n";
}

void http_answer(struct text *t, int status, enum http_page page, size_t len)
{
    const char *type = "text/plain; charset=utf-8";

    for (size_t i = 0; i < N_PAGES; i++)
        if (pages[i].page == page)
            type = pages[i].type;
    text_add(t, "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
                "%sCache-Control: no-store\r\nX-Content-Type-Options: "
                "nosniff\r\nConnection: close\r\n\r\n",
             status, reason(status), type, len,
             status == 405 ? "Allow: GET, HEAD\r\n" : "");
}

/* The number after "Content-Length: " in agent's own answer. */
static bool read_length(const char *head, size_t len, size_t *ret)
{
    static const char name[] = "\r\nContent-Length: ";
    const char *at = memmem(head, len, name, sizeof name - 1);
    size_t v = 0;

    if (!at)
        return false;
    for (at += sizeof name - 1; *at >= '0' && *at <= '9'; at++) {
        if (v > ((size_t)1 << 40))
            return false;
        v = v * 10 + (size_t)(*at - '0');
    }
    *ret = v;
    return *at == '\r';
}

bool http_read_reply(const char *buf, size_t len, struct http_reply *ret)
{
    size_t head = http_head_len(buf, len, 0), body = 0;

    if (head < 14 || memcmp(buf, "HTTP/1.1 ", 9) != 0 || buf[12] != ' ' ||
        !read_length(buf, head, &body) || body != len - head)
        return false;
    ret->status = 0;
    for (int i = 9; i < 12; i++) {
        if (buf[i] < '0' || buf[i] > '9')
            return false;
        ret->status = ret->status * 10 + (buf[i] - '0');
    }
    ret->body = buf + head;
    ret->len = body;
    return true;
}
