/* manifest_digest: the digest of a set; see manifest_finish() in manifest.h.
 *
 * It is of sorted lines, which are made one by one: all of them would need as
 * much memory as the manifest itself. They differ in the hash, mostly, so that
 * the order can be told without them. */
#include "dataset/manifest.h"

#include <stdlib.h>
#include <string.h>

#define LINE_MAX_BYTES (2 * DATASET_PATH_MAX + DIGEST_HEX_MAX + 64)

static bool is_odd(const struct manifest_entry *entry)
{
    return strchr(entry->path, '\n') != NULL;
}

static size_t put_path(char *to, const char *path, bool odd)
{
    char *start = to;

    for (; *path; path++) {
        if (odd && (*path == '\n' || *path == '\\'))
            *to++ = '\\';
        *to++ = *path == '\n' ? 'n' : *path;
    }
    return (size_t)(to - start);
}

static char *put(char *to, const char *word)
{
    size_t n = strlen(word);

    memcpy(to, word, n);
    return to + n;
}

static char *put_number(char *to, uint64_t n)
{
    char digits[24], *at = digits + sizeof digits - 1;

    *at = '\0';
    do
        *--at = (char)('0' + n % 10);
    while ((n /= 10) > 0);
    return put(to, at);
}

/* By hand, as there may be millions. */
static size_t make_line(char *line, const struct manifest_entry *entry)
{
    bool odd = is_odd(entry);
    char *to = put(line, odd ? "\\" : "");

    to = put(to, digest_word(entry->hash_kind));
    *to++ = ':';
    digest_hex(entry->hash, digest_size(entry->hash_kind), to);
    to += 2 * digest_size(entry->hash_kind);
    *to++ = ' ';
    to = entry->has_size ? put_number(to, entry->size) : put(to, "-");
    *to++ = ' ';
    to += put_path(to, entry->path, odd);
    *to++ = ' ';
    to = put(to, manifest_unpack_word(entry->unpack));
    to = put(to, "\n");
    *to = '\0';
    return (size_t)(to - line);
}

/* The order of the lines by bytes. */
static int by_line(const void *a, const void *b)
{
    const struct manifest_entry *x = *(const struct manifest_entry *const *)a;
    const struct manifest_entry *y = *(const struct manifest_entry *const *)b;
    char line_x[LINE_MAX_BYTES], line_y[LINE_MAX_BYTES];
    int order;

    if (x->hash_kind == y->hash_kind) {
        order = memcmp(x->hash, y->hash, digest_size(x->hash_kind));
        if (order && is_odd(x) == is_odd(y))
            return order;
    }
    (void)make_line(line_x, x);
    (void)make_line(line_y, y);
    return strcmp(line_x, line_y);
}

int manifest_digest(struct manifest *m, struct err *e)
{
    const struct manifest_entry **sorted =
        calloc(m->n_entries, sizeof *sorted);
    char line[LINE_MAX_BYTES];
    uint8_t sum[DIGEST_MAX];
    struct digest d;

    if (!sorted)
        return err_set(e, ERR_RESOURCE, "no memory left for the manifest");
    for (size_t i = 0; i < m->n_entries; i++)
        sorted[i] = &m->entries[i];
    qsort(sorted, m->n_entries, sizeof *sorted, by_line);
    digest_start(&d, DIGEST_SHA256);
    for (size_t i = 0; i < m->n_entries; i++)
        digest_add(&d, line, make_line(line, sorted[i]));
    digest_end(&d, sum);
    memcpy(m->digest, sum, sizeof m->digest);
    free(sorted);
    return 0;
}
