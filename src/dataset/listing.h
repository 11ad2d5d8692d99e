/* listing: a manifest of what lies in a folder, hashed with sha256. */
#ifndef DATASET_LISTING_H
#define DATASET_LISTING_H

#include "base/err.h"
#include "dataset/manifest.h"
#include "dataset/meter.h"
#include "dataset/structure.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

/* A file that is not to be listed: the one that the manifest goes to. */
struct listing_skip {
    bool by_name;     /* `name` in `folder`, whether it is there or not; and
                         `.name.<digits>.tmp`, as it is while it is written. */
    const char *name; /* Without a slash; borrowed. */
    struct stat folder;
    bool by_inode; /* `file` itself: standard output. */
    struct stat file;
};

struct listing_notes { /* What was listed otherwise than one may think. */
    size_t n_links;    /* To folders: left out. */
    size_t n_odd;      /* No data but a Git LFS pointer, say. */
    char link[DATASET_PATH_MAX + 1]; /* The first. */
    char odd[DATASET_PATH_MAX + 1], odd_why[STRUCTURE_TEXT_MAX];
};

/* List the regular files beneath `folder`, in order of their bytes; links to
 * files count as files while they stay beneath it. `unpack`: give *.gz files
 * an "unpack", with the size and hash of what they hold, and archives one with
 * their size. `ret` starts as zero but for its name, and is not finished.
 * Fails with ERR_NODATA, ERR_DATA (a pipe, a link that leaves the folder, no
 * file at all, what would be unpacked is there or is made by two) or
 * ERR_RESOURCE. */
int listing_make(struct manifest *ret, const char *folder, bool unpack,
                 const struct listing_skip *skip, struct listing_notes *notes,
                 struct meter *meter, struct err *e);

/* Only their paths. */
int listing_names(struct manifest *ret, const char *folder,
                  const struct listing_skip *skip,
                  struct listing_notes *notes, struct err *e);

#endif
