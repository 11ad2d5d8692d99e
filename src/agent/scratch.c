/* scratch: see scratch.h. */
#include "agent/scratch.h"

#include "base/mem.h"
#include "dataset/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PREFIX "agent-run-"
#define NAMES_MAX 65536 /* Looked at in one go. */
/* Memory first: making folders on a disk can take longer than all the rest of
 * a start. */
static const char *const roots[] = {"/dev/shm", "/tmp"};
#define N_ROOTS (sizeof roots / sizeof roots[0])

uint32_t scratch_job(const char *job_id, const char *zero, uint32_t nnodes,
                     uint64_t id)
{
    uint32_t h = 0x811c9dc5u; /* FNV-1a, with the end of each word. */
    const char *const words[] = {job_id, zero};

    if (nnodes <= 1)
        return (uint32_t)(id ^ id >> 32);
    for (unsigned i = 0; i < 2; i++)
        for (const char *c = words[i];; c++) {
            h = (h ^ (unsigned char)*c) * 0x01000193u;
            if (!*c)
                break;
        }
    return h;
}

static void name_of(const struct scratch *s, char *out, size_t cap)
{
    (void)snprintf(out, cap, PREFIX "%08" PRIx32 "-%016" PRIx64, s->job,
                   s->id);
}

void scratch_make(struct scratch *s)
{
    char name[SCRATCH_PATH_MAX / 2 + 16];

    name_of(s, name, sizeof name);
    for (unsigned i = 0; i < N_ROOTS && !s->path[0]; i++) {
        (void)snprintf(s->path, sizeof s->path, "%s/%s", roots[i], name);
        if (mkdir(s->path, 0700) != 0)
            s->path[0] = '\0';
    }
}

void scratch_lock(struct scratch *s)
{
    if (!s->path[0] || s->lock_fd >= 0)
        return;
    s->lock_fd = open(s->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    /* Another agent may look at this moment: then the next call will do. */
    if (s->lock_fd >= 0 && flock(s->lock_fd, LOCK_EX | LOCK_NB) != 0)
        (void)close(steal_fd(&s->lock_fd));
}

/* A folder of an agent, of any user: is its agent alive? */
static bool is_alive(int fd)
{
    if (flock(fd, LOCK_EX | LOCK_NB) != 0)
        return true;
    (void)flock(fd, LOCK_UN);
    return false;
}

static bool is_old(const struct stat *st, int age_s)
{
    struct timespec now;

    return clock_gettime(CLOCK_REALTIME, &now) == 0 &&
           now.tv_sec - st->st_ctim.tv_sec >= age_s;
}

static bool is_of_job(const struct scratch *own, const char *name)
{
    char start[SCRATCH_PATH_MAX];
    int n = snprintf(start, sizeof start, PREFIX "%08" PRIx32 "-", own->job);

    return strncmp(name, start, (size_t)n) == 0;
}

bool scratch_sweep(const struct scratch *own, const char *root, int age_s)
{
    DIR *dir = opendir(root);
    char own_name[SCRATCH_PATH_MAX];
    const struct dirent *ent;
    bool others = false;

    name_of(own, own_name, sizeof own_name);
    for (unsigned i = 0; dir && i < NAMES_MAX; i++) {
        struct stat st;

        ent = readdir(dir);
        if (!ent)
            break;
        if (strncmp(ent->d_name, PREFIX, sizeof PREFIX - 1) != 0 ||
            strcmp(ent->d_name, own_name) == 0)
            continue;
        autoclose int fd = openat(dirfd(dir), ent->d_name,
                                  O_RDONLY | O_DIRECTORY | O_NOFOLLOW |
                                      O_CLOEXEC);
        if (fd < 0 || fstat(fd, &st) != 0) {
            /* Another user's: it may not even be looked at. */
            others = others || errno == EACCES;
        } else if (is_alive(fd) || !is_old(&st, age_s)) {
            others = others || !is_of_job(own, ent->d_name);
        } else if (st.st_uid == geteuid()) {
            (void)tree_remove(dirfd(dir), ent->d_name);
        }
    }
    if (dir)
        (void)closedir(dir);
    return others;
}

void scratch_end(struct scratch *s)
{
    if (s->path[0] && rmdir(s->path) != 0)
        (void)tree_remove(AT_FDCWD, s->path);
    s->path[0] = '\0';
    if (s->lock_fd >= 0)
        (void)close(steal_fd(&s->lock_fd));
}

void scratch_forget(const struct scratch *s)
{
    char name[SCRATCH_PATH_MAX];

    name_of(s, name, sizeof name);
    for (unsigned i = 0; i < N_ROOTS; i++) {
        autoclose int root = open(roots[i], O_RDONLY | O_DIRECTORY |
                                                O_CLOEXEC);
        struct stat st;

        if (root >= 0 &&
            fstatat(root, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISDIR(st.st_mode) && st.st_uid == geteuid())
            (void)tree_remove(root, name);
    }
}
