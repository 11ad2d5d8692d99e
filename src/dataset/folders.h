/* folders: the folders that a set's outputs are in. Pure. */
#ifndef DATASET_FOLDERS_H
#define DATASET_FOLDERS_H

#include "dataset/manifest.h"

typedef int folders_fn(void *ctx, const char *folder, struct err *e);

/* Call `fn` for each folder once, a parent before what is in it. Stops at the
 * first that does not return 0, and returns that. */
int folders_each(const struct manifest *m, folders_fn *fn, void *ctx,
                 struct err *e);

#endif
