/* nccl_hint: what an error of NCCL likely means; see nccl_lib.h. */
#include "ddp/nccl_lib.h"

#include <dirent.h>
#include <ifaddrs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>

#define SMALL_SHM_MIB 64

static bool says(const char *text, const char *word)
{
    return strcasestr(text, word) != NULL;
}

/* Whether NCCL would take that interface: "eth,ib" are beginnings of names,
 * "=eth0,ib0" whole ones. */
static bool is_named(const char *spec, const char *name)
{
    bool is_whole = *spec == '=';

    for (const char *s = spec + is_whole; *s; s += *s == ',') {
        size_t n = strcspn(s, ",");

        if (n > 0 && strncmp(name, s, n) == 0 && (!is_whole || !name[n]))
            return true;
        s += n;
    }
    return false;
}

/* NCCL_SOCKET_IFNAME fits no interface. */
static bool wrong_interface(char *out, size_t cap)
{
    const char *spec = getenv("NCCL_SOCKET_IFNAME");
    struct ifaddrs *list = NULL;
    char names[128] = "";
    bool fits = false;

    if (!spec || !*spec || *spec == '^' || getifaddrs(&list) != 0)
        return false;
    for (const struct ifaddrs *i = list; i; i = i->ifa_next) {
        size_t len = strlen(names);

        fits = fits || is_named(spec, i->ifa_name);
        if (!strstr(names, i->ifa_name))
            (void)snprintf(names + len, sizeof names - len, "%s%s",
                           len ? ", " : "", i->ifa_name);
    }
    freeifaddrs(list);
    if (!fits)
        (void)snprintf(out, cap, "NCCL_SOCKET_IFNAME=%.40s names no interface "
                       "of this machine (%.80s)", getenv("NCCL_SOCKET_IFNAME"),
                       names);
    return !fits;
}

static bool small_shm(char *out, size_t cap)
{
    struct statvfs s;
    uint64_t mib;

    if (statvfs("/dev/shm", &s) != 0 || s.f_blocks == 0)
        return false;
    mib = (uint64_t)s.f_bavail * s.f_frsize >> 20;
    if (mib >= SMALL_SHM_MIB)
        return false;
    (void)snprintf(out, cap, "/dev/shm has %llu MiB free: in Kubernetes mount "
                   "an emptyDir of medium: Memory there, with docker use "
                   "--shm-size", (unsigned long long)mib);
    return true;
}

static bool small_memlock(char *out, size_t cap)
{
    struct rlimit r;
    DIR *dir = opendir("/sys/class/infiniband");

    if (!dir)
        return false; /* No RDMA here. */
    (void)closedir(dir);
    if (getrlimit(RLIMIT_MEMLOCK, &r) != 0 || r.rlim_cur == RLIM_INFINITY ||
        r.rlim_cur > (rlim_t)1 << 30)
        return false;
    (void)snprintf(out, cap, "%llu KiB may be locked (ulimit -l), and RDMA "
                   "needs more: IPC_LOCK, or --ulimit memlock=-1",
                   (unsigned long long)r.rlim_cur / 1024);
    return true;
}

void ddp_nccl_hint(int result, const char *last, char *out, size_t cap)
{
    out[0] = '\0';
    if (says(last, "duplicate GPU"))
        (void)snprintf(out, cap, "two ranks use one GPU: "
                       "cudaSetDevice(ddp_local_rank())");
    else if (result == DDP_NCCL_REMOTE_ERROR)
        (void)snprintf(out, cap, "another rank failed first: its message "
                       "tells why");
    else if (result == DDP_NCCL_CUDA_ERROR)
        (void)snprintf(out, cap, "a kernel or a copy before this call failed, "
                       "or the driver is older than this NCCL needs");
    else if (result == DDP_NCCL_INVALID_USAGE) /* From 2.23 or so on. */
        (void)wrong_interface(out, cap);
    else if (result == DDP_NCCL_SYSTEM_ERROR ||
             result == DDP_NCCL_INTERNAL_ERROR) {
        if (!wrong_interface(out, cap) && !small_shm(out, cap) &&
            !small_memlock(out, cap))
            (void)snprintf(out, cap, "NCCL_DEBUG=WARN tells more");
    }
}
