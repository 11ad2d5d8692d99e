/* marker: the table in a finished stage, `.agent-stage`. It tells for which
 * set the stage was made, and how each file looked then, so that the next
 * start needs no more than a stat(2) of each. A line of the table:
 *
 *   <size> <mtime> <ctime> <inode> <hash> <path>
 *
 * The hash is "-" where the manifest has it; a sha256 for files that were
 * unpacked; "l:" and the sha256 of the target for symbolic links. The last
 * line is the sha256 of all before it. */
#ifndef DATASET_MARKER_H
#define DATASET_MARKER_H

#include "dataset/manifest.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

#define MARKER_NO_OUTPUT SIZE_MAX

struct marker_row {
    const char *path; /* Borrowed, or `own`. */
    char *own;
    size_t output; /* Of the manifest; MARKER_NO_OUTPUT: from an archive. */
    uint64_t size, ino;
    struct timespec mtime, ctime;
    bool has_sha256, link;
    uint8_t sha256[32];
};

struct marker {
    struct marker_row *rows; /* In order of path_compare(). */
    size_t n, cap;
};

void marker_free(struct marker *m);

/* Add a row, all zero but its output and path; `own`: the path is taken over,
 * and freed where there is no memory. NULL without memory. */
struct marker_row *marker_add(struct marker *m, size_t output,
                              const char *path, char *own);

/* Take over size, times and inode. */
void marker_row_set(struct marker_row *row, const struct stat *st);

/* True where a file still looks as its row says. */
bool marker_row_same(const struct marker_row *row, const struct stat *st);

/* Write the marker into `folder` and on the disk; an old one is replaced in
 * one step. Returns 0 or a negative errno. */
int marker_write(int folder, const struct manifest *m,
                 const struct marker *marker);

/* Read it: a row for each output of `m`, and those of the files that archives
 * held. False where there is none, or it is not whole, or it was written for
 * another set. End with marker_free(), also then. */
bool marker_read(int folder, const struct manifest *m, struct marker *ret);

#endif
