/* pipe_child: see pipe_child.h. */
#include "base/pipe_child.h"

#include "base/err.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

pid_t pipe_child_start(int *ret_fd)
{
    pid_t parent = getpid(), pid;
    int fds[2], failed;

    *ret_fd = -1;
    if (pipe2(fds, O_CLOEXEC) != 0)
        return -errno;
    pid = fork();
    failed = errno;
    if (pid == 0) {
        (void)close(fds[0]);
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(ERR_AGENT); /* It was dead before the line above. */
        *ret_fd = fds[1];
        return 0;
    }
    (void)close(fds[1]);
    if (pid < 0) {
        (void)close(fds[0]);
        return -failed;
    }
    (void)fcntl(fds[0], F_SETFL, O_NONBLOCK);
    *ret_fd = fds[0];
    return pid;
}
