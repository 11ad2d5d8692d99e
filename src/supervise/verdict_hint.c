/* verdict_hint: from a worker's death to its likely cause. See verdict.h.
 *
 * A hint says what is likely and what to do, in one line of less than
 * FAILURE_TEXT_MAX bytes. */
#include "supervise/verdict.h"

#include "base/err.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define SHM_FIX                                                                \
    "in Kubernetes mount an emptyDir of medium: Memory at /dev/shm, with "     \
    "docker use --shm-size, or use fewer data workers"
#define NCCL_MORE "; NCCL_DEBUG=INFO tells more"

/* What a line of stderr says -> the hint. The first row that fits a line wins;
 * case does not matter. */
static const struct pattern {
    const char *words, *also; /* In the line, both; `also` may be NULL. */
    const char *hint;
    enum { PLAIN, SHM, KILL } more; /* SHM: append the state of /dev/shm.
                                       KILL: as for SIGKILL. */
} patterns[] = {
    {"No module named", NULL,
     "this Python does not find the module: it is not installed in the image "
     "for this interpreter, or PYTHONPATH or the folder is wrong", PLAIN},
    {"can't open file", NULL,
     "the script is not there: a relative path starts at agent's folder "
     "(WORKDIR of the image, workingDir of the pod)", PLAIN},
    {"Address already in use", NULL,
     "a port is taken: by another job on this node (hostNetwork), or by a "
     "process of an earlier run; `ss -ltnp` shows the holder; choose another "
     "--master-port", PLAIN},
    {"EADDRINUSE", NULL,
     "a port is taken by another process; `ss -ltnp` shows the holder; choose "
     "another --master-port", PLAIN},
    {"invalid device ordinal", NULL,
     "a GPU number beyond the visible GPUs: --nproc may be larger than their "
     "number, or the program does not use LOCAL_RANK", PLAIN},
    {"Duplicate GPU detected", NULL,
     "two ranks use one GPU: the program should choose its GPU by LOCAL_RANK, "
     "and --nproc should not exceed the number of GPUs", PLAIN},
    {"CUDA out of memory", NULL,
     "the GPU's memory is full: a smaller batch or model helps; if the line "
     "above shows another process there, an earlier run may still hold it "
     "(nvidia-smi)", PLAIN},
    {"CUDA error: out of memory", NULL,
     "the GPU's memory is full: a smaller batch or model helps, or another "
     "process holds it (nvidia-smi)", PLAIN},
    {"driver version is insufficient", NULL,
     "the node's NVIDIA driver is older than the CUDA of the image", PLAIN},
    {"no kernel image is available", NULL,
     "the program or library was not built for this model of GPU", PLAIN},
    {"Found no NVIDIA driver", NULL,
     "the container sees no GPU: does the pod ask for nvidia.com/gpu (docker: "
     "--gpus all)?", PLAIN},
    {"libcuda.so", NULL,
     "the NVIDIA driver's library is not in the container: does the pod ask "
     "for nvidia.com/gpu (docker: --gpus all)?", PLAIN},
    {"cannot open shared object file", NULL,
     "the loader did not find a library: it is not in the image, or "
     "LD_LIBRARY_PATH does not name its folder", PLAIN},
    {"version `GLIBC", NULL,
     "the program was built for a newer C library than the image has", PLAIN},
    {"Too many open files", NULL,
     "the limit of open files is too low: raise `ulimit -n`, or use fewer data "
     "workers", PLAIN},
    {"is killed by signal: Killed", NULL, "a data worker was killed: ", KILL},
    {"is killed by signal: Bus error", NULL,
     "a data worker ran out of shared memory: " SHM_FIX, SHM},
    {"shared memory segment", NULL,
     "shared memory may be too small: " SHM_FIX, SHM},
    {"unable to allocate shared memory", NULL,
     "shared memory may be too small: " SHM_FIX, SHM},
    {"/dev/shm", NULL, "shared memory may be too small: " SHM_FIX, SHM},
    {"No space left on device", "</torch_",
     "shared memory is full: " SHM_FIX, SHM},
    {"No space left on device", NULL,
     "a file system or its inodes or a quota is full: `df -h` and `df -i` in "
     "the pod show which", PLAIN},
    {"ibv_reg_mr", NULL,
     "RDMA could not register memory: often the limit of locked memory "
     "(`ulimit -l`) is too low; the container runtime sets it", PLAIN},
    {"no socket interface found", NULL,
     "NCCL found no network interface: NCCL_SOCKET_IFNAME may name one that "
     "this pod does not have", PLAIN},
    {"Unable to find address for", NULL,
     "Gloo found no such interface: is GLOO_SOCKET_IFNAME one of this pod's?",
     PLAIN},
    {"Watchdog caught collective", NULL,
     "a collective operation timed out: some rank did not take part (it "
     "failed, hangs, or runs other code); look at the ranks' last lines",
     PLAIN},
    {"ncclRemoteError", NULL,
     "another rank's process or the network to it failed first: look there"
     NCCL_MORE, PLAIN},
    {"ncclSystemError", NULL,
     "a system call of NCCL failed: often the network interface "
     "(NCCL_SOCKET_IFNAME), a peer that is gone, or a small /dev/shm"
     NCCL_MORE, SHM},
    {"ncclInternalError", NULL,
     "NCCL failed inside: often ranks with different versions, or a GPU or "
     "network fault" NCCL_MORE, PLAIN},
    {"ncclUnhandledCudaError", NULL,
     "a CUDA call of NCCL failed: often a full or shared GPU, or a driver "
     "older than NCCL needs" NCCL_MORE, PLAIN},
    {"NCCL error", NULL,
     "NCCL failed: often the network between the pods, or a rank that ended "
     "first" NCCL_MORE, PLAIN},
    {"client socket has", NULL,
     "the rendezvous at MASTER_ADDR:MASTER_PORT did not answer: rank 0 may "
     "have ended first, the address may be wrong (127.0.0.1 is each pod's "
     "own), or the network blocks the port", PLAIN},
    {"Connection refused", NULL,
     "nobody listened at that address: its process may have ended first, or "
     "the address is wrong (127.0.0.1 is each pod's own)", PLAIN},
    {"name resolution", NULL,
     "a host name could not be resolved: a download at run time, or a name "
     "that is not in DNS", PLAIN},
    {"Name or service not known", NULL,
     "a host name is not known to DNS: a wrong MASTER_ADDR, a missing "
     "headless Service, or a download at run time", PLAIN},
    {"Dataset not found", NULL,
     "the program looks for its data in another folder than the staged one: "
     "AGENT_DATASET_DIR has its path (with --dataset)", PLAIN},
    {"HTTP Error", NULL,
     "a download at run time failed: stage the data set before (--dataset)",
     PLAIN},
    {"urlopen error", NULL,
     "a download at run time failed: stage the data set before (--dataset)",
     PLAIN},
    {"invalid load key, 'v'", NULL,
     "the file may be a Git LFS pointer in place of the data: `head -1` shows "
     "\"version https://git-lfs\"; run git lfs pull", PLAIN},
    {"Cannot allocate memory", NULL,
     "memory is short: the pod's limit, or the limit of locked memory "
     "(`ulimit -l`)", PLAIN},
    {"Exec format error", NULL,
     "a program was built for another architecture, or is a script without "
     "a #! line", PLAIN},
    {"Read-only file system", NULL,
     "the program writes to a place that is mounted read-only", PLAIN},
    {"Permission denied", NULL,
     "the worker's user may not use that path: compare `id` and `ls -ln` in "
     "the pod (runAsUser, fsGroup)", PLAIN},
};

static void add_bytes(struct text *t, uint64_t n)
{
    if (n >> 30 >= 10)
        text_add(t, "%llu GiB", (unsigned long long)(n >> 30));
    else if (n >> 20 > 0)
        text_add(t, "%llu MiB", (unsigned long long)(n >> 20));
    else
        text_add(t, "%llu KiB", (unsigned long long)(n >> 10));
}

static void add_shm(struct text *t, const struct verdict_facts *facts)
{
    uint64_t size = facts->shm_bytes, used = facts->shm_used;

    if (size == 0)
        return;
    text_add(t, "; /dev/shm has ");
    add_bytes(t, size);
    text_add(t, ", %u %% used", (unsigned)((double)used * 100 / (double)size));
}

static void add_kill(struct text *t, const struct verdict_facts *facts)
{
    if (facts->oom_kills > 0)
        text_add(t, "the kernel's OOM killer was at work in this pod (%llu "
                 "kill%s since the worker's start): most likely the memory "
                 "limit was reached; raise resources.limits.memory (docker: "
                 "--memory), or use less (batch, data workers)",
                 (unsigned long long)facts->oom_kills,
                 facts->oom_kills == 1 ? "" : "s");
    else
        text_add(t, "agent did not send it, and the pod's memory limit was not "
                 "hit as far as its counter tells: somebody's kill -9, or the "
                 "node ran out of memory (`dmesg` on the node)");
}

static void add_exec(struct text *t, const struct verdict_facts *facts)
{
    const char *what = facts->command ? facts->command : "the command";

    switch (facts->exec_errno) {
    case ENOENT:
        if (strchr(what, '/'))
            text_add(t, "'%.160s' was not found; if it exists, the "
                     "interpreter of its #! line (a carriage return there?) or "
                     "its loader is missing in the image", what);
        else
            text_add(t, "'%.160s' was not found in PATH", what);
        break;
    case EACCES:
        text_add(t, "'%.160s' cannot be run: no execute permission (chmod +x), "
                 "a folder, a path that may not be searched, or a mount with "
                 "noexec", what);
        break;
    case ENOEXEC:
        text_add(t, "'%.160s' is no program of this machine's architecture, or "
                 "a script without a #! line", what);
        break;
    case E2BIG:
        text_add(t, "arguments and environment are too large; in Kubernetes "
                 "enableServiceLinks: false makes the environment smaller");
        break;
    default:
        text_add(t, "'%.160s' could not be started: %s", what,
                 strerror(facts->exec_errno));
        break;
    }
}

/* "torch.OutOfMemoryError: ...": the exception that ended a Python program. */
static bool is_exception(const char *line)
{
    static const char *const ends[] = {"Error", "Exception", "Interrupt"};
    size_t n;

    if (strncmp(line, "[rank", 5) == 0 && strchr(line, ' '))
        line = strchr(line, ' ') + 1;
    n = strspn(line, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                     "0123456789_.");
    if (line[n] != ':' && line[n] != '\0')
        return false;
    for (unsigned i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        size_t len = strlen(ends[i]);

        if (n >= len && memcmp(line + n - len, ends[i], len) == 0)
            return true;
    }
    return false;
}

static bool add_known(struct text *t, const char *line,
                      const struct verdict_facts *facts)
{
    for (unsigned i = 0; i < sizeof patterns / sizeof patterns[0]; i++) {
        const struct pattern *p = &patterns[i];

        if (!strcasestr(line, p->words) ||
            (p->also && !strcasestr(line, p->also)))
            continue;
        text_add(t, "%s", p->hint);
        if (p->more == SHM)
            add_shm(t, facts);
        else if (p->more == KILL)
            add_kill(t, facts);
        return true;
    }
    return false;
}

/* The last line of the tail that a row fits decides, but nothing before an
 * exception that no row knows: that one speaks for itself. */
static bool add_pattern(struct text *t, const struct failure *f,
                        const struct verdict_facts *facts)
{
    size_t end = strnlen(f->tail, sizeof f->tail);

    while (end > 0) {
        const char *newline = memrchr(f->tail, '\n', end);
        size_t start = newline ? (size_t)(newline + 1 - f->tail) : 0;
        char line[FAILURE_TAIL_MAX];

        memcpy(line, f->tail + start, end - start);
        line[end - start] = '\0';
        if (add_known(t, line, facts))
            return true;
        if (is_exception(line))
            return false;
        end = start > 0 ? start - 1 : 0;
    }
    return false;
}

static void add_bus(struct text *t, const struct verdict_facts *facts)
{
    text_add(t, "SIGBUS most often means that /dev/shm is full: " SHM_FIX);
    add_shm(t, facts);
    text_add(t, "; else a mapped file became shorter, or its disk failed");
}

/* Hints for a signal whose sender or reason the tail cannot know better. */
static bool add_signal(struct text *t, int signo,
                       const struct verdict_facts *facts)
{
    if (signo == SIGKILL)
        add_kill(t, facts);
    else if (signo == SIGBUS)
        add_bus(t, facts);
    else if (signo == SIGTERM || signo == SIGINT || signo == SIGHUP ||
             signo == SIGQUIT)
        text_add(t, "agent did not send it: somebody or the program itself did "
                 "(kill, timeout(1), a shell's trap)");
    else
        return false;
    return true;
}

/* Hints for where the tail said nothing known. */
static void add_crash(struct text *t, int signo, int code)
{
    if (signo == SIGSEGV)
        text_add(t, "a bug in native code, or libraries that do not fit each "
                 "other; PYTHONFAULTHANDLER=1 shows where in Python");
    else if (signo == SIGABRT)
        text_add(t, "the program aborted by itself (an assertion, an uncaught "
                 "C++ exception, a corrupted heap): its last lines tell");
    else if (signo == SIGILL)
        text_add(t, "the program was likely built for a newer CPU than this "
                 "node has");
    else if (signo == SIGFPE)
        text_add(t, "an integer division by zero in native code");
    else if (signo == SIGSYS)
        text_add(t, "a seccomp profile forbids a system call that the program "
                 "makes");
    else if (signo == SIGXCPU || signo == SIGXFSZ)
        text_add(t, "a limit of the process was reached (`ulimit -a`)");
    else if (code == ERR_NOTFOUND)
        text_add(t, "a shell did not find a command, or a loader a library");
    else if (code == ERR_NOEXEC)
        text_add(t, "a shell found a command that cannot be run: no execute "
                 "permission, or another architecture");
}

/* A shell reports the death of its own child by signal as 128 + signal. */
static int shell_signal(int code)
{
    static const int known[] = {SIGKILL, SIGBUS, SIGSEGV, SIGABRT, SIGILL,
                                SIGFPE};

    for (unsigned i = 0; i < sizeof known / sizeof known[0]; i++)
        if (code == 128 + known[i])
            return known[i];
    return 0;
}

void verdict_hint(char *ret, size_t cap, const struct failure *f,
                  const struct verdict_facts *facts)
{
    struct text t;
    int signo = f->signo;
    char name[16];

    text_init(&t, ret, cap);
    if (facts->exec_errno) {
        add_exec(&t, facts);
        return;
    }
    if (signo == 0 && shell_signal(f->code)) {
        signo = shell_signal(f->code);
        text_add(&t, "%d is what a shell returns whose command was killed by "
                 "%s: ", f->code, verdict_signal_name(signo, name));
    }
    if (!add_signal(&t, signo, facts) && !add_pattern(&t, f, facts))
        add_crash(&t, signo, f->code);
}
