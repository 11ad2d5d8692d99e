/* copy: what is done with one entry of a manifest: check it against its size
 * and hashes, and where asked copy and unpack it, all in one pass. */
#ifndef DATASET_COPY_H
#define DATASET_COPY_H

#include "dataset/manifest.h"
#include "dataset/pool.h"
#include "dataset/pump.h"
#include "dataset/space.h"
#include "dataset/tree.h"
#include "dataset/unpack.h"

/* Work on a set: the `ctx` of copy_entry(). All is borrowed. */
struct copy {
    const struct manifest *m;
    struct tree from;
    struct space to; /* fd < 0: only check. Its folders are there already. */
    bool sync;       /* fsync(2) each file. */
    struct meter *meter;
    uint8_t (*unpacked)[32]; /* NULL, or for each entry the sha256 of what it
                                unpacked to: filled in. */
    struct unpack_members *members; /* NULL, or for each entry what was in the
                                       archive: filled in. */
};

/* A pool_fn; the scratch is a struct pump_buffers. ERR_NODATA, ERR_DATA,
 * ERR_RESOURCE or ERR_USAGE, with a text that names file and both values. */
int copy_entry(void *ctx, const struct pool_turn *turn, struct err *e);

/* Check that the file `path` of `from` has `size` bytes (UINT64_MAX: any
 * size) and this hash. */
struct copy_want {
    const char *path;
    uint64_t size;
    enum digest_kind kind;
    const uint8_t *hash;
    const char *said_by; /* "the manifest". */
};
int copy_check_file(const struct copy *c, const struct pool_turn *turn,
                    const struct copy_want *want, struct stat *ret_st,
                    struct err *e);

#endif
