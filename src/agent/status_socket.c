/* status_socket: see status_socket.h. */
#include "agent/status_socket.h"

#include "base/mem.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define BACKLOG 64
#define FORGET_TRIES 100 /* Of 10 ms. */

bool status_socket_place(unsigned i, uid_t uid, const char *runtime_dir,
                         char ret[STATUS_SOCKET_PATH_MAX])
{
    struct text t;

    text_init(&t, ret, STATUS_SOCKET_PATH_MAX);
    if (i == 0)
        text_add(&t, "/run/agent.sock");
    if (i == 1 && runtime_dir && runtime_dir[0] == '/' &&
        strlen(runtime_dir) + sizeof "/agent.sock" <= STATUS_SOCKET_ASKED_MAX)
        text_add(&t, "%s/agent.sock", runtime_dir);
    if (i == 2)
        text_add(&t, "/tmp/agent-%u.sock", (unsigned)uid);
    return t.len > 0;
}

void status_socket_second(const char *path, pid_t pid,
                          char ret[STATUS_SOCKET_PATH_MAX])
{
    size_t len = strlen(path);
    bool has_end = len > 5 && strcmp(path + len - 5, ".sock") == 0;
    struct text t;

    text_init(&t, ret, STATUS_SOCKET_PATH_MAX);
    text_add(&t, "%.*s-%d%s", (int)(has_end ? len - 5 : len), path, (int)pid,
             has_end ? ".sock" : "");
}

static int connect_to(const char *path)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int r;

    if (fd < 0)
        return -errno;
    (void)text_copy(a.sun_path, sizeof a.sun_path, path);
    if (connect(fd, (const struct sockaddr *)&a, sizeof a) == 0)
        return fd;
    r = -errno;
    (void)close(fd);
    return r;
}

int status_socket_connect(const char *path, bool asked)
{
    struct ucred peer;
    socklen_t len = sizeof peer;
    int fd = connect_to(path);

    if (fd < 0 || asked)
        return fd;
    /* In /tmp anyone can make a name. */
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 &&
        (peer.uid == 0 || peer.uid == geteuid()))
        return fd;
    (void)close(fd);
    return -EPERM;
}

/* A listening socket at `path`, which must not be there; negative errno. */
static int listen_at(const char *path)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int r;

    if (fd < 0)
        return -errno;
    (void)text_copy(a.sun_path, sizeof a.sun_path, path);
    (void)fchmod(fd, 0600); /* The mode that the name gets, from the start. */
    if (bind(fd, (const struct sockaddr *)&a, sizeof a) == 0) {
        if (listen(fd, BACKLOG) == 0)
            return fd;
        r = -errno;
        (void)unlink(path);
    } else {
        r = -errno;
    }
    (void)close(fd);
    return r;
}

/* Not over what is there; negative errno. */
static int rename_new(const char *from, const char *to)
{
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -errno;
    if (link(from, to) != 0)
        return -errno;
    (void)unlink(from);
    return 0;
}

/* A socket of ours that nobody listens on. */
static bool is_stale(const char *path)
{
    struct stat st;
    int fd;

    if (lstat(path, &st) != 0 || !S_ISSOCK(st.st_mode) ||
        st.st_uid != geteuid())
        return false;
    fd = connect_to(path);
    mem_close_at(&fd);
    return fd == -ECONNREFUSED;
}

/* Of several agents that find one stale name, one alone replaces it: the lock
 * of its folder is held from the look to the rename. */
static int replace_stale(const char *from, const char *to, const char *dir)
{
    autoclose int lock = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (lock < 0 || flock(lock, LOCK_EX | LOCK_NB) != 0 || !is_stale(to))
        return -EEXIST;
    return rename(from, to) == 0 ? 0 : -errno;
}

static int take_name(const char *from, const char *to, const char *dir)
{
    int r = rename_new(from, to);

    return r == -EEXIST ? replace_stale(from, to, dir) : r;
}

struct names { /* Of the folder, and in it before it gets its name. */
    char dir[STATUS_SOCKET_PATH_MAX], temp[STATUS_SOCKET_PATH_MAX + 24];
};

static void name_beside(const char *path, uint64_t seed, struct names *ret)
{
    const char *slash = strrchr(path, '/');

    (void)snprintf(ret->dir, sizeof ret->dir, "%.*s",
                   slash ? (int)(slash + 1 - path) : 2, slash ? path : "./");
    (void)snprintf(ret->temp, sizeof ret->temp, "%s.agent-%08" PRIx32, ret->dir,
                   (uint32_t)(seed ^ seed >> 32));
}

/* `path`, or the name beside it; negative errno. */
static int open_at(const char *path, uint64_t seed, struct status_socket *ret)
{
    struct names n;
    struct stat st;
    int fd, r;

    if (strlen(path) > STATUS_SOCKET_ASKED_MAX)
        return -ENAMETOOLONG;
    name_beside(path, seed, &n);
    fd = listen_at(n.temp);
    if (fd < 0)
        return fd;
    (void)text_copy(ret->path, sizeof ret->path, path);
    r = take_name(n.temp, ret->path, n.dir);
    if (r == -EEXIST) {
        (void)text_copy(ret->taken, sizeof ret->taken, path);
        status_socket_second(path, getpid(), ret->path);
        r = take_name(n.temp, ret->path, n.dir);
    }
    if (r != 0 || lstat(ret->path, &st) != 0) {
        (void)unlink(n.temp);
        (void)close(fd);
        return r != 0 ? r : -ENOENT;
    }
    ret->dev = st.st_dev;
    ret->ino = st.st_ino;
    ret->fd = fd;
    return 0;
}

int status_socket_open(const char *asked, uint64_t seed,
                       struct status_socket *ret, struct err *e)
{
    char path[STATUS_SOCKET_PATH_MAX], why[320];
    struct text t;
    int r;

    memset(ret, 0, sizeof *ret);
    ret->fd = -1;
    if (asked) {
        r = open_at(asked, seed, ret);
        return r == 0 ? 0
                      : err_set(e, ERR_RESOURCE, "--socket %s: %s", asked,
                                strerror(-r));
    }
    text_init(&t, why, sizeof why);
    for (unsigned i = 0; i < STATUS_SOCKET_PLACES; i++) {
        if (!status_socket_place(i, geteuid(), getenv("XDG_RUNTIME_DIR"), path))
            continue;
        ret->taken[0] = '\0';
        r = open_at(path, seed, ret);
        if (r == 0)
            return 0;
        text_add(&t, "%s%s: %s", t.len ? "; " : "", path, strerror(-r));
    }
    return err_set(e, ERR_RESOURCE, "%s", why);
}

void status_socket_close(struct status_socket *s)
{
    struct stat st;

    if (s->fd < 0)
        return;
    /* First the name: a name without a listener is a dead agent's. */
    if (lstat(s->path, &st) == 0 && st.st_dev == s->dev &&
        st.st_ino == s->ino)
        (void)unlink(s->path);
    (void)close(steal_fd(&s->fd));
}

/* The name of a dead agent's socket. The lock of its folder keeps others from
 * putting theirs there between the look and the removal. */
static bool forget_name(const char *path, const char *dir)
{
    autoclose int lock = -1;

    if (!is_stale(path))
        return true;
    lock = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) != 0)
        return false;
    if (is_stale(path))
        (void)unlink(path);
    return true;
}

static void forget_at(const char *path, uint64_t seed, pid_t agent)
{
    char second[STATUS_SOCKET_PATH_MAX];
    struct names n;

    if (strlen(path) > STATUS_SOCKET_ASKED_MAX)
        return;
    name_beside(path, seed, &n);
    status_socket_second(path, agent, second);
    for (unsigned i = 0; i < FORGET_TRIES; i++) {
        bool done = forget_name(n.temp, n.dir);

        done = forget_name(second, n.dir) && done;
        if (forget_name(path, n.dir) && done)
            return;
        (void)nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
}

void status_socket_forget(const char *asked, uint64_t seed, pid_t agent)
{
    char path[STATUS_SOCKET_PATH_MAX];

    if (asked) {
        forget_at(asked, seed, agent);
        return;
    }
    for (unsigned i = 0; i < STATUS_SOCKET_PLACES; i++)
        if (status_socket_place(i, geteuid(), getenv("XDG_RUNTIME_DIR"), path))
            forget_at(path, seed, agent);
}
