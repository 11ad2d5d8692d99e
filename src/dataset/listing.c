/* listing: see listing.h. */
#include "dataset/listing.h"

#include "base/mem.h"
#include "base/text.h"
#include "dataset/tree.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

struct listing {
    struct tree tree;
    struct manifest *m;
    const struct listing_skip *skip;
    struct listing_notes *notes;
    bool config_map; /* The volume of one; see is_skipped(). */
};

static bool same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* ".name.<digits>.tmp" */
static bool is_unfinished(const char *file, const char *name)
{
    size_t len = strlen(name);

    if (file[0] != '.' || strncmp(file + 1, name, len) != 0 ||
        file[len + 1] != '.')
        return false;
    file += len + 2;
    if (!isdigit((unsigned char)*file))
        return false;
    file += strspn(file, "0123456789");
    return strcmp(file, ".tmp") == 0;
}

/* At the top, a stage's marker is no data, and in a ConfigMap volume the names
 * with two dots are kubelet's own: the files are there a second time, by
 * links, under names that do not change. */
static bool is_skipped(const struct listing *l, const struct stat *folder,
                       bool top, const char *name, const struct stat *st)
{
    const struct listing_skip *skip = l->skip;

    if (top && (strcmp(name, DATASET_MARKER) == 0 ||
                strcmp(name, DATASET_MARKER_TMP) == 0))
        return true;
    if (top && l->config_map && strncmp(name, "..", 2) == 0)
        return true;
    if (skip->by_inode && same_file(&skip->file, st))
        return true;
    return skip->by_name && same_file(&skip->folder, folder) &&
           (strcmp(name, skip->name) == 0 || is_unfinished(name, skip->name));
}

static int add_file(struct listing *l, const char *path, struct err *e)
{
    char *copy;
    const char *why = path_fault(path);
    struct path_shown p;

    if (why)
        return err_set(e, ERR_DATA, "'%s' cannot be listed: %s",
                       path_show(&p, l->tree.shown, path), why);
    copy = strdup(path);
    if (!copy)
        return err_set(e, ERR_RESOURCE, "no memory left to list files");
    return manifest_add(l->m, copy, e) ? 0 : -e->code;
}

/* A link counts as the file that it leads to. */
static int add_link(struct listing *l, const char *path, struct err *e)
{
    autoclose int fd = tree_open_beneath(l->tree.fd, path, O_PATH);
    struct path_shown p;
    struct stat st;

    if (fd < 0 && errno == ENOENT)
        return err_set(e, ERR_NODATA, "'%s' is a link to nothing",
                       path_show(&p, l->tree.shown, path));
    if (fd < 0 || fstat(fd, &st) < 0)
        return tree_fault(&l->tree, path, errno, e);
    if (S_ISREG(st.st_mode))
        return add_file(l, path, e);
    if (!S_ISDIR(st.st_mode))
        return tree_fault(&l->tree, path, ENXIO, e);
    if (l->notes->n_links++ == 0)
        (void)text_copy(l->notes->link, sizeof l->notes->link, path);
    return 0;
}

static int list_folder(struct listing *l, const char *path, struct err *e);

static int list_one(struct listing *l, int folder, const struct stat *at,
                    const char *above, const char *name, struct err *e)
{
    char path[DATASET_PATH_MAX + NAME_MAX + 2];
    struct path_shown p;
    struct stat st;

    (void)snprintf(path, sizeof path, "%s%s%s", above, *above ? "/" : "",
                   name);
    if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return tree_fault(&l->tree, path, errno, e);
    if (is_skipped(l, at, *above == '\0', name, &st))
        return 0;
    if (S_ISREG(st.st_mode))
        return add_file(l, path, e);
    if (S_ISLNK(st.st_mode))
        return add_link(l, path, e);
    if (S_ISDIR(st.st_mode))
        return list_folder(l, path, e);
    return err_set(e, ERR_DATA, "'%s' is no regular file: it cannot be listed",
                   path_show(&p, l->tree.shown, path));
}

static int list_names(struct listing *l, DIR *dir, const char *path,
                      struct err *e)
{
    struct dirent *entry;
    struct stat at;
    int rc = 0;

    if (fstat(dirfd(dir), &at) < 0)
        return tree_fault(&l->tree, path, errno, e);
    while (rc == 0 && (errno = 0, entry = readdir(dir))) {
        const char *name = entry->d_name;

        if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0)
            rc = list_one(l, dirfd(dir), &at, path, name, e);
    }
    if (rc == 0 && errno)
        rc = tree_fault(&l->tree, path, errno, e);
    return rc;
}

/* Depth is bounded by path_fault(). */
static int list_folder(struct listing *l, const char *path, struct err *e)
{
    const char *why = *path ? path_fault(path) : NULL;
    struct path_shown p;
    DIR *dir;
    int fd, rc;

    if (why)
        return err_set(e, ERR_DATA, "'%s' cannot be listed: %s",
                       path_show(&p, l->tree.shown, path), why);
    fd = openat(l->tree.fd, *path ? path : ".",
                O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return tree_fault(&l->tree, path, errno, e);
    dir = fdopendir(fd);
    if (!dir) {
        (void)close(fd);
        return err_set(e, ERR_RESOURCE, "no memory left to list files");
    }
    rc = list_names(l, dir, path, e);
    (void)closedir(dir);
    return rc;
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(((const struct manifest_entry *)a)->path,
                  ((const struct manifest_entry *)b)->path);
}

static int list_all(struct listing *l, struct err *e)
{
    struct stat st;
    int rc;

    l->config_map = fstatat(l->tree.fd, "..data", &st,
                            AT_SYMLINK_NOFOLLOW) == 0 &&
                    S_ISLNK(st.st_mode);
    rc = list_folder(l, "", e);
    if (rc)
        return rc;
    if (l->m->n_entries == 0)
        return err_set(e, ERR_DATA, "'%s' has no file to list",
                       l->tree.shown);
    qsort(l->m->entries, l->m->n_entries, sizeof *l->m->entries, by_bytes);
    return 0;
}

int listing_names(struct manifest *ret, const char *folder,
                  const struct listing_skip *skip,
                  struct listing_notes *notes, struct err *e)
{
    struct listing l = {.m = ret, .skip = skip, .notes = notes};
    int rc;

    memset(notes, 0, sizeof *notes);
    rc = tree_open(&l.tree, folder, e);
    if (rc)
        return rc;
    rc = list_all(&l, e);
    (void)close(l.tree.fd);
    return rc;
}
