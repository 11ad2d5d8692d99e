/* listing_hash: sizes and hashes of what is listed; see listing.h. */
#include "dataset/listing.h"

#include "base/mem.h"
#include "base/text.h"
#include "dataset/pool.h"
#include "dataset/pump.h"
#include "dataset/sizes.h"
#include "dataset/structure.h"
#include "dataset/tree.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct hashing {
    struct tree tree;
    struct manifest *m;
    struct listing_notes *notes;
    struct meter *meter;
    pthread_mutex_t lock; /* Of the notes. */
};

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
static int choose_unpack(struct hashing *l, struct manifest_entry *entry,
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

/* Who lists a Git LFS pointer as data will find it out much later. */
static void note_pointer(struct hashing *l, int fd, uint64_t size,
                         const char *path)
{
    struct structure look;

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
                         .unpack = entry->unpack != UNPACK_NONE,
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
    note_pointer(l, fd, pump.n, entry->path);
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

static int hash_all(struct hashing *l, bool unpack, struct err *e)
{
    int rc = 0;

    for (size_t i = 0; unpack && rc == 0 && i < l->m->n_entries; i++)
        rc = choose_unpack(l, &l->m->entries[i], e);
    if (rc)
        return rc;
    return pool_run(l->m->n_entries, sizeof(struct pump_buffers), hash_one, l,
                    l->meter, e);
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
    meter->total = ret->n_bytes;
    if (rc == 0)
        rc = hash_all(&l, unpack, e);
    (void)pthread_mutex_destroy(&l.lock);
    (void)close(l.tree.fd);
    return rc;
}
