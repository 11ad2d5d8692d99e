/* verify: check a set's files where they lie. Nothing is written. */
#ifndef DATASET_VERIFY_H
#define DATASET_VERIFY_H

#include "base/err.h"
#include "dataset/manifest.h"
#include "dataset/meter.h"

#include <pthread.h>
#include <stddef.h>

struct verify_bad {
    size_t entry; /* Index; n_entries: of a file that is not listed. */
    struct err err;
};

struct verify_report {
    pthread_mutex_t lock;   /* Of what follows. */
    size_t n_packed;        /* There packed only. */
    size_t n_known;         /* Of verify_structure(): of a known structure. */
    struct verify_bad *bad; /* In order of the entries. */
    size_t n_bad;
};

/* Check all files in `folder`; sizes that `m` does not list are found out.
 * Of a BagIt bag the payload must have no other files. Without `all` it stops
 * at the first bad one; with it, it fails only where nothing could be checked,
 * and what is wrong with files is in `ret->bad`. End with verify_free(). */
int verify_set(struct manifest *m, const char *folder, bool all,
               struct meter *meter, struct verify_report *ret, struct err *e);
void verify_free(struct verify_report *r);

/* Likewise, but look only at the structure of those files that are there; see
 * structure.h. The lists are made the same way. */
int verify_structure(const struct manifest *m, const char *folder,
                     struct meter *meter, struct verify_report *ret,
                     struct err *e);

/* Note a bad file, and sort them at the end; for the two of them. */
int verify_note(struct verify_report *r, size_t i, struct err *e);
void verify_sort(struct verify_report *r);

#endif
