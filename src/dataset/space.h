/* space: faults of writing to a stage, and its free space. */
#ifndef DATASET_SPACE_H
#define DATASET_SPACE_H

#include "base/err.h"

#include <stdint.h>

/* A folder that is written to. */
struct space {
    int fd;            /* Any descriptor of its file system. */
    const char *shown; /* Its path, for messages. */
    uint64_t need;     /* Bytes that the whole set needs there. */
};

/* Set `e` for `error`, an errno of doing `what` ("write") with `path` in the
 * space: ERR_RESOURCE with the needed and the free bytes where the disk is
 * full or failing, ERR_USAGE where no stage can be there at all. */
int space_fault(const struct space *s, const char *what, const char *path,
                int error, struct err *e);

/* Fail with ERR_RESOURCE where less than s->need is free. */
int space_check(const struct space *s, struct err *e);

/* Bytes of a block: files take whole ones. */
uint64_t space_block(const struct space *s);

/* fsync(2) of a folder, where its file system has that: 0 or an errno. */
int space_sync_folder(int fd);

#endif
