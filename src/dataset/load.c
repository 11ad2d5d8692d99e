/* load: see load.h. */
#include "dataset/load.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int open_fault(const char *shown, int error, struct err *e)
{
    if (error == ENOENT || error == ENOTDIR)
        return err_set(e, ERR_NODATA, "manifest '%s' is missing", shown);
    if (error == EACCES || error == EPERM || error == ELOOP ||
        error == ENAMETOOLONG)
        return err_set(e, ERR_NODATA, "manifest '%s' cannot be read: %s",
                       shown, strerror(error));
    return err_set(e, ERR_RESOURCE, "read manifest '%s': %s", shown,
                   strerror(error));
}

static int open_manifest(const char *path, const char *shown, int *ret_fd,
                         size_t *ret_size, struct err *e)
{
    autoclose int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return open_fault(shown, errno, e);
    if (S_ISDIR(st.st_mode))
        return err_set(e, ERR_DATA,
                       "manifest '%s' is a folder: give the manifest file "
                       "in it",
                       shown);
    if (!S_ISREG(st.st_mode))
        return err_set(e, ERR_DATA, "manifest '%s' is no regular file", shown);
    if (st.st_size > (off_t)MANIFEST_MAX_BYTES)
        return err_set(e, ERR_DATA, "manifest '%s' has more than %u MiB",
                       shown, MANIFEST_MAX_BYTES >> 20);
    *ret_fd = steal_fd(&fd);
    *ret_size = (size_t)st.st_size;
    return 0;
}

int load_manifest(struct manifest *ret, const char *path, struct err *e)
{
    struct path_shown p;
    const char *shown = path_show(&p, NULL, path);
    autoclose int fd = -1;
    autofree char *text = NULL;
    size_t size = 0, len = 0;
    int rc = open_manifest(path, shown, &fd, &size, e);

    if (rc)
        return rc;
    text = malloc(size + 1);
    if (!text)
        return err_set(e, ERR_RESOURCE, "no memory left for manifest '%s'",
                       shown);
    while (len < size) {
        ssize_t n = read(fd, text + len, size - len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return open_fault(shown, errno, e);
        if (n == 0)
            break; /* Cut meanwhile: what is left will tell. */
        len += (size_t)n;
    }
    return manifest_read(ret, shown, text, len, e);
}

char *load_folder(const char *path, struct err *e)
{
    const char *slash = strrchr(path, '/');
    char *folder;

    if (!slash)
        folder = strdup(".");
    else if (slash == path)
        folder = strdup("/");
    else
        folder = strndup(path, (size_t)(slash - path));
    if (!folder)
        (void)err_set(e, ERR_RESOURCE, "no memory left");
    return folder;
}
