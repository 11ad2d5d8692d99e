/* build_mark: the marker of a part folder that has all its files. */
#ifndef DATASET_BUILD_MARK_H
#define DATASET_BUILD_MARK_H

#include "dataset/manifest.h"
#include "dataset/space.h"
#include "dataset/unpack.h"

/* Check that no link leaves the folder, look at each file, and write the
 * marker. `unpacked` and `members` (may be NULL) are of each entry. Only to be
 * called when the data is on the disk: then the times are final. */
int build_mark(const struct manifest *m, const struct space *part,
               uint8_t (*unpacked)[32], struct unpack_members *members,
               struct err *e);

#endif
