/* copy: see copy.h. */
#include "dataset/copy_parts.h"

#include "base/mem.h"
#include "base/text.h"
#include "dataset/structure.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Most that a file may unpack to where the manifest has no unpacked_size. A
 * guard against gzip bombs; deflate cannot do much better than 1,000. */
#define UNPACK_RATIO_MAX 1000

/* NFS says ESTALE where a file was replaced on its server: another open may
 * find the new one. */
#define STALE_TRIES 4
#define STALE_PAUSE_MS 50L

int copy_size_fault(const char *shown, int fd, uint64_t is,
                      const struct copy_want *want, struct err *e)
{
    struct structure why;

    structure_explain(fd, is, want->path, &why);
    if (!why.fault[0] && is < want->size)
        (void)structure_fail(&why, "the copy is not complete");
    return err_set(e, ERR_DATA,
                   "'%s' has %" PRIu64 " byte%s, %s says %" PRIu64 "%s%s",
                   shown, is, text_plural(is), want->said_by, want->size,
                   why.fault[0] ? ": " : "", why.fault);
}

int copy_hash_fault(const char *shown, int fd, const struct pump *p,
                      const struct copy_want *want, struct err *e)
{
    char hex_is[DIGEST_HEX_MAX], hex_want[DIGEST_HEX_MAX];
    size_t n = digest_size(want->kind);
    struct structure why;

    structure_explain(fd, p->n, want->path, &why);
    digest_hex(p->hash, n, hex_is);
    digest_hex(want->hash, n, hex_want);
    return err_set(e, ERR_DATA, "'%s' has %s %s, %s says %s%s%s", shown,
                   digest_word(want->kind), hex_is, want->said_by, hex_want,
                   why.fault[0] ? ": " : "", why.fault);
}

/* A fault of a pass that did not come to its end. */
int copy_pump_fault(const struct copy *c, const struct pump *p,
                      enum pump_end end, const struct manifest_entry *entry,
                      struct err *e)
{
    struct path_shown shown;

    switch (end) {
    case PUMP_READ:
        return tree_fault(&c->from, entry->path, p->error, e);
    case PUMP_WRITE:
        return space_fault(&c->to, "write", entry->path, p->error, e);
    case PUMP_WRITE_UNPACKED:
        return space_fault(&c->to, "write", entry->out_path, p->error, e);
    case PUMP_STOPPED: /* The pool drops the text. */
    case PUMP_DONE:
    case PUMP_MEMORY:
        break;
    }
    return err_set(e, ERR_RESOURCE, "no memory left to unpack '%s'",
                   path_show(&shown, c->from.shown, entry->path));
}

int copy_check_unpacked(const char *shown, const struct pump *p,
                          const struct manifest_entry *entry, struct err *e)
{
    char is[DIGEST_HEX_MAX], want[DIGEST_HEX_MAX];

    if (p->unpacked_over && !entry->has_unpacked_size)
        return err_set(e, ERR_DATA,
                       "'%s' unpacks to more than %u times its size: if that "
                       "is right, give its unpacked_size in the manifest",
                       shown, UNPACK_RATIO_MAX);
    if (p->unpacked_over)
        return err_set(e, ERR_DATA,
                       "'%s' unpacks to more than the %" PRIu64
                       " byte%s that the manifest says", shown,
                       entry->unpacked_size,
                       text_plural(entry->unpacked_size));
    if (p->unpack_fault)
        return err_set(e, ERR_DATA, "'%s' cannot be unpacked: %s", shown,
                       p->unpack_fault);
    if (entry->has_unpacked_size && p->n_unpacked != entry->unpacked_size)
        return err_set(e, ERR_DATA,
                       "'%s' unpacks to %" PRIu64
                       " byte%s, the manifest says %" PRIu64,
                       shown, p->n_unpacked, text_plural(p->n_unpacked),
                       entry->unpacked_size);
    if (!entry->has_unpacked_sha256 ||
        memcmp(p->unpacked_sha256, entry->unpacked_sha256, 32) == 0)
        return 0;
    digest_hex(p->unpacked_sha256, 32, is);
    digest_hex(entry->unpacked_sha256, 32, want);
    return err_set(e, ERR_DATA,
                   "'%s' unpacks to sha256 %s, the manifest says %s", shown,
                   is, want);
}

/* Make a file of the stage. */
int copy_make_file(const struct copy *c, const char *path, int *ret_fd,
                   struct err *e)
{
    int fd = openat(c->to.fd, path,
                    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                    0644);

    struct path_shown p;

    if (fd < 0 && errno == EEXIST) /* The manifest makes nothing twice. */
        return manifest_has_archives(c->m)
                   ? err_set(e, ERR_DATA,
                             "'%s' would be made twice: an archive of the set "
                             "holds it, too",
                             path_show(&p, c->to.shown, path))
                   : err_set(e, ERR_USAGE,
                             "'%s' would be made twice: the file system does "
                             "not tell it from another name of the set: give "
                             "another --stage",
                             path_show(&p, c->to.shown, path));
    if (fd < 0)
        return space_fault(&c->to, "make", path, errno, e);
    *ret_fd = fd;
    return 0;
}

/* Close it; only now some file systems say that the disk is full. */
int copy_end_file(const struct copy *c, const char *path, int *fd,
                  struct err *e)
{
    int error = 0;

    if (*fd < 0)
        return 0;
    if (c->sync && meter_sync(c->meter, fsync, *fd) < 0)
        error = errno;
    if (close(steal_fd(fd)) < 0 && error == 0 && errno != EINTR)
        error = errno;
    return error ? space_fault(&c->to, "write", path, error, e) : 0;
}

/* The pass itself; the descriptors are the caller's. */
static int pump_entry(const struct copy *c, struct pump *p,
                      const struct manifest_entry *entry, struct err *e)
{
    struct copy_want want = {entry->path, entry->size, entry->hash_kind,
                             entry->hash, "the manifest"};
    enum pump_end end = pump_run(p);
    struct path_shown buf;
    const char *shown = path_show(&buf, c->from.shown, entry->path);

    if (end != PUMP_DONE)
        return copy_pump_fault(c, p, end, entry, e);
    if (p->n != entry->size)
        return err_set(e, ERR_DATA, "'%s' changed while it was read", shown);
    if (memcmp(p->hash, want.hash, digest_size(want.kind)) != 0)
        return copy_hash_fault(shown, p->from, p, &want, e);
    return entry->unpack != UNPACK_NONE ? copy_check_unpacked(shown, p, entry,
                                                             e)
                                        : 0;
}

uint64_t copy_unpacked_max(const struct manifest_entry *entry)
{
    uint64_t max = entry->size * UNPACK_RATIO_MAX; /* 2^50 * 1000 fits. */

    if (entry->has_unpacked_size)
        return entry->unpacked_size;
    return max < MANIFEST_FILE_MAX ? max : MANIFEST_FILE_MAX;
}

int copy_open(const struct copy *c, const struct manifest_entry *entry,
              int *ret_fd, struct err *e)
{
    struct copy_want want = {entry->path, entry->size, entry->hash_kind,
                             entry->hash, "the manifest"};
    autoclose int from = -1;
    struct path_shown shown;
    struct stat st;
    int rc = tree_open_file(&c->from, entry->path, &from, &st, e);

    if (rc)
        return rc;
    if ((uint64_t)st.st_size != entry->size && !entry->has_size)
        return err_set(e, ERR_DATA, "'%s' changed while it was read",
                       path_show(&shown, c->from.shown, entry->path));
    if ((uint64_t)st.st_size != entry->size)
        return copy_size_fault(path_show(&shown, c->from.shown, entry->path),
                               from, (uint64_t)st.st_size, &want, e);
    *ret_fd = steal_fd(&from);
    return 0;
}

static int copy_file(const struct copy *c, const struct pool_turn *turn,
                     const struct manifest_entry *entry, bool *ret_stale,
                     struct err *e)
{
    bool unpack = entry->unpack != UNPACK_NONE;
    autoclose int from = -1, packed_to = -1, unpacked_to = -1;
    struct pump p;
    int rc = copy_open(c, entry, &from, e);

    if (rc)
        return rc;
    if (c->to.fd >= 0 && (!unpack || entry->keep))
        rc = copy_make_file(c, entry->path, &packed_to, e);
    if (rc == 0 && c->to.fd >= 0 && unpack)
        rc = copy_make_file(c, entry->out_path, &unpacked_to, e);
    if (rc)
        return rc;
    p = (struct pump){.from = from, .packed_to = packed_to,
                      .unpacked_to = unpacked_to, .unpack = unpack,
                      .kind = entry->hash_kind, .size = entry->size,
                      .unpacked_max = copy_unpacked_max(entry),
                      .meter = c->meter, .turn = turn};
    rc = pump_entry(c, &p, entry, e);
    *ret_stale = p.stale;
    if (rc == 0)
        rc = copy_end_file(c, entry->path, &packed_to, e);
    if (rc == 0)
        rc = copy_end_file(c, entry->out_path, &unpacked_to, e);
    if (rc == 0 && c->unpacked)
        memcpy(c->unpacked[turn->i], p.unpacked_sha256, 32);
    return rc;
}

int copy_entry(void *ctx, const struct pool_turn *turn, struct err *e)
{
    const struct copy *c = ctx;
    const struct manifest_entry *entry = &c->m->entries[turn->i];
    int rc = 0;

    for (unsigned i = 0; i < STALE_TRIES; i++) {
        struct timespec pause = {.tv_nsec = STALE_PAUSE_MS * 1000000L << i};
        bool stale = false;

        rc = manifest_is_archive(entry->unpack)
                 ? copy_archive(c, turn, entry, &stale, e)
                 : copy_file(c, turn, entry, &stale, e);
        if (rc == 0 || !stale || pool_stopped(turn))
            break;
        if (c->to.fd >= 0) {
            (void)unlinkat(c->to.fd, entry->path, 0);
            (void)unlinkat(c->to.fd, entry->out_path, 0);
        }
        (void)nanosleep(&pause, NULL);
    }
    return rc;
}

int copy_check_file(const struct copy *c, const struct pool_turn *turn,
                    const struct copy_want *want, struct stat *ret_st,
                    struct err *e)
{
    autoclose int from = -1;
    struct path_shown buf;
    const char *shown = path_show(&buf, c->from.shown, want->path);
    struct pump p;
    enum pump_end end;
    int rc = tree_open_file(&c->from, want->path, &from, ret_st, e);

    if (rc)
        return rc;
    if (want->size != UINT64_MAX && (uint64_t)ret_st->st_size != want->size)
        return copy_size_fault(shown, from, (uint64_t)ret_st->st_size, want, e);
    p = (struct pump){.from = from, .packed_to = -1, .unpacked_to = -1,
                      .kind = want->kind, .size = (uint64_t)ret_st->st_size,
                      .meter = c->meter, .turn = turn};
    end = pump_run(&p);
    if (end == PUMP_READ)
        return tree_fault(&c->from, want->path, p.error, e);
    if (end == PUMP_STOPPED)
        return err_set(e, ERR_RESOURCE, "stopped");
    if (memcmp(p.hash, want->hash, digest_size(want->kind)) != 0)
        return copy_hash_fault(shown, from, &p, want, e);
    return 0;
}
