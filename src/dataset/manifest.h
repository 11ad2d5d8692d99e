/* manifest: text -> a checked list of files, and back.
 *
 * Pure. What this module returns is safe to act on: every path stays beneath
 * the folder it is used in, no two entries disagree or write the same file,
 * sums do not overflow. Our own JSON is read, and what other tools write: see
 * manifest_parse(). */
#ifndef DATASET_MANIFEST_H
#define DATASET_MANIFEST_H

#include "base/digest.h"
#include "base/err.h"
#include "dataset/path.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define MANIFEST_MAX_BYTES (2u << 30) /* Of the manifest itself. */
#define MANIFEST_MAX_FILES 4000000u
#define MANIFEST_MAX_URLS 64u              /* Of one file. */
#define MANIFEST_FILE_MAX (UINT64_C(1) << 50) /* Bytes of one file: 1 PiB. */
#define MANIFEST_TOTAL_MAX (UINT64_C(1) << 60)
#define MANIFEST_DIGEST_SIZE 32

/* X(name, word) */
#define MANIFEST_UNPACK_TABLE(X)                                               \
    X(NONE, "none")                                                            \
    X(GZIP, "gzip")                                                            \
    X(TAR, "tar")                                                              \
    X(TAR_GZ, "tar.gz")                                                        \
    X(TAR_ZST, "tar.zst")                                                      \
    X(TAR_XZ, "tar.xz")                                                        \
    X(ZIP, "zip")

enum manifest_unpack {
#define X(name, word) UNPACK_##name,
    MANIFEST_UNPACK_TABLE(X)
#undef X
    N_UNPACKS
};

struct manifest_entry {
    char *path;     /* In the source; owned. */
    char *out_path; /* In the stage; owned where it is not `path`. */
    uint64_t size; /* Where has_size; else found out by sizes_fill(). */
    uint64_t unpacked_size; /* Where has_unpacked_size. */
    uint32_t line;          /* Of the manifest, where the entry begins. */
    enum digest_kind hash_kind;
    enum manifest_unpack unpack;
    bool keep; /* With unpack: stage the packed file too. */
    bool has_size;
    bool has_unpacked_size, has_unpacked_sha256;
    uint8_t hash[DIGEST_MAX];
    uint8_t unpacked_sha256[32];
};

/* How a manifest is written. */
enum manifest_form {
    FORM_JSON, /* Our own. */
    FORM_SUMS, /* sha256sum and its kin, --tag lines, SHA256SUMS files. */
    FORM_BAG,  /* BagIt: manifest-<hash>.txt, the payload under data/. */
    FORM_TAGS, /* BagIt: tagmanifest-<hash>.txt. */
    FORM_DVC,  /* The JSON of a .dir object. */
    FORM_LFS,  /* A Git LFS pointer: one file. */
    FORM_ANY,  /* To be found out; never a BagIt. */
};

/* Where the text comes from: `text`, or piece by piece from `read`, which
 * returns bytes, 0 at the end, or negative with `e` set. */
struct manifest_input {
    const char *file; /* For messages: "file:line:column: reason". */
    enum manifest_form form;
    const char *text;
    size_t len;
    long (*read)(void *ctx, char *buf, size_t cap, struct err *e);
    void *ctx;
};

/* A file that a finished stage holds, but for those that archives hold. */
struct manifest_output {
    const char *path; /* Borrowed from the entry. */
    uint32_t entry;   /* Index. */
    bool unpacked;    /* Made by unpacking, so not the listed bytes. */
};

struct manifest {
    enum manifest_form form;
    char name[DATASET_NAME_MAX + 1];
    struct manifest_entry *entries; /* In order of path_compare(). */
    size_t n_entries, cap_entries;
    struct manifest_output *outputs; /* Likewise. */
    size_t n_outputs;
    uint64_t n_bytes;                     /* Sum of the known sizes. */
    uint8_t digest[MANIFEST_DIGEST_SIZE]; /* Of the set (manifest_digest()). */
};

/* Read the text, and do not finish. Only JSON has a name; of a Git LFS pointer
 * the path is "": the caller gives both. Fails with ERR_DATA (or ERR_RESOURCE
 * without memory) and leaves nothing to free. */
int manifest_parse(struct manifest *ret, const struct manifest_input *in,
                   struct err *e);

/* manifest_parse() of a text in memory, and manifest_finish(). */
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

/* Sort, drop entries that are listed twice alike, refuse those that disagree
 * (of sums with two kinds of hashes the stronger is kept), list the outputs,
 * sum up, and compute the set's digest: the sha256 of the sorted lines
 * "<hash-name>:<hash> <size> <path> <unpack>\n". A path that has
 * a newline has it as "\n", a backslash as "\\", and its line starts with a
 * backslash, as in sha256sum(1): so no path can look like two entries. Where no
 * size is listed, as in sums, it is "-". */
int manifest_finish(struct manifest *m, const char *file, struct err *e);

/* The last part of it. */
int manifest_digest(struct manifest *m, struct err *e);

/* Write the entries in the order they have. A path that the format cannot
 * carry is ERR_DATA; a stream that cannot be written to, ERR_RESOURCE. */
int manifest_write_json(FILE *out, const struct manifest *m, struct err *e);
int manifest_write_sums(FILE *out, const struct manifest *m, struct err *e);

/* The weakest hash that is used, where it is one that stops accidents alone:
 * "md5" or "sha1"; else NULL. */
const char *manifest_weak_hash(const struct manifest *m);

const char *manifest_unpack_word(enum manifest_unpack unpack);

/* True for tar and zip: many files, where a manifest names none. */
bool manifest_is_archive(enum manifest_unpack unpack);
bool manifest_has_archives(const struct manifest *m);

#endif
