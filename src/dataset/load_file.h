/* load_file: the text of a manifest, from a file. */
#ifndef DATASET_LOAD_FILE_H
#define DATASET_LOAD_FILE_H

#include "base/err.h"
#include "dataset/manifest.h"

/* Read it; what manifest_parse() gives. An object of DVC's cache, whose name
 * is the md5 of what is in it, must have that. */
int load_file(struct manifest *ret, const char *path, enum manifest_form form,
              struct err *e);

#endif
