/* digits_data: see digits_data.h.
 *
 * IDX: two zero bytes, the type (8: unsigned byte), the number of dimensions,
 * each dimension as a big-endian u32, then the elements. */
#include "digits_data.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct idx {
    FILE *file;
    char path[768];
    uint32_t dims[3];
};

__attribute__((format(printf, 2, 3))) static int fail(char *why,
                                                      const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(why, DIGITS_WHY, fmt, ap);
    va_end(ap);
    return -1;
}

static int read_head(struct idx *f, unsigned n_dims, char *why)
{
    uint8_t b[16];
    size_t len = 4 + 4 * (size_t)n_dims;

    if (fread(b, 1, len, f->file) != len)
        return fail(why, "%s: shorter than its header", f->path);
    if (b[0] || b[1] || b[2] != 8 || b[3] != n_dims)
        return fail(why, "%s: starts with %02x%02x%02x%02x, but an IDX file "
                    "of bytes with %u dimensions starts with 0000%02x%02x",
                    f->path, b[0], b[1], b[2], b[3], n_dims, 8, n_dims);
    for (unsigned i = 0; i < n_dims; i++) {
        const uint8_t *d = b + 4 + 4 * i;

        f->dims[i] = (uint32_t)d[0] << 24 | (uint32_t)d[1] << 16 |
                     (uint32_t)d[2] << 8 | d[3];
    }
    return 0;
}

static int open_idx(struct idx *f, const char *dir, const char *set,
                    const char *kind, unsigned n_dims, char *why)
{
    int len = snprintf(f->path, sizeof f->path, "%s/MNIST/raw/%s-%s-ubyte", dir,
                       set, kind);

    if (len < 0 || (size_t)len >= sizeof f->path)
        return fail(why, "the name of the data folder is too long");
    f->file = fopen(f->path, "rbe");
    if (!f->file)
        return fail(why, "%s: %s", f->path, strerror(errno));
    return read_head(f, n_dims, why);
}

/* Keep each size-th record of `len` bytes, from number `rank` on. */
static int read_shard(struct idx *f, size_t len, uint32_t rank, uint32_t size,
                      uint8_t *to, char *why)
{
    uint8_t skipped[DIGITS_PIXELS_MAX];

    for (uint32_t i = 0; i < f->dims[0]; i++) {
        uint8_t *at = i % size == rank ? to : skipped;

        if (fread(at, 1, len, f->file) != len)
            return fail(why, "%s: ends after %u of %u records", f->path, i,
                        f->dims[0]);
        if (at == to)
            to += len;
    }
    if (fgetc(f->file) != EOF)
        return fail(why, "%s: longer than its header says", f->path);
    return 0;
}

static int check(const struct idx *images, const struct idx *labels, char *why)
{
    const uint32_t *d = images->dims;

    if (d[0] == 0 || d[1] == 0 || d[2] == 0 ||
        (uint64_t)d[1] * d[2] > DIGITS_PIXELS_MAX || d[0] > 100000000)
        return fail(why, "%s: %u images of %u x %u are not usable",
                    images->path, d[0], d[1], d[2]);
    if (labels->dims[0] != d[0])
        return fail(why, "%s: %u labels for %u images", labels->path,
                    labels->dims[0], d[0]);
    return 0;
}

static int load(struct digits *d, struct idx *images, struct idx *labels,
                uint32_t rank, uint32_t size, char *why)
{
    d->n_all = images->dims[0];
    d->n = (d->n_all + size - 1 - rank) / size;
    d->pixels = images->dims[1] * images->dims[2];
    d->images = calloc((size_t)d->n + 1, d->pixels);
    d->labels = calloc((size_t)d->n + 1, 1);
    if (!d->images || !d->labels)
        return fail(why, "%s: out of memory", images->path);
    if (read_shard(images, d->pixels, rank, size, d->images, why) ||
        read_shard(labels, 1, rank, size, d->labels, why))
        return -1;
    for (uint32_t i = 0; i < d->n; i++)
        if (d->labels[i] >= DIGITS_CLASSES)
            return fail(why, "%s: label %u is no digit", labels->path,
                        d->labels[i]);
    return 0;
}

int digits_load(struct digits *ret, const char *dir, const char *set,
                uint32_t rank, uint32_t size, char why[DIGITS_WHY])
{
    struct idx images = {.file = NULL}, labels = {.file = NULL};
    int rc;

    memset(ret, 0, sizeof *ret);
    rc = open_idx(&images, dir, set, "images-idx3", 3, why);
    if (!rc)
        rc = open_idx(&labels, dir, set, "labels-idx1", 1, why);
    if (!rc)
        rc = check(&images, &labels, why);
    if (!rc)
        rc = load(ret, &images, &labels, rank, size, why);
    if (images.file)
        (void)fclose(images.file);
    if (labels.file)
        (void)fclose(labels.file);
    if (rc)
        digits_free(ret);
    return rc;
}

void digits_free(struct digits *d)
{
    free(d->images);
    free(d->labels);
    memset(d, 0, sizeof *d);
}
