/* sizes: of files whose manifest lists none, from the source; and whether a
 * bag has files that it does not list. */
#ifndef DATASET_SIZES_H
#define DATASET_SIZES_H

#include "base/err.h"
#include "dataset/manifest.h"
#include "dataset/meter.h"
#include "dataset/tree.h"

/* Find out the sizes that are not listed, and sum up again. A file that is not
 * there is left to whoever reads it. */
int sizes_fill(struct manifest *m, const struct tree *from,
               struct meter *meter, struct err *e);

/* Of a BagIt every file of the payload must be listed: fails with ERR_DATA,
 * naming one that is not. Other forms: 0. */
int sizes_check_bag(const struct manifest *m, const struct tree *from,
                    struct err *e);

#endif
