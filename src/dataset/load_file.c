/* load_file: see load_file.h. */
#include "dataset/load_file.h"

#include "base/digest.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

struct source {
    int fd;
    const char *shown;
    bool cached; /* In DVC's cache: by `want`. */
    uint8_t want[16];
    struct digest md5;
};

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
                         struct err *e)
{
    autoclose int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return open_fault(shown, errno, e);
    if (S_ISDIR(st.st_mode))
        return err_set(e, ERR_DATA,
                       "manifest '%s' is a folder, and no BagIt bag: give the "
                       "manifest file in it",
                       shown);
    if (!S_ISREG(st.st_mode))
        return err_set(e, ERR_DATA, "manifest '%s' is no regular file", shown);
    if (st.st_size > (off_t)MANIFEST_MAX_BYTES)
        return err_set(e, ERR_DATA, "manifest '%s' has more than %u MiB",
                       shown, MANIFEST_MAX_BYTES >> 20);
    *ret_fd = steal_fd(&fd);
    return 0;
}

static long read_piece(void *ctx, char *buf, size_t cap, struct err *e)
{
    struct source *s = ctx;
    ssize_t n;

    do
        n = read(s->fd, buf, cap);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return open_fault(s->shown, errno, e);
    if (s->cached)
        digest_add(&s->md5, buf, (size_t)n);
    return n;
}

/* The md5 that the name of an object in DVC's cache stands for:
 * ".../<2 hex digits>/<30>.dir". */
static bool cached_md5(const char *path, uint8_t ret[16])
{
    size_t len = strlen(path);
    char hex[33];

    if (len < 37 || strcmp(path + len - 4, ".dir") != 0 ||
        path[len - 35] != '/')
        return false;
    memcpy(hex, path + len - 37, 2);
    memcpy(hex + 2, path + len - 34, 30);
    hex[32] = '\0';
    return digest_read_hex(hex, ret, 16) &&
           (len == 37 || path[len - 38] == '/');
}

static int check_md5(struct source *s, struct err *e)
{
    uint8_t is[DIGEST_MAX];
    char hex[DIGEST_HEX_MAX];

    digest_end(&s->md5, is);
    if (!s->cached || memcmp(is, s->want, sizeof s->want) == 0)
        return 0;
    digest_hex(is, sizeof s->want, hex);
    return err_set(e, ERR_DATA,
                   "manifest '%s' has md5 %s, and not the one that its name "
                   "says: the cache is damaged",
                   s->shown, hex);
}

int load_file(struct manifest *ret, const char *path, enum manifest_form form,
              struct err *e)
{
    struct path_shown p;
    autoclose int fd = -1;
    struct source s = {.shown = path_show(&p, NULL, path)};
    struct manifest_input in = {.file = s.shown, .form = form,
                                .read = read_piece, .ctx = &s};
    int rc = open_manifest(path, s.shown, &fd, e);

    if (rc)
        return rc;
    s.fd = fd;
    s.cached = cached_md5(path, s.want);
    digest_start(&s.md5, DIGEST_MD5);
    rc = manifest_parse(ret, &in, e);
    if (rc == 0 && ret->form == FORM_DVC) {
        rc = check_md5(&s, e);
        if (rc)
            manifest_free(ret);
    }
    return rc;
}
