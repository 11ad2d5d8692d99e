/* build: see build.h.
 *
 * The happy path: remove a left-over part folder; look at the free space; make
 * the folders; copy on several threads; put all on the disk; write the marker;
 * rename; put the rename on the disk. Killed at any point it leaves a part
 * folder, which the next stager removes, and a final folder that is the old
 * one, none, or the whole new one. */
#include "dataset/build.h"

#include "base/mem.h"
#include "dataset/build_mark.h"
#include "dataset/copy.h"
#include "dataset/folders.h"
#include "dataset/sizes.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Up to so many files each has its own fsync(2), which reports a disk's fault
 * on any kernel and does not wait for the data of others. Above it one
 * syncfs(2) is far cheaper; it reports faults since Linux 5.8. */
#define FSYNC_FILES_MAX 256

struct build {
    const struct stage_set *s;
    struct space part;
    char shown[PATH_MAX];    /* Of the part folder. */
    uint8_t (*unpacked)[32];        /* Of each entry. */
    struct unpack_members *members; /* Likewise; NULL: no archive. */
    bool sync_each;
};

/* Bytes that the stage needs; where the manifest does not say how much a file
 * unpacks to, at least as much as it has packed. */
static uint64_t bytes_needed(const struct stage_set *s)
{
    uint64_t block = space_block(&s->root), need = block, size;

    for (size_t i = 0; i < s->m->n_entries; i++) {
        const struct manifest_entry *entry = &s->m->entries[i];

        if (!manifest_is_archive(entry->unpack))
            continue;
        need += entry->has_unpacked_size ? entry->unpacked_size : entry->size;
        if (entry->unpack == UNPACK_ZIP && !entry->keep)
            need += entry->size; /* Its copy, for the time being. */
    }
    for (size_t i = 0; i < s->m->n_outputs; i++) {
        const struct manifest_output *out = &s->m->outputs[i];
        const struct manifest_entry *entry = &s->m->entries[out->entry];

        size = out->unpacked && entry->has_unpacked_size
                   ? entry->unpacked_size
                   : entry->size;
        need += (size + block - 1) / block * block;
    }
    return need;
}

static int make_folder(void *ctx, const char *folder, struct err *e)
{
    const struct space *part = ctx;

    if (mkdirat(part->fd, folder, 0755) < 0)
        return space_fault(part, "make folder", folder, errno, e);
    return 0;
}

static int sync_folder(void *ctx, const char *folder, struct err *e)
{
    const struct space *part = ctx;
    autoclose int fd = openat(part->fd, folder,
                              O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int error = fd < 0 ? errno : space_sync_folder(fd);

    return error ? space_fault(part, "sync", folder, error, e) : 0;
}

/* A pool_fn. */
static int copy_one(void *ctx, const struct pool_turn *turn, struct err *e)
{
    struct copy *c = ctx;
    int rc = copy_entry(c, turn, e);

    meter_add_file(c->meter);
    return rc;
}

static int copy_all(struct build *b, struct err *e)
{
    const struct stage_set *s = b->s;
    struct copy c = {.m = s->m, .to = b->part, .sync = b->sync_each,
                     .meter = s->meter, .unpacked = b->unpacked,
                     .members = b->members};
    int rc = tree_open(&c.from, s->source, e);

    if (rc)
        return rc;
    rc = sizes_check_bag(s->m, &c.from, e);
    meter_begin(s->meter, s->m->n_bytes, s->m->n_entries);
    if (rc == 0)
        rc = pool_run(s->m->n_entries, sizeof(struct pump_buffers),
                      copy_one, &c, s->meter, e);
    (void)close(c.from.fd);
    return rc;
}

/* A pool_fn. */
static int sync_all(void *ctx, const struct pool_turn *turn, struct err *e)
{
    const struct build *b = ctx;

    (void)turn;
    return meter_sync(b->s->meter, syncfs, b->part.fd) < 0
               ? space_fault(&b->part, "sync", "", errno, e)
               : 0;
}

static int put_on_disk(struct build *b, struct err *e)
{
    if (b->sync_each)
        return folders_each(b->s->m, sync_folder, &b->part, e);
    /* By a thread: this one goes on telling the progress. */
    return pool_run(1, 1, sync_all, b, b->s->meter, e);
}

/* Replace what lies at the final place, which is no finished stage of this
 * set, or a damaged one. Workers may be reading it: files that they have open
 * stay, and the path is never without a folder where the kernel can exchange
 * two names. */
static int replace(const struct stage_set *s, struct err *e)
{
    struct stat st;
    int rc;

    if (renameat2(s->root.fd, s->work, s->root.fd, s->final,
                  RENAME_EXCHANGE) == 0)
        return 0;
    /* Without what is to be there (the lease was lost) all stays as it is. */
    if (fstatat(s->root.fd, s->work, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return space_fault(&s->root, "rename", s->work, errno, e);
    /* NFS and the like cannot. The remove begins with the marker, so that a
     * kill in the middle leaves nothing that looks finished. */
    rc = openat(s->root.fd, s->final,
                O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (rc >= 0) {
        (void)unlinkat(rc, DATASET_MARKER, 0);
        (void)fsync(rc);
        (void)close(rc);
    }
    rc = tree_remove(s->root.fd, s->final);
    if (rc)
        return space_fault(&s->root, "remove", s->final, -rc, e);
    if (renameat(s->root.fd, s->work, s->root.fd, s->final) < 0)
        return space_fault(&s->root, "rename to", s->final, errno, e);
    return 0;
}

static int publish(const struct stage_set *s, struct err *e)
{
    int rc = 0;

    if (renameat2(s->root.fd, s->work, s->root.fd, s->final,
                  RENAME_NOREPLACE) < 0) {
        struct stat st;

        if (fstatat(s->root.fd, s->final, &st, AT_SYMLINK_NOFOLLOW) == 0)
            rc = replace(s, e);
        else if (renameat(s->root.fd, s->work, s->root.fd, s->final) < 0)
            rc = space_fault(&s->root, "rename to", s->final, errno, e);
    }
    if (rc == 0) {
        int error = space_sync_folder(s->root.fd);

        rc = error ? space_fault(&s->root, "sync", "", error, e) : 0;
    }
    return rc;
}

static int fill(struct build *b, struct err *e)
{
    int rc;

    bool archives = manifest_has_archives(b->s->m);

    b->unpacked = calloc(b->s->m->n_entries, sizeof *b->unpacked);
    if (archives)
        b->members = calloc(b->s->m->n_entries, sizeof *b->members);
    if (!b->unpacked || (archives && !b->members))
        return err_set(e, ERR_RESOURCE, "no memory left to stage");
    rc = folders_each(b->s->m, make_folder, &b->part, e);
    if (rc == 0)
        rc = copy_all(b, e);
    if (rc == 0)
        rc = put_on_disk(b, e);
    if (rc == 0)
        rc = build_mark(b->s->m, &b->part, b->unpacked, b->members, e);
    return rc;
}

static void free_all(struct build *b)
{
    for (size_t i = 0; b->members && i < b->s->m->n_entries; i++)
        unpack_members_free(&b->members[i]);
    free(b->members);
    free(b->unpacked);
}

static int open_part(struct build *b, struct err *e)
{
    const struct stage_set *s = b->s;

    if (mkdirat(s->root.fd, s->work, 0755) < 0)
        return space_fault(&s->root, "make folder", s->work, errno, e);
    b->part.fd = openat(s->root.fd, s->work,
                        O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (b->part.fd < 0)
        return space_fault(&s->root, "open", s->work, errno, e);
    return 0;
}

/* What the set needs is known once all sizes are. */
static int find_sizes(const struct stage_set *s, struct err *e)
{
    struct tree from;
    int rc = tree_open(&from, s->source, e);

    if (rc)
        return rc;
    rc = sizes_fill(s->m, &from, s->meter, e);
    (void)close(from.fd);
    return rc;
}

int build_stage(const struct stage_set *set, struct err *e)
{
    struct stage_set with_need = *set, *s = &with_need;
    struct build b = {.s = s, .part = {.fd = -1, .shown = b.shown},
                      .sync_each = s->m->n_outputs <= FSYNC_FILES_MAX &&
                                   !manifest_has_archives(s->m)};
    int rc = find_sizes(s, e);

    if (rc)
        return rc;
    rc = s->is_shared ? 0 : tree_remove(s->root.fd, s->part);
    s->root.need = b.part.need = bytes_needed(s);
    if (rc)
        return space_fault(&s->root, "remove the left-over", s->part, -rc, e);
    rc = space_check(&s->root, e);
    if (rc)
        return rc;
    (void)snprintf(b.shown, sizeof b.shown, "%s/%s", s->root.shown, s->work);
    rc = open_part(&b, e);
    if (rc == 0)
        rc = fill(&b, e);
    if (rc == 0)
        rc = publish(s, e);
    if (b.part.fd >= 0)
        (void)close(b.part.fd);
    free_all(&b);
    /* After a fault what was copied, after an exchange what was replaced. */
    if (!s->is_shared) /* Else with the lease. */
        (void)tree_remove(s->root.fd, s->part);
    return rc;
}
