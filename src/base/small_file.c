/* small_file: see small_file.h. */
#include "base/small_file.h"

#include "base/mem.h"

#include <fcntl.h>
#include <unistd.h>

#define NOT_LAST 2048 /* Files of many records come by pages, nearly full. */

ssize_t small_file_read(const char *path, char *buf, size_t cap)
{
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t n = 0;
    ssize_t got;

    if (fd < 0)
        return -1;
    do {
        got = read(fd, buf + n, cap - 1 - n);
        if (got < 0)
            return -1;
        n += (size_t)got;
    } while (got >= NOT_LAST);
    buf[n] = '\0';
    return (ssize_t)n;
}
