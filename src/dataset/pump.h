/* pump: one pass over a file: read, hash, and where asked copy and unpack.
 *
 * Knows descriptors and bytes, not paths or manifests: the caller makes the
 * texts of faults from what is left in the struct. */
#ifndef DATASET_PUMP_H
#define DATASET_PUMP_H

#include "base/digest.h"
#include "dataset/meter.h"
#include "dataset/pool.h"

#include <stdbool.h>
#include <stdint.h>

#define PUMP_BUFFER (256u << 10)
#define PUMP_BUFFERS 8

struct pump_buffers { /* One for each thread; small files use the first. */
    uint8_t in[PUMP_BUFFER];
    uint8_t more[PUMP_BUFFERS - 1][PUMP_BUFFER];
};

enum pump_end {
    PUMP_DONE,
    PUMP_STOPPED,        /* The pool said so. */
    PUMP_READ,           /* `error` is the errno. */
    PUMP_WRITE,          /* To `packed_to`. */
    PUMP_WRITE_UNPACKED, /* To `unpacked_to`. */
    PUMP_MEMORY,
};

struct pump {
    int from;
    int packed_to;   /* The bytes as they are; -1: nowhere. */
    int unpacked_to; /* With `unpack`; -1: nowhere. */
    bool unpack;
    enum digest_kind kind;
    uint64_t size;         /* Reading stops at the first byte beyond. */
    uint64_t unpacked_max; /* So does unpacking. */
    struct meter *meter;
    const struct pool_turn *turn; /* With its scratch a pump_buffers. */

    /* Results. After PUMP_DONE all of the input is read and hashed, also
     * where unpacking failed: a wrong hash explains more. */
    uint64_t n, n_unpacked;
    uint8_t hash[DIGEST_MAX], unpacked_sha256[DIGEST_MAX];
    const char *unpack_fault; /* NULL: none. */
    bool unpacked_over;       /* More than unpacked_max. */
    bool stale;               /* The file was replaced on its server. */
    int error;
};

/* Of a large file, while a CPU is idle, another thread hashes, and writes what
 * was unpacked. */
enum pump_end pump_run(struct pump *p);

#endif
