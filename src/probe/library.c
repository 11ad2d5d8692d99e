/* library: see library.h. */
#include "probe/library.h"

#include <dlfcn.h>
#include <glob.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The linker says so of the name itself, not of what that needs. */
static bool is_missing(const char *why, const char *name)
{
    size_t len = strlen(name);

    return strncmp(why, name, len) == 0 && why[len] == ':' &&
           strstr(why, "No such file");
}

static bool try_open(struct library *l, const char *name)
{
    struct link_map *map = NULL;
    const char *why;

    l->handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!l->handle) {
        why = dlerror();
        (void)snprintf(l->why, sizeof l->why, "%s", why ? why : name);
        l->is_there = !is_missing(l->why, name);
        return false;
    }
    l->is_there = true;
    if (dlinfo(l->handle, RTLD_DI_LINKMAP, &map) == 0 && map)
        (void)snprintf(l->path, sizeof l->path, "%s", map->l_name);
    return true;
}

/* Folders above the first `python3` or `python` of PATH: bin's neighbour lib
 * is that of its environment, be it a venv, conda's or the system's. */
static bool python_prefix(char *ret, size_t cap)
{
    static const char *const names[] = {"python3", "python"};
    const char *path = getenv("PATH");

    for (const char *at = path; at && *at;) {
        size_t len = strcspn(at, ":");
        char file[PATH_MAX];

        for (unsigned i = 0; len > 0 && i < 2; i++) {
            int n = snprintf(file, sizeof file, "%.*s/%s", (int)len, at,
                             names[i]);

            if (n < 0 || (size_t)n >= sizeof file || access(file, X_OK) != 0)
                continue;
            n = snprintf(ret, cap, "%.*s/..", (int)len, at);
            return n > 0 && (size_t)n < cap;
        }
        at += len + (at[len] == ':');
    }
    return false;
}

bool library_open_wheel(struct library *l, const char *name,
                        const char *folder)
{
    static const char *const packages[] = {"lib/python3*/site-packages",
                                           "lib/python3*/dist-packages",
                                           "local/lib/python3*/dist-packages"};
    char prefix[PATH_MAX], pattern[2 * PATH_MAX];
    bool opened = false;

    memset(l, 0, sizeof *l);
    (void)snprintf(l->why, sizeof l->why, "python has no %s", name);
    if (!python_prefix(prefix, sizeof prefix))
        return false;
    for (unsigned i = 0; !opened && i < 3; i++) {
        glob_t found = {0};

        (void)snprintf(pattern, sizeof pattern, "%s/%s/%s/%s", prefix,
                       packages[i], folder, name);
        if (glob(pattern, GLOB_NOSORT, NULL, &found) == 0)
            for (size_t k = 0; !opened && k < found.gl_pathc; k++)
                opened = try_open(l, found.gl_pathv[k]);
        globfree(&found);
    }
    return opened;
}

bool library_open(struct library *l, const char *name)
{
    memset(l, 0, sizeof *l);
    return try_open(l, name);
}

void *library_find(const struct library *l, const char *symbol)
{
    return dlsym(l->handle, symbol);
}
