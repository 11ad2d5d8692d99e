/* library: a shared library that may not be there. */
#ifndef PROBE_LIBRARY_H
#define PROBE_LIBRARY_H

#include "probe/probe.h"

#include <limits.h>

struct library {
    void *handle;  /* Stays open: the process is short. */
    bool is_there; /* Also one that cannot be loaded. */
    char path[PATH_MAX];
    char why[PROBE_TEXT]; /* Why it could not be opened. */
};

/* Open `name` as the dynamic linker finds it: LD_PRELOAD, LD_LIBRARY_PATH, the
 * system's folders. */
bool library_open(struct library *l, const char *name);
/* In this folder below the site-packages of the python that is in PATH: there
 * pip puts it, and there programs in Python take it from. */
bool library_open_wheel(struct library *l, const char *name,
                        const char *folder);

/* nccl's: "plugins", those that variables name, opened as NCCL opens them. */
void probe_plugins(json_t *nccl);

/* NULL where it has no such function. */
void *library_find(const struct library *l, const char *symbol);

/* A function pointer from an object pointer: POSIX wants it so. */
#define LIBRARY_FIND(l, pointer, symbol)                                       \
    (*(void **)&(pointer) = library_find((l), (symbol)))

#endif
