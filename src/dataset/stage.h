/* stage: verify a data set where it lies, or copy and unpack it into a stage
 * and publish it there by rename.
 *
 * Runs in a child of agent or in `agent stage`; may block, allocate and start
 * threads. A fault never leaves something that looks finished. */
#ifndef DATASET_STAGE_H
#define DATASET_STAGE_H

#include "base/err.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#define STAGE_NAME_MAX 256

struct stage_request {
    const char *manifest;  /* Path of the manifest. */
    const char *source;    /* Where the files are; NULL: manifest's folder. */
    const char *stage_dir; /* Stage root; NULL: verify in place. */
    bool reverify;         /* Hash again where a finished stage is found. */
    uint64_t silent_ms;    /* See lease.h; 0: LEASE_SILENT_MS. */
};

struct stage_result {
    char name[STAGE_NAME_MAX]; /* The set's name. */
    char dir[PATH_MAX];        /* Absolute path of the verified files. */
    uint8_t digest[32];        /* The set's digest (interface: manifest). */
    bool is_read;              /* The manifest was; also after a failure. */
    bool reused;               /* A finished stage was found. */
    uint64_t n_files, n_bytes; /* What the manifest lists. */
    char note[ERR_TEXT_MAX];   /* "", or what the user should be warned of. */
    const char *weak_hash;     /* NULL, or the hash to be warned of. */
};

struct stage_progress {
    const char *name; /* The set's. */
    uint64_t done, total; /* Bytes; done <= total. */
    uint64_t n_done, n_files;
    bool waiting; /* Another process makes the stage; the numbers are what it
                     has told, or 0. */
    bool syncing; /* Data is put on the disk, which tells no numbers. */
};

/* Called now and then, at most some 10 times a second, and at the end. */
typedef void stage_progress_fn(void *ctx, const struct stage_progress *p);

/* In place, a file with "unpack" is checked packed, and where the unpacked file
 * lies beside it, that one too; nothing is written, so where it does not the
 * note says that the workers will find the packed file only. The unpacked file
 * alone will do where the manifest has its hash.
 *
 * A finished stage is taken as it is where each file has the size, times and
 * inode of the marker; where one has not, its hash is computed again; where
 * that differs the set is staged anew, and the note says so.
 *
 * Fails with ERR_DATA, ERR_NODATA or ERR_RESOURCE (and ERR_USAGE for a stage
 * that cannot be one); the text names the file, both values and what to do.
 * `progress` may be NULL. */
int stage_run(const struct stage_request *req, stage_progress_fn *progress,
              void *ctx, struct stage_result *ret, struct err *e);

/* After a failure: put the command that tells more behind the text. */
void stage_advise(const struct stage_request *req,
                  const struct stage_result *r, struct err *e);

/* Warn of what is in the result: its note and its hash. */
void stage_warn(const struct stage_result *r);
void stage_warn_hash(const char *name, const char *weak_hash);

#endif
