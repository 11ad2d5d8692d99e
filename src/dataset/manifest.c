/* manifest: entries, their checks and the set's digest; see manifest.h. */
#include "dataset/manifest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char *manifest_unpack_word(enum manifest_unpack unpack)
{
    static const char *const words[] = {
#define X(name, word) word,
        MANIFEST_UNPACK_TABLE(X)
#undef X
    };

    return words[unpack];
}

bool manifest_is_archive(enum manifest_unpack unpack)
{
    return unpack >= UNPACK_TAR;
}

bool manifest_has_archives(const struct manifest *m)
{
    for (size_t i = 0; i < m->n_entries; i++)
        if (manifest_is_archive(m->entries[i].unpack))
            return true;
    return false;
}

static int no_memory(struct err *e)
{
    return err_set(e, ERR_RESOURCE, "no memory left for the manifest");
}

void manifest_free(struct manifest *m)
{
    for (size_t i = 0; i < m->n_entries; i++) {
        if (m->entries[i].out_path != m->entries[i].path)
            free(m->entries[i].out_path);
        free(m->entries[i].path);
    }
    free(m->entries);
    free(m->outputs);
    memset(m, 0, sizeof *m);
}

struct manifest_entry *manifest_add(struct manifest *m, char *path,
                                    struct err *e)
{
    struct manifest_entry *entry;

    if (m->n_entries >= MANIFEST_MAX_FILES) {
        (void)err_set(e, ERR_DATA, "more than %u files in one set",
                      MANIFEST_MAX_FILES);
        free(path);
        return NULL;
    }
    if (m->n_entries == m->cap_entries) {
        size_t cap = m->cap_entries ? 2 * m->cap_entries : 16;
        void *more = reallocarray(m->entries, cap, sizeof *m->entries);

        if (!more) {
            (void)no_memory(e);
            free(path);
            return NULL;
        }
        m->entries = more;
        m->cap_entries = cap;
    }
    entry = &m->entries[m->n_entries++];
    memset(entry, 0, sizeof *entry);
    entry->path = entry->out_path = path;
    return entry;
}

int manifest_out_path(const char *path, char **ret, struct err *e)
{
    size_t len = strlen(path);
    char *out;

    if (len < 4 || strcmp(path + len - 3, ".gz") != 0 || path[len - 4] == '/')
        return 0;
    out = strndup(path, len - 3);
    if (!out)
        return no_memory(e);
    *ret = out;
    return 0;
}

static int by_path(const void *a, const void *b)
{
    const struct manifest_entry *x = a, *y = b;
    int order = path_compare(x->path, y->path);

    return order ? order : (x->line > y->line) - (x->line < y->line);
}

static bool same_entry(const struct manifest_entry *a,
                       const struct manifest_entry *b)
{
    return a->size == b->size && a->has_size == b->has_size &&
           a->hash_kind == b->hash_kind &&
           memcmp(a->hash, b->hash, digest_size(a->hash_kind)) == 0 &&
           a->unpack == b->unpack && a->keep == b->keep &&
           a->has_unpacked_size == b->has_unpacked_size &&
           a->unpacked_size == b->unpacked_size &&
           a->has_unpacked_sha256 == b->has_unpacked_sha256 &&
           memcmp(a->unpacked_sha256, b->unpacked_sha256, 32) == 0;
}

/* sha512, sha256, sha1, md5. */
static unsigned strength(enum digest_kind kind)
{
    return kind == DIGEST_SHA512 ? 4 : 3 - (unsigned)kind;
}

/* Sums of two kinds for one file, as in a CHECKSUM file: the stronger tells
 * more. */
static bool take_stronger(const struct manifest *m, struct manifest_entry *kept,
                          struct manifest_entry *entry)
{
    if (m->form != FORM_SUMS || kept->hash_kind == entry->hash_kind)
        return false;
    if (strength(entry->hash_kind) > strength(kept->hash_kind)) {
        kept->hash_kind = entry->hash_kind;
        kept->line = entry->line;
        memcpy(kept->hash, entry->hash, sizeof kept->hash);
    }
    return true;
}

static int by_output(const void *a, const void *b)
{
    return path_compare(((const struct manifest_output *)a)->path,
                        ((const struct manifest_output *)b)->path);
}

/* Most manifests are in order already. */
static void sort_entries(struct manifest *m)
{
    size_t i = 1;

    while (i < m->n_entries && by_path(&m->entries[i - 1], &m->entries[i]) <= 0)
        i++;
    if (i < m->n_entries)
        qsort(m->entries, m->n_entries, sizeof *m->entries, by_path);
}

static void sort_outputs(struct manifest *m)
{
    size_t i = 1;

    while (i < m->n_outputs &&
           path_compare(m->outputs[i - 1].path, m->outputs[i].path) <= 0)
        i++;
    if (i < m->n_outputs)
        qsort(m->outputs, m->n_outputs, sizeof *m->outputs, by_output);
}

static int drop_doubles(struct manifest *m, const char *file, struct err *e)
{
    size_t n = 0;

    for (size_t i = 0; i < m->n_entries; i++) {
        struct manifest_entry *entry = &m->entries[i];
        struct manifest_entry *last = n > 0 ? &m->entries[n - 1] : NULL;
        struct path_shown p;

        if (!last || strcmp(last->path, entry->path) != 0) {
            m->entries[n++] = *entry;
            continue;
        }
        if (!take_stronger(m, last, entry) && !same_entry(last, entry)) {
            int rc = err_set(e, ERR_DATA,
                             "%s:%u: '%s' is listed twice and differs from "
                             "line %u: keep the right one",
                             file, entry->line,
                             path_show(&p, NULL, entry->path), last->line);
            /* All that are left are ours to free: close the gap. */
            memmove(&m->entries[n], entry,
                    (m->n_entries - i) * sizeof *entry);
            m->n_entries -= i - n;
            return rc;
        }
        if (entry->out_path != entry->path)
            free(entry->out_path);
        free(entry->path);
    }
    m->n_entries = n;
    return 0;
}

static int sum_up(struct manifest *m, const char *file, struct err *e)
{
    uint64_t total = 0; /* What is read and written, at most. */

    m->n_bytes = 0;
    for (size_t i = 0; i < m->n_entries; i++) {
        const struct manifest_entry *entry = &m->entries[i];

        m->n_bytes += entry->size;
        total += entry->size + entry->unpacked_size;
        if (total > MANIFEST_TOTAL_MAX)
            return err_set(e, ERR_DATA,
                           "%s:%u: the sizes are over the limit of 1 EiB for "
                           "a set",
                           file, entry->line);
    }
    return 0;
}

/* Two outputs that cannot both be there: one path, or a file as a folder. */
static int check_outputs(const struct manifest *m, const char *file,
                         struct err *e)
{
    for (size_t i = 1; i < m->n_outputs; i++) {
        const char *a = m->outputs[i - 1].path, *b = m->outputs[i].path;
        size_t len = strlen(a);
        unsigned line_a = m->entries[m->outputs[i - 1].entry].line;
        unsigned line_b = m->entries[m->outputs[i].entry].line;
        struct path_shown p;

        if (strncmp(a, b, len) != 0 || (b[len] != '\0' && b[len] != '/'))
            continue;
        return err_set(e, ERR_DATA, "%s:%u: '%s' would be %s (see line %u)",
                       file, line_b, path_show(&p, NULL, a),
                       b[len] ? "both a file and a folder" : "made twice",
                       line_a);
    }
    return 0;
}

static int list_outputs(struct manifest *m, const char *file, struct err *e)
{
    m->outputs = calloc(2 * m->n_entries, sizeof *m->outputs);
    if (!m->outputs)
        return no_memory(e);
    m->n_outputs = 0;
    for (size_t i = 0; i < m->n_entries; i++) {
        const struct manifest_entry *entry = &m->entries[i];
        bool unpacked = entry->unpack != UNPACK_NONE;

        if (!manifest_is_archive(entry->unpack))
            m->outputs[m->n_outputs++] = (struct manifest_output){
                entry->out_path, (uint32_t)i, unpacked};
        if (unpacked && entry->keep)
            m->outputs[m->n_outputs++] =
                (struct manifest_output){entry->path, (uint32_t)i, false};
    }
    sort_outputs(m);
    return check_outputs(m, file, e);
}

const char *manifest_weak_hash(const struct manifest *m)
{
    bool sha1 = false;

    for (size_t i = 0; i < m->n_entries; i++) {
        if (m->entries[i].hash_kind == DIGEST_MD5)
            return "md5";
        sha1 = sha1 || m->entries[i].hash_kind == DIGEST_SHA1;
    }
    return sha1 ? "sha1" : NULL;
}

int manifest_finish(struct manifest *m, const char *file, struct err *e)
{
    int rc;

    if (m->n_entries == 0)
        return err_set(e, ERR_DATA, "%s: it names no file", file);
    sort_entries(m);
    rc = drop_doubles(m, file, e);
    if (rc == 0)
        rc = sum_up(m, file, e);
    if (rc == 0)
        rc = list_outputs(m, file, e);
    if (rc == 0)
        rc = manifest_digest(m, e);
    return rc;
}
