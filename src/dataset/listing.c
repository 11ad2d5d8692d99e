/* listing: see listing.h. */
#include "dataset/listing.h"

#include "base/mem.h"
#include "base/text.h"
#include "dataset/pool.h"
#include "dataset/pump.h"
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
    bool unpack;
    const struct listing_skip *skip;
    struct listing_notes *notes;
    bool config_map; /* The volume of one; see is_skipped(). */
    struct meter meter;
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

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), len = strlen(end);

    return n > len && strcmp(s + n - len, end) == 0;
}

static bool is_archive(const char *path)
{
    static const char *const ends[] = {".tar",    ".tar.gz", ".tgz",
                                       ".tar.xz", ".tar.zst", ".zip"};

    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        if (ends_with(path, ends[i]))
            return true;
    return false;
}

/* Where `x` lies beside `x.gz` both are data, and no two may make one file. */
static int choose_unpack(struct listing *l, struct manifest_entry *entry,
                         struct err *e)
{
    char *out = NULL;
    int rc;

    if (is_archive(entry->path)) {
        if (l->notes->n_archives++ == 0)
            (void)text_copy(l->notes->archive, sizeof l->notes->archive,
                            entry->path);
        return 0;
    }
    rc = manifest_out_path(entry->path, &out, e);
    if (rc || !out)
        return rc;
    if (path_fault(out) || tree_has(&l->tree, out)) {
        free(out);
        return 0;
    }
    entry->unpack = UNPACK_GZIP;
    entry->out_path = out;
    return 0;
}

/* A pool_fn. */
static int hash_one(void *ctx, const struct pool_turn *turn, struct err *e)
{
    struct listing *l = ctx;
    struct manifest_entry *entry = &l->m->entries[turn->i];
    autoclose int fd = -1;
    struct path_shown p;
    const char *shown = path_show(&p, l->tree.shown, entry->path);
    struct pump pump;
    struct stat st;
    enum pump_end end;
    int rc = tree_open_file(&l->tree, entry->path, &fd, &st, e);

    if (rc)
        return rc;
    pump = (struct pump){.from = fd, .packed_to = -1, .unpacked_to = -1,
                         .unpack = entry->unpack != UNPACK_NONE,
                         .kind = DIGEST_SHA256, .size = (uint64_t)st.st_size,
                         .unpacked_max = MANIFEST_FILE_MAX,
                         .meter = &l->meter, .turn = turn};
    end = pump_run(&pump);
    if (end == PUMP_READ)
        return tree_fault(&l->tree, entry->path, pump.error, e);
    if (end != PUMP_DONE)
        return err_set(e, ERR_RESOURCE, "no memory left to unpack '%s'",
                       shown);
    if (pump.n != (uint64_t)st.st_size)
        return err_set(e, ERR_DATA, "'%s' changed while it was read", shown);
    if (pump.unpack_fault)
        return err_set(e, ERR_DATA, "'%s' cannot be unpacked: %s", shown,
                       pump.unpack_fault);
    if (pump.n > MANIFEST_FILE_MAX || pump.unpacked_over)
        return err_set(e, ERR_DATA, "'%s' is over the limit of 1 PiB", shown);
    entry->size = pump.n;
    entry->has_size = true;
    memcpy(entry->hash, pump.hash, sizeof entry->hash);
    if (entry->unpack != UNPACK_NONE) {
        entry->has_unpacked_size = entry->has_unpacked_sha256 = true;
        entry->unpacked_size = pump.n_unpacked;
        memcpy(entry->unpacked_sha256, pump.unpacked_sha256, 32);
    }
    return 0;
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(((const struct manifest_entry *)a)->path,
                  ((const struct manifest_entry *)b)->path);
}

static int list_and_hash(struct listing *l, struct err *e)
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
    for (size_t i = 0; l->unpack && rc == 0 && i < l->m->n_entries; i++)
        rc = choose_unpack(l, &l->m->entries[i], e);
    if (rc == 0)
        rc = pool_run(l->m->n_entries, sizeof(struct pump_buffers), hash_one,
                      l, &l->meter, e);
    return rc;
}

int listing_make(struct manifest *ret, const char *folder, bool unpack,
                 const struct listing_skip *skip, struct listing_notes *notes,
                 struct err *e)
{
    struct listing l = {.m = ret, .unpack = unpack, .skip = skip,
                        .notes = notes};
    int rc;

    memset(notes, 0, sizeof *notes);
    rc = tree_open(&l.tree, folder, e);
    if (rc)
        return rc;
    rc = list_and_hash(&l, e);
    (void)close(l.tree.fd);
    return rc;
}
