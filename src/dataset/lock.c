/* lock: see lock.h.
 *
 * The file is never removed by us: who removes a lock file frees the lock of
 * whoever waits on it. Where somebody else removed it, the one at the path
 * counts. */
#include "dataset/lock.h"

#include "base/mem.h"
#include "dataset/lease_file.h"
#include "dataset/path.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#define POLL_MS 100

/* Without O_CREAT first: in a sticky folder the kernel refuses O_CREAT for a
 * file of another user. Read-only will do for flock(2) of such a file. */
static int open_lock(int folder, const char *name)
{
    int flags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
    int fd = openat(folder, name, O_RDWR | flags), why;

    if (fd < 0 && errno == ENOENT)
        fd = openat(folder, name, O_RDWR | O_CREAT | flags, 0644);
    why = errno;
    if (fd < 0 && (why == EACCES || why == EROFS)) {
        fd = openat(folder, name, O_RDONLY | flags);
        if (fd < 0 && errno == ENOENT)
            errno = why; /* It cannot be made: that is the reason. */
    }
    return fd;
}

static bool still_there(int folder, const char *name, int fd)
{
    struct stat a, b;

    return fstat(fd, &a) == 0 &&
           fstatat(folder, name, &b, AT_SYMLINK_NOFOLLOW) == 0 &&
           a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* One try: 0, or an errno; EWOULDBLOCK: another has it, which says `told`. */
static int try_once(int folder, const char *name, int *ret_fd,
                    struct stage_progress *told)
{
    autoclose int fd = open_lock(folder, name);
    char text[LEASE_WORD + 1];
    struct lease_word word;
    int error;

    memset(told, 0, sizeof *told);

    if (fd < 0)
        return errno;
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        error = errno;
        if (lease_read_fd(fd, text) == 0 && lease_parse(text, &word))
            *told = word.at;
        return error;
    }
    if (!still_there(folder, name, fd))
        return EAGAIN;
    *ret_fd = steal_fd(&fd);
    return 0;
}

int lock_try(const struct space *s, const char *name)
{
    struct stage_progress told;
    int fd = -1;

    return try_once(s->fd, name, &fd, &told) == 0 ? fd : -1;
}

int lock_take(const struct space *s, const char *name, bool is_optional,
              struct meter *meter, int *ret_fd, struct err *e)
{
    const struct timespec pause = {.tv_nsec = POLL_MS * 1000000L};
    struct path_shown p;

    for (long i = 0; i < LOCK_WAIT_MAX_S * (1000L / POLL_MS); i++) {
        struct stage_progress told;
        int error = try_once(s->fd, name, ret_fd, &told);
        bool has_none = error == ENOLCK || error == EOPNOTSUPP ||
                        error == ENOSYS;

        if (has_none && is_optional)
            *ret_fd = -1;
        if (error == 0 || (has_none && is_optional))
            return 0;
        if (has_none)
            return err_set(e, ERR_RESOURCE,
                           "lock '%s': the file system has no locks: mount "
                           "it with them, or give another --stage",
                           path_show(&p, s->shown, name));
        if (error != EWOULDBLOCK && error != EINTR)
            return space_fault(s, "lock", name, error, e);
        meter_tell_waiting(meter, &told);
        (void)nanosleep(&pause, NULL);
    }
    return err_set(e, ERR_RESOURCE,
                   "lock '%s': another process has held it for a day",
                   path_show(&p, s->shown, name));
}
