/* result_file: a file that agent leaves at a path the user gave. Its readers
 * see the old one or the whole new one. What is no plain file (/dev/null, a
 * FIFO, /dev/stdout) is written to and never replaced. */
#ifndef BASE_RESULT_FILE_H
#define BASE_RESULT_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#define RESULT_FILE_WAIT_MS 1000 /* For the reader of a pipe. */

struct result_file {
    int fd;
    char real[PATH_MAX];      /* The file itself where a link was given. */
    char temp[PATH_MAX + 32]; /* "": it is written to as it is. */
};

/* Where `path` names a descriptor of this process that is a plain file
 * (/dev/stdout): another one for it, at the place where that one is. To open
 * the name would give a place of its own, and what is written by both lies on
 * top of each other. Else -1. */
int result_file_own(const char *path);

/* 0 or a negative errno. Then result_file_close() must follow. */
int result_file_open(struct result_file *f, const char *path);
/* Append. 0 or a negative errno; waits RESULT_FILE_WAIT_MS at most. */
int result_file_write(struct result_file *f, const void *bytes, size_t len);
/* Put it in its place where it is `whole`; else nothing is left of it. 0 or a
 * negative errno. */
int result_file_close(struct result_file *f, bool whole);

#endif
