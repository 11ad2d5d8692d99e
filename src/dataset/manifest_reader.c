/* manifest_reader: see manifest_reader.h. */
#include "dataset/manifest_reader.h"

#include <stdarg.h>
#include <string.h>

int reader_fail(struct reader *r, size_t pos, const char *fmt, ...)
{
    char why[ERR_TEXT_MAX];
    unsigned line = r->line_before + 1, column = r->column_before + 1;
    va_list ap;

    if (pos + 1 >= r->len && r->input && !r->ended)
        return err_set(r->e, ERR_DATA, "%s:%u:%u: an entry of more than %u MiB",
                       r->file, line, column, READER_ITEM_MAX >> 20);

    va_start(ap, fmt);
    (void)vsnprintf(why, sizeof why, fmt, ap);
    va_end(ap);
    for (size_t i = 0; i < pos && i < r->len; i++) {
        if (r->text[i] == '\n') {
            line++;
            column = 1;
        } else if (((unsigned char)r->text[i] & 0xc0) != 0x80) {
            column++; /* Characters, not bytes. */
        }
    }
    return err_set(r->e, ERR_DATA, "%s:%u:%u: %s", r->file, line, column, why);
}

/* Count what is about to leave the window. */
static void leave(struct reader *r)
{
    const char *last = memrchr(r->text, '\n', r->pos);
    size_t i = last ? (size_t)(last - r->text) + 1 : 0;

    r->line_before = reader_line(r) - 1;
    if (last)
        r->column_before = 0;
    for (; i < r->pos; i++)
        r->column_before += ((unsigned char)r->text[i] & 0xc0) != 0x80;
    r->n_before += r->pos;
    r->len -= r->pos;
    memmove(r->window, r->window + r->pos, r->len);
    r->pos = r->line_pos = 0;
}

int reader_refill(struct reader *r)
{
    if (!r->input || r->ended || r->len - r->pos >= READER_ITEM_MAX)
        return 0;
    leave(r);
    while (!r->ended && r->len < 2 * READER_ITEM_MAX) {
        long n = r->input->read(r->input->ctx, r->window + r->len,
                                2 * READER_ITEM_MAX - r->len, r->e);

        if (n < 0)
            return -r->e->code;
        r->ended = n == 0;
        r->len += (size_t)n;
        if (r->n_before + r->len > MANIFEST_MAX_BYTES)
            return err_set(r->e, ERR_DATA, "%s: more than %u MiB", r->file,
                           MANIFEST_MAX_BYTES >> 20);
    }
    return 0;
}

static void skip_space(struct reader *r)
{
    for (; r->pos < r->len; r->pos++) {
        char c = r->text[r->pos];

        if (c != ' ' && c != '\n' && c != '\t' && c != '\r')
            return;
    }
}

char reader_peek(struct reader *r)
{
    skip_space(r);
    return r->pos < r->len ? r->text[r->pos] : '\0';
}

int reader_expect(struct reader *r, char c, const char *where)
{
    if (reader_peek(r) == c) {
        r->pos++;
        return 0;
    }
    if (r->pos >= r->len)
        return reader_fail(r, r->pos,
                           "the file ends where a '%c' should come, %s", c,
                           where);
    return reader_fail(r, r->pos, "a '%c' should come here, %s", c, where);
}

uint32_t reader_line(struct reader *r)
{
    while (r->line_pos < r->pos) {
        const char *newline = memchr(r->text + r->line_pos, '\n',
                                     r->pos - r->line_pos);

        if (!newline)
            break;
        r->line_n++;
        r->line_pos = (size_t)(newline - r->text) + 1;
    }
    r->line_pos = r->pos;
    return r->line_n;
}

json_t *reader_value(struct reader *r, size_t *ret_at)
{
    json_error_t je;
    json_t *v;
    struct path_shown p;
    const char *why;

    if (strchr("[{", reader_peek(r)) && r->pos < r->len) {
        (void)reader_fail(r, r->pos, "a single value should come here");
        return NULL;
    }
    *ret_at = r->pos;
    v = json_loadb(r->text + r->pos, r->len - r->pos,
                   JSON_DECODE_ANY | JSON_DISABLE_EOF_CHECK |
                       JSON_REJECT_DUPLICATES,
                   &je);
    if (v) {
        r->pos += (size_t)je.position;
        return v;
    }
    if (json_error_code(&je) == json_error_null_character) {
        (void)reader_fail(r, r->pos, "a NUL (\\u0000) in a string");
        return NULL;
    }
    why = path_show(&p, NULL, je.text);
    (void)reader_fail(r, r->pos + (size_t)je.position - (je.position > 0),
                      "%s", why);
    return NULL;
}

static int no_memory(struct reader *r)
{
    return err_set(r->e, ERR_RESOURCE, "no memory left for the manifest");
}

/* Length of the string at the cursor where it is plain ASCII with no escapes,
 * as nearly all are: those need no jansson, which is several times slower.
 * SIZE_MAX: it is not. */
static size_t plain_length(const struct reader *r)
{
    const char *start = r->text + r->pos + 1, *at = start;
    const char *end = r->text + r->len;

    if (r->pos >= r->len || start[-1] != '"')
        return SIZE_MAX;
    while (at < end && *at >= ' ' && *at < 0x7f && *at != '"' && *at != '\\')
        at++;
    return at < end && *at == '"' ? (size_t)(at - start) : SIZE_MAX;
}

char *reader_string(struct reader *r, const char *key, size_t *ret_at)
{
    json_t *v;
    char *s = NULL;
    size_t len;

    skip_space(r);
    len = plain_length(r);
    if (len != SIZE_MAX) {
        *ret_at = r->pos;
        s = strndup(r->text + r->pos + 1, len);
        r->pos += len + 2;
        if (!s)
            (void)no_memory(r);
        return s;
    }
    v = reader_value(r, ret_at);
    if (!v)
        return NULL;
    if (!json_is_string(v)) {
        (void)reader_fail(r, *ret_at, "'%s' must be a string", key);
    } else {
        s = strdup(json_string_value(v));
        if (!s)
            (void)no_memory(r);
    }
    json_decref(v);
    return s;
}

/* A whole number that plainly is one, as nearly all are, needs no jansson.
 * False: look closer. */
static bool plain_size(struct reader *r, uint64_t *ret)
{
    size_t at = r->pos;
    uint64_t n = 0;

    while (at < r->len && r->text[at] >= '0' && r->text[at] <= '9' &&
           at - r->pos < 15)
        n = 10 * n + (uint64_t)(r->text[at++] - '0');
    if (at == r->pos || at == r->len || !strchr(",}] \n\r\t", r->text[at]) ||
        r->text[at] == '\0' || (r->text[r->pos] == '0' && at > r->pos + 1))
        return false;
    r->pos = at;
    *ret = n;
    return true;
}

int reader_size(struct reader *r, const char *key, uint64_t *ret)
{
    size_t at;
    json_t *v;
    json_int_t n;

    skip_space(r);
    if (plain_size(r, ret))
        return 0;
    v = reader_value(r, &at);
    if (!v)
        return -r->e->code;
    n = json_is_integer(v) ? json_integer_value(v) : -1;
    json_decref(v);
    if (n < 0)
        return reader_fail(r, at, "'%s' must be a whole number, 0 or more",
                           key);
    if ((uint64_t)n > MANIFEST_FILE_MAX)
        return reader_fail(r, at, "'%s' is over the limit of 1 PiB for a file",
                           key);
    *ret = (uint64_t)n;
    return 0;
}

int reader_bool(struct reader *r, const char *key, bool *ret)
{
    size_t at;
    json_t *v = reader_value(r, &at);

    if (!v)
        return -r->e->code;
    *ret = json_is_true(v);
    if (!json_is_boolean(v)) {
        json_decref(v);
        return reader_fail(r, at, "'%s' must be true or false", key);
    }
    json_decref(v);
    return 0;
}

int reader_item(struct reader *r, bool *first, char end, const char *where)
{
    if (reader_peek(r) == end) {
        r->pos++;
        return 0;
    }
    if (!*first) {
        int rc = reader_expect(r, ',', where);

        if (rc)
            return rc;
        if (reader_peek(r) == end)
            return reader_fail(r, r->pos, "a comma before the '%c'", end);
    }
    *first = false;
    return 1;
}

int reader_key(struct reader *r, bool *first, const char *const *keys,
               unsigned n_keys, uint32_t *seen, unsigned *ret)
{
    size_t at;
    char *key;
    unsigned k = 0;
    struct path_shown p;
    int rc = reader_item(r, first, '}', "between two keys");

    if (rc <= 0)
        return rc;
    if (reader_peek(r) != '"')
        return reader_fail(r, r->pos,
                           "a key in double quotes should come here");
    key = reader_string(r, "key", &at);
    if (!key)
        return -r->e->code;
    while (k < n_keys && strcmp(key, keys[k]) != 0)
        k++;
    if (k == n_keys)
        rc = reader_fail(r, at, "unknown key '%s'", path_show(&p, NULL, key));
    free(key);
    if (rc < 0)
        return rc;
    if (*seen & 1u << k)
        return reader_fail(r, at, "'%s' is given twice", keys[k]);
    *seen |= 1u << k;
    *ret = k;
    rc = reader_expect(r, ':', "after the key");
    return rc ? rc : 1;
}

