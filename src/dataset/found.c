/* found: see found.h. */
#include "dataset/found.h"

#include "base/mem.h"
#include "dataset/copy.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

void found_free(struct found *f)
{
    if (f->fd >= 0)
        (void)close(f->fd);
    marker_free(&f->marker);
    free(f->changed);
    *f = (struct found){.fd = -1};
}

/* A marker can be right in itself and yet tell of another hash than a newer
 * manifest of the same packed files. */
static bool hashes_agree(const struct found *f, const struct manifest *m)
{
    for (size_t i = 0; i < f->marker.n; i++) {
        const struct marker_row *row = &f->marker.rows[i];
        const struct manifest_output *out;
        const struct manifest_entry *entry;

        if (row->output == MARKER_NO_OUTPUT)
            continue;
        out = &m->outputs[row->output];
        entry = &m->entries[out->entry];
        if (!out->unpacked)
            continue;
        if (entry->has_unpacked_sha256 &&
            memcmp(entry->unpacked_sha256, row->sha256, 32) != 0)
            return false;
        if (entry->has_unpacked_size && entry->unpacked_size != row->size)
            return false;
    }
    return true;
}

/* Where another host may have changed a file its server is asked: NFS would
 * answer with what it knew up to a minute before. */
static void stat_all(struct found *f, bool is_shared)
{
    for (size_t i = 0; i < f->marker.n; i++) {
        const struct marker_row *row = &f->marker.rows[i];
        struct statx fresh;
        struct stat st;

        if (is_shared)
            (void)statx(f->fd, row->path,
                        AT_SYMLINK_NOFOLLOW | AT_STATX_FORCE_SYNC,
                        STATX_BASIC_STATS, &fresh);
        if (fstatat(f->fd, row->path, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
            !marker_row_same(row, &st))
            f->changed[f->n_changed++] = i;
    }
    f->state = f->n_changed > 0 ? FOUND_CHANGED : FOUND_SAME;
}

int found_look(struct found *ret, const struct stage_set *s, struct err *e)
{
    struct path_shown p;

    *ret = (struct found){.fd = -1, .state = FOUND_NOTHING};
    ret->fd = openat(s->root.fd, s->final,
                     O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (ret->fd < 0 && errno == ENOENT)
        return 0;
    if (ret->fd < 0 && (errno == ENOTDIR || errno == ELOOP))
        return err_set(e, ERR_USAGE,
                       "'%s' is in the way of the stage, and is no folder: "
                       "remove it",
                       path_show(&p, s->root.shown, s->final));
    if (ret->fd < 0)
        return space_fault(&s->root, "open", s->final, errno, e);
    ret->state = FOUND_OTHER;
    if (!marker_read(ret->fd, s->m, &ret->marker) || !hashes_agree(ret, s->m))
        return 0;
    ret->changed = calloc(ret->marker.n, sizeof *ret->changed);
    if (!ret->changed)
        return err_set(e, ERR_RESOURCE, "no memory left to read a marker");
    stat_all(ret, s->is_shared);
    return 0;
}

int found_check_link(const struct tree *from, struct marker_row *row,
                     struct err *e)
{
    char target[PATH_MAX];
    ssize_t n = readlinkat(from->fd, row->path, target, sizeof target);
    struct path_shown p;
    struct digest d;
    uint8_t sum[DIGEST_MAX];
    struct stat st;

    if (n < 0 ||
        fstatat(from->fd, row->path, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return tree_fault(from, row->path, errno == EINVAL ? ENOENT : errno,
                          e);
    digest_start(&d, DIGEST_SHA256);
    digest_add(&d, target, (size_t)n);
    digest_end(&d, sum);
    if (memcmp(sum, row->sha256, sizeof row->sha256) != 0)
        return err_set(e, ERR_DATA, "link '%s' leads elsewhere than it did",
                       path_show(&p, from->shown, row->path));
    marker_row_set(row, &st);
    return 0;
}

struct hashing {
    struct found *f;
    struct copy copy;
    bool all;
};

static int hash_one(void *ctx, const struct pool_turn *turn, struct err *e)
{
    struct hashing *h = ctx;
    size_t i = h->all ? turn->i : h->f->changed[turn->i];
    struct marker_row *row = &h->f->marker.rows[i];
    struct copy_want want = {row->path, row->size, DIGEST_SHA256, row->sha256,
                             "the stage's marker"};
    struct stat st;
    int rc;

    meter_add_file(h->copy.meter);
    if (row->link)
        return found_check_link(&h->copy.from, row, e);
    if (!row->has_sha256) {
        const struct manifest_output *out = &h->copy.m->outputs[row->output];
        const struct manifest_entry *entry = &h->copy.m->entries[out->entry];

        want = (struct copy_want){
            row->path, entry->has_size ? entry->size : row->size,
            entry->hash_kind, entry->hash, "the manifest"};
    }
    rc = copy_check_file(&h->copy, turn, &want, &st, e);
    if (rc == 0)
        marker_row_set(row, &st);
    return rc;
}

int found_hash(struct found *f, const struct stage_set *s, bool all,
               struct err *e)
{
    char shown[PATH_MAX];
    struct hashing h = {.f = f, .all = all};
    size_t n = all ? f->marker.n : f->n_changed;
    uint64_t n_bytes = 0;

    (void)snprintf(shown, sizeof shown, "%s/%s", s->root.shown, s->final);
    h.copy = (struct copy){.m = s->m, .from = {f->fd, shown}, .to = {.fd = -1},
                           .meter = s->meter};
    for (size_t i = 0; i < n; i++)
        n_bytes += f->marker.rows[all ? i : f->changed[i]].size;
    meter_begin(s->meter, n_bytes, n);
    return pool_run(n, sizeof(struct pump_buffers), hash_one, &h, s->meter, e);
}
