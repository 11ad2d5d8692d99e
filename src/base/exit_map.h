/* exit_map: the classes of exit codes by their words, and other codes for
 * them (--exit-map). Pure. */
#ifndef BASE_EXIT_MAP_H
#define BASE_EXIT_MAP_H

#include "base/err.h"

#include <stdint.h>

#define EXIT_CLASSES_MAX 32

enum exit_class { /* Those that are no rows of ERR_TABLE; then its words. */
    EXIT_CLASS_OK,
    EXIT_CLASS_WORKER,
    EXIT_CLASS_STOPPED,
    EXIT_CLASS_OF_ERR,
};

struct exit_map {
    uint16_t code_plus_1[EXIT_CLASSES_MAX]; /* By class; 0: as it is. */
};

/* "ok", "worker", "stopped", then each word of ERR_TABLE once; NULL past the
 * last. */
const char *exit_class_word(unsigned i);
/* The class of one of agent's own codes. */
unsigned exit_class_of(int code);
/* What to exit with. */
int exit_map_code(const struct exit_map *m, unsigned i, int code);

#endif
