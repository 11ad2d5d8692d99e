/* unpack: the files in a tar or zip. The only module that sees libarchive.
 *
 * The bytes are not trusted: an absolute path, "..", a link that leaves the
 * root, a device and the like are faults, and so are more bytes than allowed.
 * Nothing else of an entry is taken over but its bytes and whether it is
 * executable: no owner, no time, no set-user-ID. */
#ifndef DATASET_UNPACK_H
#define DATASET_UNPACK_H

#include "base/err.h"
#include "dataset/manifest.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct unpack_member {
    char *path; /* In the set; owned. */
    bool link;  /* A symbolic one. */
    uint8_t sha256[32]; /* Of a link: of its target. */
};

struct unpack_members { /* Files and links, no folders. */
    struct unpack_member *at;
    size_t n, cap;
    uint32_t *slots; /* 2 * cap of them: by path, an index plus one. */
};

enum unpack_end {
    UNPACK_DONE,
    UNPACK_DATA,    /* `why` says what is wrong with the archive. */
    UNPACK_OVER,    /* More than `max` bytes. */
    UNPACK_READ,    /* The source failed: it knows. */
    UNPACK_WRITE,   /* `error`, with `path`. */
    UNPACK_MEMORY,
    UNPACK_STOPPED, /* stop() said so. */
};

struct unpack {
    enum manifest_unpack format;
    const char *beside; /* Path of the archive: its folder is the root of what
                           is in it. */
    int to;             /* Folder of the set; -1: only read. */
    uint64_t max;
    int (*sync)(void *ctx, int fd); /* As fsync(2); NULL: not asked for. */
    /* Next piece; 0 at the end, negative after a fault. NULL: from `fd`. */
    long (*read)(void *ctx, const void **ret);
    bool (*stop)(void *ctx);
    void *ctx;
    int fd;

    /* Results. */
    struct unpack_members members;
    uint64_t n_bytes; /* Of all files. */
    int error;
    char path[DATASET_PATH_MAX + 1]; /* In the set; of the last entry. */
    bool made; /* The last entry is a file that was made, and no member yet. */
    char why[200];
};

enum unpack_end unpack_run(struct unpack *u);

void unpack_members_free(struct unpack_members *m);

/* Where a path is, or would be; NULL in an empty list. */
uint32_t *unpack_members_slot(const struct unpack_members *m,
                              const char *path);
/* NULL without memory. The path is not there yet. */
struct unpack_member *unpack_members_add(struct unpack_members *m,
                                         const char *path, bool link);

/* Is called before an archive is read, where the program has it:
 * archive_static.c. */
extern void unpack_look_at_cpu(void) __attribute__((weak));

#endif
