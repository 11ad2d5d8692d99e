/* copy_archive: a tar or zip: hashed and unpacked; see copy.h.
 *
 * A tar is unpacked while it is read. A zip has its directory at the end, so
 * it is copied first, to a file that nobody else can change, and unpacked from
 * there. What was unpacked from bytes that then have a wrong hash is in the
 * part folder, which is never published. */
#include "dataset/copy_parts.h"

#include "base/mem.h"
#include "dataset/place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct feed {
    const struct copy *c;
    const struct manifest_entry *entry;
    struct pump pump; /* What pump.c would say of this pass. */
    enum pump_end end;
    struct digest d;
};

static bool put(struct feed *f, const uint8_t *data, size_t len)
{
    while (len > 0) {
        ssize_t n = write(f->pump.packed_to, data, len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            f->pump.error = n < 0 ? errno : EIO;
            f->end = PUMP_WRITE;
            return false;
        }
        data += n;
        len -= (size_t)n;
    }
    return true;
}

/* The next piece of the source, for unpack_run(). */
static long next_piece(void *ctx, const void **ret)
{
    struct feed *f = ctx;
    struct pump_buffers *b = f->pump.turn->scratch;
    ssize_t n;

    if (f->end != PUMP_DONE || f->pump.n > f->pump.size)
        return f->end == PUMP_DONE ? 0 : -1;
    do
        n = read(f->pump.from, b->in, sizeof b->in);
    while (n < 0 && errno == EINTR);
    if (n < 0) {
        f->pump.error = errno;
        f->pump.stale = errno == ESTALE;
        f->end = PUMP_READ;
        return -1;
    }
    f->pump.n += (uint64_t)n;
    meter_add(f->pump.meter, (uint64_t)n);
    digest_add(&f->d, b->in, (size_t)n);
    if (f->pump.packed_to >= 0 && !put(f, b->in, (size_t)n))
        return -1;
    if (pool_stopped(f->pump.turn)) {
        f->end = PUMP_STOPPED;
        return -1;
    }
    *ret = b->in;
    return n;
}

static int sync_file(void *ctx, int fd)
{
    return meter_sync(((struct feed *)ctx)->c->meter, fsync, fd);
}

static bool stopped(void *ctx)
{
    const struct feed *f = ctx;

    return pool_stopped(f->pump.turn);
}

static int no_memory(const struct feed *f, struct err *e)
{
    struct path_shown p;

    return err_set(e, ERR_RESOURCE, "no memory left to unpack '%s'",
                   path_show(&p, f->c->from.shown, f->entry->path));
}

/* Whether the bytes were the right ones; a wrong hash explains more than what
 * came of unpacking them. */
static int check_packed(struct feed *f, struct err *e)
{
    struct copy_want want = {f->entry->path, f->entry->size,
                             f->entry->hash_kind, f->entry->hash,
                             "the manifest"};
    struct path_shown p;
    const char *shown = path_show(&p, f->c->from.shown, f->entry->path);

    if (f->end != PUMP_DONE)
        return copy_pump_fault(f->c, &f->pump, f->end, f->entry, e);
    if (f->pump.n != f->entry->size)
        return err_set(e, ERR_DATA, "'%s' changed while it was read", shown);
    if (memcmp(f->pump.hash, want.hash, digest_size(want.kind)) != 0)
        return copy_hash_fault(shown, f->pump.from, &f->pump, &want, e);
    return 0;
}

static int check_unpacked(struct feed *f, const struct unpack *u,
                          enum unpack_end end, struct err *e)
{
    struct path_shown p;
    const char *shown = path_show(&p, f->c->from.shown, f->entry->path);

    if (end == UNPACK_WRITE)
        return space_fault(&f->c->to, "write", u->path, u->error, e);
    if (end == UNPACK_MEMORY)
        return no_memory(f, e);
    if (end == UNPACK_READ || end == UNPACK_STOPPED)
        return err_set(e, ERR_RESOURCE, "read '%s': stopped", shown);
    f->pump.n_unpacked = u->n_bytes;
    f->pump.unpacked_over = end == UNPACK_OVER;
    f->pump.unpack_fault = end == UNPACK_DATA ? u->why : NULL;
    return copy_check_unpacked(shown, &f->pump, f->entry, e);
}

static int unpack_tar(struct feed *f, struct unpack *u, struct err *e)
{
    const void *rest;
    enum unpack_end end;
    int rc;

    digest_start(&f->d, f->entry->hash_kind);
    u->read = next_piece;
    end = unpack_run(u);
    if (end == UNPACK_DONE || end == UNPACK_DATA || end == UNPACK_OVER)
        while (next_piece(f, &rest) > 0)
            ; /* What follows the end, or the fault. */
    else if (end == UNPACK_WRITE || end == UNPACK_MEMORY)
        return check_unpacked(f, u, end, e);
    digest_end(&f->d, f->pump.hash);
    rc = check_packed(f, e);
    return rc ? rc : check_unpacked(f, u, end, e);
}

/* A file of the part folder without a name. */
static int open_private(const struct copy *c, size_t i, int *ret_fd,
                        struct err *e)
{
    char name[64];
    int fd = -1;

    for (unsigned n = 0; n < 100 && fd < 0; n++) {
        (void)snprintf(name, sizeof name, ".agent-zip-%zu-%u", i, n);
        fd = openat(c->to.fd, name,
                    O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0 && errno != EEXIST)
            break;
    }
    if (fd < 0)
        return space_fault(&c->to, "make", name, errno, e);
    *ret_fd = fd;
    return unlinkat(c->to.fd, name, 0) < 0
               ? space_fault(&c->to, "remove", name, errno, e)
               : 0;
}

static int unpack_zip(struct feed *f, struct unpack *u, struct err *e)
{
    autoclose int own = -1;
    int rc = 0;

    if (f->c->to.fd >= 0 && f->pump.packed_to < 0) {
        rc = open_private(f->c, f->pump.turn->i, &own, e);
        f->pump.packed_to = own;
    }
    if (rc)
        return rc;
    f->end = pump_run(&f->pump);
    rc = check_packed(f, e);
    if (rc)
        return rc;
    u->fd = own >= 0 ? own : f->pump.from;
    if (f->c->to.fd >= 0 && own < 0) /* It is kept, and written to only. */
        u->fd = own = openat(f->c->to.fd, f->entry->path,
                             O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (u->fd < 0 || lseek(u->fd, 0, SEEK_SET) < 0)
        return space_fault(&f->c->to, "open", f->entry->path, errno, e);
    return check_unpacked(f, u, unpack_run(u), e);
}

/* Remove what was unpacked, for another try. */
static void undo(const struct copy *c, const struct unpack *u)
{
    struct place place;

    if (c->to.fd < 0)
        return;
    place_start(&place, c->to.fd);
    for (size_t i = 0; i < u->members.n; i++)
        (void)place_remove(&place, u->members.at[i].path);
    if (u->made) /* Else what is there may be another entry's. */
        (void)place_remove(&place, u->path);
    place_end(&place);
}

int copy_archive(const struct copy *c, const struct pool_turn *turn,
                 const struct manifest_entry *entry, bool *ret_stale,
                 struct err *e)
{
    autoclose int from = -1, packed_to = -1;
    struct feed f = {.c = c, .entry = entry};
    struct unpack u = {.format = entry->unpack, .beside = entry->path,
                       .to = c->to.fd, .max = copy_unpacked_max(entry),
                       .sync = c->sync ? sync_file : NULL, .stop = stopped,
                       .ctx = &f, .fd = -1};
    int rc = copy_open(c, entry, &from, e);

    if (rc == 0 && c->to.fd >= 0 && entry->keep)
        rc = copy_make_file(c, entry->path, &packed_to, e);
    if (rc)
        return rc;
    f.pump = (struct pump){.from = from, .packed_to = packed_to,
                           .unpacked_to = -1, .kind = entry->hash_kind,
                           .size = entry->size, .meter = c->meter,
                           .turn = turn};
    rc = entry->unpack == UNPACK_ZIP ? unpack_zip(&f, &u, e)
                                     : unpack_tar(&f, &u, e);
    if (rc == 0)
        rc = copy_end_file(c, entry->path, &packed_to, e);
    *ret_stale = f.pump.stale;
    if (rc && f.pump.stale)
        undo(c, &u);
    if (rc == 0 && c->members)
        c->members[turn->i] = u.members;
    else
        unpack_members_free(&u.members);
    return rc;
}
