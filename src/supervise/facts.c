/* facts: see facts.h. */
#include "supervise/facts.h"

#include "base/mem.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>

/* The value behind "oom_kill " in a file of `key value` lines. */
static bool read_oom_kill(const char *path, uint64_t *ret)
{
    char key[64];
    unsigned long long v;
    autofclose FILE *f = fopen(path, "re");

    while (f && fscanf(f, "%63s %llu", key, &v) == 2)
        if (strcmp(key, "oom_kill") == 0) {
            *ret = v;
            return true;
        }
    return false;
}

/* Where the cgroup file system shows the host's tree, not the container's,
 * /proc/self/cgroup says which folder is ours. */
static bool read_own_group(uint64_t *ret)
{
    char line[PATH_MAX], path[PATH_MAX + 64];
    autofclose FILE *f = fopen("/proc/self/cgroup", "re");

    while (f && fgets(line, sizeof line, f)) {
        const char *dir = strrchr(line, ':');

        if (!dir)
            continue;
        line[strcspn(line, "\n")] = '\0';
        if (strncmp(line, "0::", 3) == 0)
            (void)snprintf(path, sizeof path,
                           "/sys/fs/cgroup%s/memory.events", dir + 1);
        else if (strstr(line, ":memory:"))
            (void)snprintf(path, sizeof path,
                           "/sys/fs/cgroup/memory%s/memory.oom_control",
                           dir + 1);
        else
            continue;
        if (read_oom_kill(path, ret))
            return true;
    }
    return false;
}

uint64_t facts_oom_kills(void)
{
    uint64_t n = 0;

    if (read_own_group(&n) ||
        read_oom_kill("/sys/fs/cgroup/memory.events", &n) ||
        read_oom_kill("/sys/fs/cgroup/memory/memory.oom_control", &n))
        return n;
    return 0;
}

void facts_shm(uint64_t *ret_bytes, uint64_t *ret_used)
{
    struct statvfs s;

    *ret_bytes = *ret_used = 0;
    if (statvfs("/dev/shm", &s) != 0)
        return;
    *ret_bytes = (uint64_t)s.f_blocks * s.f_frsize;
    *ret_used = (uint64_t)(s.f_blocks - s.f_bfree) * s.f_frsize;
}
