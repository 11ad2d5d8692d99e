/* shm: /dev/shm, where NCCL's ranks of one pod and PyTorch's data workers hand
 * their bytes over. The size of the file system is a promise alone: pages may
 * be missing all the same, so they are taken. */
#include "preflight/check.h"

#include "base/mem.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <unistd.h>

/* NCCL takes up to some 10 MiB for each rank in each direction and channel;
 * data workers a batch each. */
#define LEAST_MIB 24u /* For one worker: less is likely to fail. */
#define GOOD_MIB 48u
#define TAKE_MAX (8192 * MIB)
#define STEP (16 * MIB)
#define DIR_SHM "/dev/shm"

static const char why[] =
    "NCCL's ranks of one pod and PyTorch's data workers hand data over in "
    "/dev/shm; where it is full they die of SIGBUS, \"unhandled system "
    "error\" or \"No space left on device\"";

static void set_fix(struct preflight_finding *f, unsigned nproc)
{
    unsigned mib = (nproc * GOOD_MIB + 255) / 256 * 256;

    if (mib < 1024)
        mib = 1024;
    FINDING_SET(f->fix, "Kubernetes: mount an emptyDir of medium: Memory at "
                DIR_SHM " (its pages count against the memory limit); docker "
                "and podman: --shm-size=%um; or --ipc=host", mib);
    FINDING_SET(f->yaml,
                "volumes:\n- name: shm\n  emptyDir:\n    medium: Memory\n"
                "    sizeLimit: %uMi\ncontainers:\n- volumeMounts:\n"
                "  - name: shm\n    mountPath: " DIR_SHM "\n", mib);
}

static uint64_t need(const struct preflight_sink *s, unsigned mib)
{
    return (uint64_t)s->job->nproc * mib * MIB;
}

static void say_small(const struct preflight_sink *s, uint64_t bytes,
                      const char *has)
{
    bool bad = bytes < need(s, LEAST_MIB);
    struct preflight_finding f = finding_new(bad ? PREFLIGHT_FATAL
                                                 : PREFLIGHT_WARN);

    FINDING_SET(f.what, DIR_SHM " %s %" PRIu64 " MiB; %u worker%s should have "
                "%" PRIu64 " MiB", has, bytes / MIB, s->job->nproc,
                text_plural(s->job->nproc), need(s, GOOD_MIB) / MIB);
    FINDING_SET(f.why, "%s", why);
    set_fix(&f, s->job->nproc);
    finding_add(s, &f);
}

static void say_absent(const struct preflight_sink *s, const char *what)
{
    struct preflight_finding f = finding_new(PREFLIGHT_FATAL);

    FINDING_SET(f.what, DIR_SHM ": %s", what);
    FINDING_SET(f.why, "%s", why);
    set_fix(&f, s->job->nproc);
    finding_add(s, &f);
}

/* True where there is enough by the file system's own word. */
static bool look(const struct preflight_sink *s, uint64_t *ret_free)
{
    char path[PATH_MAX];
    struct statfs st;
    uint64_t size;

    (void)snprintf(path, sizeof path, "%s" DIR_SHM, s->job->root);
    if (statfs(path, &st) != 0) {
        say_absent(s, strerror(errno));
        return false;
    }
    size = (uint64_t)st.f_blocks * (uint64_t)st.f_bsize;
    *ret_free = (uint64_t)st.f_bavail * (uint64_t)st.f_bsize;
    if (size == 0 && st.f_type == TMPFS_MAGIC)
        *ret_free = UINT64_MAX; /* Without a limit. */
    else if (*ret_free < need(s, GOOD_MIB)) {
        say_small(s, *ret_free, *ret_free < size / 2 ? "has free only"
                                                     : "has");
        return false;
    }
    if (st.f_type != TMPFS_MAGIC && st.f_type != RAMFS_MAGIC) {
        struct preflight_finding f = finding_new(PREFLIGHT_WARN);

        FINDING_SET(f.what, DIR_SHM " is no tmpfs (file system type 0x%lx)",
                    (unsigned long)st.f_type);
        FINDING_SET(f.why, "each byte between the ranks of this pod goes "
                    "through a disk's file system");
        set_fix(&f, s->job->nproc);
        finding_add(s, &f);
    }
    return true;
}

void look_shm(const struct preflight_sink *s)
{
    uint64_t room;

    (void)look(s, &room);
}

static int open_nameless(const char *root)
{
    char path[PATH_MAX];
    int fd;

    (void)snprintf(path, sizeof path, "%s" DIR_SHM, root);
    fd = open(path, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR &&
                    errno != ENOENT))
        return fd;
    (void)snprintf(path, sizeof path, "%s" DIR_SHM "/agent-preflight-XXXXXX",
                   root);
    fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0)
        (void)unlink(path);
    return fd;
}

/* As many bytes of `want` as there are; sets errno where they are fewer. */
static uint64_t take(int fd, uint64_t want)
{
    uint64_t got = 0;

    while (got < want) {
        uint64_t n = want - got < STEP ? want - got : STEP;
        int e = posix_fallocate(fd, (off_t)got, (off_t)n);

        if (e == EINTR)
            continue;
        if (e != 0) {
            errno = e;
            break;
        }
        got += n;
    }
    return got;
}

void check_shm(const struct preflight_sink *s)
{
    uint64_t safe = check_safe_bytes(s->job->root);
    uint64_t room, got, want = need(s, GOOD_MIB);

    if (want > TAKE_MAX)
        want = TAKE_MAX;
    if (!look(s, &room))
        return;
    autoclose int fd = open_nameless(s->job->root);

    if (fd < 0) {
        say_absent(s, strerror(errno));
        return;
    }
    if (safe < want) {
        struct preflight_finding f = finding_new(PREFLIGHT_WARN);

        FINDING_SET(f.what, "the pod's memory has %" PRIu64 " MiB left, and "
                    "%u worker%s may use %" PRIu64 " MiB of it in " DIR_SHM,
                    safe / MIB * 2, s->job->nproc, text_plural(s->job->nproc),
                    want / MIB);
        FINDING_SET(f.why, "pages of " DIR_SHM " count against the memory "
                    "limit: the OOM killer comes before the file system is "
                    "full");
        FINDING_SET(f.fix, "raise resources.limits.memory (docker: --memory)");
        finding_add(s, &f);
        want = safe;
    }
    finding_step(s, "allocating %" PRIu64 " MiB in " DIR_SHM, want / MIB);
    got = take(fd, want);
    if (got < want)
        say_small(s, got, "gave only");
    else
        finding_pass(s, "%" PRIu64 " MiB could be allocated in " DIR_SHM,
                     want / MIB);
}
