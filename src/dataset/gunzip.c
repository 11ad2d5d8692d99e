/* gunzip: see gunzip.h. */
#include "dataset/gunzip.h"

#include <limits.h>
#include <stdlib.h>

#define ZLIB_CONST
#include <zlib.h>

static const char after_the_end[] = "bytes follow the end of the gzip data";

struct gunzip {
    z_stream z;
    bool inside;    /* Of a member. */
    bool any;       /* A member has ended. */
    bool no_memory;
    uint64_t n_out; /* Of this member. */
    const char *fault;
};

struct gunzip *gunzip_new(void)
{
    struct gunzip *g = calloc(1, sizeof *g);

    if (g && inflateInit2(&g->z, 16 + MAX_WBITS) != Z_OK) { /* 16: gzip. */
        free(g);
        return NULL;
    }
    return g;
}

void gunzip_free(struct gunzip *g)
{
    if (!g)
        return;
    (void)inflateEnd(&g->z);
    free(g);
}

void gunzip_add(struct gunzip *g, const uint8_t *data, size_t len)
{
    g->z.next_in = data;
    g->z.avail_in = len < UINT_MAX ? (uInt)len : UINT_MAX;
}

static const char *data_fault(const struct gunzip *g)
{
    if (g->n_out == 0 && g->any)
        return after_the_end;
    if (g->n_out == 0 && g->z.total_in < 3)
        return "it is no gzip data";
    return "the gzip data is damaged";
}

size_t gunzip_next(struct gunzip *g, uint8_t *out, size_t cap)
{
    g->z.next_out = out;
    g->z.avail_out = cap < UINT_MAX ? (uInt)cap : UINT_MAX;
    cap = g->z.avail_out;
    while (!g->fault && g->z.avail_out > 0) {
        size_t before = g->z.avail_out;
        int rc;

        if (!g->inside) {
            if (g->z.avail_in == 0)
                break;
            /* zlib would wait for a second byte to judge the first. */
            if (g->any && g->z.next_in[0] != 0x1f) {
                g->fault = after_the_end;
                break;
            }
            g->inside = true;
            g->n_out = 0;
            (void)inflateReset(&g->z);
        }
        rc = inflate(&g->z, Z_NO_FLUSH);
        g->n_out += before - g->z.avail_out;
        if (rc == Z_STREAM_END) {
            g->inside = false;
            g->any = true;
        } else if (rc == Z_BUF_ERROR) {
            break; /* Neither input nor pending output. */
        } else if (rc == Z_MEM_ERROR) {
            g->fault = "no memory left to unpack";
            g->no_memory = true;
        } else if (rc != Z_OK) {
            g->fault = data_fault(g);
        }
    }
    return cap - g->z.avail_out;
}

const char *gunzip_fault(const struct gunzip *g, bool at_end)
{
    if (g->fault)
        return g->fault;
    if (at_end && g->inside)
        return "the gzip data ends early";
    if (at_end && !g->any)
        return "it is no gzip data";
    return NULL;
}

bool gunzip_no_memory(const struct gunzip *g)
{
    return g->no_memory;
}
