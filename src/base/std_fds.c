/* std_fds: see std_fds.h. */
#include "base/std_fds.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

bool std_fds_fill(void)
{
    bool no_stdout = false;
    int fds[2];

    for (int fd = 0; fd < 3; fd++) {
        if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF)
            continue;
        no_stdout = no_stdout || fd == STDOUT_FILENO;
        if (open("/dev/null", fd == STDOUT_FILENO ? O_RDONLY : O_RDWR) == fd)
            continue;
        /* No /dev: the end that is read is put there. */
        if (pipe(fds) == 0 && fds[0] > 2)
            (void)close(fds[0]);
    }
    return no_stdout;
}

void std_fds_swallow(void)
{
    int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

    if (fd < 0)
        return;
    (void)dup2(fd, STDOUT_FILENO);
    (void)close(fd);
}

/* What a write may fail with: other values of errno are of something else. */
static bool is_of_write(int code)
{
    static const int codes[] = {ENOSPC, EDQUOT, EFBIG, EIO, EPIPE, EBADF};

    for (unsigned i = 0; i < sizeof codes / sizeof codes[0]; i++)
        if (code == codes[i])
            return true;
    return false;
}

const char *std_fds_end(FILE *f)
{
    int before = errno;

    if (fflush(f) != 0)
        return strerror(errno);
    if (!ferror(f))
        return NULL;
    return is_of_write(before) ? strerror(before)
                               : "not all of it could be written";
}
