/* part: see part.h. */
#include "fetch/part.h"

#include "base/mem.h"
#include "dataset/path.h"
#include "dataset/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define STEP_BYTES (16u << 20)
#define STEP_BUFFER (64u << 10)
#define NAME_BYTES 16

/* Files of one folder may have the same bytes. */
static void name_part(const struct manifest_entry *entry, char name[40])
{
    char hex[2 * NAME_BYTES + 1];
    uint8_t both[DIGEST_MAX];
    struct digest d;

    digest_start(&d, DIGEST_SHA256);
    digest_add(&d, entry->hash, digest_size(entry->hash_kind));
    digest_add(&d, entry->path, strlen(entry->path));
    digest_end(&d, both);
    digest_hex(both, NAME_BYTES, hex);
    (void)snprintf(name, 40, ".%s.part", hex);
}

/* "a/b/file" -> "a/b", or ".". */
static void folder_of(const char *path, char out[DATASET_PATH_MAX + 1])
{
    const char *slash = strrchr(path, '/');
    size_t len = slash ? (size_t)(slash - path) : 0;

    memcpy(out, len ? path : ".", len ? len : 1);
    out[len ? len : 1] = '\0';
}

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static uint64_t size_at(int folder, const char *name)
{
    struct stat st;

    return fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
                   S_ISREG(st.st_mode)
               ? (uint64_t)st.st_size
               : 0;
}

uint64_t part_want(const struct manifest_entry *entry)
{
    return entry->has_size ? entry->size : PART_ANY_SIZE;
}

uint64_t part_missing(const struct part_root *r,
                      const struct manifest_entry *entry)
{
    char folder[DATASET_PATH_MAX + 1], name[40];
    uint64_t n;

    folder_of(entry->path, folder);
    autoclose int fd = tree_open_beneath(r->fd, folder,
                                         O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (!entry->has_size)
        return 0;
    if (fd < 0)
        return entry->size;
    if (size_at(fd, base_of(entry->path)) == entry->size)
        return 0;
    name_part(entry, name);
    n = size_at(fd, name);
    return n <= entry->size ? entry->size - n : entry->size;
}

/* One folder of the path, in `above`; made where it is missing. */
static int open_or_make(const struct part_root *r, int above, const char *name,
                        const char *path)
{
    int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
    int fd = tree_open_beneath(r->fd, path, flags);

    if (fd >= 0 || errno != ENOENT)
        return fd;
    if (mkdirat(above, name, 0777) != 0 && errno != EEXIST)
        return -1;
    return tree_open_beneath(r->fd, path, flags);
}

static int open_folder(struct part *p, struct err *e)
{
    char folder[DATASET_PATH_MAX + 1];
    char *name = folder;

    folder_of(p->entry->path, folder);
    p->folder = openat(p->root->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    while (p->folder >= 0 && name && strcmp(folder, ".") != 0) {
        autoclose int above = p->folder;
        char *slash = strchr(name, '/');

        if (slash)
            *slash = '\0';
        p->folder = open_or_make(p->root, above, name, folder);
        if (slash)
            *slash = '/';
        name = slash ? slash + 1 : NULL;
    }
    return p->folder < 0 ? part_fault(p->root, "make the folder of",
                                 p->entry->path, e)
                         : 0;
}

/* The part, for reading and writing; it may have bytes already. */
static int open_part(struct part *p, struct err *e)
{
    struct stat st;

    p->fd = openat(p->folder, p->name,
                   O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (p->fd < 0 || fstat(p->fd, &st) != 0)
        return part_fault(p->root, "write", p->entry->path, e);
    p->state = PART_CATCH;
    p->size = 0;
    p->from_before = st.st_size > 0;
    digest_start(&p->digest, p->entry->hash_kind);
    if ((uint64_t)st.st_size > p->want)
        return part_restart(p, e);
    return 0;
}

int part_open(struct part *ret, const struct part_root *r,
              const struct manifest_entry *entry, struct err *e)
{
    const char *base = base_of(entry->path);
    struct stat st;
    int rc;

    memset(ret, 0, sizeof *ret);
    ret->root = r;
    ret->entry = entry;
    ret->want = part_want(entry);
    ret->folder = ret->fd = -1;
    name_part(entry, ret->name);
    rc = open_folder(ret, e);
    if (rc)
        return rc;
    if (fstatat(ret->folder, base, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISDIR(st.st_mode)) {
        errno = EISDIR;
        return part_fault(r, "write", entry->path, e);
    }
    ret->fd = openat(ret->folder, base,
                     O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    digest_start(&ret->digest, entry->hash_kind);
    if (ret->fd >= 0 && fstat(ret->fd, &st) == 0 && S_ISREG(st.st_mode) &&
        (!entry->has_size || (uint64_t)st.st_size == entry->size))
        return 0; /* LOOK */
    mem_close_at(&ret->fd);
    return open_part(ret, e);
}

void part_close(struct part *p)
{
    if (p->fd >= 0 && p->state == PART_GROW && p->size == 0)
        (void)unlinkat(p->folder, p->name, 0); /* Nothing to go on with. */
    mem_close_at(&p->fd);
    mem_close_at(&p->folder);
    p->fd = p->folder = -1;
}

/* Hash up to `n` bytes that are in the file. Returns whether it has more. */
static int hash_some(struct part *p, uint64_t n, bool *ret_end, struct err *e)
{
    unsigned char buf[STEP_BUFFER];

    *ret_end = false;
    while (n > 0 && !*ret_end) {
        ssize_t got = read(p->fd, buf, sizeof buf);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return part_fault(p->root, "read", p->entry->path, e);
        digest_add(&p->digest, buf, (size_t)got);
        p->size += (uint64_t)got;
        n -= (uint64_t)got < n ? (uint64_t)got : n;
        *ret_end = got == 0;
    }
    return 0;
}

static bool is_right(struct part *p, uint8_t is[DIGEST_MAX])
{
    digest_end(&p->digest, is);
    return (p->want == PART_ANY_SIZE || p->size == p->want) &&
           memcmp(is, p->entry->hash, digest_size(p->entry->hash_kind)) == 0;
}

int part_step(struct part *p, struct err *e)
{
    uint8_t is[DIGEST_MAX];
    bool end;
    int rc;

    if (p->state != PART_LOOK && p->state != PART_CATCH)
        return 0;
    rc = hash_some(p, STEP_BYTES, &end, e);
    if (rc || !end)
        return rc;
    if (p->state == PART_CATCH) {
        p->state = PART_GROW;
        return 0;
    }
    mem_close_at(&p->fd);
    p->fd = -1;
    if (!is_right(p, is))
        return open_part(p, e); /* Replaced only once the right one is there. */
    p->state = PART_THERE;
    (void)unlinkat(p->folder, p->name, 0);
    return 0;
}

bool part_is_whole(const struct part *p)
{
    struct part copy = *p; /* The hash can be ended once. */
    uint8_t is[DIGEST_MAX];

    if (p->want != PART_ANY_SIZE)
        return p->size == p->want;
    return is_right(&copy, is);
}

int part_write(struct part *p, const void *data, size_t len, struct err *e)
{
    const char *s = data;
    size_t left = len;

    while (left > 0) {
        ssize_t n = write(p->fd, s, left);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return part_fault(p->root, "write", p->entry->path, e);
        s += n;
        left -= (size_t)n;
    }
    digest_add(&p->digest, data, len);
    p->size += len;
    return 0;
}

int part_restart(struct part *p, struct err *e)
{
    if (ftruncate(p->fd, 0) != 0 || lseek(p->fd, 0, SEEK_SET) != 0)
        return part_fault(p->root, "write", p->entry->path, e);
    p->size = 0;
    p->from_before = false;
    p->state = PART_GROW;
    digest_start(&p->digest, p->entry->hash_kind);
    return 0;
}

int part_finish(struct part *p, bool *ret_right, char why[ERR_TEXT_MAX],
                struct err *e)
{
    const char *word = digest_word(p->entry->hash_kind);
    size_t n = digest_size(p->entry->hash_kind);
    char want[DIGEST_HEX_MAX], got[DIGEST_HEX_MAX];
    uint8_t is[DIGEST_MAX];

    *ret_right = is_right(p, is);
    if (!*ret_right) {
        digest_hex(p->entry->hash, n, want);
        digest_hex(is, n, got);
        (void)snprintf(why, ERR_TEXT_MAX, "%s is %s, the manifest says %s",
                       word, got, want);
        return part_restart(p, e);
    }
    /* A write error may show no earlier. */
    if (close(steal_fd(&p->fd)) != 0 ||
        renameat(p->folder, p->name, p->folder, base_of(p->entry->path)) != 0)
        return part_fault(p->root, "write", p->entry->path, e);
    p->state = PART_THERE;
    p->fetched = true;
    return 0;
}
