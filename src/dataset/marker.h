/* marker: the table in a finished stage, `.agent-stage`. It tells for which
 * set the stage was made, and how each file looked then, so that the next
 * start needs no more than a stat(2) of each. A line of the table:
 *
 *   <size> <mtime> <ctime> <inode> <sha256 or -> <path>
 *
 * The hash is there for files that were unpacked: the manifest need not have
 * one. The last line is the sha256 of all before it. */
#ifndef DATASET_MARKER_H
#define DATASET_MARKER_H

#include "dataset/manifest.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

struct marker_row { /* Of the output with the same index. */
    uint64_t size, ino;
    struct timespec mtime, ctime;
    bool has_sha256;
    uint8_t sha256[32];
};

/* Take over size, times and inode. */
void marker_row_set(struct marker_row *row, const struct stat *st);

/* True where a file still looks as its row says. */
bool marker_row_same(const struct marker_row *row, const struct stat *st);

/* Write the marker into `folder` and on the disk; an old one is replaced in
 * one step. Returns 0 or a negative errno. */
int marker_write(int folder, const struct manifest *m,
                 const struct marker_row *rows);

/* Read it; `rows` has m->n_outputs. False where there is none, or it is not
 * whole, or it was written for another set. */
bool marker_read(int folder, const struct manifest *m,
                 struct marker_row *rows);

#endif
