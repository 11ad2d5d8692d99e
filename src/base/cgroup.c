/* cgroup: see cgroup.h. */
#include "base/cgroup.h"

#include "base/small_file.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOUNT "/sys/fs/cgroup"
#define MOUNT_MAX 1024 /* Less than CGROUP_DIR_MAX. */
#define NO_LIMIT ((uint64_t)1 << 62) /* v1 writes a number without meaning. */

#define FILE_PATH (CGROUP_DIR_MAX + 64)
#define OWN_MAX 8192     /* All of /proc/self/cgroup. */
#define VALUES_MAX 16384 /* All of /proc/vmstat, of four. */

/* snprintf() takes longer than the kernel to find the file. */
static void path_of(const struct cgroup *g, const char *name,
                    char path[FILE_PATH])
{
    size_t n = strlen(g->dir);

    memcpy(path, g->dir, n);
    path[n++] = '/';
    (void)text_copy(path + n, FILE_PATH - n, name);
}

static bool has_file(const struct cgroup *g)
{
    char path[FILE_PATH];

    path_of(g, g->file, path);
    return access(path, R_OK) == 0;
}

bool cgroup_up(struct cgroup *g)
{
    while (strlen(g->dir) > g->top) {
        *strrchr(g->dir, '/') = '\0';
        if (has_file(g))
            return true;
    }
    return false;
}

/* A container sees its own group at the top of the mount, while /proc/self/
 * cgroup may show the host's path: so leave out its beginning, step by step. */
static bool find_in(struct cgroup *g, const char *mount, const char *dir)
{
    g->top = strlen(mount);
    memcpy(g->dir, mount, g->top);
    for (;;) {
        const char *next;

        (void)text_copy(g->dir + g->top, sizeof g->dir - g->top, dir);
        if (*dir == '\0' || access(g->dir, X_OK) == 0)
            break;
        next = strchr(dir + 1, '/');
        dir = next ? next : "";
    }
    return has_file(g) || cgroup_up(g);
}

/* `name` is in the list "cpu,cpuacct". */
static bool is_listed(const char *list, const char *name)
{
    size_t len = strlen(name);

    for (const char *s = list; s; s = strchr(s, ',')) {
        s += *s == ',';
        if (strncmp(s, name, len) == 0 && (s[len] == ',' || s[len] == '\0'))
            return true;
    }
    return false;
}

/* What /proc/self/cgroup says, lines "0::/path" of v2, "4:cpu,cpuacct:/path" of
 * v1. Empty: the top of the mount, maybe. */
struct own {
    const char *v2, *v1; /* "/path", or "" for the top. */
    const char *mount;   /* v1's "cpu,cpuacct"; "": not known. */
    char text[OWN_MAX];
};

static void read_line(char *line, const char *controller, struct own *own)
{
    char *list = strchr(line, ':'), *dir = list ? strchr(list + 1, ':') : NULL;

    if (!dir)
        return;
    *list++ = *dir++ = '\0';
    dir += strcmp(dir, "/") == 0;
    if (strcmp(line, "0") == 0 && *list == '\0') {
        own->v2 = dir;
    } else if (is_listed(list, controller)) {
        own->v1 = dir;
        own->mount = list;
    }
}

/* `root`, `at`, and `name` where there is one. */
static void place(char to[MOUNT_MAX], const char *root, const char *at,
                  const char *name)
{
    size_t n;

    (void)text_copy(to, MOUNT_MAX, root);
    n = strlen(to);
    (void)text_copy(to + n, MOUNT_MAX - n, at);
    n += strlen(to + n);
    (void)text_copy(to + n, MOUNT_MAX - n, name);
}

static void read_own(const char *root, const char *controller,
                     struct own *own)
{
    char path[MOUNT_MAX];
    char *line = own->text, *next;

    own->v2 = own->v1 = own->mount = "";
    place(path, root, "/proc/self/cgroup", "");
    if (small_file_read(path, own->text, sizeof own->text) < 0)
        return;
    for (; (next = strchr(line, '\n')); line = next) {
        *next++ = '\0';
        read_line(line, controller, own);
    }
}

bool cgroup_find(const char *root, const struct cgroup_file *file,
                 struct cgroup *ret)
{
    char mount[MOUNT_MAX];
    struct own own;

    read_own(root, file->controller, &own);
    ret->v2 = true;
    ret->file = file->v2;
    place(mount, root, MOUNT, "");
    if (find_in(ret, mount, own.v2))
        return true;
    ret->v2 = false;
    ret->file = file->v1;
    place(mount, root, MOUNT "/", own.mount);
    if (own.mount[0] && find_in(ret, mount, own.v1))
        return true;
    place(mount, root, MOUNT "/", file->controller);
    return find_in(ret, mount, own.v1);
}

bool cgroup_numbers(const struct cgroup *g, const char *name, uint64_t *ret,
                    unsigned n)
{
    char path[FILE_PATH], line[128], *s = line, *end;

    path_of(g, name, path);
    if (small_file_read(path, line, sizeof line) <= 0)
        return false;
    for (unsigned i = 0; i < n; i++, s = end) {
        s += strspn(s, " ");
        if (strncmp(s, "max", 3) == 0) {
            ret[i] = UINT64_MAX;
            end = s + 3;
            continue;
        }
        ret[i] = strtoull(s, &end, 10); /* -1 is the largest number. */
        if (end == s)
            return false;
        if (ret[i] >= NO_LIMIT)
            ret[i] = UINT64_MAX;
    }
    return true;
}

bool cgroup_read_value(const char *path, const char *key, uint64_t *ret)
{
    char text[VALUES_MAX], *end;
    size_t len = strlen(key);

    if (small_file_read(path, text, sizeof text) < 0)
        return false;
    for (const char *s = text; s; s = strchr(s, '\n')) {
        s += *s == '\n';
        if (strncmp(s, key, len) != 0 || s[len] != ' ')
            continue;
        *ret = strtoull(s + len, &end, 10);
        return end != s + len;
    }
    return false;
}

bool cgroup_value(const struct cgroup *g, const char *key, uint64_t *ret)
{
    char path[FILE_PATH];

    path_of(g, g->file, path);
    return cgroup_read_value(path, key, ret);
}

static const struct {
    struct cgroup_file max;
    const char *v2_used, *v1_used;
} limits[] = {
    [CGROUP_MEMORY] = {{"memory", "memory.max", "memory.limit_in_bytes"},
                       "memory.current", "memory.usage_in_bytes"},
    [CGROUP_PIDS] = {{"pids", "pids.max", "pids.max"},
                     "pids.current", "pids.current"},
};

uint64_t cgroup_limit(const char *root, enum cgroup_limit which)
{
    uint64_t least = UINT64_MAX, max;
    struct cgroup g;
    bool more = cgroup_find(root, &limits[which].max, &g);

    for (; more; more = cgroup_up(&g))
        if (cgroup_numbers(&g, g.file, &max, 1) && max < least)
            least = max;
    return least;
}

bool cgroup_tightest(const char *root, enum cgroup_limit which,
                     uint64_t *ret_max, uint64_t *ret_used)
{
    uint64_t least = UINT64_MAX, max, used;
    struct cgroup g;
    bool more = cgroup_find(root, &limits[which].max, &g);

    for (; more; more = cgroup_up(&g)) {
        const char *use = g.v2 ? limits[which].v2_used
                               : limits[which].v1_used;

        if (!cgroup_numbers(&g, g.file, &max, 1) || max == UINT64_MAX ||
            !cgroup_numbers(&g, use, &used, 1))
            continue;
        if ((max > used ? max - used : 0) < least) {
            least = max > used ? max - used : 0;
            *ret_max = max;
            *ret_used = used;
        }
    }
    return least != UINT64_MAX;
}

unsigned cgroup_cpus(const char *root)
{
    static const struct cgroup_file quota = {"cpu", "cpu.max",
                                             "cpu.cfs_quota_us"};
    uint64_t v[2], cpus = UINT32_MAX;
    struct cgroup g;
    bool more = cgroup_find(root, &quota, &g);

    for (; more; more = cgroup_up(&g)) {
        if (!cgroup_numbers(&g, g.file, v, g.v2 ? 2 : 1) ||
            v[0] == 0 || v[0] == UINT64_MAX)
            continue;
        if (!g.v2 && !cgroup_numbers(&g, "cpu.cfs_period_us", v + 1, 1))
            continue;
        if (v[1] > 0 && (v[0] + v[1] - 1) / v[1] < cpus)
            cpus = (v[0] + v[1] - 1) / v[1];
    }
    return cpus == UINT32_MAX ? 0 : (unsigned)cpus;
}
