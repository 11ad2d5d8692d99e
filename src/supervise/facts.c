/* facts: see facts.h. */
#include "supervise/facts.h"

#include "base/cgroup.h"
#include "base/mem.h"
#include "base/text.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define FULL_BYTES (1u << 20) /* Less is full. */

struct facts_oom facts_oom_of(const char *root)
{
    static const struct cgroup_file events = {"memory", "memory.events",
                                              "memory.oom_control"};
    struct facts_oom oom = {0, 0};
    struct cgroup g;

    if (!cgroup_find(root, &events, &g) ||
        !cgroup_value(&g, "oom_kill", &oom.kills) || !g.v2 ||
        !cgroup_value(&g, "oom", &oom.at_limit))
        oom.at_limit = oom.kills;
    return oom;
}

struct facts_oom facts_oom(void)
{
    return facts_oom_of("");
}

static uint64_t limit_of(enum cgroup_limit which)
{
    uint64_t limit = cgroup_limit("", which);

    return limit == UINT64_MAX ? 0 : limit;
}

uint64_t facts_memory_limit(void)
{
    return limit_of(CGROUP_MEMORY);
}

uint64_t facts_pids_limit(void)
{
    return limit_of(CGROUP_PIDS);
}

bool facts_oom_group_of(const char *root)
{
    static const struct cgroup_file group = {"memory", "memory.oom.group",
                                             "memory.oom.group"};
    struct cgroup g;
    uint64_t on = 0;
    bool more = cgroup_find(root, &group, &g);

    for (; more && on != 1; more = cgroup_up(&g))
        (void)cgroup_numbers(&g, g.file, &on, 1);
    return on == 1;
}

bool facts_oom_group(void)
{
    return facts_oom_group_of("");
}

uint64_t facts_node_oom_kills(void)
{
    uint64_t n = 0;

    return cgroup_read_value("/proc/vmstat", "oom_kill", &n) ? n : 0;
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

void facts_full(char *out, size_t cap)
{
    static const char *const places[] = {".", "/tmp", "/dev/shm", "/"};
    struct text t;

    text_init(&t, out, cap);
    for (unsigned i = 0; i < sizeof places / sizeof places[0]; i++) {
        struct statvfs s;
        const char *name = i == 0 ? "the working directory" : places[i];
        uint64_t free_kib;

        if (statvfs(places[i], &s) != 0 || s.f_blocks == 0)
            continue;
        free_kib = (uint64_t)s.f_bavail * s.f_frsize / 1024;
        if (free_kib < FULL_BYTES / 1024)
            text_add(&t, "%s%s has %llu KiB free of %llu MiB", t.len ? ", " :
                     "", name, (unsigned long long)free_kib,
                     (unsigned long long)s.f_blocks * s.f_frsize >> 20);
        else if (s.f_files > 0 && s.f_favail == 0)
            text_add(&t, "%s%s has no free inodes", t.len ? ", " : "", name);
    }
}

bool facts_cwd_gone(void)
{
    char path[PATH_MAX];

    return !getcwd(path, sizeof path) ? errno == ENOENT : path[0] == '(';
}
