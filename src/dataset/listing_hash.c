/* listing_hash: sizes and hashes of what is listed; see listing.h. */
#include "dataset/listing_parts.h"

#include "base/mem.h"
#include "base/text.h"
#include "dataset/pool.h"
#include "dataset/pump.h"
#include "dataset/sizes.h"
#include "dataset/structure.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct hashing {
    struct tree tree;
    struct manifest *m;
    struct unpack_members *inside; /* For each entry what is in it. */
    struct listing_notes *notes;
    struct meter *meter;
    pthread_mutex_t lock; /* Of the notes. */
};

static enum manifest_unpack archive_of(const char *path)
{
    static const struct {
        const char *end;
        enum manifest_unpack unpack;
    } ends[] = {
        {".tar", UNPACK_TAR},         {".tar.gz", UNPACK_TAR_GZ},
        {".tgz", UNPACK_TAR_GZ},      {".tar.zst", UNPACK_TAR_ZST},
        {".tzst", UNPACK_TAR_ZST},    {".tar.xz", UNPACK_TAR_XZ},
        {".txz", UNPACK_TAR_XZ},      {".zip", UNPACK_ZIP},
    };

    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        size_t n = strlen(ends[i].end), len = strlen(path);

        if (len > n && strcmp(path + len - n, ends[i].end) == 0)
            return ends[i].unpack;
    }
    return UNPACK_NONE;
}

/* What would be made is there already. */
static int taken(const struct hashing *l, const struct manifest_entry *entry,
                 const char *path, struct err *e)
{
    struct path_shown p, q;

    return err_set(e, ERR_DATA,
                   "'%s' would unpack to '%s', which is there, too: take one "
                   "of them away, or leave --unpack out",
                   path_show(&p, l->tree.shown, entry->path),
                   path_show(&q, NULL, path));
}

/* How it is unpacked, by its name. */
static int choose_unpack(struct hashing *l, struct manifest_entry *entry,
                         struct err *e)
{
    char *out = NULL;
    const char *why;
    struct path_shown p;
    int rc;

    entry->unpack = archive_of(entry->path);
    if (entry->unpack != UNPACK_NONE)
        return 0;
    rc = manifest_out_path(entry->path, &out, e);
    if (rc || !out)
        return rc;
    entry->unpack = UNPACK_GZIP;
    entry->out_path = out;
    why = path_fault(out);
    if (why)
        return err_set(e, ERR_DATA, "'%s' cannot be unpacked: without .gz %s",
                       path_show(&p, l->tree.shown, entry->path), why);
    return tree_has(&l->tree, out) ? taken(l, entry, out, e) : 0;
}

/* Who lists a Git LFS pointer as data will find it out much later; so will who
 * unpacks a tar that was cut between two of its files. */
static void note_odd(struct hashing *l, int fd, uint64_t size,
                     const char *path, bool is_tar)
{
    struct structure look;

    if (is_tar)
        structure_check(fd, size, path, &look);
    else
        structure_look(fd, size, path, &look);
    if (!look.fault[0])
        return;
    (void)pthread_mutex_lock(&l->lock);
    if (l->notes->n_odd++ == 0) {
        (void)text_copy(l->notes->odd, sizeof l->notes->odd, path);
        (void)text_copy(l->notes->odd_why, sizeof l->notes->odd_why,
                        look.fault);
    }
    (void)pthread_mutex_unlock(&l->lock);
}

static bool stopped(void *ctx)
{
    return pool_stopped(ctx);
}

/* What an archive unpacks to. It is read a second time. */
static int look_inside(struct hashing *l, struct manifest_entry *entry, int fd,
                       const struct pool_turn *turn, struct err *e)
{
    struct unpack_members *inside = &l->inside[turn->i];
    struct unpack u = {.format = entry->unpack, .beside = entry->path,
                       .to = -1, .max = MANIFEST_FILE_MAX, .stop = stopped,
                       .ctx = (void *)(uintptr_t)turn, .fd = fd};
    struct path_shown p;
    enum unpack_end end;

    if (lseek(fd, 0, SEEK_SET) < 0)
        return tree_fault(&l->tree, entry->path, errno, e);
    end = unpack_run(&u);
    *inside = u.members;
    if (end == UNPACK_OVER)
        return err_set(e, ERR_DATA, "'%s' is over the limit of 1 PiB",
                       path_show(&p, l->tree.shown, entry->path));
    if (end == UNPACK_DATA)
        return err_set(e, ERR_DATA, "'%s' cannot be unpacked: %s",
                       path_show(&p, l->tree.shown, entry->path), u.why);
    if (end != UNPACK_DONE)
        return err_set(e, ERR_RESOURCE, "no memory left to unpack '%s'",
                       path_show(&p, l->tree.shown, entry->path));
    for (size_t i = 0; i < inside->n; i++)
        if (tree_has(&l->tree, inside->at[i].path))
            return taken(l, entry, inside->at[i].path, e);
    entry->has_unpacked_size = true;
    entry->unpacked_size = u.n_bytes;
    return 0;
}

/* A pool_fn. */
static int hash_one(void *ctx, const struct pool_turn *turn, struct err *e)
{
    struct hashing *l = ctx;
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
                         .unpack = entry->unpack == UNPACK_GZIP,
                         .kind = DIGEST_SHA256, .size = (uint64_t)st.st_size,
                         .unpacked_max = MANIFEST_FILE_MAX,
                         .meter = l->meter, .turn = turn};
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
    note_odd(l, fd, pump.n, entry->path, entry->unpack == UNPACK_TAR);
    entry->size = pump.n;
    entry->has_size = true;
    memcpy(entry->hash, pump.hash, sizeof entry->hash);
    if (manifest_is_archive(entry->unpack)) {
        rc = look_inside(l, entry, fd, turn, e);
        meter_add_file(l->meter);
        return rc;
    }
    meter_add_file(l->meter);
    if (entry->unpack != UNPACK_NONE) {
        entry->has_unpacked_size = entry->has_unpacked_sha256 = true;
        entry->unpacked_size = pump.n_unpacked;
        memcpy(entry->unpacked_sha256, pump.unpacked_sha256, 32);
    }
    return 0;
}

static int hash_all(struct hashing *l, bool unpack, struct err *e)
{
    const size_t n = l->m->n_entries;
    int rc = 0;

    if (unpack) {
        l->inside = calloc(n, sizeof *l->inside);
        if (!l->inside)
            return err_set(e, ERR_RESOURCE, "no memory left to list files");
    }
    for (size_t i = 0; unpack && rc == 0 && i < n; i++)
        rc = choose_unpack(l, &l->m->entries[i], e);
    if (rc == 0)
        rc = pool_run(n, sizeof(struct pump_buffers), hash_one, l, l->meter,
                      e);
    if (rc == 0 && unpack)
        rc = listing_check_outputs(&l->tree, l->m, l->inside, e);
    for (size_t i = 0; l->inside && i < n; i++)
        unpack_members_free(&l->inside[i]);
    free(l->inside);
    return rc;
}

int listing_make(struct manifest *ret, const char *folder, bool unpack,
                 const struct listing_skip *skip, struct listing_notes *notes,
                 struct meter *meter, struct err *e)
{
    struct hashing l = {.m = ret, .notes = notes, .meter = meter};
    int rc = listing_names(ret, folder, skip, notes, e);

    if (rc == 0)
        rc = tree_open(&l.tree, folder, e);
    if (rc)
        return rc;
    (void)pthread_mutex_init(&l.lock, NULL);
    rc = sizes_fill(ret, &l.tree, meter, e);
    meter_begin(meter, ret->n_bytes, ret->n_entries);
    if (rc == 0)
        rc = hash_all(&l, unpack, e);
    (void)pthread_mutex_destroy(&l.lock);
    (void)close(l.tree.fd);
    return rc;
}
