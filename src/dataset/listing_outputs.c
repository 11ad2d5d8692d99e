/* listing_outputs: what the files that are listed unpack to, against each
 * other; see listing.h. */
#include "dataset/listing_parts.h"

#include <stdlib.h>
#include <string.h>

struct output {
    const char *path; /* Borrowed. */
    uint32_t entry;
};

static int by_path(const void *a, const void *b)
{
    const struct output *x = a, *y = b;
    int order = path_compare(x->path, y->path);

    return order ? order : (x->entry > y->entry) - (x->entry < y->entry);
}

static size_t count(const struct manifest *m,
                    const struct unpack_members *inside)
{
    size_t n = m->n_entries;

    for (size_t i = 0; i < m->n_entries; i++)
        n += inside[i].n;
    return n;
}

static size_t collect(const struct manifest *m,
                      const struct unpack_members *inside, struct output *ret)
{
    size_t n = 0;

    for (size_t i = 0; i < m->n_entries; i++) {
        if (!manifest_is_archive(m->entries[i].unpack))
            ret[n++] = (struct output){m->entries[i].out_path, (uint32_t)i};
        for (size_t k = 0; k < inside[i].n; k++)
            ret[n++] = (struct output){inside[i].at[k].path, (uint32_t)i};
    }
    return n;
}

static int clash(const struct tree *t, const struct manifest *m,
                 const struct output *a, const struct output *b,
                 struct err *e)
{
    const struct manifest_entry *x = &m->entries[a->entry];
    const struct manifest_entry *y = &m->entries[b->entry];
    struct path_shown p, q, r;

    if (a->entry == b->entry)
        return err_set(e, ERR_DATA,
                       "'%s' cannot be unpacked: '%s' in it would be both a "
                       "file and a folder",
                       path_show(&p, t->shown, x->path),
                       path_show(&q, NULL, a->path));
    return err_set(e, ERR_DATA,
                   "'%s' and '%s' would both make '%s': take one of them "
                   "away, or leave --unpack out",
                   path_show(&p, t->shown, x->path),
                   path_show(&q, t->shown, y->path),
                   path_show(&r, NULL, a->path));
}

int listing_check_outputs(const struct tree *t, const struct manifest *m,
                          const struct unpack_members *inside, struct err *e)
{
    size_t n = count(m, inside);
    struct output *all = calloc(n, sizeof *all);
    int rc = 0;

    if (!all)
        return err_set(e, ERR_RESOURCE, "no memory left to list files");
    n = collect(m, inside, all);
    qsort(all, n, sizeof *all, by_path);
    for (size_t i = 1; rc == 0 && i < n; i++) {
        size_t len = strlen(all[i - 1].path);
        const char *path = all[i].path;

        /* One path, or a file that would be a folder. */
        if (strncmp(all[i - 1].path, path, len) == 0 &&
            (path[len] == '\0' || path[len] == '/'))
            rc = clash(t, m, &all[i - 1], &all[i], e);
    }
    free(all);
    return rc;
}
