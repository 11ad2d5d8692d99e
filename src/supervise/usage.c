/* usage: see usage.h. */
#include "supervise/usage.h"

#include "base/mem.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct stat_line {
    char state;
    int session;
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
    if (!s || sscanf(s, ") %c %*d %*d %d %*d %*d %*u %*u %*u %*u %*u %llu "
                        "%llu %llu %llu %*d %*d %*d %*d %*u %*u %llu",
                     &ret->state, &ret->session, &user, &sys, &child_user,
                     &child_sys, &ret->pages) != 7)
        return false;
    ret->ticks = user + sys + child_user + child_sys;
    return true;
}

void usage_read(const pid_t *sessions, unsigned n, struct usage *ret)
{
    long hz = sysconf(_SC_CLK_TCK), page = sysconf(_SC_PAGESIZE);
    DIR *d = opendir("/proc");
    const struct dirent *ent;
    struct stat_line st;
    unsigned left = USAGE_PROCESSES_MAX;

    memset(ret, 0, n * sizeof *ret);
    while (d && hz > 0 && page > 0 && left > 0 && (ent = readdir(d)) != NULL) {
        unsigned i = 0;

        if (ent->d_name[0] < '1' || ent->d_name[0] > '9' ||
            !read_stat(dirfd(d), ent->d_name, &st))
            continue;
        left--;
        while (i < n && sessions[i] != st.session)
            i++;
        if (i == n || st.session <= 0)
            continue;
        ret[i].cpu_ms += st.ticks * 1000 / (unsigned long long)hz;
        ret[i].rss_bytes += st.pages * (unsigned long long)page;
        ret[i].n_procs += st.state != 'Z' && st.state != 'X';
    }
    if (d)
        (void)closedir(d);
}
