/* shm: see shm.h. */
#include "supervise/shm.h"

#include "base/mem.h"
#include "base/text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/* `mapped`: its maker keeps it mapped for as long as it is of use, so one that
 * nobody has mapped is of no use to anybody. Of the others one may lie there,
 * closed, for someone who opens it later. `pid`: a pid follows. */
static const struct left_name {
    const char *prefix;
    bool mapped, pid;
} names[] = {
    {"nccl-", true, false},           /* NCCL, RCCL */
    {"ucx_shm_posix_", true, false},  /* UCX */
    {"vader_segment.", true, false},  /* Open MPI 4 */
    {"sm_segment.", true, false},     /* Open MPI 5 */
    {"mpich_shar_tmp", true, false},  /* MPICH */
    {"Intel_MPI_", true, false},
    {"psm2_shm.", true, false},       /* Omni-Path */
    {"torch_", false, true},          /* tensors of data workers */
    {"__KMP_REGISTERED_LIB_", false, true}, /* OpenMP of LLVM and Intel */
    {"cuda.shm.", false, false},
    {"sem.", false, false},           /* sem_open() */
    {"psm_", false, false},           /* Python's shared_memory */
};

static bool is_alive(const char *digits)
{
    char *end;
    long pid = strtol(digits, &end, 10);

    return end != digits && *end == '_' && pid > 0 && pid <= INT32_MAX &&
           (kill((pid_t)pid, 0) == 0 || errno == EPERM);
}

static bool is_left_name(const char *name, bool shared)
{
    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) {
        const struct left_name *l = &names[i];
        size_t n = strlen(l->prefix);

        if (strncmp(name, l->prefix, n) == 0)
            return l->mapped || (!shared && !(l->pid && is_alive(name + n)));
    }
    return false;
}

static bool birth(int dir, const char *name, struct timespec *ret)
{
    struct statx x;

    if (statx(dir, name, AT_SYMLINK_NOFOLLOW, STATX_BTIME, &x) != 0 ||
        !(x.stx_mask & STATX_BTIME))
        return false;
    ret->tv_sec = x.stx_btime.tv_sec;
    ret->tv_nsec = x.stx_btime.tv_nsec;
    return true;
}

static int compare(const void *a, const void *b)
{
    ino_t x = *(const ino_t *)a, y = *(const ino_t *)b;

    return (x > y) - (x < y);
}

/* What is there already. */
static void list_old(struct shm_start *s, const char *path)
{
    DIR *dir = opendir(path);
    const struct dirent *ent;

    s->old = malloc(SHM_OLD_MAX * sizeof *s->old);
    s->blind = !dir || !s->old;
    while (!s->blind && (ent = readdir(dir)) != NULL) {
        s->blind = s->n_old == SHM_OLD_MAX;
        if (!s->blind)
            s->old[s->n_old++] = ent->d_ino;
    }
    if (!s->blind)
        qsort(s->old, s->n_old, sizeof *s->old, compare);
    if (dir)
        (void)closedir(dir);
}

void shm_begin(struct shm_start *s, const char *dir, const char *mark,
               bool old_kernel)
{
    struct statx x;

    if (s->taken)
        return;
    s->taken = true;
    s->blind = statx(AT_FDCWD, mark, AT_SYMLINK_NOFOLLOW,
                     STATX_BTIME | STATX_INO, &x) != 0;
    if (s->blind)
        return;
    s->number = x.stx_ino;
    s->since.tv_sec = x.stx_btime.tv_sec;
    s->since.tv_nsec = x.stx_btime.tv_nsec;
    if (old_kernel || !(x.stx_mask & STATX_BTIME))
        list_old(s, dir);
}

/* The clock of files is coarse, so what was made just before the mark may have
 * its time. But memory file systems number files in the order of birth. */
static bool is_new(const struct shm_start *s, int dir, const char *name,
                   const struct stat *st)
{
    struct timespec at;
    struct statfs fs;

    if (s->old)
        return !bsearch(&st->st_ino, s->old, s->n_old, sizeof *s->old,
                        compare);
    if (!birth(dir, name, &at) || at.tv_sec < s->since.tv_sec ||
        (at.tv_sec == s->since.tv_sec && at.tv_nsec < s->since.tv_nsec))
        return false;
    return st->st_ino > s->number || fstatfs(dir, &fs) != 0 ||
           fs.f_type != TMPFS_MAGIC;
}

static bool is_plain(const struct stat *st)
{
    return S_ISREG(st->st_mode) && st->st_uid == geteuid() &&
           st->st_nlink == 1;
}

/* While the lease is held nobody else can open it, and a lease is given only
 * where nobody has it open or mapped. Closing gives it back. */
static bool remove_unused(int dir, const char *name, const struct stat *st)
{
    autoclose int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW |
                                             O_NONBLOCK | O_NOCTTY);
    struct stat now, held;

    return fd >= 0 && fstat(fd, &held) == 0 && held.st_ino == st->st_ino &&
           is_plain(&held) && fcntl(fd, F_SETLEASE, F_WRLCK) == 0 &&
           fstatat(dir, name, &now, AT_SYMLINK_NOFOLLOW) == 0 &&
           now.st_ino == held.st_ino && now.st_dev == held.st_dev &&
           unlinkat(dir, name, 0) == 0;
}

void shm_sweep(const struct shm_start *s, const char *path, bool shared,
               struct shm_swept *ret)
{
    const struct dirent *ent;
    struct stat st;
    DIR *dir;

    memset(ret, 0, sizeof *ret);
    if (!s->taken || s->blind)
        return;
    dir = opendir(path);
    for (unsigned i = 0; dir && i < SHM_NAMES_MAX; i++) {
        ent = readdir(dir);
        if (!ent)
            break;
        if (!is_left_name(ent->d_name, shared) ||
            fstatat(dirfd(dir), ent->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
            !is_plain(&st) || !is_new(s, dirfd(dir), ent->d_name, &st) ||
            !remove_unused(dirfd(dir), ent->d_name, &st))
            continue;
        if (ret->n++ == 0)
            (void)text_copy(ret->name, sizeof ret->name, ent->d_name);
        ret->bytes += (uint64_t)st.st_blocks * 512;
    }
    if (dir)
        (void)closedir(dir);
}

/* The numbers of the first namespaces are part of the kernel's interface. */
static bool is_first(const char *link, const char *wanted)
{
    char buf[64];
    ssize_t n = readlink(link, buf, sizeof buf - 1);

    if (n <= 0)
        return false;
    buf[n] = '\0';
    return strcmp(buf, wanted) == 0;
}

bool shm_is_of_host(void)
{
    return is_first("/proc/self/ns/ipc", "ipc:[4026531839]") &&
           !is_first("/proc/self/ns/pid", "pid:[4026531836]");
}
