/* folders: see folders.h. */
#include "dataset/folders.h"

#include <string.h>

static size_t common_prefix(const char *a, const char *b)
{
    size_t n = 0;

    while (a[n] != '\0' && a[n] == b[n])
        n++;
    return n;
}

int folders_each(const struct manifest *m, folders_fn *fn, void *ctx,
                 struct err *e)
{
    const char *last = "";

    /* In order of path_compare() all files of a folder follow one another, so
     * a folder is new exactly where the path before does not share it. */
    for (size_t i = 0; i < m->n_outputs; i++) {
        const char *path = m->outputs[i].path;
        size_t shared = common_prefix(last, path);
        const char *slash = path;

        while ((slash = strchr(slash, '/'))) {
            char folder[DATASET_PATH_MAX + 1];
            size_t len = (size_t)(slash - path);
            int rc;

            slash++;
            if (len < shared)
                continue;
            memcpy(folder, path, len);
            folder[len] = '\0';
            rc = fn(ctx, folder, e);
            if (rc)
                return rc;
        }
        last = path;
    }
    return 0;
}
