/* A root of a test's own, with what files of /sys, /proc and /dev it needs. */
#ifndef UNIT_ROOT_FIXTURE_H
#define UNIT_ROOT_FIXTURE_H

#include <ftw.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

struct root {
    char path[64];
};

static inline int remove_one(const char *path, const struct stat *st,
                             int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static inline int root_make(void **state)
{
    static struct root m;

    (void)snprintf(m.path, sizeof m.path, "/tmp/test_root.XXXXXX");
    if (!mkdtemp(m.path))
        return -1;
    *state = &m;
    return 0;
}

static inline int root_remove(void **state)
{
    const struct root *m = *state;

    return nftw(m->path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* Make a file below the root, and the folders on the way to it. */
static inline void root_put(const struct root *m, const char *path,
                            const char *text)
{
    char full[PATH_MAX];
    FILE *f;

    (void)snprintf(full, sizeof full, "%s%s", m->path, path);
    for (char *s = full + strlen(m->path) + 1; (s = strchr(s, '/')); s++) {
        *s = '\0';
        (void)mkdir(full, 0700);
        *s = '/';
    }
    f = fopen(full, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

#endif
