/* marker_text: see marker_text.h. */
#include "dataset/marker_text.h"

#include <stdio.h>
#include <string.h>

size_t marker_head(char *out, const struct manifest *m, size_t n)
{
    char hex[DIGEST_HEX_MAX];

    digest_hex(m->digest, sizeof m->digest, hex);
    return (size_t)snprintf(out, MARKER_LINE_MAX,
                            "agent-stage 1\nset %s %zu %s\n", hex, n,
                            m->name);
}

size_t marker_escape(char *out, const char *path)
{
    char *to = out;

    for (; *path; path++) {
        if (*path == '\n' || *path == '\\')
            *to++ = '\\';
        *to++ = *path == '\n' ? 'n' : *path;
    }
    *to++ = '\n';
    return (size_t)(to - out);
}

/* Digits and the character after them. */
static bool number(const char **at, const char *end, char after, uint64_t *ret)
{
    const char *p = *at;
    uint64_t n = 0;

    for (; p < end && *p >= '0' && *p <= '9'; p++)
        if (__builtin_mul_overflow(n, (uint64_t)10, &n) ||
            __builtin_add_overflow(n, (uint64_t)(*p - '0'), &n))
            return false;
    if (p == *at || p == end || *p != after)
        return false;
    *at = p + 1;
    *ret = n;
    return true;
}

static bool time_of(const char **at, const char *end, struct timespec *ret)
{
    bool negative = *at < end && **at == '-';
    uint64_t s, ns;

    *at += negative;
    if (!number(at, end, '.', &s) || !number(at, end, ' ', &ns) ||
        s > INT64_MAX || ns > 999999999)
        return false;
    ret->tv_sec = negative ? -(time_t)s : (time_t)s;
    ret->tv_nsec = (long)ns;
    return true;
}

static bool hash_of(const char **at, const char *end, struct marker_row *row)
{
    char hex[65];

    row->link = end - *at > 2 && memcmp(*at, "l:", 2) == 0;
    if (row->link)
        *at += 2;
    if (end - *at > 2 && memcmp(*at, "- ", 2) == 0) {
        *at += 2;
        row->has_sha256 = false;
        return !row->link;
    }
    if (end - *at < 66 || (*at)[64] != ' ')
        return false;
    memcpy(hex, *at, 64);
    hex[64] = '\0';
    *at += 65;
    row->has_sha256 = digest_read_hex(hex, row->sha256, 32);
    return row->has_sha256;
}

bool marker_parse(const char *line, size_t len, struct marker_row *ret,
                  char path[DATASET_PATH_MAX + 1])
{
    const char *at = line, *end = line + len;
    size_t n = 0;

    if (!number(&at, end, ' ', &ret->size) ||
        !time_of(&at, end, &ret->mtime) || !time_of(&at, end, &ret->ctime) ||
        !number(&at, end, ' ', &ret->ino) || !hash_of(&at, end, ret))
        return false;
    while (at < end && n < DATASET_PATH_MAX) {
        char c = *at++;

        if (c == '\\') {
            if (at == end || (*at != 'n' && *at != '\\'))
                return false;
            c = *at++ == 'n' ? '\n' : '\\';
        }
        path[n++] = c;
    }
    path[n] = '\0';
    return at == end && n > 0;
}
