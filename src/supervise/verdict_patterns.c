/* verdict_patterns: see verdict_patterns.h. */
#include "supervise/verdict_patterns.h"

#include <stddef.h>
#include <string.h>

#define NO_FORK                                                                \
    "a process or thread could not be started: a limit of their number was "   \
    "reached, the pod's (Kubernetes: podPidsLimit of the kubelet; docker: "    \
    "--pids-limit) or the user's (`ulimit -u`); fewer data workers, or "       \
    "OMP_NUM_THREADS, need less"
#define NCCL_MORE "; NCCL_DEBUG=INFO tells more"
#define GLOO_PEER                                                              \
    "another rank's process or the network to it failed first, and this one "  \
    "noticed: look at the other ranks' last lines"

/* The first row that fits a line wins; case does not matter. */
static const struct verdict_pattern patterns[] = {
    {"No module named", NULL,
     "this Python does not find the module: it is not installed in the image "
     "for this interpreter, or PYTHONPATH or the folder is wrong", HINT_PLAIN},
    {"can't open file", NULL,
     "the script is not there: a relative path starts at agent's folder "
     "(WORKDIR of the image, workingDir of the pod)", HINT_PLAIN},
    {"EOFError", "reading a line",
     "workers' stdin is /dev/null, and only one worker on a terminal has it: "
     "read from a file, or take it as an option", HINT_PLAIN},
    {"Address already in use", NULL,
     "a port is taken: by another job on this node (hostNetwork), or by a "
     "process of an earlier run; choose another --master-port", HINT_PORT},
    {"EADDRINUSE", NULL,
     "a port is taken by another process; choose another --master-port",
     HINT_PORT},
    {"invalid device ordinal", NULL,
     "a GPU number beyond the visible GPUs: --nproc may be larger than their "
     "number, or the program does not use LOCAL_RANK", HINT_PLAIN},
    {"Duplicate GPU detected", NULL,
     "two ranks use one GPU: the program should choose its GPU by LOCAL_RANK, "
     "and --nproc should not exceed the number of GPUs", HINT_PLAIN},
    {"CUDA out of memory", NULL,
     "the GPU's memory is full: a smaller batch or model helps; if the line "
     "above shows another process there, an earlier run may still hold it "
     "(nvidia-smi)", HINT_PLAIN},
    {"CUDA error: out of memory", NULL,
     "the GPU's memory is full: a smaller batch or model helps, or another "
     "process holds it (nvidia-smi)", HINT_PLAIN},
    {"driver version is insufficient", NULL,
     "the node's NVIDIA driver is older than the CUDA of the image",
     HINT_PLAIN},
    {"no kernel image is available", NULL,
     "the program or library was not built for this model of GPU", HINT_PLAIN},
    {"Found no NVIDIA driver", NULL,
     "the container sees no GPU: does the pod ask for nvidia.com/gpu (docker: "
     "--gpus all)?", HINT_PLAIN},
    {"libcuda.so", NULL,
     "the NVIDIA driver's library is not in the container: does the pod ask "
     "for nvidia.com/gpu (docker: --gpus all)?", HINT_PLAIN},
    {"cannot open shared object file", NULL,
     "the loader did not find a library: it is not in the image, or "
     "LD_LIBRARY_PATH does not name its folder", HINT_PLAIN},
    {"version `GLIBC", NULL,
     "the program was built for a newer C library than the image has",
     HINT_PLAIN},
    {"Too many open files", NULL,
     "the limit of open files is too low: raise `ulimit -n`, or use fewer data "
     "workers", HINT_PLAIN},
    {"can't start new thread", NULL, NO_FORK, HINT_PIDS},
    {"Cannot fork", NULL, NO_FORK, HINT_PIDS},
    {"Operation not permitted", "thread",
     "the container runtime refuses to start threads: its seccomp profile is "
     "older than the image's C library (Docker before 20.10.10, glibc from "
     "2.34 on); a newer runtime, or an older image, is needed", HINT_PLAIN},
    {"Resource temporarily unavailable", "fork", NO_FORK, HINT_PIDS},
    {"Resource temporarily unavailable", "thread", NO_FORK, HINT_PIDS},
    {"BlockingIOError: [Errno 11]", NULL, NO_FORK, HINT_PIDS},
    {"is killed by signal: Killed", NULL, "a data worker was killed: ",
     HINT_KILL},
    {"died with <Signals.SIGKILL", NULL,
     "a process that the program started was killed: ", HINT_KILL},
    {"is killed by signal: Bus error", NULL,
     "a data worker ran out of shared memory: " HINT_SHM_FIX, HINT_SHM},
    {"shared memory segment", NULL,
     "shared memory may be too small: " HINT_SHM_FIX, HINT_SHM},
    {"unable to allocate shared memory", NULL,
     "shared memory may be too small: " HINT_SHM_FIX, HINT_SHM},
    {"/dev/shm", NULL, "shared memory may be too small: " HINT_SHM_FIX,
     HINT_SHM},
    {"No space left on device", "</torch_",
     "shared memory is full: " HINT_SHM_FIX, HINT_SHM},
    {"No space left on device", NULL,
     "a file system or its inodes or a quota is full: `df -h` and `df -i` in "
     "the pod show which", HINT_DISK},
    {"ibv_reg_mr", NULL,
     "RDMA could not register memory: often the limit of locked memory "
     "(`ulimit -l`) is too low; the container runtime sets it", HINT_PLAIN},
    {"no socket interface found", NULL,
     "NCCL found no network interface: NCCL_SOCKET_IFNAME may name one that "
     "this pod does not have", HINT_PLAIN},
    {"Unable to find address for", NULL,
     "Gloo found no such interface: is GLOO_SOCKET_IFNAME one of this pod's?",
     HINT_PLAIN},
    {"Watchdog caught collective", NULL,
     "a collective operation timed out: some rank did not take part (it "
     "failed, hangs, or runs other code); look at the ranks' last lines",
     HINT_PLAIN},
    {"timed out after", "is silent",
     "the rank that this line names is stopped, hangs, or is cut off: look at "
     "that one, not at the rank that noticed", HINT_PLAIN},
    {"timed out after", "has not made this call",
     "the rank that this line names came late or not at all: it is stopped, "
     "hangs, or runs other code; look at that one", HINT_PLAIN},
    {"died or failed: its connection", NULL,
     "the rank that this line names ended first: look at that one", HINT_PEER},
    {"ncclRemoteError", NULL,
     "another rank's process or the network to it failed first: look there"
     NCCL_MORE, HINT_PEER},
    {"Connection closed by remote peer", NULL,
     "another rank's process or the network to it failed first: look there"
     NCCL_MORE, HINT_PEER},
    {"gloo/transport/", "Connection closed by peer", GLOO_PEER, HINT_PEER},
    {"gloo/transport/", "Connection reset by peer", GLOO_PEER, HINT_PEER},
    {"ncclSystemError", NULL,
     "a system call of NCCL failed: often the network interface "
     "(NCCL_SOCKET_IFNAME), a peer that is gone, or a small /dev/shm"
     NCCL_MORE, HINT_SHM},
    {"ncclInternalError", NULL,
     "NCCL failed inside: often ranks with different versions, or a GPU or "
     "network fault" NCCL_MORE, HINT_PLAIN},
    {"ncclUnhandledCudaError", NULL,
     "a CUDA call of NCCL failed: often a full or shared GPU, or a driver "
     "older than NCCL needs" NCCL_MORE, HINT_PLAIN},
    {"NCCL error", NULL,
     "NCCL failed: often the network between the pods, or a rank that ended "
     "first" NCCL_MORE, HINT_PLAIN},
    {"client socket has", NULL,
     "the rendezvous at MASTER_ADDR:MASTER_PORT did not answer: rank 0 may "
     "have ended first, the address may be wrong (127.0.0.1 is each pod's "
     "own), or the network blocks the port", HINT_PLAIN},
    {"Connection refused", NULL,
     "nobody listened at that address: its process may have ended first, or "
     "the address is wrong (127.0.0.1 is each pod's own)", HINT_PLAIN},
    {"name resolution", NULL,
     "a host name could not be resolved: a download at run time, or a name "
     "that is not in DNS", HINT_PLAIN},
    {"Name or service not known", NULL,
     "a host name is not known to DNS: a wrong MASTER_ADDR, a missing "
     "headless Service, or a download at run time", HINT_PLAIN},
    {"Dataset not found", NULL,
     "the program looks for its data in another folder than the staged one: "
     "AGENT_DATASET_DIR has its path (with --dataset)", HINT_PLAIN},
    {"HTTP Error", NULL,
     "a download at run time failed: stage the data set before (--dataset)",
     HINT_PLAIN},
    {"urlopen error", NULL,
     "a download at run time failed: stage the data set before (--dataset)",
     HINT_PLAIN},
    {"invalid load key, 'v'", NULL,
     "the file may be a Git LFS pointer in place of the data: `head -1` shows "
     "\"version https://git-lfs\"; run git lfs pull", HINT_PLAIN},
    {"cannot import name", NULL,
     "the module is there, but in another version than the program expects: "
     "compare `pip freeze` in the image with what it was written for",
     HINT_PLAIN},
    {"undefined symbol", NULL,
     "libraries that were not built for each other: an extension for another "
     "version of torch or CUDA, or LD_LIBRARY_PATH finds another one first",
     HINT_PLAIN},
    {"/usr/bin/env:", "\\r",
     "the script's first line ends with a carriage return: it was saved with "
     "Windows line ends (dos2unix)", HINT_PLAIN},
    {"env:", "No such file or directory",
     "the interpreter that the script's #! line asks env for is not in PATH",
     HINT_PLAIN},
    {"illegal memory access", NULL,
     "a bug in a GPU kernel, or an index out of range; CUDA_LAUNCH_BLOCKING=1 "
     "shows which call", HINT_PLAIN},
    {"device-side assert", NULL,
     "a GPU kernel's own check failed: often a label or an index out of range; "
     "CUDA_LAUNCH_BLOCKING=1 shows which call", HINT_PLAIN},
    {"uncorrectable ECC error", NULL,
     "the GPU's memory is faulty: drain the node (nvidia-smi -q -d ECC)",
     HINT_PLAIN},
    {"has fallen off the bus", NULL,
     "the GPU is gone from the node: drain it, and see `dmesg` (Xid)",
     HINT_PLAIN},
    {"CUDA error: unknown error", NULL,
     "the driver or the GPU is in a bad state: see `dmesg` on the node (Xid), "
     "and nvidia-smi", HINT_PLAIN},
    {"Driver/library version mismatch", NULL,
     "the node's NVIDIA driver was updated while it was in use: the node needs "
     "a restart", HINT_PLAIN},
    {"forward compatibility was attempted", NULL,
     "the CUDA of the image is newer than the node's driver allows for this "
     "GPU: an image with an older CUDA, or a newer driver", HINT_PLAIN},
    {"CUBLAS_STATUS_ALLOC_FAILED", NULL,
     "the GPU's memory is full: a smaller batch or model helps, or another "
     "process holds it (nvidia-smi)", HINT_PLAIN},
    {"DefaultCPUAllocator", "allocate memory",
     "the pod's memory is too small for a tensor of that size: "
     "resources.limits.memory (docker: --memory), or a smaller batch",
     HINT_PLAIN},
    {"DataLoader worker", "exited unexpectedly",
     "a data worker died: its own last lines are above; often memory or "
     "/dev/shm; num_workers=0 shows the error in the main process",
     HINT_SHM},
    {"waiting for clients", NULL,
     "not all ranks came to the program's own rendezvous: some failed before, "
     "or the world size there is another than agent's WORLD_SIZE",
     HINT_PLAIN},
    {"Illegal instruction", NULL,
     "the program was likely built for a newer CPU than this node has",
     HINT_PLAIN},
    {"terminate called without an active", NULL,
     "a C++ thread was still at work as the program ended; if an exception "
     "came before, that one is the cause; a Python program on gloo that was "
     "done already: os._exit(0) after destroy_process_group() "
     "(pytorch/pytorch#190489)", HINT_AT_END},
    {"unrecognized arguments", NULL,
     "the program does not know an argument: options of agent come before the "
     "command, and those of the program after it", HINT_PLAIN},
    {"Cannot allocate memory", NULL,
     "memory is short: the pod's limit, or the limit of locked memory "
     "(`ulimit -l`)", HINT_PLAIN},
    {"Exec format error", NULL,
     "a program was built for another architecture, or is a script without "
     "a #! line", HINT_PLAIN},
    {"Read-only file system", NULL,
     "the program writes to a place that is mounted read-only", HINT_PLAIN},
    {"Permission denied", NULL,
     "the worker's user may not use that path: compare `id` and `ls -ln` in "
     "the pod (runAsUser, fsGroup)", HINT_PLAIN},
};

static bool fits(const struct verdict_pattern *p, const char *text)
{
    return strcasestr(text, p->words) &&
           (!p->also || strcasestr(text, p->also));
}

const struct verdict_pattern *verdict_pattern_of(const char *line)
{
    /* A warning of torch's, in an error's words: no program ends of it. */
    if (strcasestr(line, "Failed to initialize NumPy"))
        return NULL;
    for (unsigned i = 0; i < sizeof patterns / sizeof patterns[0]; i++)
        if (fits(&patterns[i], line))
            return &patterns[i];
    return NULL;
}

bool verdict_is_exception(const char *line)
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
