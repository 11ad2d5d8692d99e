/* listing_parts: what the files of listing share. Internal to it. */
#ifndef DATASET_LISTING_PARTS_H
#define DATASET_LISTING_PARTS_H

#include "dataset/listing.h"
#include "dataset/tree.h"
#include "dataset/unpack.h"

/* No two of the entries make one file, nor one a file where another needs a
 * folder; `inside` has for each entry what is in the archive. Else ERR_DATA. */
int listing_check_outputs(const struct tree *t, const struct manifest *m,
                          const struct unpack_members *inside, struct err *e);

#endif
