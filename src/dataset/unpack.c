/* unpack: see unpack.h. */
#include "dataset/unpack.h"

#include "base/digest.h"
#include "base/mem.h"
#include "base/text.h"
#include "dataset/place.h"

#include <archive.h>
#include <archive_entry.h>

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define READ_BLOCK (64u << 10)
#define ZEROS (64u << 10)
/* Folders count here, too: a few bytes of a packed archive make one. */
#define ENTRIES_MAX (2 * MANIFEST_MAX_FILES)

struct state {
    struct unpack *u;
    struct archive *a;
    struct place place;
    size_t n_entries;
};

__attribute__((format(printf, 2, 3))) static enum unpack_end
bad(struct state *s, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(s->u->why, sizeof s->u->why, fmt, ap);
    va_end(ap);
    (void)text_make_utf8(s->u->why, sizeof s->u->why - 1);
    return UNPACK_DATA;
}

static enum unpack_end bad_entry(struct state *s, const char *why)
{
    struct path_shown p;

    return bad(s, "its entry '%s' %s",
               path_show(&p, NULL, s->u->path), why);
}

/* What libarchive says of its last fault. */
static enum unpack_end archive_fault(struct state *s)
{
    const char *why = archive_error_string(s->a);

    if (archive_errno(s->a) == ENOMEM)
        return UNPACK_MEMORY;
    if (s->u->error)
        return UNPACK_READ;
    return bad(s, "%s", why ? why : "it is damaged");
}

static enum unpack_end write_fault(struct state *s, int error)
{
    if (error == EEXIST)
        return bad_entry(s, "would be made twice");
    if (error == ENOTDIR || error == ELOOP)
        return bad_entry(s, "has a file or a link where a folder should be");
    s->u->error = error;
    return UNPACK_WRITE;
}

static struct unpack_member *find_member(struct state *s, const char *path)
{
    uint32_t *slot = unpack_members_slot(&s->u->members, path);

    return slot && *slot ? &s->u->members.at[*slot - 1] : NULL;
}

/* NULL without memory. */
static struct unpack_member *add_member(struct state *s, bool link)
{
    return unpack_members_add(&s->u->members, s->u->path, link);
}

/* A later file of the same path takes the place of an earlier one. */
static int make_file(struct state *s, bool executable, bool is_there)
{
    int fd = place_file(&s->place, s->u->path, executable);

    if (fd == -EEXIST && is_there) {
        int rc = place_remove(&s->place, s->u->path);

        fd = rc ? rc : place_file(&s->place, s->u->path, executable);
    }
    return fd;
}

static bool write_all(int fd, const uint8_t *data, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, data, len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            errno = n < 0 ? errno : EIO;
            return false;
        }
        data += n;
        len -= (size_t)n;
    }
    return true;
}

/* A hole of a sparse file: read as zeros, and written as such. */
static enum unpack_end add_bytes(struct state *s, int fd, struct digest *d,
                                 const uint8_t *data, uint64_t len)
{
    static const uint8_t zeros[ZEROS];

    while (len > 0) {
        size_t n = data || len < sizeof zeros ? (size_t)len : sizeof zeros;
        const uint8_t *from = data ? data : zeros;

        if (n > s->u->max - s->u->n_bytes)
            return UNPACK_OVER;
        s->u->n_bytes += n;
        digest_add(d, from, n);
        if (fd >= 0 && !write_all(fd, from, n))
            return write_fault(s, errno);
        if (s->u->stop && s->u->stop(s->u->ctx))
            return UNPACK_STOPPED;
        len -= n;
    }
    return UNPACK_DONE;
}

static enum unpack_end copy_data(struct state *s, struct archive_entry *entry,
                                 int fd, struct digest *d)
{
    enum unpack_end end = UNPACK_DONE;
    uint64_t at = 0;
    const void *data;
    size_t len;
    la_int64_t offset;
    int rc;

    while ((rc = archive_read_data_block(s->a, &data, &len, &offset)) ==
           ARCHIVE_OK) {
        if ((uint64_t)offset < at)
            return bad_entry(s, "has pieces that overlap");
        end = add_bytes(s, fd, d, NULL, (uint64_t)offset - at);
        if (end == UNPACK_DONE && len > 0)
            end = add_bytes(s, fd, d, data, len);
        if (end != UNPACK_DONE)
            return end;
        at = (uint64_t)offset + len;
    }
    if (rc != ARCHIVE_EOF)
        return archive_fault(s);
    if (archive_entry_size_is_set(entry) &&
        (uint64_t)archive_entry_size(entry) > at) /* Ends with a hole. */
        end = add_bytes(s, fd, d, NULL,
                        (uint64_t)archive_entry_size(entry) - at);
    return end;
}

/* Close it; only now some file systems say that the disk is full. */
static enum unpack_end end_file(struct state *s, int *fd)
{
    int error = 0;

    if (*fd < 0)
        return UNPACK_DONE;
    if (s->u->sync && s->u->sync(s->u->ctx, *fd) < 0)
        error = errno;
    if (close(steal_fd(fd)) < 0 && error == 0 && errno != EINTR)
        error = errno;
    return error ? write_fault(s, error) : UNPACK_DONE;
}

static enum unpack_end unpack_file(struct state *s,
                                   struct archive_entry *entry)
{
    autoclose int fd = -1;
    struct unpack_member *m = find_member(s, s->u->path);
    struct digest d;
    uint8_t sum[DIGEST_MAX];
    enum unpack_end end;

    if (archive_entry_is_encrypted(entry))
        return bad_entry(s, "is encrypted");
    if (m && m->link)
        return bad_entry(s, "would be made twice");
    if (s->u->to >= 0) {
        fd = make_file(s, (archive_entry_perm(entry) & 0111) != 0, m);
        if (fd < 0)
            return write_fault(s, -fd);
    }
    s->u->made = fd >= 0 && !m;
    digest_start(&d, DIGEST_SHA256);
    end = copy_data(s, entry, fd, &d);
    if (end == UNPACK_DONE)
        end = end_file(s, &fd);
    if (end != UNPACK_DONE)
        return end;
    if (!m)
        m = add_member(s, false);
    if (!m)
        return UNPACK_MEMORY;
    digest_end(&d, sum);
    memcpy(m->sha256, sum, sizeof m->sha256);
    return UNPACK_DONE;
}

static enum unpack_end unpack_link(struct state *s,
                                   struct archive_entry *entry)
{
    const char *target = archive_entry_symlink(entry);
    const char *why = target ? place_target_fault(s->u->path, target)
                             : "it has no target";
    struct unpack_member *m;
    struct digest d;
    uint8_t sum[DIGEST_MAX];
    int rc;

    if (why)
        return bad(s, "its link '%.100s' is refused: %s", s->u->path, why);
    if (find_member(s, s->u->path))
        return bad_entry(s, "would be made twice");
    if (s->u->to >= 0) {
        rc = place_link(&s->place, s->u->path, target);
        if (rc)
            return write_fault(s, -rc);
    }
    m = add_member(s, true);
    if (!m)
        return UNPACK_MEMORY;
    digest_start(&d, DIGEST_SHA256);
    digest_add(&d, target, strlen(target));
    digest_end(&d, sum);
    memcpy(m->sha256, sum, sizeof m->sha256);
    return UNPACK_DONE;
}

/* A second name for a file that came before. */
static enum unpack_end unpack_name(struct state *s, const char *target)
{
    char path[DATASET_PATH_MAX + 1];
    const char *why = place_path(s->u->beside, target, path);
    struct unpack_member *of = why ? NULL : find_member(s, path), *m;
    uint8_t sha256[32];
    int rc;

    if (!of || of->link)
        return bad_entry(s, "is a hard link to no file of the archive");
    if (find_member(s, s->u->path))
        return strcmp(path, s->u->path) == 0
                   ? UNPACK_DONE
                   : bad_entry(s, "would be made twice");
    memcpy(sha256, of->sha256, sizeof sha256);
    if (s->u->to >= 0) {
        rc = place_name(&s->place, s->u->path, path);
        if (rc)
            return write_fault(s, -rc);
    }
    m = add_member(s, false);
    if (!m)
        return UNPACK_MEMORY;
    memcpy(m->sha256, sha256, sizeof m->sha256);
    return UNPACK_DONE;
}

static enum unpack_end unpack_entry(struct state *s,
                                    struct archive_entry *entry)
{
    const char *name = archive_entry_pathname(entry);
    const char *why;
    int rc;

    s->u->made = false;
    if (!name)
        return bad(s, "an entry has a name that cannot be read");
    (void)text_copy(s->u->path, sizeof s->u->path, name);
    why = place_path(s->u->beside, name, s->u->path);
    if (why) {
        (void)text_copy(s->u->path, sizeof s->u->path, name);
        return bad(s, "its entry '%.100s' is refused: %s", name, why);
    }
    if (s->u->members.n >= MANIFEST_MAX_FILES)
        return bad(s, "it holds more than %u files", MANIFEST_MAX_FILES);
    if (++s->n_entries > ENTRIES_MAX)
        return bad(s, "it holds more than %u files and folders", ENTRIES_MAX);
    if (s->u->path[0] == '\0' && (archive_entry_hardlink(entry) ||
                                 archive_entry_filetype(entry) != AE_IFDIR))
        return bad(s, "an entry has no name");
    if (archive_entry_hardlink(entry))
        return unpack_name(s, archive_entry_hardlink(entry));
    switch (archive_entry_filetype(entry)) {
    case AE_IFREG:
        return unpack_file(s, entry);
    case AE_IFLNK:
        return unpack_link(s, entry);
    case AE_IFDIR:
        rc = s->u->to >= 0 && s->u->path[0]
                 ? place_folder(&s->place, s->u->path)
                 : 0;
        return rc ? write_fault(s, -rc) : UNPACK_DONE;
    default:
        return bad_entry(s, "is a device, a pipe or a socket");
    }
}

static enum unpack_end unpack_all(struct state *s)
{
    enum unpack_end end = UNPACK_DONE;

    while (end == UNPACK_DONE) {
        struct archive_entry *entry;
        int rc = archive_read_next_header(s->a, &entry);

        if (rc == ARCHIVE_EOF)
            break;
        /* A warning: a name that is no UTF-8, say, and taken as it is. */
        if (rc != ARCHIVE_OK && rc != ARCHIVE_WARN)
            return archive_fault(s);
        end = unpack_entry(s, entry);
    }
    return end;
}

static int support(struct archive *a, enum manifest_unpack format)
{
    int rc = ARCHIVE_OK;

    if (unpack_look_at_cpu)
        unpack_look_at_cpu();
    switch (format) {
    case UNPACK_TAR_GZ:
        rc = archive_read_support_filter_gzip(a);
        break;
    case UNPACK_TAR_ZST:
        rc = archive_read_support_filter_zstd(a);
        break;
    case UNPACK_TAR_XZ:
        rc = archive_read_support_filter_xz(a);
        break;
    case UNPACK_ZIP:
        return archive_read_support_format_zip_seekable(a);
    case UNPACK_TAR:
    case UNPACK_NONE:
    case UNPACK_GZIP:
    case N_UNPACKS:
        break;
    }
    return rc == ARCHIVE_OK ? archive_read_support_format_tar(a) : rc;
}

static la_ssize_t on_read(struct archive *a, void *ctx, const void **ret)
{
    struct unpack *u = ctx;
    long n = u->read(u->ctx, ret);

    if (n < 0) {
        u->error = EIO;
        archive_set_error(a, EIO, "the source cannot be read");
    }
    return n;
}

enum unpack_end unpack_run(struct unpack *u)
{
    struct state s = {.u = u, .a = archive_read_new()};
    enum unpack_end end;
    int rc;

    u->error = 0;
    u->n_bytes = 0;
    u->made = false;
    u->why[0] = u->path[0] = '\0';
    if (!s.a)
        return UNPACK_MEMORY;
    place_start(&s.place, u->to);
    rc = support(s.a, u->format);
    if (rc == ARCHIVE_OK)
        rc = u->read ? archive_read_open(s.a, u, NULL, on_read, NULL)
                     : archive_read_open_fd(s.a, u->fd, READ_BLOCK);
    end = rc == ARCHIVE_OK ? unpack_all(&s) : archive_fault(&s);
    place_end(&s.place);
    (void)archive_read_free(s.a);
    return end;
}
