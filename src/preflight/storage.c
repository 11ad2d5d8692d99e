/* storage: the folders that the job names are read and written for real: a
 * mount may be there, list its files, and fail at the first byte. */
#include "preflight/check.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define BLOCK (256u << 10)
#define BLOCKS 4u        /* Written to each folder. */
#define ENTRIES_MAX 256u /* Looked at for a file to read. */
#define LOW_MIB 1024u    /* Less free space is worth a warning. */

/* Whether another try, or another node, may do better. */
static enum preflight_level level_of(int e)
{
    return e == ENOENT || err_wants_other_path(e) ? PREFLIGHT_FATAL
                                                  : PREFLIGHT_RETRY;
}

static const char *fix_of(int e, enum preflight_use use)
{
    switch (e) {
    case EROFS:
        return "the mount is read-only: take readOnly: true out of its "
               "volumeMount, or name a folder of a volume that may be written "
               "(an emptyDir)";
    case EACCES:
    case EPERM:
        return "the user of the container may not: securityContext.fsGroup of "
               "the pod (or an owner, chmod), and look at runAsUser";
    case ENOENT:
        return use == PREFLIGHT_READS
                   ? "it is not in this pod: look at the volume, its mountPath "
                     "and subPath"
                   : "make it, or mount a volume there";
    case ENOTDIR:
        return "a part of the path is a file: name a folder";
    case ENAMETOOLONG:
    case ELOOP:
        return "name the folder by a shorter path, without links that lead in "
               "a circle";
    case ENOSPC:
    case EDQUOT:
        return "free space, a larger volume (resources.requests.storage, "
               "emptyDir.sizeLimit, ephemeral-storage), or less data";
    default:
        return "look at the volume, its server and the node (kubectl describe "
               "pod; dmesg); another node may do better";
    }
}

/* As YAML has it: what a path may have in it means something there. */
static void quote(const char *path, char *out, size_t cap)
{
    struct text t;

    text_init(&t, out, cap);
    for (; *path; path++)
        text_add(&t, *path == '\'' ? "''" : "%c", *path);
}

static void say(const struct preflight_sink *s, const struct preflight_dir *d,
                const char *path, const char *doing, int e)
{
    char quoted[400];
    struct preflight_finding f = finding_new(level_of(e));

    FINDING_SET(f.what, "%s: '%.200s' cannot be %s: %s", d->option, path,
                doing, strerror(e));
    FINDING_SET(f.why, d->use == PREFLIGHT_READS
                ? "the data is not there for the workers"
                : "what the job writes there is lost, or it fails hours from "
                  "now");
    FINDING_SET(f.fix, "%s", fix_of(e, d->use));
    quote(path, quoted, sizeof quoted);
    if (e == EROFS)
        FINDING_SET(f.yaml, "volumes:\n- name: scratch\n  emptyDir: {}\n"
                    "containers:\n- volumeMounts:\n  - name: scratch\n"
                    "    mountPath: '%s'\n", quoted);
    if (e == EACCES || e == EPERM)
        FINDING_SET(f.yaml, "securityContext:\n  fsGroup: 1000\n");
    finding_add(s, &f);
}

/* The folder itself, or the nearest one above it that is there. */
static int nearest(const char *path, char out[PATH_MAX])
{
    struct stat st;

    if (!text_copy(out, PATH_MAX, path))
        return ENAMETOOLONG;
    for (;;) {
        char *slash;

        if (stat(out, &st) == 0)
            return S_ISDIR(st.st_mode) ? 0 : ENOTDIR;
        if (errno != ENOENT)
            return errno;
        slash = strrchr(out, '/');
        if (!slash)
            (void)text_copy(out, PATH_MAX, ".");
        else
            slash[slash == out] = '\0';
    }
}

static int write_all(int fd, const char *block)
{
    for (unsigned i = 0; i < BLOCKS; i++)
        for (size_t at = 0; at < BLOCK;) {
            ssize_t n = write(fd, block + at, BLOCK - at);

            if (n < 0 && errno != EINTR)
                return errno;
            at += n > 0 ? (size_t)n : 0;
        }
    return fsync(fd) == 0 || errno == EINVAL || errno == EROFS ? 0 : errno;
}

/* 0, an errno, or -1 where other bytes come back. */
static int read_back(int fd, const char *block, char *room)
{
    for (unsigned i = 0; i < BLOCKS; i++)
        for (size_t at = 0; at < BLOCK;) {
            ssize_t n = pread(fd, room + at, BLOCK - at,
                              (off_t)((size_t)i * BLOCK + at));

            if (n < 0 && errno != EINTR)
                return errno;
            if (n == 0 || (n > 0 && memcmp(room + at, block + at,
                                           (size_t)n) != 0))
                return -1;
            at += n > 0 ? (size_t)n : 0;
        }
    return 0;
}

/* Pods that share the folder have the same process ids: each a name of its
 * own. */
static int write_and_read(const char *dir, char *block, char *room)
{
    char path[PATH_MAX + 64];
    int e;

    (void)snprintf(path, sizeof path, "%s/.agent-preflight-XXXXXX", dir);
    autoclose int fd = mkostemp(path, O_CLOEXEC);

    if (fd < 0)
        return errno;
    (void)unlink(path); /* Whatever comes, it is not left behind. */
    for (size_t i = 0; i < BLOCK; i++)
        block[i] = (char)(i * 131 + (i >> 8));
    e = write_all(fd, block);
    return e ? e : read_back(fd, block, room);
}

static void say_changed(const struct preflight_sink *s,
                        const struct preflight_dir *d, const char *dir)
{
    struct preflight_finding f = finding_new(PREFLIGHT_RETRY);

    FINDING_SET(f.what, "%s: '%.200s' gives back other bytes than were written",
                d->option, dir);
    FINDING_SET(f.why, "checkpoints and data would be corrupt");
    FINDING_SET(f.fix, "take this volume or this node out of service");
    finding_add(s, &f);
}

static void say_absent(const struct preflight_sink *s,
                       const struct preflight_dir *d)
{
    struct preflight_finding f = finding_new(PREFLIGHT_WARN);

    FINDING_SET(f.what, "%s: '%.200s' is not there", d->option, d->path);
    FINDING_SET(f.why, "programs fail that want it, or take another folder");
    FINDING_SET(f.fix, "%s", fix_of(ENOENT, d->use));
    finding_add(s, &f);
}

static void check_free(const struct preflight_sink *s,
                       const struct preflight_dir *d, const char *dir)
{
    struct preflight_finding f;
    struct statvfs st;
    uint64_t mib;

    if (statvfs(dir, &st) != 0 || st.f_blocks == 0)
        return;
    mib = (uint64_t)st.f_bavail * st.f_frsize / MIB;
    if (mib >= LOW_MIB && (st.f_files == 0 || st.f_favail > 1000))
        return;
    f = finding_new(PREFLIGHT_WARN);
    FINDING_SET(f.what, "%s: '%.200s' has %" PRIu64 " MiB and %llu inode%s "
                "free", d->option, dir, mib, (unsigned long long)st.f_favail,
                text_plural(st.f_favail));
    FINDING_SET(f.why, "a checkpoint or a stage may not fit");
    FINDING_SET(f.fix, "%s", fix_of(ENOSPC, d->use));
    finding_add(s, &f);
}

static void check_writes(const struct preflight_sink *s,
                         const struct preflight_dir *d)
{
    char dir[PATH_MAX];
    autofree char *block = malloc(BLOCK), *room = malloc(BLOCK);
    int e = block && room ? nearest(d->path, dir) : ENOMEM;

    if (e == 0 && d->use == PREFLIGHT_WRITES_THERE &&
        strcmp(dir, d->path) != 0) {
        say_absent(s, d);
        return;
    }
    if (e == 0) {
        finding_step(s, "writing to %.200s", dir);
        e = write_and_read(dir, block, room);
    } else {
        (void)text_copy(dir, sizeof dir, d->path);
    }
    if (e > 0) {
        say(s, d, dir, "written to", e);
        return;
    }
    if (e < 0)
        say_changed(s, d, dir);
    check_free(s, d, dir);
    if (e == 0)
        finding_pass(s, "%s: 1 MiB written to '%.200s' and read again",
                     d->option, dir);
}

/* Open a file of `dir` that may be read: the first plain one; -ENOENT where
 * there is none among its first entries. */
static int open_some(int dir)
{
    DIR *list = fdopendir(dir);
    const struct dirent *d;
    int fd = -ENOENT;

    if (!list) {
        (void)close(dir);
        return -errno;
    }
    for (unsigned i = 0; i < ENTRIES_MAX && fd == -ENOENT; i++) {
        struct stat st;

        errno = 0;
        d = readdir(list);
        if (!d) {
            fd = errno ? -errno : -ENOENT;
            break;
        }
        if (fstatat(dirfd(list), d->d_name, &st, 0) != 0 ||
            !S_ISREG(st.st_mode))
            continue;
        fd = openat(dirfd(list), d->d_name, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            fd = -errno;
    }
    (void)closedir(list);
    return fd;
}

static void check_reads(const struct preflight_sink *s,
                        const struct preflight_dir *d)
{
    struct stat st;
    char block[4096];
    int fd, e = 0;

    finding_step(s, "reading %.200s", d->path);
    fd = open(d->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        say(s, d, d->path, "opened", errno);
        return;
    }
    if (fstat(fd, &st) != 0)
        st.st_mode = 0; /* As a file: read() tells. */
    if (S_ISDIR(st.st_mode))
        fd = open_some(fd);
    if (fd == -ENOENT) { /* Folders alone, say: it was listed. */
        finding_pass(s, "%s: '%.200s' could be listed", d->option, d->path);
        return;
    }
    if (fd < 0 || read(fd, block, sizeof block) < 0)
        e = fd < 0 ? -fd : errno;
    if (fd >= 0)
        (void)close(fd);
    if (e)
        say(s, d, d->path, "read", e);
    else
        finding_pass(s, "%s: '%.200s' could be read", d->option, d->path);
}

void check_storage(const struct preflight_sink *s)
{
    for (unsigned i = 0; i < s->job->n_dirs; i++)
        if (s->job->dirs[i].use == PREFLIGHT_READS)
            check_reads(s, &s->job->dirs[i]);
        else
            check_writes(s, &s->job->dirs[i]);
}
