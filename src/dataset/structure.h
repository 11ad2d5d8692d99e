/* structure: does a file look like what its name says? A clear word for the
 * classic faults: a Git LFS pointer or an HTML page in place of the data, a
 * copy that was cut. It explains a wrong hash, and it is all that can be
 * checked where there is no manifest: bytes that are wrong in other ways are
 * not found. */
#ifndef DATASET_STRUCTURE_H
#define DATASET_STRUCTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STRUCTURE_TEXT_MAX 200

struct structure {
    const char *kind; /* "gzip", "tar"; NULL: none that is known. */
    char fault[STRUCTURE_TEXT_MAX]; /* "": none. */
    int error;                      /* An errno of reading, or 0. */
};

/* Look at the file `fd` of `size` bytes; its position is not used. `path` is
 * for its name. The whole of gzip data is unpacked for it. */
void structure_check(int fd, uint64_t size, const char *path,
                     struct structure *ret);

/* Only what the first bytes tell. */
void structure_look(int fd, uint64_t size, const char *path,
                    struct structure *ret);

/* structure_check(), or of a file that is too large for that structure_look():
 * to explain what is known to be wrong. */
void structure_explain(int fd, uint64_t size, const char *path,
                       struct structure *ret);

/* --- the parts of it ----------------------------------------------------- */

#define STRUCTURE_HEAD 1024

/* What is known of a file, or of what it unpacks to. */
struct structure_view {
    const char *path; /* Its name, without ".gz" where it was unpacked. */
    uint64_t size;
    uint8_t head[STRUCTURE_HEAD];
    size_t n_head;
};

/* Checks by the name, the first bytes and the size. False: a fault is set. */
bool structure_idx(const struct structure_view *v, struct structure *ret);
bool structure_tokens(const struct structure_view *v, struct structure *ret);
bool structure_page(const struct structure_view *v, struct structure *ret);

/* The header of a safetensors file, `len` bytes of JSON, against `size`. */
bool structure_safetensors(const char *text, size_t len, uint64_t size,
                           struct structure *ret);

/* A tar file, block by block. Starts as zero. */
struct structure_tar {
    uint64_t skip;     /* Bytes before the next header; the caller may seek. */
    uint64_t n;        /* Bytes before the current block. */
    unsigned n_zeros;  /* Blocks of zeros in a row. */
    bool extension;    /* The next block goes on with a sparse file's map. */
    bool any, ended, lost;
    uint64_t data;     /* Size of the member that is under way. */
    char name[101];    /* Of the last member. */
};
#define STRUCTURE_BLOCK 512

/* Take a block of STRUCTURE_BLOCK bytes, a header. False: a fault is set. */
bool structure_tar_block(struct structure_tar *t, const uint8_t *block,
                         struct structure *ret);
/* The file ends after `size` bytes. */
bool structure_tar_end(const struct structure_tar *t, uint64_t size,
                       struct structure *ret);

/* True where `path` ends with `end`, in any case of letters. */
bool structure_ends(const char *path, const char *end);
/* Set the fault; returns false. */
bool structure_fail(struct structure *ret, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#endif
