/* small_file: a file of the kernel's, /proc or /sys, read by as few
 * read(2) as may be: no stdio, whose buffers cost more than the file. */
#ifndef BASE_SMALL_FILE_H
#define BASE_SMALL_FILE_H

#include <stddef.h>
#include <sys/types.h>

/* At most `cap` - 1 bytes of it, with NUL behind them. Their number, or -1:
 * errno. */
ssize_t small_file_read(const char *path, char *buf, size_t cap);

#endif
