/* limits: of this process, which the workers inherit, and the pod's limit of
 * processes. */
#include "preflight/check.h"

#include "base/cgroup.h"
#include "base/text.h"

#include <inttypes.h>
#include <string.h>
#include <sys/resource.h>

#define GIB ((uint64_t)1 << 30)
#define THREADS_PER_WORKER 128u /* CUDA's, NCCL's, OpenMP's, data workers. */

/* Limits below which something breaks; UINT64_MAX: any limit is too low. */
static const struct {
    __rlimit_resource_t which;
    const char *name, *flag;
    uint64_t fatal, warn; /* Below it. */
    bool per_worker;      /* Times the workers. */
    const char *why, *fix;
} rows[] = {
    {RLIMIT_NOFILE, "open files", "-n", 256, 1024, false,
     "NCCL has sockets to many peers, and data workers hand tensors over as "
     "descriptors: \"Too many open files\"",
     "ulimit -n 65536 before agent; docker and podman: --ulimit "
     "nofile=65536:65536; Kubernetes: the runtime's unit on the node "
     "(LimitNOFILE)"},
    {RLIMIT_NPROC, "processes of this user", "-u", 32, THREADS_PER_WORKER,
     true,
     "threads count too, CUDA's, NCCL's and OpenMP's, and those of other "
     "containers of the same user: \"Resource temporarily unavailable\"",
     "ulimit -u unlimited before agent; docker and podman: --ulimit nproc=-1"},
    {RLIMIT_AS, "address space", "-v", 4 * GIB, 256 * GIB, false,
     "CUDA reserves far more addresses than the machine has memory: \"out of "
     "memory\" where there is plenty",
     "ulimit -v unlimited before agent; the pod's memory limit bounds memory"},
    {RLIMIT_DATA, "data segment", "-d", 1 * GIB, 16 * GIB, false,
     "private memory counts against it: \"Cannot allocate memory\" where "
     "there is plenty",
     "ulimit -d unlimited before agent"},
    {RLIMIT_FSIZE, "size of a file", "-f", 1 * GIB, UINT64_MAX, false,
     "a larger checkpoint ends its writer with SIGXFSZ, and files in /dev/shm "
     "count too",
     "ulimit -f unlimited before agent"},
    {RLIMIT_STACK, "stack", "-s", 256 << 10, 1 << 20, false,
     "threads get it as their stack: crashes in deep calls",
     "ulimit -s 8192 before agent"},
    {RLIMIT_CPU, "CPU time", "-t", 0, UINT64_MAX, false,
     "a worker is killed once it has used so many seconds",
     "ulimit -t unlimited before agent"},
};

/* 512 of a kind whose unit is files, 64 KiB of one that is bytes. */
static const char *shown(char buf[32], __rlimit_resource_t which, uint64_t v)
{
    if (which == RLIMIT_NOFILE || which == RLIMIT_NPROC)
        (void)snprintf(buf, 32, "%" PRIu64, v);
    else if (which == RLIMIT_CPU)
        (void)snprintf(buf, 32, "%" PRIu64 " s", v);
    else if (v < MIB)
        (void)snprintf(buf, 32, "%" PRIu64 " KiB", v / 1024);
    else
        (void)snprintf(buf, 32, "%" PRIu64 " MiB", v / MIB);
    return buf;
}

static bool look_at(const struct preflight_sink *s, unsigned i)
{
    struct preflight_finding f;
    struct rlimit r;
    uint64_t n = rows[i].per_worker ? s->job->nproc : 1;
    char now[32], hard[48] = "";

    if (getrlimit(rows[i].which, &r) != 0)
        return true;
    if (rows[i].which == RLIMIT_NOFILE && s->job->max_files)
        r.rlim_cur = s->job->max_files;
    if (r.rlim_cur == RLIM_INFINITY ||
        (rows[i].warn != UINT64_MAX && r.rlim_cur >= rows[i].warn * n))
        return true;
    f = finding_new(r.rlim_cur < rows[i].fatal * n ? PREFLIGHT_FATAL
                                                   : PREFLIGHT_WARN);
    if (r.rlim_max != r.rlim_cur && r.rlim_max != RLIM_INFINITY) {
        char buf[32];

        FINDING_SET(hard, " (it may be raised to %s)",
                    shown(buf, rows[i].which, r.rlim_max));
    }
    FINDING_SET(f.what, "the limit of %s (ulimit %s) is %s%s", rows[i].name,
                rows[i].flag, shown(now, rows[i].which, r.rlim_cur), hard);
    FINDING_SET(f.why, "%s", rows[i].why);
    FINDING_SET(f.fix, "%s", rows[i].fix);
    finding_add(s, &f);
    return false;
}

static bool look_at_pids(const struct preflight_sink *s)
{
    uint64_t max, now, least = (uint64_t)s->job->nproc * 32;
    uint64_t good = (uint64_t)s->job->nproc * THREADS_PER_WORKER;
    struct preflight_finding f;

    if (!cgroup_tightest(s->job->root, CGROUP_PIDS, &max, &now) ||
        (max > now && max - now >= good))
        return true;
    f = finding_new(max < now + least ? PREFLIGHT_FATAL : PREFLIGHT_WARN);
    FINDING_SET(f.what, "the pod may have %" PRIu64 " processes and threads "
                "(pids.max), and has %" PRIu64, max, now);
    FINDING_SET(f.why, "%u worker%s with threads and data workers may need %"
                PRIu64 ": \"Resource temporarily unavailable\"",
                s->job->nproc, text_plural(s->job->nproc), good);
    FINDING_SET(f.fix, "Kubernetes: podPidsLimit of the kubelet; docker and "
                "podman: --pids-limit=-1");
    finding_add(s, &f);
    return false;
}

static bool look_all(const struct preflight_sink *s)
{
    bool fine = true;

    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++)
        fine = look_at(s, i) && fine;
    return look_at_pids(s) && fine;
}

void look_limits(const struct preflight_sink *s)
{
    (void)look_all(s);
}

void check_limits(const struct preflight_sink *s)
{
    struct rlimit r = {0};

    if (look_all(s) && getrlimit(RLIMIT_NOFILE, &r) == 0)
        finding_pass(s, "%llu open files, and no limit that is too low",
                     (unsigned long long)r.rlim_cur);
}
