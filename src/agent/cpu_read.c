/* cpu_read: see cpu_read.h. */
#include "agent/cpu_read.h"

#include "base/mem.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CPU "/sys/devices/system/cpu"
#define NODE "/sys/devices/system/node"
#define LIST_MAX 16384 /* Bytes of a list of CPUs. */
#define CACHES_MAX 16  /* Of a CPU. */

int cpu_allowed(struct cpu_mask *ret)
{
    static const struct cpu_mask none;

    *ret = none;
    return syscall(SYS_sched_getaffinity, 0, sizeof *ret, ret) > 0 ? 0 : -1;
}

/* The text of a small file; false where there is none. */
static bool __attribute__((format(printf, 4, 5)))
read_text(const char *root, char *buf, size_t cap, const char *fmt, ...)
{
    char path[PATH_MAX];
    autoclose int fd = -1;
    size_t len = strlen(root);
    ssize_t n;
    va_list ap;

    if (len >= sizeof path)
        return false;
    memcpy(path, root, len);
    va_start(ap, fmt);
    (void)vsnprintf(path + len, sizeof path - len, fmt, ap);
    va_end(ap);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    n = fd < 0 ? -1 : read(fd, buf, cap - 1);
    buf[n > 0 ? n : 0] = '\0';
    return n >= 0;
}

/* The lowest CPU of a list in a file. */
static bool lowest(const char *text, uint16_t *ret)
{
    unsigned long v;
    char *end;

    errno = 0;
    v = strtoul(text, &end, 10);
    if (end == text || errno != 0 || v >= CPU_MAX)
        return false;
    *ret = (uint16_t)v;
    return true;
}

/* Of the cache of the highest level that holds data. */
static bool last_cache(const char *root, unsigned cpu, char *buf,
                       uint16_t *ret)
{
    long best = -1;

    for (unsigned i = 0; i < CACHES_MAX; i++) {
        long level;

        if (!read_text(root, buf, LIST_MAX, CPU "/cpu%u/cache/index%u/type",
                       cpu, i))
            break;
        if (strcmp(buf, "Unified\n") != 0 && strcmp(buf, "Data\n") != 0)
            continue;
        if (!read_text(root, buf, LIST_MAX, CPU "/cpu%u/cache/index%u/level",
                       cpu, i))
            continue;
        level = strtol(buf, NULL, 10);
        if (level <= best ||
            !read_text(root, buf, LIST_MAX,
                       CPU "/cpu%u/cache/index%u/shared_cpu_list", cpu, i) ||
            !lowest(buf, ret))
            continue;
        best = level;
    }
    return best >= 0;
}

static void read_cpu(const char *root, unsigned cpu, char *buf,
                     struct cpu_machine *m)
{
    struct cpu_one *c = &m->cpus[cpu];

    c->usable = true;
    m->end = cpu + 1;
    m->n_cpus++;
    if (!read_text(root, buf, LIST_MAX,
                   CPU "/cpu%u/topology/thread_siblings_list", cpu) ||
        !lowest(buf, &c->core))
        m->has_cores = false;
    if (!read_text(root, buf, LIST_MAX,
                   CPU "/cpu%u/topology/physical_package_id", cpu) ||
        !lowest(buf, &c->socket))
        m->has_sockets = false;
    if (!last_cache(root, cpu, buf, &c->cache))
        m->has_caches = false;
}

static int unknown(struct err *e, const char *what)
{
    return err_set(e, ERR_RESOURCE, "%s cannot be read, so it is not known "
                   "which CPUs belong together", what);
}

/* Without nodes in the kernel there is one. */
static int read_nodes(const char *root, char *buf, struct cpu_machine *m,
                      struct err *e)
{
    static const struct cpu_mask none;
    struct cpu_mask nodes = none, found = none;

    if (!read_text(root, buf, LIST_MAX, NODE "/online")) {
        if (!read_text(root, buf, LIST_MAX, CPU "/online"))
            return unknown(e, CPU "/online");
        return 0;
    }
    if (!cpu_parse(buf, &nodes))
        return unknown(e, NODE "/online");
    for (unsigned n = 0; n < CPU_MAX; n++) {
        struct cpu_mask of = none;

        if (!cpu_has(&nodes, n))
            continue;
        if (!read_text(root, buf, LIST_MAX, NODE "/node%u/cpulist", n) ||
            !cpu_parse(buf, &of))
            return unknown(e, NODE "/node*/cpulist");
        for (unsigned i = 0; i < m->end; i++)
            if (cpu_has(&of, i)) {
                m->cpus[i].node = (uint16_t)n;
                found.bits[i / CPU_WORD] |= 1ul << i % CPU_WORD;
            }
    }
    for (unsigned i = 0; i < m->end; i++)
        if (m->cpus[i].usable && !cpu_has(&found, i))
            return err_set(e, ERR_RESOURCE, "CPU %u is of no NUMA node in "
                           NODE, i);
    return 0;
}

int cpu_read(const char *root, const struct cpu_mask *allowed,
             struct cpu_machine *ret, struct err *e)
{
    autofree char *buf = malloc(LIST_MAX);

    if (!buf)
        return err_set(e, ERR_AGENT, "no memory for the list of CPUs");
    memset(ret, 0, sizeof *ret);
    ret->has_cores = ret->has_sockets = ret->has_caches = true;
    for (unsigned i = 0; i < CPU_MAX; i++)
        if (cpu_has(allowed, i))
            read_cpu(root, i, buf, ret);
    return read_nodes(root, buf, ret, e);
}
