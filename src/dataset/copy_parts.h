/* copy_parts: what copy.c and copy_archive.c share. */
#ifndef DATASET_COPY_PARTS_H
#define DATASET_COPY_PARTS_H

#include "dataset/copy.h"

/* Open an entry's file; its size must be the listed one. */
int copy_open(const struct copy *c, const struct manifest_entry *entry,
              int *ret_fd, struct err *e);

/* Make a file of the stage, and end it: on the disk where c->sync says so. */
int copy_make_file(const struct copy *c, const char *path, int *ret_fd,
                   struct err *e);
int copy_end_file(const struct copy *c, const char *path, int *fd,
                  struct err *e);

/* Most bytes that an entry may unpack to. */
uint64_t copy_unpacked_max(const struct manifest_entry *entry);

/* The faults of a size, a hash, a pass, of what was unpacked. */
int copy_size_fault(const char *shown, int fd, uint64_t is,
                    const struct copy_want *want, struct err *e);
int copy_hash_fault(const char *shown, int fd, const struct pump *p,
                    const struct copy_want *want, struct err *e);
int copy_pump_fault(const struct copy *c, const struct pump *p,
                    enum pump_end end, const struct manifest_entry *entry,
                    struct err *e);
int copy_check_unpacked(const char *shown, const struct pump *p,
                        const struct manifest_entry *entry, struct err *e);

/* A tar or zip. `*ret_stale`: it was replaced on its server meanwhile, and
 * nothing of it is left in the stage. */
int copy_archive(const struct copy *c, const struct pool_turn *turn,
                 const struct manifest_entry *entry, bool *ret_stale,
                 struct err *e);

#endif
