/* std_fds: descriptors 0 to 2 of a program, and what it printed.
 *
 * A descriptor that is missing is the next one that an open() gives: what is
 * printed would land in that file. And what cannot be printed is lost to
 * whoever waits for it, so a program that prints says so and fails. */
#ifndef BASE_STD_FDS_H
#define BASE_STD_FDS_H

#include <stdbool.h>
#include <stdio.h>

/* Before anything is opened: what is missing of 0 to 2 becomes /dev/null;
 * stdout such that a write to it fails, as it would have. True where stdout
 * was missing. */
bool std_fds_fill(void);

/* For who runs without stdout all the same: what is written there is gone. */
void std_fds_swallow(void);

/* Flush `f`, stdout mostly. NULL, or why not all that was printed could be
 * written. */
const char *std_fds_end(FILE *f);

#endif
