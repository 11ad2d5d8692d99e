/* place: files, folders and links beneath a folder, from paths that are not
 * trusted. No link is followed on the way, so nothing can be placed outside;
 * a link that leaves the folder is refused. */
#ifndef DATASET_PLACE_H
#define DATASET_PLACE_H

#include "dataset/path.h"

#include <stdbool.h>

/* Remembers the last folder; the rest is private. */
struct place {
    int root; /* Borrowed. */
    int folder;
    char path[DATASET_PATH_MAX + 1]; /* Of `folder`. */
};

void place_start(struct place *p, int root);
void place_end(struct place *p);

/* All return 0 (or a descriptor) or a negative errno: EEXIST where the name is
 * taken, ENOTDIR or ELOOP where a file or a link is where a folder should be.
 * Folders are made where they are missing. Paths have passed path_fault(). */
int place_folder(struct place *p, const char *path);
int place_file(struct place *p, const char *path, bool executable);
int place_link(struct place *p, const char *path, const char *target);
/* Another name for the file `target`, a path as the others. */
int place_name(struct place *p, const char *path, const char *target);
int place_remove(struct place *p, const char *path);

/* `name`, of an entry of the archive `beside`, as a path in the set: in the
 * archive's folder, without "./" and slashes at its end. "" is that folder
 * itself. NULL, or why it is refused. Pure. */
const char *place_path(const char *beside, const char *name,
                       char ret[DATASET_PATH_MAX + 1]);

/* Why a link at `path` may not lead to `target`; NULL where it may. Whether it
 * truly stays inside can only be said when all links are there. Pure. */
const char *place_target_fault(const char *path, const char *target);

#endif
