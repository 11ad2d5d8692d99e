/* tree: opening files beneath a folder, and removing a folder.
 *
 * Links are followed while they stay beneath the folder (a ConfigMap volume is
 * made of such links); one that leaves it, or is absolute, is refused. */
#ifndef DATASET_TREE_H
#define DATASET_TREE_H

#include "base/err.h"

#include <stdbool.h>
#include <sys/stat.h>

/* A folder whose files are read. */
struct tree {
    int fd;            /* Owned by whoever opened it. */
    const char *shown; /* For messages; borrowed. */
};

/* Open a source folder; ret->shown is `path`. Fails with ERR_NODATA where it
 * is missing or may not be read. */
int tree_open(struct tree *ret, const char *path, struct err *e);

/* Open a regular file for reading, without ever blocking on what is none.
 * Fails with ERR_NODATA (missing, no right to read), ERR_DATA (leaves the
 * folder, no regular file) or ERR_RESOURCE. */
int tree_open_file(const struct tree *t, const char *path, int *ret_fd,
                   struct stat *ret_st, struct err *e);

/* Set `e` for `error`, an errno of reading `path`. */
int tree_fault(const struct tree *t, const char *path, int error,
               struct err *e);

/* True where there is something at `path` (beneath, links followed). */
bool tree_has(const struct tree *t, const char *path);

/* open(2) of `path` beneath `root`: by openat2(2), or without it by a walk
 * that looks at each link. Returns a descriptor, or -1 with errno (EXDEV: it
 * leaves the folder). The walk is public for its test. */
int tree_open_beneath(int root, const char *path, int flags);
int tree_walk_beneath(int root, const char *path, int flags);

/* Remove `name` in `folder` with all in it; no link is followed. Returns 0,
 * also where there is nothing, or a negative errno. */
int tree_remove(int folder, const char *name);

#endif
