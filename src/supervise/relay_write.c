/* relay_write: how a line is written: as text, or as an object of JSON. */
#include "supervise/relay_parts.h"

#include "base/text.h"

#include <stdint.h>
#include <string.h>

#define MARK_LEN (sizeof RELAY_MARK - 1)
#define JSON_MARK_LEN (sizeof RELAY_JSON_MARK - 1)

/* 0x80 in each byte of `w` that is no plain ASCII, or must be escaped. (A
 * byte above such a one may be marked, too: it only ends the fast way.) */
static uint64_t special_bytes(uint64_t w)
{
    const uint64_t ones = 0x0101010101010101u, high = ones * 0x80;
    uint64_t quote = w ^ ones * '"', slash = w ^ ones * '\\';

    return (w | (w - ones * 0x20) | (quote - ones) | (slash - ones)) & high;
}

/* Bytes of the UTF-8 sequence at s[0..n), or 0 where it is none. */
static size_t sequence(const char *s, size_t n)
{
    char copy[5] = "";

    memcpy(copy, s, n < 4 ? n : 4);
    return text_utf8_len(copy);
}

/* Bytes that are no UTF-8 become U+FFFD. */
static size_t escape(const char *s, size_t n, char *out)
{
    static const char hex[] = "0123456789abcdef";
    char *to = out;
    size_t i = 0;

    while (i < n) {
        unsigned char c = (unsigned char)s[i];
        uint64_t w;
        size_t len;

        if (n - i >= 8) {
            memcpy(&w, s + i, 8);
            if (special_bytes(w) == 0) {
                memcpy(to, &w, 8);
                to += 8;
                i += 8;
                continue;
            }
        }
        if (c == '"' || c == '\\') {
            *to++ = '\\';
            *to++ = (char)c;
            i++;
        } else if (c < 0x20) {
            memcpy(to, "\\u00", 4);
            to[4] = hex[c >> 4];
            to[5] = hex[c & 15];
            to += 6;
            i++;
        } else {
            len = c < 0x80 ? 1 : sequence(s + i, n - i);
            memcpy(to, len ? s + i : "\\ufffd", len ? len : 6);
            to += len ? len : 6;
            i += len ? len : 1;
        }
    }
    return (size_t)(to - out);
}

size_t relay_write_max(const struct relay *r, const struct relay_line *line)
{
    size_t mark = r->json ? JSON_MARK_LEN : MARK_LEN;

    return r->head_len + (r->json ? 6 * line->len + 3 : line->len + 1) +
           (line->is_part ? mark : 0);
}

size_t relay_write(const struct relay *r, const struct relay_line *line,
                   char *out)
{
    char *to = out;

    memcpy(to, r->head, r->head_len);
    to += r->head_len;
    if (r->json) {
        to += escape(line->at, line->len, to);
        *to++ = '"';
        if (line->is_part) {
            memcpy(to, RELAY_JSON_MARK, JSON_MARK_LEN);
            to += JSON_MARK_LEN;
        }
        *to++ = '}';
    } else {
        memcpy(to, line->at, line->len);
        to += line->len;
        if (line->is_part) {
            memcpy(to, RELAY_MARK, MARK_LEN);
            to += MARK_LEN;
        }
    }
    *to++ = '\n';
    return (size_t)(to - out);
}

size_t relay_format(const struct relay *r, const char *s, size_t len,
                    char *out)
{
    struct relay_line line = {.at = s, .len = len};

    return relay_write(r, &line, out);
}
