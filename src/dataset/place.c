/* place: see place.h. */
#include "dataset/place.h"

#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void place_start(struct place *p, int root)
{
    *p = (struct place){.root = root, .folder = -1};
}

void place_end(struct place *p)
{
    if (p->folder >= 0)
        (void)close(p->folder);
    p->folder = -1;
}

static int open_below(int above, const char *name)
{
    int flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    int fd = openat(above, name, flags);

    if (fd >= 0 || errno != ENOENT)
        return fd < 0 ? -errno : fd;
    if (mkdirat(above, name, 0755) < 0 && errno != EEXIST)
        return -errno;
    fd = openat(above, name, flags);
    return fd < 0 ? -errno : fd;
}

/* Go to the folder of `path`; the last component is left in `*ret_name`. */
static int go_to(struct place *p, const char *path, const char **ret_name)
{
    const char *slash = strrchr(path, '/');
    size_t len = slash ? (size_t)(slash - path) : 0;
    int fd;

    *ret_name = slash ? slash + 1 : path;
    if (p->folder >= 0 && strncmp(p->path, path, len) == 0 &&
        p->path[len] == '\0')
        return 0;
    fd = openat(p->root, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    for (size_t at = 0; at < len;) {
        char name[DATASET_COMPONENT_MAX + 1];
        size_t n = strcspn(path + at, "/");
        int below;

        memcpy(name, path + at, n);
        name[n] = '\0';
        below = open_below(fd, name);
        (void)close(fd);
        if (below < 0)
            return below;
        fd = below;
        at += n + 1;
    }
    place_end(p);
    p->folder = fd;
    memcpy(p->path, path, len);
    p->path[len] = '\0';
    return 0;
}

int place_folder(struct place *p, const char *path)
{
    const char *name;
    int fd, rc = go_to(p, path, &name);

    if (rc)
        return rc;
    fd = open_below(p->folder, name);
    if (fd < 0)
        return fd;
    (void)close(fd);
    return 0;
}

int place_file(struct place *p, const char *path, bool executable)
{
    const char *name;
    int fd, rc = go_to(p, path, &name);

    if (rc)
        return rc;
    fd = openat(p->folder, name,
                O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                executable ? 0755 : 0644);
    return fd < 0 ? -errno : fd;
}

int place_link(struct place *p, const char *path, const char *target)
{
    const char *name;
    int rc = go_to(p, path, &name);

    if (rc == 0 && symlinkat(target, p->folder, name) < 0)
        rc = -errno;
    return rc;
}

int place_name(struct place *p, const char *path, const char *target)
{
    struct place other;
    const char *from, *name;
    struct stat st;
    int rc;

    place_start(&other, p->root);
    rc = go_to(&other, target, &from);
    if (rc == 0)
        rc = go_to(p, path, &name);
    if (rc == 0 && (fstatat(other.folder, from, &st, AT_SYMLINK_NOFOLLOW) < 0))
        rc = -errno;
    if (rc == 0 && !S_ISREG(st.st_mode))
        rc = -ENOENT;
    if (rc == 0 && linkat(other.folder, from, p->folder, name, 0) < 0)
        rc = -errno;
    place_end(&other);
    return rc;
}

int place_remove(struct place *p, const char *path)
{
    const char *name;
    int rc = go_to(p, path, &name);

    if (rc == 0 && unlinkat(p->folder, name, 0) < 0)
        rc = -errno;
    return rc;
}

const char *place_path(const char *beside, const char *name,
                       char ret[DATASET_PATH_MAX + 1])
{
    const char *slash = strrchr(beside, '/');
    size_t n = slash ? (size_t)(slash - beside) + 1 : 0;
    struct text t;

    while (strncmp(name, "./", 2) == 0)
        name += 1 + strspn(name + 1, "/");
    ret[0] = '\0';
    if (name[0] == '\0' || strcmp(name, ".") == 0)
        return NULL;
    if (name[0] == '/')
        return "it is absolute";
    text_init(&t, ret, DATASET_PATH_MAX + 1);
    text_add(&t, "%.*s%s", (int)n, beside, name);
    while (t.len > 0 && ret[t.len - 1] == '/')
        ret[--t.len] = '\0';
    if (t.cut)
        return "its path has more than 4000 bytes";
    return path_fault(ret);
}

const char *place_target_fault(const char *path, const char *target)
{
    unsigned depth = 0;

    if (target[0] == '\0')
        return "it leads nowhere";
    if (target[0] == '/')
        return "it is absolute";
    for (const char *at = path; (at = strchr(at, '/')); at++)
        depth++;
    for (const char *at = target; *at;) {
        size_t n = strcspn(at, "/");

        if (n == 2 && strncmp(at, "..", 2) == 0) {
            if (depth-- == 0)
                return "it leaves the folder";
        } else if (n > 0 && !(n == 1 && at[0] == '.')) {
            depth++;
        }
        at += n + strspn(at + n, "/");
    }
    return NULL;
}
