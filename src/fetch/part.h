/* part: the file on disk: what is there already, the part that grows under a
 * hidden name beside the place of the file, and the rename once it is right.
 *
 * The part is named by the path and the hash that is wanted, so a manifest that
 * has changed does not go on with the bytes of another file. All bytes go
 * through the hash once, also those of an earlier run, in steps: nothing here
 * takes long. */
#ifndef FETCH_PART_H
#define FETCH_PART_H

#include "base/digest.h"
#include "base/err.h"
#include "dataset/manifest.h"

#include <stdbool.h>
#include <stdint.h>

/* Where the manifest has no size, as lists of sums have none. */
#define PART_ANY_SIZE UINT64_MAX

struct part_root {
    int fd;            /* The folder, owned. */
    const char *shown; /* Its path; borrowed. */
};

enum part_state {
    PART_LOOK,  /* Whether the file itself is there and right. */
    PART_CATCH, /* Up with the part of an earlier run. */
    PART_GROW,  /* `size` bytes are there. */
    PART_THERE, /* The file is in its place. */
};

struct part {
    const struct part_root *root;         /* Borrowed, as the entry is. */
    const struct manifest_entry *entry;
    enum part_state state;
    int folder, fd;                       /* -1: none. */
    char name[40];                        /* Of the part, in `folder`. */
    uint64_t want;                        /* Bytes; or PART_ANY_SIZE. */
    uint64_t size;                        /* Bytes that are hashed. */
    bool fetched;                         /* THERE: it was not there before. */
    bool from_before;                     /* It has bytes of an earlier run. */
    struct digest digest;
};

/* Make the folder where it is missing (and those above it), and keep others
 * that fetch into it out. ERR_USAGE, ERR_RESOURCE. */
int part_root_open(struct part_root *ret, const char *path, struct err *e);
void part_root_close(struct part_root *r);

/* Set `e` for errno, of doing `what` with `path` (NULL: the folder itself). */
int part_fault(const struct part_root *r, const char *what, const char *path,
               struct err *e);

/* All is on the disk; a write error may show no earlier. */
int part_root_sync(const struct part_root *r, struct err *e);

uint64_t part_want(const struct manifest_entry *entry);

/* Bytes that are missing of the entry, by sizes alone; 0 where it has none. */
uint64_t part_missing(const struct part_root *r,
                      const struct manifest_entry *entry);

/* Fail with ERR_RESOURCE where less than this is free. */
int part_check_space(const struct part_root *r, uint64_t need, struct err *e);

/* Start; makes the folders of the path. */
int part_open(struct part *ret, const struct part_root *r,
              const struct manifest_entry *entry, struct err *e);
void part_close(struct part *p);

/* One step of LOOK or CATCH, until the state is another one. */
int part_step(struct part *p, struct err *e);

/* All bytes are there already, and right where no size says so. */
bool part_is_whole(const struct part *p);

int part_write(struct part *p, const void *data, size_t len, struct err *e);

/* Forget all bytes. */
int part_restart(struct part *p, struct err *e);

/* All bytes are there. Where they are right the file is in its place and the
 * state THERE; else *ret_right is false, `why` has both hashes, and the part
 * is empty again. */
int part_finish(struct part *p, bool *ret_right, char why[ERR_TEXT_MAX],
                struct err *e);

#endif
