/* load: a manifest from a file, and the folder that it describes. */
#ifndef DATASET_LOAD_H
#define DATASET_LOAD_H

#include "base/err.h"
#include "dataset/manifest.h"

/* Read and finish the manifest `path`: a file, or the folder of a BagIt bag.
 * Where the form has no name the set gets the folder's. `source` is where the
 * files are, or NULL: the manifest's folder; `*ret_source` is the one that
 * counts, to be freed. Fails with ERR_NODATA where the manifest is missing,
 * ERR_DATA where it is none. End with manifest_free(). */
int load_manifest(struct manifest *ret, const char *path, const char *source,
                  char **ret_source, struct err *e);

#endif
