/* path: rules for the paths that a manifest lists, and how to show a path.
 *
 * Pure. A listed path is relative, made of plain components, and the same in
 * the source and in the stage. */
#ifndef DATASET_PATH_H
#define DATASET_PATH_H

#include <stddef.h>

#define DATASET_PATH_MAX 4000     /* Bytes of a listed path, without NUL. */
#define DATASET_COMPONENT_MAX 255 /* Bytes between two slashes. */
#define DATASET_DEPTH_MAX 128     /* Components of a listed path. */
#define DATASET_NAME_MAX 200      /* Bytes of a set's name. */

/* The marker of a finished stage, in its top folder, and the name it has while
 * it is written: no set may list them. */
#define DATASET_MARKER ".agent-stage"
#define DATASET_MARKER_TMP ".agent-stage.tmp"

/* Why `path` may not be listed, as "it is absolute"; NULL where it may. */
const char *path_fault(const char *path);

/* Why `name` may not be the name of a set; NULL where it may. */
const char *path_name_fault(const char *name);

/* Order of paths by bytes, but '/' before all others: a folder's files follow
 * directly upon the folder's own path. */
int path_compare(const char *a, const char *b);

#define PATH_SHOWN_MAX 160

struct path_shown {
    char at[PATH_SHOWN_MAX];
};

/* `root/path` (or `path` alone where `root` is NULL) for a message: one line
 * of valid UTF-8, cut at its start where it is long. Returns shown->at. */
const char *path_show(struct path_shown *shown, const char *root,
                      const char *path);

#endif
