/* sizes: see sizes.h. */
#include "dataset/sizes.h"

#include "base/mem.h"
#include "dataset/pool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct filling {
    struct manifest *m;
    const struct tree *from;
};

/* A pool_fn. */
static int fill_one(void *ctx, const struct pool_turn *turn, struct err *e)
{
    const struct filling *f = ctx;
    struct manifest_entry *entry = &f->m->entries[turn->i];
    autoclose int fd = -1;
    struct path_shown p;
    struct stat st;

    if (entry->has_size)
        return 0;
    fd = tree_open_beneath(f->from->fd, entry->path, O_PATH);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return 0; /* Who opens it will say why. */
    if ((uint64_t)st.st_size > MANIFEST_FILE_MAX)
        return err_set(e, ERR_DATA, "'%s' is over the limit of 1 PiB",
                       path_show(&p, f->from->shown, entry->path));
    entry->size = (uint64_t)st.st_size;
    return 0;
}

int sizes_fill(struct manifest *m, const struct tree *from,
               struct meter *meter, struct err *e)
{
    struct filling f = {m, from};
    struct path_shown p;
    size_t i = 0;
    int rc;

    while (i < m->n_entries && m->entries[i].has_size)
        i++;
    if (i == m->n_entries)
        return 0;
    rc = pool_run(m->n_entries, 1, fill_one, &f, meter, e);
    m->n_bytes = 0;
    for (i = 0; rc == 0 && i < m->n_entries; i++) {
        m->n_bytes += m->entries[i].size;
        if (m->n_bytes > MANIFEST_TOTAL_MAX)
            rc = err_set(e, ERR_DATA,
                         "the files of '%s' are over the limit of 1 EiB for a "
                         "set",
                         path_show(&p, NULL, from->shown));
    }
    return rc;
}

static int by_path(const void *a, const void *b)
{
    return path_compare(a, ((const struct manifest_entry *)b)->path);
}

static int check_folder(const struct manifest *m, const struct tree *from,
                        const char *path, struct err *e);

static int check_name(const struct manifest *m, const struct tree *from,
                      int folder, const char *above, const char *name,
                      struct err *e)
{
    char path[DATASET_PATH_MAX + NAME_MAX + 2];
    struct path_shown p;
    struct stat st;

    (void)snprintf(path, sizeof path, "%s/%s", above, name);
    if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return tree_fault(from, path, errno, e);
    if (S_ISDIR(st.st_mode))
        return check_folder(m, from, path, e);
    if (bsearch(path, m->entries, m->n_entries, sizeof *m->entries, by_path))
        return 0;
    return err_set(e, ERR_DATA,
                   "'%s' is in the payload of the bag, and its manifest does "
                   "not list it: the bag is not valid",
                   path_show(&p, from->shown, path));
}

static int check_names(const struct manifest *m, const struct tree *from,
                       DIR *dir, const char *path, struct err *e)
{
    struct dirent *d;
    int rc = 0;

    while (rc == 0 && (errno = 0, d = readdir(dir)))
        if (strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0)
            rc = check_name(m, from, dirfd(dir), path, d->d_name, e);
    if (rc == 0 && errno)
        rc = tree_fault(from, path, errno, e);
    return rc;
}

/* Depth is bounded by path_fault(). */
static int check_folder(const struct manifest *m, const struct tree *from,
                        const char *path, struct err *e)
{
    struct path_shown p;
    const char *why = path_fault(path);
    DIR *dir;
    int fd, rc;

    if (why)
        return err_set(e, ERR_DATA, "'%s' in the payload of the bag: %s",
                       path_show(&p, from->shown, path), why);
    fd = tree_open_beneath(from->fd, path, O_RDONLY | O_DIRECTORY);
    if (fd < 0)
        return tree_fault(from, path, errno, e);
    dir = fdopendir(fd);
    if (!dir) {
        (void)close(fd);
        return err_set(e, ERR_RESOURCE, "no memory left to list files");
    }
    rc = check_names(m, from, dir, path, e);
    (void)closedir(dir);
    return rc;
}

int sizes_check_bag(const struct manifest *m, const struct tree *from,
                    struct err *e)
{
    struct stat st;

    if (m->form != FORM_BAG ||
        (fstatat(from->fd, "data", &st, AT_SYMLINK_NOFOLLOW) < 0 &&
         errno == ENOENT)) /* Each listed file will be found missing. */
        return 0;
    return check_folder(m, from, "data", e);
}
