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

const char *std_fds_end(FILE *f)
{
    if (fflush(f) != 0)
        return strerror(errno);
    return ferror(f) ? "not all of it could be written" : NULL;
}
