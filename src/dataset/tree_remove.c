/* tree_remove: remove a folder and all that is in it; see tree.h. */
#include "dataset/tree.h"

#include "dataset/path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* Deeper than any stage, so that what is in a left-over can be removed. */
#define REMOVE_DEPTH_MAX (2 * DATASET_DEPTH_MAX)
#define TRIES_MAX 3

static int remove_at(int folder, const char *name, unsigned depth);

static int empty_folder(DIR *dir, unsigned depth)
{
    struct dirent *entry;

    while ((errno = 0, entry = readdir(dir))) {
        int rc;

        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        rc = remove_at(dirfd(dir), entry->d_name, depth);
        if (rc)
            return rc;
    }
    return -errno;
}

static int remove_at(int folder, const char *name, unsigned depth)
{
    DIR *dir;
    int fd, rc;

    if (unlinkat(folder, name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return -errno;
    rc = -errno;
    if (depth == 0)
        return -ELOOP;
    fd = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOTDIR ? rc : -errno;
    (void)fchmod(fd, 0700); /* A folder made read-only can be emptied too. */
    dir = fdopendir(fd);
    if (!dir) {
        rc = -errno;
        (void)close(fd);
        return rc;
    }
    /* Some file systems skip names while others are being removed. */
    for (int i = 0; i < TRIES_MAX; i++) {
        rewinddir(dir);
        rc = empty_folder(dir, depth - 1);
        if (rc || unlinkat(folder, name, AT_REMOVEDIR) == 0)
            break;
        rc = errno == ENOENT ? 0 : -errno;
        if (rc != -ENOTEMPTY && rc != -EEXIST)
            break;
    }
    (void)closedir(dir);
    return rc;
}

int tree_remove(int folder, const char *name)
{
    return remove_at(folder, name, REMOVE_DEPTH_MAX);
}
