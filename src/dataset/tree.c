/* tree: see tree.h. */
#include "dataset/tree.h"

#include "base/mem.h"
#include "dataset/path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define LINKS_MAX 40   /* As in the kernel. */
#define STALE_TRIES 4
#define RETRIES_MAX 64 /* openat2 gives up where a rename raced with it. */

int tree_fault(const struct tree *t, const char *path, int error,
               struct err *e)
{
    struct path_shown p;
    const char *shown = path_show(&p, t->shown, path);

    switch (error) {
    case ENOENT:
    case ENOTDIR:
        return err_set(e, ERR_NODATA, "'%s' is missing", shown);
    case EACCES:
    case EPERM:
    case ENAMETOOLONG:
        return err_set(e, ERR_NODATA, "'%s' cannot be read: %s", shown,
                       strerror(error));
    case EXDEV:
        return err_set(e, ERR_DATA,
                       "'%s' is refused: a link on its way leaves the source "
                       "folder: copy the file into it, or give a --source "
                       "that holds both",
                       shown);
    case ELOOP:
        return err_set(e, ERR_DATA, "'%s' is refused: a loop of links", shown);
    case ENXIO: /* A socket, or a device that is not there. */
    case ENODEV:
        return err_set(e, ERR_DATA, "'%s' is no regular file", shown);
    default:
        return err_set(e, ERR_RESOURCE, "read '%s': %s", shown,
                       strerror(error));
    }
}

int tree_open(struct tree *ret, const char *path, struct err *e)
{
    struct path_shown p;
    const char *shown = path_show(&p, NULL, path);
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd >= 0) {
        ret->fd = fd;
        ret->shown = path;
        return 0;
    }
    if (errno == ENOENT)
        return err_set(e, ERR_NODATA, "source folder '%s' is missing", shown);
    if (errno == ENOTDIR)
        return err_set(e, ERR_NODATA, "source '%s' is no folder", shown);
    if (errno == EACCES || errno == EPERM || errno == ELOOP ||
        errno == ENAMETOOLONG)
        return err_set(e, ERR_NODATA, "source folder '%s': %s", shown,
                       strerror(errno));
    return err_set(e, ERR_RESOURCE, "open source folder '%s': %s", shown,
                   strerror(errno));
}

/* A walk under way: what is left of the path, and the folders above. */
struct walk {
    int root;
    int above[DATASET_DEPTH_MAX + LINKS_MAX];
    unsigned n_above, n_links;
    char left[PATH_MAX];
};

static int walk_here(const struct walk *w)
{
    return w->n_above > 0 ? w->above[w->n_above - 1] : w->root;
}

/* Put the target of link `name` before what is left. 1: it was a link. */
static int walk_link(struct walk *w, const char *name, const char *rest)
{
    char target[PATH_MAX], whole[PATH_MAX];
    ssize_t n = readlinkat(walk_here(w), name, target, sizeof target - 1);
    size_t n_rest = strlen(rest);

    if (n < 0)
        return errno == EINVAL ? 0 : -1; /* EINVAL: no link. */
    if (n == 0 || target[0] == '/') {
        errno = n == 0 ? ENOENT : EXDEV;
        return -1;
    }
    if (++w->n_links > LINKS_MAX) {
        errno = ELOOP;
        return -1;
    }
    if ((size_t)n + n_rest + 2 > sizeof whole) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(whole, target, (size_t)n);
    whole[n] = '/';
    memcpy(whole + n + 1, rest, n_rest + 1);
    memcpy(w->left, whole, (size_t)n + n_rest + 2);
    return 1;
}

static int walk_down(struct walk *w, const char *name)
{
    int fd;

    if (w->n_above == sizeof w->above / sizeof w->above[0]) {
        errno = ENAMETOOLONG; /* Deeper than what it can be asked for. */
        return -1;
    }
    fd = openat(walk_here(w), name,
                O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -1;
    w->above[w->n_above++] = fd;
    return 0;
}

static int walk_up(struct walk *w)
{
    if (w->n_above == 0) {
        errno = EXDEV;
        return -1;
    }
    (void)close(w->above[--w->n_above]);
    return 0;
}

/* Take one component; `*ret_fd` is set where it was the last. */
static int walk_step(struct walk *w, int flags, int *ret_fd)
{
    char name[NAME_MAX + 1];
    char *at = w->left + strspn(w->left, "/");
    size_t len = strcspn(at, "/");
    const char *rest = at + len + strspn(at + len, "/");
    int link;

    if (len > NAME_MAX) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(name, at, len);
    name[len] = '\0';
    if (len == 0) { /* The path was a link to a folder. */
        *ret_fd = openat(walk_here(w), ".", flags | O_CLOEXEC);
        return *ret_fd < 0 ? -1 : 0;
    }
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0) {
        int rc = name[1] ? walk_up(w) : 0;

        memmove(w->left, rest, strlen(rest) + 1);
        return rc;
    }
    link = walk_link(w, name, rest);
    if (link)
        return link < 0 ? -1 : 0;
    if (*rest == '\0') {
        *ret_fd = openat(walk_here(w), name, flags | O_NOFOLLOW | O_CLOEXEC);
        return *ret_fd < 0 ? -1 : 0;
    }
    if (walk_down(w, name) < 0)
        return -1;
    memmove(w->left, rest, strlen(rest) + 1);
    return 0;
}

int tree_walk_beneath(int root, const char *path, int flags)
{
    struct walk w = {.root = root};
    int fd = -1, rc = 0, error;

    if (path[0] == '/' || strlen(path) >= sizeof w.left) {
        errno = path[0] == '/' ? EXDEV : ENAMETOOLONG;
        return -1;
    }
    memcpy(w.left, path, strlen(path) + 1);
    while (rc == 0 && fd < 0)
        rc = walk_step(&w, flags, &fd);
    error = errno;
    while (w.n_above > 0)
        (void)walk_up(&w);
    errno = error;
    return fd;
}

int tree_open_beneath(int root, const char *path, int flags)
{
    struct open_how how = {
        .flags = (unsigned)flags | O_CLOEXEC,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
    };

    const struct timespec pause = {.tv_nsec = 50 * 1000000L};

    for (int i = 0; i < RETRIES_MAX; i++) {
        long fd = syscall(SYS_openat2, root, path, &how, sizeof how);

        if (fd >= 0)
            return (int)fd;
        if (errno == ESTALE && i < STALE_TRIES)
            (void)nanosleep(&pause, NULL); /* NFS: look it up anew. */
        else if (errno != EAGAIN && errno != EINTR)
            break;
    }
    /* Kernels before 5.6 and gVisor have no openat2; old seccomp profiles say
     * EPERM to what they do not know. A true EPERM comes back from the walk. */
    if (errno == ENOSYS || errno == EPERM)
        return tree_walk_beneath(root, path, flags);
    return -1;
}

int tree_open_file(const struct tree *t, const char *path, int *ret_fd,
                   struct stat *ret_st, struct err *e)
{
    autoclose int fd = tree_open_beneath(t->fd, path,
                                         O_RDONLY | O_NONBLOCK | O_NOCTTY);
    struct stat st;
    struct path_shown p;

    if (fd < 0)
        return tree_fault(t, path, errno, e);
    if (fstat(fd, &st) < 0)
        return tree_fault(t, path, errno, e);
    if (!S_ISREG(st.st_mode))
        return err_set(e, ERR_DATA, "'%s' is %s, no regular file",
                       path_show(&p, t->shown, path),
                       S_ISDIR(st.st_mode)    ? "a folder"
                       : S_ISFIFO(st.st_mode) ? "a pipe"
                                              : "a device");
    *ret_fd = steal_fd(&fd);
    *ret_st = st;
    return 0;
}

bool tree_has(const struct tree *t, const char *path)
{
    int fd = tree_open_beneath(t->fd, path, O_PATH);

    if (fd >= 0)
        (void)close(fd);
    return fd >= 0;
}
