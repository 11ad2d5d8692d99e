/* cgroup: the control groups that this process is in, v2 or v1: limits and
 * counters, as far up as the mounts show them. `root` stands before /sys and
 * /proc: "", or a folder in tests. */
#ifndef BASE_CGROUP_H
#define BASE_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cgroup_file { /* One file, by its names. */
    const char *controller, *v2, *v1;
};

/* A path beyond it is taken to be the top of the mount. */
#define CGROUP_DIR_MAX 2048

struct cgroup {
    char dir[CGROUP_DIR_MAX];
    size_t top;       /* Length of the mount's path, in `dir`. */
    const char *file; /* The one that is looked for. */
    bool v2;
};

/* This process' own group, or the next above it that has this file. Without
 * /proc it is taken to be the top of the mount, as in a container. False where
 * there is none; v1 is looked at where v2 has none. */
bool cgroup_find(const char *root, const struct cgroup_file *file,
                 struct cgroup *ret);
/* The next above that has the file; false at the top of the mount. */
bool cgroup_up(struct cgroup *g);

/* The first `n` numbers of `name` in this group; UINT64_MAX stands for no
 * limit: "max", and of v1 -1 and any beyond 2^62. */
bool cgroup_numbers(const struct cgroup *g, const char *name, uint64_t *ret,
                    unsigned n);
/* The number behind `key` in the group's file, or any other, of `key value`
 * lines. */
bool cgroup_value(const struct cgroup *g, const char *key, uint64_t *ret);
bool cgroup_read_value(const char *path, const char *key, uint64_t *ret);

enum cgroup_limit { CGROUP_MEMORY, CGROUP_PIDS };

/* The lowest limit from here to the top; UINT64_MAX: none is seen. */
uint64_t cgroup_limit(const char *root, enum cgroup_limit which);
/* Limit and use where least is left; false where nothing is limited. */
bool cgroup_tightest(const char *root, enum cgroup_limit which,
                     uint64_t *ret_max, uint64_t *ret_used);

/* CPUs, rounded up; 0: no quota. */
unsigned cgroup_cpus(const char *root);

#endif
