/* proc: see proc.h. */
#include "supervise/proc.h"

#include "base/mem.h"
#include "base/small_file.h"
#include "supervise/brand.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PROC_LIST_FIRST 256 /* Room; it grows to what there is. */
#define PROC_LIST_MAX (1u << 22) /* The kernel's own limit. */
#define ENVIRON_MAX (256 * 1024) /* Read in pieces; beyond: "cannot say". */

bool proc_is_own(void)
{
    char link[16];
    ssize_t n = readlink("/proc/self", link, sizeof link - 1);

    if (n <= 0)
        return false;
    link[n] = '\0';
    return strtol(link, NULL, 10) == getpid();
}

struct stat_line {
    char state;
    bool is_dead;
    pid_t ppid, group, session;
    uint64_t start;
};

static bool read_stat(pid_t pid, struct stat_line *ret)
{
    char path[64], buf[1024];
    const char *s;
    int ppid, group, session, threads;
    unsigned long long start;

    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    if (small_file_read(path, buf, sizeof buf) <= 0)
        return false;
    s = strrchr(buf, ')'); /* The name before it may hold anything. */
    if (!s || sscanf(s, ") %c %d %d %d %*s %*s %*s %*s %*s %*s %*s %*s "
                        "%*s %*s %*s %*s %*s %d %*s %llu",
                     &ret->state, &ppid, &group, &session, &threads,
                     &start) != 6)
        return false;
    /* A main thread that has ended is a zombie, though others may run on. */
    ret->is_dead = ret->state == 'X' || (ret->state == 'Z' && threads <= 1);
    ret->ppid = ppid;
    ret->group = group;
    ret->session = session;
    ret->start = start;
    return true;
}

enum says { SAYS_OURS, SAYS_OTHER, SAYS_NOTHING };

/* What the environment says. A piece overlaps the one before it, so that a
 * cookie on the border is found. */
static enum says ask_environ(pid_t pid, const char *cookie)
{
    char path[64], buf[4096 + 128];
    size_t keep = 0, total = 0, len = strlen(cookie);
    bool named = false;
    ssize_t n;

    (void)snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return SAYS_NOTHING;
    while (total < ENVIRON_MAX &&
           (n = read(fd, buf + keep, sizeof buf - keep)) > 0) {
        size_t have = keep + (size_t)n;

        if (memmem(buf, have, cookie, len))
            return SAYS_OURS;
        if (total == 0) {
            size_t first = strnlen(buf, have);

            /* An overwritten environment has no NAME=value in front. */
            named = memchr(buf, '=', first) != NULL && buf[0] != '=';
        }
        total += (size_t)n;
        keep = have < len ? have : len;
        memmove(buf, buf + have - keep, keep);
    }
    return named ? SAYS_OTHER : SAYS_NOTHING;
}

static bool in_list(const pid_t *list, unsigned n, pid_t pid)
{
    for (unsigned i = 0; i < n; i++)
        if (list[i] == pid)
            return true;
    return false;
}

/* A process that may be ours, or have a parent that is. */
struct entry {
    pid_t pid, ppid, group;
    bool ours;
};

static bool is_ours(const struct proc_query *q, pid_t pid,
                    const struct stat_line *st)
{
    enum brand_says brand = BRAND_UNKNOWN;

    if (in_list(q->sessions, q->n_sessions, st->session))
        return true;
    if (q->brand)
        brand = brand_ask(pid, q->brand, q->brand_ignore);
    if (brand == BRAND_SAME)
        return true;
    switch (ask_environ(pid, q->cookie)) {
    case SAYS_OURS:
        return true;
    case SAYS_NOTHING:
        return brand == BRAND_UNKNOWN && q->self > 0 &&
               st->ppid == q->self && st->start >= q->since;
    case SAYS_OTHER:
        break;
    }
    return false;
}

/* Room for one more. False: none; what is listed has to do. */
static bool make_room(struct entry **list, unsigned n, unsigned *cap)
{
    unsigned more = *cap ? 2 * *cap : PROC_LIST_FIRST;
    struct entry *grown;

    if (n < *cap)
        return true;
    grown = more <= PROC_LIST_MAX ? realloc(*list, more * sizeof *grown) : NULL;
    if (!grown)
        return false;
    *list = grown;
    *cap = more;
    return true;
}

static unsigned list_processes(const struct proc_query *q,
                               struct entry **ret_list)
{
    DIR *d = proc_is_own() ? opendir("/proc") : NULL;
    const struct dirent *ent;
    struct stat_line st;
    unsigned n = 0, cap = 0;

    while (d && (ent = readdir(d)) != NULL) {
        pid_t pid = (pid_t)strtol(ent->d_name, NULL, 10);

        if (pid <= 0 || pid == q->self || in_list(q->skip, q->n_skip, pid) ||
            !read_stat(pid, &st) || st.is_dead)
            continue;
        if (!make_room(ret_list, n, &cap))
            break;
        (*ret_list)[n++] = (struct entry){.pid = pid,
                                          .ppid = st.ppid,
                                          .group = st.group,
                                          .ours = is_ours(q, pid, &st)};
    }
    if (d)
        (void)closedir(d);
    return n;
}

static int compare(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;

    return (x->pid > y->pid) - (x->pid < y->pid);
}

/* A child of one of ours is ours, whatever its environment says. */
static void add_children(struct entry *list, unsigned n)
{
    bool more = n > 0;

    if (more) /* As the kernel lists them, but it does not promise that. */
        qsort(list, n, sizeof *list, compare);
    while (more) {
        more = false;
        for (unsigned i = 0; i < n; i++) {
            struct entry key = {.pid = list[i].ppid};
            const struct entry *parent;

            if (list[i].ours)
                continue;
            parent = bsearch(&key, list, n, sizeof key, compare);
            if (parent && parent->ours)
                more = list[i].ours = true;
        }
    }
}

/* It has a handler for that signal; one that ignores it has not. */
static bool catches(pid_t pid, int signo)
{
    char path[64], buf[4096];
    const char *s;

    (void)snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    if (small_file_read(path, buf, sizeof buf) <= 0)
        return false;
    s = strstr(buf, "\nSigCgt:");
    return s && strtoull(s + strlen("\nSigCgt:"), NULL, 16) >> (signo - 1) & 1;
}

/* It saves what it has, perhaps: a TERM would end that. */
static bool was_asked(const struct proc_query *q, const struct entry *p)
{
    return in_list(q->asked, q->n_asked, p->group) &&
           catches(p->pid, q->asked_by);
}

unsigned proc_signal_left(const struct proc_query *q, int signo,
                          pid_t *ret_pid)
{
    autofree struct entry *list = NULL;
    unsigned all = list_processes(q, &list), n = 0;

    add_children(list, all);
    for (unsigned i = 0; i < all; i++) {
        const struct entry *p = &list[i];

        if (!p->ours || in_list(q->groups, q->n_groups, p->group))
            continue;
        n++;
        *ret_pid = p->pid;
        if (signo == SIGTERM && was_asked(q, p))
            continue;
        if (signo > 0)
            (void)kill(p->pid, signo);
        if (signo == SIGTERM)
            (void)kill(p->pid, SIGCONT); /* A stopped one must see it. */
    }
    return n;
}

uint64_t proc_now_ticks(void)
{
    struct timespec t;
    long hz = sysconf(_SC_CLK_TCK);

    if (clock_gettime(CLOCK_BOOTTIME, &t) != 0 || hz <= 0)
        return 0;
    return (uint64_t)t.tv_sec * (uint64_t)hz +
           (uint64_t)t.tv_nsec * (uint64_t)hz / 1000000000u;
}

bool proc_has_other_children(const pid_t *known, unsigned n_known)
{
    char path[64], buf[4096], *s = buf, *end;
    siginfo_t si;

    if (waitid(P_ALL, 0, &si, WEXITED | WNOHANG | WNOWAIT) != 0 &&
        errno == ECHILD)
        return false;
    if (n_known == 0)
        return true;
    (void)snprintf(path, sizeof path, "/proc/self/task/%d/children",
                   (int)syscall(SYS_gettid));
    if (small_file_read(path, buf, sizeof buf) < 0)
        return true; /* Not told: look at all of /proc. */
    for (;;) {
        long pid = strtol(s, &end, 10);

        if (end == s)
            return false;
        if (!in_list(known, n_known, (pid_t)pid))
            return true;
        s = end;
    }
}

void proc_wchan(pid_t pid, char *out, unsigned cap)
{
    char path[64];
    ssize_t n;

    (void)snprintf(path, sizeof path, "/proc/%d/wchan", (int)pid);
    n = proc_is_own() ? small_file_read(path, out, cap) : -1;
    if (n <= 0 || strcmp(out, "0") == 0)
        out[0] = '\0';
}
