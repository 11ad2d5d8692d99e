/* space: see space.h. */
#include "dataset/space.h"

#include "dataset/path.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* False where the file system does not say. Root may use its reserve. */
static bool free_bytes(const struct space *s, uint64_t *ret)
{
    struct statvfs v;

    if (fstatvfs(s->fd, &v) < 0 || v.f_blocks == 0)
        return false;
    *ret = (uint64_t)v.f_frsize * (geteuid() == 0 ? v.f_bfree : v.f_bavail);
    return true;
}

static int full(const struct space *s, const char *what, const char *shown,
                int error, struct err *e)
{
    const char *advice = error == EIO ? "look at the disk or the mount"
                                      : "make room";
    struct statvfs v;
    uint64_t n;

    if (error != EIO && fstatvfs(s->fd, &v) == 0 && v.f_files > 0 &&
        v.f_ffree == 0)
        return err_set(e, ERR_RESOURCE,
                       "%s '%s': %s: no inode is free: remove files, or give "
                       "another --stage",
                       what, shown, strerror(error));
    if (s->need == 0) /* Not known yet. */
        return err_set(e, ERR_RESOURCE, "%s '%s': %s: %s, or give another "
                                        "--stage",
                       what, shown, strerror(error), advice);
    if (!free_bytes(s, &n))
        return err_set(e, ERR_RESOURCE,
                       "%s '%s': %s: the set needs %" PRIu64 " bytes", what,
                       shown, strerror(error), s->need);
    return err_set(e, ERR_RESOURCE,
                   "%s '%s': %s: the set needs %" PRIu64 " bytes, %" PRIu64
                   " are free: %s, or give another --stage",
                   what, shown, strerror(error), s->need, n, advice);
}

int space_fault(const struct space *s, const char *what, const char *path,
                int error, struct err *e)
{
    struct path_shown p;
    const char *shown = path_show(&p, s->shown, path);

    if (error == ENOSPC || error == EDQUOT || error == EIO)
        return full(s, what, shown, error, e);
    /* EINVAL, EILSEQ: a name that the file system cannot hold. */
    if (err_wants_other_path(error) || error == EINVAL || error == EILSEQ)
        return err_set(e, ERR_USAGE,
                       "%s '%s': %s: give a --stage that can be written to",
                       what, shown, strerror(error));
    return err_set(e, ERR_RESOURCE, "%s '%s': %s", what, shown,
                   strerror(error));
}

int space_check(const struct space *s, struct err *e)
{
    uint64_t n;
    struct path_shown p;

    if (!free_bytes(s, &n) || s->need <= n)
        return 0;
    return err_set(e, ERR_RESOURCE,
                   "stage '%s' has too little room: the set needs %" PRIu64
                   " bytes, %" PRIu64
                   " are free: make room, or give another --stage",
                   path_show(&p, NULL, s->shown), s->need, n);
}

/* CIFS before Linux 5.6, vboxsf and some of FUSE have none for folders. */
int space_sync_folder(int fd)
{
    if (fsync(fd) == 0 || errno == EINVAL || errno == EOPNOTSUPP ||
        errno == ENOSYS)
        return 0;
    return errno;
}

uint64_t space_block(const struct space *s)
{
    struct statvfs v;

    /* NFS gives its transfer size here, up to 1 MiB. */
    if (fstatvfs(s->fd, &v) < 0 || v.f_frsize == 0 || v.f_frsize > 4096)
        return 4096;
    return v.f_frsize;
}
