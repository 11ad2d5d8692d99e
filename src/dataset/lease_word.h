/* lease_word: what the maker of a stage says of itself for those who wait.
 *
 * Pure. A word has one length always, so that it is written over in place. */
#ifndef DATASET_LEASE_WORD_H
#define DATASET_LEASE_WORD_H

#include "dataset/stage.h"

#include <stdbool.h>
#include <stdint.h>

#define LEASE_ID_MAX 17
#define LEASE_KEY_MAX 64
#define LEASE_WORD 256 /* Bytes, the newline at its end included. */

/* The longest silence that a word may ask others to bear. */
#define LEASE_SILENT_MAX_MS (60 * 60 * 1000)

struct lease_word {
    char id[LEASE_ID_MAX];   /* Of this try to make the stage; random. */
    char key[LEASE_KEY_MAX]; /* Who has the same one shares flock(2) with it. */
    uint64_t beat;           /* Goes up with each write. */
    uint64_t silent_ms;      /* It is dead once unchanged for so long. */
    struct stage_progress at; /* Without the name. */
};

void lease_format(const struct lease_word *w, char out[LEASE_WORD]);

/* `text` is NUL-terminated; false where it is no whole word. */
bool lease_parse(const char *text, struct lease_word *ret);

#endif
