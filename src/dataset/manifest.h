/* manifest: text -> a checked list of files, and back.
 *
 * Pure. What this module returns is safe to act on: every path stays beneath
 * the folder it is used in, no two entries disagree or write the same file,
 * sums do not overflow. This version reads our own JSON only. */
#ifndef DATASET_MANIFEST_H
#define DATASET_MANIFEST_H

#include "base/digest.h"
#include "base/err.h"
#include "dataset/path.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define MANIFEST_MAX_BYTES (512u << 20) /* Of the manifest itself. */
#define MANIFEST_MAX_FILES 4000000u
#define MANIFEST_MAX_URLS 64u              /* Of one file. */
#define MANIFEST_FILE_MAX (UINT64_C(1) << 50) /* Bytes of one file: 1 PiB. */
#define MANIFEST_TOTAL_MAX (UINT64_C(1) << 60)
#define MANIFEST_DIGEST_SIZE 32

enum manifest_unpack { UNPACK_NONE, UNPACK_GZIP };

struct manifest_entry {
    char *path;     /* In the source; owned. */
    char *out_path; /* In the stage; owned where it is not `path`. */
    uint64_t size;
    uint64_t unpacked_size; /* Where has_unpacked_size. */
    uint32_t line;          /* Of the manifest, where the entry begins. */
    enum digest_kind hash_kind;
    enum manifest_unpack unpack;
    bool keep; /* With unpack: stage the packed file too. */
    bool has_unpacked_size, has_unpacked_sha256;
    uint8_t hash[DIGEST_MAX];
    uint8_t unpacked_sha256[32];
};

/* A file that a finished stage holds. */
struct manifest_output {
    const char *path; /* Borrowed from the entry. */
    uint32_t entry;   /* Index. */
    bool unpacked;    /* Made by unpacking, so not the listed bytes. */
};

struct manifest {
    char name[DATASET_NAME_MAX + 1];
    struct manifest_entry *entries; /* In order of path_compare(). */
    size_t n_entries, cap_entries;
    struct manifest_output *outputs; /* Likewise. */
    size_t n_outputs;
    uint64_t n_bytes;                     /* Sum of the listed sizes. */
    uint8_t digest[MANIFEST_DIGEST_SIZE]; /* Of the set (manifest_digest()). */
};

/* Read JSON. `file` is for messages, "file:line:column: reason". Fails with
 * ERR_DATA (or ERR_RESOURCE without memory) and leaves nothing to free. */
int manifest_read(struct manifest *ret, const char *file, const char *text,
                  size_t len, struct err *e);

void manifest_free(struct manifest *m);

/* Add an entry, all zero but `path` (taken over) and `out_path`, which is the
 * same. NULL where there are too many or no memory is left: `path` is freed
 * and `e` set. The entry is valid until the next is added. */
struct manifest_entry *manifest_add(struct manifest *m, char *path,
                                    struct err *e);

/* Where `path` would unpack to: without ".gz". NULL where it has no such end,
 * or nothing but it; `*ret` is then untouched. Else allocated, or `e` set. */
int manifest_out_path(const char *path, char **ret, struct err *e);

/* Sort, drop entries that are listed twice alike, refuse those that disagree,
 * list the outputs, sum up, and compute the set's digest: the sha256 of the
 * sorted lines "<hash-name>:<hash> <size> <path> <unpack>\n". A path that has
 * a newline has it as "\n", a backslash as "\\", and its line starts with a
 * backslash, as in sha256sum(1): so no path can look like two entries. */
int manifest_finish(struct manifest *m, const char *file, struct err *e);

/* Write the entries in the order they have. A path that the format cannot
 * carry is ERR_DATA; a stream that cannot be written to, ERR_RESOURCE. */
int manifest_write_json(FILE *out, const struct manifest *m, struct err *e);
int manifest_write_sums(FILE *out, const struct manifest *m, struct err *e);

const char *manifest_unpack_word(enum manifest_unpack unpack);

#endif
