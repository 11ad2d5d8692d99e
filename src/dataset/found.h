/* found: a folder that lies at the place of a finished stage: is it the set,
 * and is it whole? */
#ifndef DATASET_FOUND_H
#define DATASET_FOUND_H

#include "base/err.h"
#include "dataset/marker.h"
#include "dataset/stage_set.h"
#include "dataset/tree.h"

#include <stdbool.h>
#include <stddef.h>

enum found_state {
    FOUND_NOTHING, /* No folder. */
    FOUND_OTHER,   /* No marker, a torn one, or one of another set. */
    FOUND_CHANGED, /* Some files look otherwise than when they were staged. */
    FOUND_SAME,
};

struct found {
    int fd;
    enum found_state state;
    struct marker marker;
    size_t *changed; /* Indexes of its rows, n_changed of them. */
    size_t n_changed;
};

/* Look, with a stat(2) of each file. Fails with ERR_USAGE where something
 * else than a folder is there. End with found_free(), also after a fault. */
int found_look(struct found *ret, const struct stage_set *s, struct err *e);
void found_free(struct found *f);

/* Hash the changed files, or all of them, and take over how those look now.
 * Fails with a text that names the first one that is wrong. */
int found_hash(struct found *f, const struct stage_set *s, bool all,
               struct err *e);

/* Check a link from an archive, and take over how it looks now. */
int found_check_link(const struct tree *from, struct marker_row *row,
                     struct err *e);

#endif
