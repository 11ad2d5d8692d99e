/* structure_parts: checks of bytes in memory; see structure.h. Pure. */
#include "dataset/structure.h"

#include "base/text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

bool structure_fail(struct structure *ret, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(ret->fault, sizeof ret->fault, fmt, ap);
    va_end(ap);
    (void)text_make_utf8(ret->fault, sizeof ret->fault - 1);
    return false;
}

bool structure_ends(const char *path, const char *end)
{
    size_t n = strlen(path), m = strlen(end);

    return n >= m && strcasecmp(path + n - m, end) == 0;
}

static bool starts(const struct structure_view *v, size_t at, const char *word)
{
    size_t n = strlen(word);

    return v->n_head >= at + n &&
           strncasecmp((const char *)v->head + at, word, n) == 0;
}

static bool holds(const struct structure_view *v, const char *word)
{
    for (size_t i = 0; i < v->n_head; i++)
        if (starts(v, i, word))
            return true;
    return false;
}

bool structure_page(const struct structure_view *v, struct structure *ret)
{
    static const char *const pages[] = {".html", ".htm", ".xhtml", ".xml",
                                        ".svg",  ".txt", ".md"};
    size_t at = 0;

    if (starts(v, 0, "version https://git-lfs") && v->size <= STRUCTURE_HEAD &&
        !structure_ends(v->path, ".lfs") &&
        !structure_ends(v->path, ".pointer") &&
        !structure_ends(v->path, ".ptr"))
        return structure_fail(ret, "it is a Git LFS pointer, not the data: "
                                   "run 'git lfs pull' where the source is "
                                   "made");
    for (size_t i = 0; i < sizeof pages / sizeof pages[0]; i++)
        if (structure_ends(v->path, pages[i]))
            return true;
    if (starts(v, 0, "\xef\xbb\xbf"))
        at = 3;
    while (at < v->n_head && strchr(" \t\r\n", v->head[at]) && v->head[at])
        at++;
    if (starts(v, at, "<!doctype html") || starts(v, at, "<html") ||
        starts(v, at, "<head") || starts(v, at, "<body") ||
        (starts(v, at, "<?xml") && holds(v, "<html")))
        return structure_fail(ret, "it is an HTML page, an error page "
                                   "perhaps, not the data: download it again");
    if (starts(v, at, "<?xml") && holds(v, "<Error>"))
        return structure_fail(ret, "it is an error message of the server, in "
                                   "XML, not the data: download it again");
    return true;
}

static uint32_t big32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 |
           p[3];
}

/* "train-images-idx3-ubyte", "x.idx1": true, with the number. */
static bool idx_name(const char *path, unsigned *ret_dims)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;

    for (const char *at = name; (at = strcasestr(at, "idx")); at += 3) {
        bool before = at > name && strchr("-._", at[-1]);

        if (!before || at[3] < '1' || at[3] > '9')
            continue;
        if (at[4] == '\0' || strchr("-._", at[4])) {
            *ret_dims = (unsigned)(at[3] - '0');
            return true;
        }
    }
    return false;
}

static unsigned idx_width(uint8_t type)
{
    switch (type) {
    case 0x08:
    case 0x09:
        return 1;
    case 0x0b:
        return 2;
    case 0x0c:
    case 0x0d:
        return 4;
    case 0x0e:
        return 8;
    default:
        return 0;
    }
}

bool structure_idx(const struct structure_view *v, struct structure *ret)
{
    unsigned named, dims, width;
    uint64_t want;

    if (structure_ends(v->path, ".gz") || !idx_name(v->path, &named))
        return true;
    ret->kind = "IDX";
    width = v->n_head > 3 ? idx_width(v->head[2]) : 0;
    dims = v->n_head > 3 ? v->head[3] : 0;
    if (width == 0 || v->head[0] || v->head[1] || dims == 0 || dims > 32 ||
        v->n_head < 4 + 4 * (size_t)dims)
        return structure_fail(ret, "it has no IDX header, as its name says");
    if (dims != named)
        return structure_fail(ret, "its IDX header says %u dimension%s, its "
                                   "name %u",
                              dims, text_plural(dims), named);
    want = width;
    for (unsigned i = 0; i < dims; i++)
        if (__builtin_mul_overflow(want, big32(v->head + 4 + 4 * i), &want))
            return structure_fail(ret, "the sizes in its IDX header are too "
                                       "large");
    if (__builtin_add_overflow(want, 4 + 4 * (uint64_t)dims, &want) ||
        v->size != want)
        return structure_fail(ret, "its IDX header asks for %" PRIu64
                                   " bytes, and it has %" PRIu64 "%s",
                              want, v->size,
                              v->size < want ? ": it is cut" : "");
    return true;
}

static uint32_t little32(const uint8_t *p)
{
    return (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 |
           p[0];
}

/* The token files of llm.c: 256 numbers, then 16 bits a token. */
bool structure_tokens(const struct structure_view *v, struct structure *ret)
{
    uint64_t want;

    if (!structure_ends(v->path, ".bin") || v->n_head < 12 ||
        little32(v->head) != 20240520 || little32(v->head + 4) != 1)
        return true;
    ret->kind = "tokens";
    want = 1024 + 2 * (uint64_t)little32(v->head + 8);
    if (v->size == want)
        return true;
    return structure_fail(ret, "its header of tokens asks for %" PRIu64
                               " bytes, and it has %" PRIu64 "%s",
                          want, v->size, v->size < want ? ": it is cut" : "");
}
