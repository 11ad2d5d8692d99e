/* marker_text: the lines of a marker, for marker.c and marker_read.c. Pure. */
#ifndef DATASET_MARKER_TEXT_H
#define DATASET_MARKER_TEXT_H

#include "dataset/marker.h"

/* A row's text before its path, and the path with all of it escaped. */
#define MARKER_LINE_MAX (256 + 2 * DATASET_PATH_MAX + 2)

/* The first two lines, for a marker of `n` rows. Returns their length. */
size_t marker_head(char *out, const struct manifest *m, size_t n);

/* The path with newline and backslash escaped, and a newline. The same. */
size_t marker_escape(char *out, const char *path);

/* Read a row from `line` of `len` bytes, its newline not counted; the path is
 * written to `path`. False where it is none. */
bool marker_parse(const char *line, size_t len, struct marker_row *ret,
                  char path[DATASET_PATH_MAX + 1]);

#endif
