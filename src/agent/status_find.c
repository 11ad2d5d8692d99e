/* status_find: see status_find.h. */
#include "agent/status_find.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define FOUND_MAX 8 /* That are told. */

struct found { /* Agents that take connections. */
    char path[FOUND_MAX][STATUS_SOCKET_PATH_MAX];
    pid_t pid[FOUND_MAX]; /* 0: in another namespace. */
    unsigned n; /* All; those beyond FOUND_MAX are only counted. */
    int fd; /* Of the last one; or -1. */
};

static int no_access(const char *path, struct err *e)
{
    return err_set(e, ERR_AUTH, "the agent at %s is that of another user: ask "
                   "as the user that it runs as, or as root", path);
}

static int connect_asked(const char *path, struct err *e)
{
    int fd = status_socket_connect(path, true);

    if (fd >= 0)
        return fd;
    if (fd == -EACCES || fd == -EPERM)
        return no_access(path, e);
    return err_set(e, ERR_RESOURCE, "no agent answers at --socket %s: %s",
                   path, strerror(-fd));
}

static bool place_of(unsigned i, char *ret)
{
    return status_socket_place(i, geteuid(), getenv("XDG_RUNTIME_DIR"), ret);
}

static void look_at(const char *path, struct found *f)
{
    int fd = status_socket_connect(path, false);
    struct ucred peer = {0};
    socklen_t len = sizeof peer;

    if (fd < 0)
        return;
    mem_close_at(&f->fd);
    f->fd = fd;
    if (f->n < FOUND_MAX) {
        (void)getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len);
        f->pid[f->n] = peer.pid;
        (void)text_copy(f->path[f->n], sizeof f->path[0], path);
    }
    f->n++;
}

/* Second agents, "/run/agent-123.sock"; `place` is the first agent's name,
 * "/run/agent.sock", and `but` is left out. */
static void look_beside(const char *place, const char *but, struct found *f)
{
    const char *name = strrchr(place, '/') + 1;
    size_t stem = strlen(name) - strlen(".sock");
    char dir[STATUS_SOCKET_PATH_MAX], path[STATUS_SOCKET_PATH_MAX];
    const struct dirent *ent;
    DIR *d;

    (void)snprintf(dir, sizeof dir, "%.*s", (int)(name - place), place);
    d = opendir(dir);
    while (d && (ent = readdir(d)) != NULL) {
        const char *digits = ent->d_name + stem + 1;
        int n;

        if (strncmp(ent->d_name, name, stem) != 0 ||
            ent->d_name[stem] != '-' ||
            strcmp(digits + strspn(digits, "0123456789"), ".sock") != 0)
            continue;
        n = snprintf(path, sizeof path, "%s%s", dir, ent->d_name);
        if (n < (int)sizeof path && strcmp(path, but) != 0)
            look_at(path, f);
    }
    if (d)
        (void)closedir(d);
}

/* Nobody has a first agent's name: the only second one is meant. */
static int connect_second(char *path, const char *tried, struct err *e)
{
    char place[STATUS_SOCKET_PATH_MAX], list[1024], other[80] = "";
    struct found f = {.fd = -1};
    struct stat init;
    struct text t;

    for (unsigned i = 0; i < STATUS_SOCKET_PLACES; i++)
        if (place_of(i, place))
            look_beside(place, "", &f);
    if (f.n == 1) {
        (void)text_copy(path, STATUS_SOCKET_PATH_MAX, f.path[0]);
        return f.fd;
    }
    mem_close_at(&f.fd);
    text_init(&t, list, sizeof list);
    for (unsigned i = 0; i < f.n && i < FOUND_MAX; i++)
        text_add(&t, " %s", f.path[i]);
    if (f.n > 1)
        return err_set(e, ERR_USAGE, "%u agents run here: choose one by "
                       "--socket:%s", f.n, list);
    /* In a container, asked as root: docker exec -u 0. */
    if (stat("/proc/1", &init) == 0 && init.st_uid != 0 &&
        init.st_uid != geteuid())
        (void)snprintf(other, sizeof other, "; PID 1 is of uid %u: if it is "
                       "agent, ask as that uid", (unsigned)init.st_uid);
    return err_set(e, ERR_RESOURCE, "no agent runs here: none answers at %s%s; "
                   "another place is asked with --socket PATH", tried, other);
}

int status_find(const char *asked, char path[STATUS_SOCKET_PATH_MAX],
                struct err *e)
{
    char tried[512], refused[STATUS_SOCKET_PATH_MAX] = "";
    struct text t;
    int fd;

    if (asked) {
        (void)text_copy(path, STATUS_SOCKET_PATH_MAX, asked);
        return connect_asked(path, e);
    }
    text_init(&t, tried, sizeof tried);
    for (unsigned i = 0; i < STATUS_SOCKET_PLACES; i++) {
        if (!place_of(i, path))
            continue;
        fd = status_socket_connect(path, false);
        if (fd >= 0)
            return fd;
        if (fd == -EACCES && !refused[0]) /* One's own may be at the next. */
            (void)text_copy(refused, sizeof refused, path);
        text_add(&t, "%s%s", t.len ? ", " : "", path);
    }
    fd = connect_second(path, tried, e);
    return fd == -ERR_RESOURCE && refused[0] ? no_access(refused, e) : fd;
}

void status_say_others(const char *path)
{
    char place[STATUS_SOCKET_PATH_MAX], pid[32];
    struct found f = {.fd = -1};

    for (unsigned i = 0; i < STATUS_SOCKET_PLACES; i++) {
        if (!place_of(i, place))
            continue;
        if (strcmp(place, path) != 0)
            look_at(place, &f);
        look_beside(place, path, &f);
    }
    mem_close_at(&f.fd);
    for (unsigned i = 0; i < f.n && i < FOUND_MAX; i++) {
        (void)snprintf(pid, sizeof pid, "pid %d", (int)f.pid[i]);
        log_info("also here: %s, agent status --socket %s",
                 f.pid[i] > 0 ? pid : "an agent", f.path[i]);
    }
    if (f.n > FOUND_MAX)
        log_info("also here: %u more", f.n - FOUND_MAX);
}
