/* machine: see machine.h. */
#include "agent/machine.h"

#include "base/cgroup.h"
#include "base/text.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <dirent.h>
#include <ifaddrs.h>
#include <limits.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define MACHINE_PATH_MAX 512 /* Of /dev and /sys. */

unsigned machine_cpus(unsigned few)
{
    cpu_set_t set;
    unsigned n = 1, quota;

    if (sched_getaffinity(0, sizeof set, &set) == 0)
        n = (unsigned)CPU_COUNT(&set);
    if (n <= few)
        return n > 0 ? n : 1;
    quota = cgroup_cpus("");
    return quota > 0 && quota < n ? quota : n;
}

/* Entries of a comma list; CUDA stops at the first that is invalid (-1, or
 * Slurm's word for "none"). */
static unsigned count_list(const char *s)
{
    unsigned n = 0;

    while (*s) {
        size_t len = strcspn(s, ",");

        while (len > 0 && isspace((unsigned char)*s))
            s++, len--;
        if (len == 0 || *s == '-' || strncmp(s, "NoDevFiles", len) == 0)
            break;
        n++;
        s += len;
        if (*s == ',')
            s++;
    }
    return n;
}

/* Names in `dir` that are `prefix` and a number. */
static unsigned count_names(const char *root, const char *dir,
                            const char *prefix)
{
    char path[MACHINE_PATH_MAX];
    size_t len = strlen(prefix);
    const struct dirent *ent;
    unsigned n = 0;
    DIR *d;

    (void)snprintf(path, sizeof path, "%s%s", root, dir);
    d = opendir(path);
    if (!d)
        return 0;
    while ((ent = readdir(d)) != NULL) {
        const char *s = ent->d_name + len;

        n += strncmp(ent->d_name, prefix, len) == 0 && *s != '\0' &&
             s[strspn(s, "0123456789")] == '\0';
    }
    (void)closedir(d);
    return n;
}

/* Reading all of /dev takes longer than anything else at the start; with
 * NVIDIA's driver one of these two is always there. */
static unsigned count_nvidia(const char *root)
{
    char path[MACHINE_PATH_MAX];
    bool any = false;

    (void)snprintf(path, sizeof path, "%s/dev/nvidiactl", root);
    any = access(path, F_OK) == 0;
    (void)snprintf(path, sizeof path, "%s/dev/nvidia0", root);
    any = any || access(path, F_OK) == 0;
    return any ? count_names(root, "/dev", "nvidia") : 0;
}

/* AMD: topology nodes with SIMD units are GPUs, the others are CPUs. In a
 * container all of the host's may be seen, which without the device are of no
 * use. */
static unsigned count_kfd(const char *root)
{
    static const char nodes[] = "/sys/class/kfd/kfd/topology/nodes";
    unsigned total, n = 0;
    char path[MACHINE_PATH_MAX], line[128];
    long simd;

    (void)snprintf(path, sizeof path, "%s/dev/kfd", root);
    if (access(path, F_OK) != 0)
        return 0;
    total = count_names(root, nodes, "");
    for (unsigned i = 0; i < total; i++) {
        FILE *f;

        (void)snprintf(path, sizeof path, "%s%s/%u/properties", root, nodes,
                       i);
        f = fopen(path, "re");
        while (f && fgets(line, sizeof line, f))
            if (sscanf(line, "simd_count %ld", &simd) == 1 && simd > 0) {
                n++;
                break;
            }
        if (f)
            (void)fclose(f);
    }
    return n;
}

unsigned machine_count_gpus(const char *cuda_visible,
                            const char *nvidia_visible, const char *root)
{
    unsigned devices;

    if (cuda_visible)
        return count_list(cuda_visible);
    devices = count_nvidia(root);
    if (nvidia_visible && strcmp(nvidia_visible, "all") != 0 &&
        nvidia_visible[0] != '\0') {
        if (strcmp(nvidia_visible, "void") == 0 ||
            strcmp(nvidia_visible, "none") == 0)
            return 0;
        if (devices > 0)
            return count_list(nvidia_visible);
    }
    return devices > 0 ? devices : count_kfd(root);
}

unsigned machine_gpus(void)
{
    return machine_count_gpus(getenv("CUDA_VISIBLE_DEVICES"),
                              getenv("NVIDIA_VISIBLE_DEVICES"), "");
}

uint64_t machine_random(void)
{
    uint64_t v = 0;
    struct timespec t;

    if (getrandom(&v, sizeof v, GRND_NONBLOCK) == (ssize_t)sizeof v && v != 0)
        return v;
    (void)clock_gettime(CLOCK_REALTIME, &t);
    v = (uint64_t)t.tv_sec * 1000000007u ^ (uint64_t)t.tv_nsec << 20 ^
        (uint64_t)getpid();
    return v ? v : 1;
}

void machine_raise_files(uint64_t need, struct machine_files *ret)
{
    struct rlimit r = {.rlim_cur = RLIM_INFINITY};

    (void)getrlimit(RLIMIT_NOFILE, &r);
    ret->raised = false;
    ret->before = ret->now = r.rlim_cur;
    if (r.rlim_cur >= need || r.rlim_cur == r.rlim_max)
        return;
    r.rlim_cur = r.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &r) != 0)
        return;
    ret->raised = true;
    ret->now = r.rlim_cur;
}

void machine_addresses(char *out, size_t cap)
{
    char one[INET6_ADDRSTRLEN];
    struct ifaddrs *list = NULL;
    struct text t;

    text_init(&t, out, cap);
    if (getifaddrs(&list) != 0)
        return;
    for (const struct ifaddrs *i = list; i; i = i->ifa_next) {
        const struct sockaddr *a = i->ifa_addr;
        const void *at = NULL;

        if (!a || i->ifa_flags & IFF_LOOPBACK)
            continue;
        if (a->sa_family == AF_INET)
            at = &((const struct sockaddr_in *)(const void *)a)->sin_addr;
        else if (a->sa_family == AF_INET6)
            at = &((const struct sockaddr_in6 *)(const void *)a)->sin6_addr;
        if (at && inet_ntop(a->sa_family, at, one, sizeof one) &&
            t.len + strlen(one) + 2 < cap)
            text_add(&t, "%s%s", t.len ? "," : "", one);
    }
    freeifaddrs(list);
}

void machine_host(char *out, unsigned cap)
{
    if (gethostname(out, cap) != 0)
        (void)snprintf(out, cap, "?");
    out[cap - 1] = '\0';
}
