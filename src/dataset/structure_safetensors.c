/* structure_safetensors: the JSON header of a safetensors file; see
 * structure.h. Pure. */
#include "dataset/structure.h"

#include "dataset/manifest_reader.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 16

static int skip_any(struct reader *r, unsigned depth);

static int skip_items(struct reader *r, char end, unsigned depth)
{
    bool first = true;
    size_t at;
    int rc = 0;

    r->pos++;
    while (rc == 0 && (rc = reader_item(r, &first, end, "in the header")) > 0) {
        rc = 0;
        if (end == '}') {
            char *key = reader_string(r, "key", &at);

            if (!key)
                return -r->e->code;
            free(key);
            rc = reader_expect(r, ':', "after the key");
        }
        if (rc == 0)
            rc = skip_any(r, depth + 1);
    }
    return rc;
}

static int skip_any(struct reader *r, unsigned depth)
{
    char c = reader_peek(r);
    size_t at;
    json_t *v;

    if (depth > DEPTH_MAX)
        return reader_fail(r, r->pos, "too deep");
    if (c == '{' || c == '[')
        return skip_items(r, c == '{' ? '}' : ']', depth);
    v = reader_value(r, &at);
    json_decref(v);
    return v ? 0 : -r->e->code;
}

static int read_offsets(struct reader *r, uint64_t *max)
{
    uint64_t from, to = 0;
    int rc = reader_expect(r, '[', "for data_offsets");

    if (rc == 0)
        rc = reader_size(r, "data_offsets", &from);
    if (rc == 0)
        rc = reader_expect(r, ',', "in data_offsets");
    if (rc == 0)
        rc = reader_size(r, "data_offsets", &to);
    if (rc == 0)
        rc = reader_expect(r, ']', "after data_offsets");
    if (rc == 0 && to > *max)
        *max = to;
    return rc;
}

static int read_tensor(struct reader *r, uint64_t *max)
{
    bool first = true;
    size_t at;
    int rc = reader_expect(r, '{', "for a tensor");

    while (rc == 0 && (rc = reader_item(r, &first, '}', "in a tensor")) > 0) {
        char *key = reader_string(r, "key", &at);
        bool offsets;

        if (!key)
            return -r->e->code;
        offsets = strcmp(key, "data_offsets") == 0;
        free(key);
        rc = reader_expect(r, ':', "after the key");
        if (rc == 0)
            rc = offsets ? read_offsets(r, max) : skip_any(r, 0);
    }
    return rc;
}

static int read_header(struct reader *r, uint64_t *max)
{
    bool first = true;
    size_t at;
    int rc = reader_expect(r, '{', "for the header");

    while (rc == 0 && (rc = reader_item(r, &first, '}', "in the header")) > 0) {
        char *key = reader_string(r, "key", &at);
        bool tensor;

        if (!key)
            return -r->e->code;
        tensor = strcmp(key, "__metadata__") != 0;
        free(key);
        rc = reader_expect(r, ':', "after the key");
        if (rc == 0)
            rc = tensor ? read_tensor(r, max) : skip_any(r, 0);
    }
    return rc;
}

bool structure_safetensors(const char *text, size_t len, uint64_t size,
                           struct structure *ret)
{
    struct err e;
    struct reader r = {.file = "header", .text = text, .len = len,
                       .line_n = 1, .e = &e};
    uint64_t max = 0;

    if (read_header(&r, &max))
        return structure_fail(ret, "its safetensors header is damaged: %s",
                              e.text);
    if (max + 8 + len == size)
        return true;
    return structure_fail(ret, "its safetensors header asks for %" PRIu64
                               " bytes, and it has %" PRIu64 "%s",
                          max + 8 + len, size,
                          size < max + 8 + len ? ": it is cut" : "");
}
