/* digits_save: a checkpoint file that is whole or not there. */
#ifndef DIGITS_SAVE_H
#define DIGITS_SAVE_H

#include "digits_data.h"
#include "digits_model.h"

/* Write beside `path`, fsync, rename. 0, or -1 with one line in `why`. */
int checkpoint_save(const char *path, const struct model *m, uint64_t seed,
                    uint32_t epoch, char why[DIGITS_WHY]);

/* *ret_epoch is how many epochs the parameters have seen; 0 where there is no
 * file. -1 with `why`: the file is damaged or belongs to another training. */
int checkpoint_load(const char *path, struct model *m, uint64_t seed,
                    uint32_t *ret_epoch, char why[DIGITS_WHY]);

#endif
