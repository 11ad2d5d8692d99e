/* memlock: memory that may be locked, as RDMA needs it. A limit is one thing,
 * a capability that lifts it another, and one that is there but not effective
 * a third: so it is tried. */
#include "preflight/check.h"

#include "base/mem.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOCK_BYTES (64 * MIB)
#define CAP_IPC_LOCK_BIT 14

struct locks {
    uint64_t limit; /* RLIM_INFINITY is UINT64_MAX. */
    bool effective; /* CAP_IPC_LOCK; */
    bool bounding;  /* and in the bounding set. */
};

static struct locks read_locks(const char *root)
{
    struct locks l = {.limit = UINT64_MAX};
    struct rlimit r;
    char line[128];
    uint64_t bits;
    autofclose FILE *f = NULL;

    if (getrlimit(RLIMIT_MEMLOCK, &r) == 0 && r.rlim_cur != RLIM_INFINITY)
        l.limit = r.rlim_cur;
    (void)snprintf(line, sizeof line, "%.64s/proc/self/status", root);
    f = fopen(line, "re");
    while (f && fgets(line, sizeof line, f)) {
        if (sscanf(line, "CapEff: %" SCNx64, &bits) == 1)
            l.effective = bits >> CAP_IPC_LOCK_BIT & 1;
        if (sscanf(line, "CapBnd: %" SCNx64, &bits) == 1)
            l.bounding = bits >> CAP_IPC_LOCK_BIT & 1;
    }
    return l;
}

static void say_low(const struct preflight_sink *s, const struct locks *l,
                    const char *how)
{
    bool has_rdma = check_has_rdma(s->job);
    bool asked = s->job->asked >> s->check & 1;
    struct preflight_finding f = finding_new(has_rdma ? PREFLIGHT_FATAL
                                                      : PREFLIGHT_WARN);

    if (!has_rdma && !asked) {
        finding_pass(s, "at most %" PRIu64 " KiB may be locked: enough, as %s",
                     l->limit / 1024,
                     check_rdma_is_off(s->job)
                         ? "NCCL_IB_DISABLE keeps NCCL from RDMA"
                         : "there is no RDMA device here");
        return;
    }
    FINDING_SET(f.what, "%s: RLIMIT_MEMLOCK is %" PRIu64 " KiB%s", how,
                l->limit / 1024,
                l->effective  ? ", and IPC_LOCK is effective, but of another "
                                "user namespace"
                : l->bounding ? ", and IPC_LOCK is in the bounding set but "
                                "not effective: an added capability reaches "
                                "no user but root"
                              : "");
    FINDING_SET(f.why, "NCCL registers its buffers with the RDMA device, and "
                "that locks them: \"ibv_reg_mr failed: Cannot allocate "
                "memory\", \"unhandled system error\"%s",
                has_rdma ? "" : " (NCCL has no RDMA device here; over TCP "
                                "nothing needs it)");
    FINDING_SET(f.fix, "Kubernetes: capabilities.add IPC_LOCK, with root in "
                "the container, or LimitMEMLOCK=infinity in the runtime's "
                "unit on the node; docker and podman: --ulimit memlock=-1:-1; "
                "Slurm: PropagateResourceLimitsExcept=MEMLOCK");
    FINDING_SET(f.yaml, "containers:\n- securityContext:\n    runAsUser: 0\n"
                "    capabilities:\n      add: [IPC_LOCK]\n");
    finding_add(s, &f);
}

void look_memlock(const struct preflight_sink *s)
{
    struct rlimit r;
    struct locks l;

    if (getrlimit(RLIMIT_MEMLOCK, &r) != 0 || r.rlim_cur >= LOCK_BYTES ||
        !check_has_rdma(s->job))
        return;
    l = read_locks(s->job->root);
    if (!l.effective)
        say_low(s, &l, "too little memory may be locked");
}

void check_memlock(const struct preflight_sink *s)
{
    struct locks l = read_locks(s->job->root);
    uint64_t bytes = check_safe_bytes(s->job->root);
    char how[96];
    void *p;

    bytes = bytes < LOCK_BYTES ? bytes / 4096 * 4096 : LOCK_BYTES;
    p = mmap(NULL, bytes ? bytes : 4096, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) {
        struct preflight_finding f = finding_new(PREFLIGHT_FATAL);

        FINDING_SET(f.what, "%" PRIu64 " MiB of memory cannot be mapped: %s",
                    bytes / MIB, strerror(errno));
        FINDING_SET(f.why, "no training does with less");
        FINDING_SET(f.fix, "raise RLIMIT_AS (ulimit -v) and the memory limit");
        finding_add(s, &f);
        return;
    }
    finding_step(s, "locking %" PRIu64 " MiB of memory", bytes / MIB);
    if (syscall(SYS_mlock, p, (size_t)bytes) == 0) { /* ASan has its own. */
        finding_pass(s, "%" PRIu64 " MiB could be locked%s", bytes / MIB,
                     l.limit == UINT64_MAX ? ", and there is no limit"
                     : l.limit < bytes     ? ": IPC_LOCK lifts the limit"
                                           : "");
        return;
    }
    FINDING_SET(how, "%" PRIu64 " MiB of memory cannot be locked (%s)",
                bytes / MIB, strerror(errno));
    say_low(s, &l, how);
}
