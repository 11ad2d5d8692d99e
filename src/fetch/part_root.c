/* part_root: the folder that is fetched into; see part.h. */
#include "fetch/part.h"

#include "dataset/path.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

int part_fault(const struct part_root *r, const char *what, const char *path,
               struct err *e)
{
    struct path_shown p;
    const char *shown = path ? path_show(&p, r->shown, path)
                             : path_show(&p, NULL, r->shown);
    struct statvfs v;
    int error = errno;

    if ((error == ENOSPC || error == EDQUOT) && fstatvfs(r->fd, &v) == 0)
        return err_set(e, ERR_RESOURCE, "%s '%s': %s: %" PRIu64 " bytes are "
                       "free: make room, and run this again: it goes on where "
                       "it was", what, shown, strerror(error),
                       (uint64_t)v.f_frsize * v.f_bavail);
    if (error == EXDEV || err_wants_other_path(error))
        return err_set(e, ERR_USAGE, "%s '%s': %s: give a folder that can be "
                       "written to", what, shown,
                       error == EXDEV ? "a link leaves the folder"
                                      : strerror(error));
    return err_set(e, ERR_RESOURCE, "%s '%s': %s", what, shown,
                   strerror(error));
}

static int make_folder(const char *path)
{
    struct stat st;
    int error;

    if (mkdir(path, 0777) == 0 || errno == EEXIST)
        return 0;
    error = errno; /* EROFS, say, of what is there. */
    if (stat(path, &st) == 0)
        return 0;
    errno = error;
    return -1;
}

static int make_folders(const char *path)
{
    char buf[PATH_MAX];
    size_t len = strlen(path);

    if (len == 0 || len >= sizeof buf) {
        errno = len ? ENAMETOOLONG : ENOENT;
        return -1;
    }
    memcpy(buf, path, len + 1);
    for (char *s = buf + 1; *s; s++)
        if (*s == '/') {
            *s = '\0';
            if (make_folder(buf) < 0)
                return -1;
            *s = '/';
        }
    return make_folder(buf);
}

int part_root_open(struct part_root *ret, const char *path, struct err *e)
{
    struct part_root r = {.fd = -1, .shown = path};

    if (make_folders(path) == 0)
        r.fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (r.fd < 0)
        return part_fault(&r, "make folder", NULL, e);
    /* Where a folder cannot be locked (NFS) the hash decides who is right. */
    if (flock(r.fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        (void)close(r.fd);
        return err_set(e, ERR_RESOURCE, "another agent-fetch works in '%s': "
                       "wait for its end, or give another folder", path);
    }
    *ret = r;
    return 0;
}

int part_root_sync(const struct part_root *r, struct err *e)
{
    return syncfs(r->fd) != 0 ? part_fault(r, "sync", NULL, e) : 0;
}

void part_root_close(struct part_root *r)
{
    (void)close(r->fd);
    r->fd = -1;
}

int part_check_space(const struct part_root *r, uint64_t need, struct err *e)
{
    struct statvfs v;
    uint64_t n;

    if (fstatvfs(r->fd, &v) != 0 || v.f_blocks == 0)
        return 0; /* It does not say. */
    n = (uint64_t)v.f_frsize * (geteuid() == 0 ? v.f_bfree : v.f_bavail);
    if (need <= n)
        return 0;
    return err_set(e, ERR_RESOURCE, "'%s' needs %" PRIu64 " bytes more, %"
                   PRIu64 " are free: make room, or give another folder",
                   r->shown, need, n);
}
