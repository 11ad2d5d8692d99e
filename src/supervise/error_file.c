/* error_file: see error_file.h. */
#include "supervise/error_file.h"

#include "base/text.h"

#include <stdint.h>
#include <string.h>

/* Where decoded text goes: its beginning, or with `rolls` its end. */
struct sink {
    char *at; /* NULL: nowhere. */
    size_t len, cap;
    bool rolls;
};

struct scan {
    const char *s, *end;
    struct error_file *ret;
    const char *begin;
};

enum place { /* What the value that comes is. */
    OTHER,
    TOP,
    MESSAGE, /* A string, or the inner object. */
    INNER_MESSAGE,
    EXTRA,
    STACK,
    CODE,
};

static void put(struct sink *to, char c)
{
    if (!to->at)
        return;
    if (to->len + 1 >= to->cap) {
        if (!to->rolls)
            return;
        to->len -= to->cap / 2;
        memmove(to->at, to->at + to->cap / 2, to->len);
    }
    to->at[to->len++] = c;
    to->at[to->len] = '\0';
}

static void put_rune(struct sink *to, uint32_t c)
{
    if (c == 0 || (c >= 0xd800 && c < 0xe000)) {
        put(to, '?');
    } else if (c < 0x80) {
        put(to, (char)c);
    } else if (c < 0x800) {
        put(to, (char)(0xc0 | c >> 6));
        put(to, (char)(0x80 | (c & 0x3f)));
    } else if (c < 0x10000) {
        put(to, (char)(0xe0 | c >> 12));
        put(to, (char)(0x80 | (c >> 6 & 0x3f)));
        put(to, (char)(0x80 | (c & 0x3f)));
    } else {
        put(to, (char)(0xf0 | c >> 18));
        put(to, (char)(0x80 | (c >> 12 & 0x3f)));
        put(to, (char)(0x80 | (c >> 6 & 0x3f)));
        put(to, (char)(0x80 | (c & 0x3f)));
    }
}

static bool read_hex4(struct scan *x, uint32_t *ret)
{
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";

    *ret = 0;
    for (int i = 0; i < 4; i++) {
        const char *d = x->s < x->end && *x->s ? strchr(digits, *x->s) : NULL;

        if (!d)
            return false;
        *ret = *ret << 4 | (uint32_t)((d - digits) % 16);
        x->s++;
    }
    return true;
}

/* What follows "\u": one code unit, or a pair of surrogates. */
static bool read_unicode(struct scan *x, struct sink *to)
{
    uint32_t c, low;

    if (!read_hex4(x, &c))
        return false;
    if (c >= 0xd800 && c < 0xdc00 && x->end - x->s >= 6 && x->s[0] == '\\' &&
        x->s[1] == 'u') {
        x->s += 2;
        if (!read_hex4(x, &low))
            return false;
        if (low >= 0xdc00 && low < 0xe000)
            c = 0x10000 + ((c - 0xd800) << 10 | (low - 0xdc00));
    }
    put_rune(to, c);
    return true;
}

static bool read_escape(struct scan *x, struct sink *to)
{
    static const char from[] = "\"\\/bfnrt", is[] = "\"\\/  \n\n\t";
    const char *e;

    if (x->s == x->end)
        return false;
    if (*x->s == 'u') {
        x->s++;
        return read_unicode(x, to);
    }
    e = *x->s ? strchr(from, *x->s) : NULL;
    if (!e)
        return false;
    x->s++;
    put(to, is[e - from]);
    return true;
}

/* A string; false where it is cut off or malformed: what came is kept. */
static bool read_string(struct scan *x, struct sink *to)
{
    if (x->s == x->end || *x->s != '"')
        return false;
    for (x->s++; x->s < x->end;) {
        char c = *x->s++;

        if (c == '"')
            return true;
        if (c != '\\')
            put(to, c ? c : '?');
        else if (!read_escape(x, to))
            return false;
    }
    return false;
}

static void skip_space(struct scan *x)
{
    while (x->s < x->end && *x->s && strchr(" \t\r\n", *x->s))
        x->s++;
}

static bool next_is(struct scan *x, char c)
{
    skip_space(x);
    if (x->s == x->end || *x->s != c)
        return false;
    x->s++;
    return true;
}

static enum place place_of(enum place in, const char *key)
{
    if (in == TOP && strcmp(key, "message") == 0)
        return MESSAGE;
    if (in == MESSAGE && strcmp(key, "message") == 0)
        return INNER_MESSAGE;
    if (in == MESSAGE && strcmp(key, "extraInfo") == 0)
        return EXTRA;
    if (in == MESSAGE && strcmp(key, "errorCode") == 0)
        return CODE;
    if (in == EXTRA && strcmp(key, "py_callstack") == 0)
        return STACK;
    return OTHER;
}

static struct sink sink_for(struct scan *x, enum place place)
{
    struct error_file *f = x->ret;

    if (place == MESSAGE || place == INNER_MESSAGE)
        return (struct sink){f->message, 0, sizeof f->message, false};
    if (place == STACK)
        return (struct sink){f->stack, strlen(f->stack), sizeof f->stack,
                             true};
    return (struct sink){NULL, 0, 0, false};
}

static bool read_value(struct scan *x, enum place place, unsigned depth);

static bool read_object(struct scan *x, enum place place, unsigned depth)
{
    char name[16];

    if (place == MESSAGE)
        x->ret->inner_at = (size_t)(x->s - x->begin);
    if (next_is(x, '}'))
        return true;
    do {
        struct sink key = {name, 0, sizeof name, false};

        name[0] = '\0';
        skip_space(x);
        if (!read_string(x, &key) || !next_is(x, ':') ||
            !read_value(x, place_of(place, name), depth))
            return false;
    } while (next_is(x, ','));
    return next_is(x, '}');
}

static bool read_array(struct scan *x, enum place place, unsigned depth)
{
    if (next_is(x, ']'))
        return true;
    do {
        if (!read_value(x, place == STACK ? STACK : OTHER, depth))
            return false;
    } while (next_is(x, ','));
    return next_is(x, ']');
}

/* Recursion is bounded by ERROR_FILE_DEPTH. */
static bool read_value(struct scan *x, enum place place, unsigned depth)
{
    struct sink to;

    skip_space(x);
    if (x->s == x->end || depth == 0)
        return false;
    if (place == CODE)
        x->ret->has_code = true;
    if (*x->s == '"') {
        to = sink_for(x, place);
        return read_string(x, &to);
    }
    if (next_is(x, '{'))
        return read_object(x, place, depth - 1);
    if (next_is(x, '['))
        return read_array(x, place, depth - 1);
    while (x->s < x->end && *x->s && !strchr(",]} \t\r\n\"", *x->s))
        x->s++; /* A number or a word. */
    return true;
}

bool error_file_read(const char *bytes, size_t n, struct error_file *ret)
{
    struct scan x = {.s = bytes, .end = bytes + n, .ret = ret,
                     .begin = bytes};

    memset(ret, 0, sizeof *ret);
    (void)read_value(&x, TOP, ERROR_FILE_DEPTH);
    (void)text_make_utf8(ret->message, sizeof ret->message - 1);
    (void)text_make_utf8(ret->stack, sizeof ret->stack - 1);
    return ret->message[0] != '\0' && !strstr(ret->message,
                                              "ChildFailedError");
}

/* The line of a frame (`  File "x", line 1, in f`) and the code below it. */
static size_t frame_len(const char *s)
{
    size_t n = strcspn(s, "\n");

    if (s[n] == '\n' && strncmp(s + n + 1, "    ", 4) == 0)
        n += 1 + strcspn(s + n + 1, "\n");
    return n;
}

static bool is_library(const char *frame)
{
    static const char *const parts[] = {"-packages/", "<frozen ", "<string>",
                                        "/lib/python"};
    size_t n = strcspn(frame, "\n");

    for (unsigned i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (memmem(frame, n, parts[i], strlen(parts[i])))
            return true;
    return false;
}

size_t error_file_text(const struct error_file *f, char *out, size_t cap)
{
    static const char mark[] = "  File \"";
    const char *last = NULL, *own = NULL;
    struct text t;

    text_init(&t, out, cap);
    for (const char *s = strstr(f->stack, mark); s; s = strstr(s + 1, mark)) {
        if (s != f->stack && s[-1] != '\n')
            continue;
        last = s;
        if (!is_library(s))
            own = s;
    }
    text_add(&t, "%.*s", (int)text_whole(f->message, strnlen(
                 f->message, sizeof f->message - 1)), f->message);
    while (t.len > 0 && out[t.len - 1] == '\n')
        out[--t.len] = '\0';
    if (own)
        text_add(&t, "\n%.*s", (int)frame_len(own), own);
    if (last && last != own)
        text_add(&t, "\n%.*s", (int)frame_len(last), last);
    return text_make_utf8(out, cap - 1);
}
