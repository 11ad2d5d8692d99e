/* load: a manifest from a file, and the folder that it describes. */
#ifndef DATASET_LOAD_H
#define DATASET_LOAD_H

#include "base/err.h"
#include "dataset/manifest.h"

/* Read the file `path`. Fails with ERR_NODATA where it is missing, ERR_DATA
 * where it is no manifest. End with manifest_free(). */
int load_manifest(struct manifest *ret, const char *path, struct err *e);

/* The folder of `path`, allocated; NULL without memory, with `e` set. */
char *load_folder(const char *path, struct err *e);

#endif
