/* facts: see facts.h. */
#include "supervise/facts.h"

#include "base/mem.h"
#include "base/text.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define FULL_BYTES (1u << 20) /* Less is full. */

/* The value behind `want` in a file of `key value` lines. */
static bool read_value(const char *path, const char *want, uint64_t *ret)
{
    char key[64];
    unsigned long long v;
    autofclose FILE *f = fopen(path, "re");

    while (f && fscanf(f, "%63s %llu", key, &v) == 2)
        if (strcmp(key, want) == 0) {
            *ret = v;
            return true;
        }
    return false;
}

/* A container sees its own group at the top of the mount, while /proc/self/
 * cgroup may show the host's path: so leave out its beginning, step by step. */
static bool open_own(const char *base, const char *dir, const char *file,
                     char path[PATH_MAX])
{
    for (;;) {
        const char *next;

        (void)snprintf(path, PATH_MAX, "%.1024s%.2048s/%s", base, dir, file);
        if (access(path, R_OK) == 0)
            return true;
        if (*dir == '\0')
            return false;
        next = strchr(dir + 1, '/');
        dir = next ? next : "";
    }
}

/* Where this process' own memory group has that file; v2 or v1. */
static bool find_own(const char *root, const char *self, bool v2,
                     const char *file, char path[PATH_MAX])
{
    char line[PATH_MAX], base[PATH_MAX];
    autofclose FILE *f = fopen(self, "re");

    (void)snprintf(base, sizeof base, v2 ? "%.1000s" : "%.1000s/memory", root);
    while (f && fgets(line, sizeof line, f)) {
        char *dir = strchr(line, ':'); /* "4:memory:/path" */

        dir = dir ? strchr(dir + 1, ':') : NULL;
        line[strcspn(line, "\n")] = '\0';
        if (!dir || (v2 ? strncmp(line, "0::", 3) != 0
                        : strstr(line, ":memory:") == NULL))
            continue;
        dir++;
        return open_own(base, strcmp(dir, "/") == 0 ? "" : dir, file, path);
    }
    return open_own(base, "", file, path); /* No /proc: at the top, maybe. */
}

uint64_t facts_oom_kills_of(const char *root, const char *self)
{
    char path[PATH_MAX];
    uint64_t n = 0;

    if ((find_own(root, self, true, "memory.events", path) &&
         read_value(path, "oom_kill", &n)) ||
        (find_own(root, self, false, "memory.oom_control", path) &&
         read_value(path, "oom_kill", &n)))
        return n;
    return 0;
}

uint64_t facts_oom_kills(void)
{
    return facts_oom_kills_of("/sys/fs/cgroup", "/proc/self/cgroup");
}

bool facts_oom_group_of(const char *root, const char *self)
{
    char path[PATH_MAX];
    int on = 0;

    if (!find_own(root, self, true, "memory.oom.group", path))
        return false;

    autofclose FILE *f = fopen(path, "re");

    return f && fscanf(f, "%d", &on) == 1 && on == 1;
}

bool facts_oom_group(void)
{
    return facts_oom_group_of("/sys/fs/cgroup", "/proc/self/cgroup");
}

uint64_t facts_node_oom_kills(void)
{
    uint64_t n = 0;

    return read_value("/proc/vmstat", "oom_kill", &n) ? n : 0;
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
