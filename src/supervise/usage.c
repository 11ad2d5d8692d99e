/* usage: see usage.h. */
#include "supervise/usage.h"

#include "base/mem.h"
#include "supervise/proc.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEPTH_MAX 64 /* Of parents. */

struct stat_line {
    char state;
    int parent, session;
    unsigned long long ticks, pages;
};

static bool read_stat(int proc, const char *pid, struct stat_line *ret)
{
    unsigned long long user, sys, child_user, child_sys;
    char path[64], buf[1024];
    const char *s;
    ssize_t n;

    (void)snprintf(path, sizeof path, "%.20s/stat", pid);
    autoclose int fd = openat(proc, path, O_RDONLY | O_CLOEXEC);

    n = fd < 0 ? -1 : read(fd, buf, sizeof buf - 1);
    if (n <= 0)
        return false;
    buf[n] = '\0';
    s = strrchr(buf, ')'); /* The name before it may hold anything. */
    if (!s || sscanf(s, ") %c %d %*d %d %*d %*d %*u %*u %*u %*u %*u %llu "
                        "%llu %llu %llu %*d %*d %*d %*d %*u %*u %llu",
                     &ret->state, &ret->parent, &ret->session, &user, &sys,
                     &child_user, &child_sys, &ret->pages) != 8)
        return false;
    ret->ticks = user + sys + child_user + child_sys;
    return true;
}

static unsigned find(const pid_t *list, unsigned n, int pid)
{
    unsigned i = 0;

    while (i < n && (pid <= 0 || list[i] != pid))
        i++;
    return i;
}

/* Which of the leaders is among its parents; n: none. */
static unsigned find_parent(int proc, const pid_t *leaders, unsigned n,
                            const struct stat_line *of)
{
    struct stat_line st = *of;
    int self = getpid();

    for (int depth = 0; depth < DEPTH_MAX && st.parent > 1; depth++) {
        char name[16];
        unsigned i = find(leaders, n, st.parent);

        if (i < n || st.parent == self)
            return i;
        (void)snprintf(name, sizeof name, "%d", st.parent);
        if (!read_stat(proc, name, &st))
            break;
    }
    return n;
}

static void read_all(const pid_t *sessions, unsigned n, bool with_trees,
                     struct usage *ret)
{
    long hz = sysconf(_SC_CLK_TCK), page = sysconf(_SC_PAGESIZE);
    DIR *d = proc_is_own() ? opendir("/proc") : NULL;
    const struct dirent *ent;
    struct stat_line st;
    unsigned left = USAGE_PROCESSES_MAX;

    memset(ret, 0, n * sizeof *ret);
    while (d && hz > 0 && page > 0 && left > 0 && (ent = readdir(d)) != NULL) {
        unsigned i;

        if (ent->d_name[0] < '1' || ent->d_name[0] > '9' ||
            !read_stat(dirfd(d), ent->d_name, &st))
            continue;
        left--;
        i = find(sessions, n, st.session);
        if (i == n && with_trees)
            i = find(sessions, n, (int)strtol(ent->d_name, NULL, 10));
        if (i == n && with_trees)
            i = find_parent(dirfd(d), sessions, n, &st);
        if (i == n)
            continue;
        ret[i].cpu_ms += st.ticks * 1000 / (unsigned long long)hz;
        ret[i].rss_bytes += st.pages * (unsigned long long)page;
        ret[i].n_procs += st.state != 'Z' && st.state != 'X';
    }
    if (d)
        (void)closedir(d);
}

void usage_read(const pid_t *sessions, unsigned n, struct usage *ret)
{
    read_all(sessions, n, false, ret);
}

void usage_read_trees(const pid_t *leaders, unsigned n, struct usage *ret)
{
    read_all(leaders, n, true, ret);
}
