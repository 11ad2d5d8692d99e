/* Fuzz target: gzip data, in pieces of two sizes: they unpack to the same, and
 * the same is wrong with them. */
#include "base/digest.h"
#include "dataset/gunzip.h"
#include "fuzz/fuzz.h"

#include <string.h>

#define OUT_MAX (1u << 20) /* Of a bomb. */

struct result {
    size_t n;
    const char *fault;
    uint8_t sum[DIGEST_MAX];
};

static void unpack(const uint8_t *data, size_t size, size_t piece, size_t cap,
                   struct result *ret)
{
    static uint8_t out[1024];
    struct gunzip *g = gunzip_new();
    struct digest d;

    fuzz_require(g != NULL);
    memset(ret, 0, sizeof *ret);
    digest_start(&d, DIGEST_SHA256);
    for (size_t at = 0; at < size && !ret->fault && ret->n < OUT_MAX;) {
        size_t len = size - at < piece ? size - at : piece, n;

        gunzip_add(g, data + at, len);
        at += len;
        do {
            size_t room = OUT_MAX - ret->n < cap ? OUT_MAX - ret->n : cap;

            n = gunzip_next(g, out, room);
            fuzz_require(n <= room);
            digest_add(&d, out, n);
            ret->n += n;
        } while (n > 0 && ret->n < OUT_MAX);
        ret->fault = gunzip_fault(g, false);
    }
    if (!ret->fault && ret->n < OUT_MAX)
        ret->fault = gunzip_fault(g, true);
    fuzz_require(!gunzip_no_memory(g));
    digest_end(&d, ret->sum);
    gunzip_free(g);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct result a, b;

    unpack(data, size, 4096, 1024, &a);
    unpack(data, size, 3, 7, &b);
    fuzz_require(a.n == b.n && memcmp(a.sum, b.sum, 32) == 0);
    if (a.n < OUT_MAX)
        fuzz_require(!a.fault == !b.fault);
    return 0;
}
