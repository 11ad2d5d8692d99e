/* build: make a set's folder under the lock, and publish it. */
#ifndef DATASET_BUILD_H
#define DATASET_BUILD_H

#include "base/err.h"
#include "dataset/stage_set.h"

/* Copy, unpack and check into the part folder, put it on the disk, write the
 * marker and rename the folder to its final name; what lies there is replaced
 * in one step where the file system can. The lock and the lease must be held.
 * A part folder that a killed stager left is removed first; a fault leaves
 * none. */
int build_stage(const struct stage_set *set, struct err *e);

#endif
