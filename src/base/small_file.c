/* small_file: see small_file.h. */
#include "base/small_file.h"

#include "base/mem.h"

#include <fcntl.h>
#include <unistd.h>

ssize_t small_file_read(const char *path, char *buf, size_t cap)
{
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n;

    if (fd < 0)
        return -1;
    n = read(fd, buf, cap - 1);
    if (n >= 0)
        buf[n] = '\0';
    return n;
}
