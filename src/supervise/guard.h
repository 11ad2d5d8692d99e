/* guard: a small process that outlives agent where agent is not PID 1, and
 * kills what the workers left when agent itself was killed.
 *
 * It waits on a pipe whose other end only agent has. End of file without a
 * farewell means that agent is dead. It has its own session, all signals
 * blocked, and no descriptor but the pipe. */
#ifndef SUPERVISE_GUARD_H
#define SUPERVISE_GUARD_H

#include <stdint.h>
#include <sys/types.h>

/* A file that is to go, too, if it is still the same one then. */
struct guard_file {
    const char *path; /* NULL: none. Borrowed for the call. */
    dev_t dev;
    ino_t ino;
};

/* Start it; *ret_fd is agent's end (CLOEXEC). Returns its pid, or a negative
 * errno: agent then goes on without. `cookie` and `brand` as in proc.h. */
pid_t guard_start(const char *cookie, uint64_t brand,
                  const struct guard_file *file, int *ret_fd);

/* Tell it of a worker, whose session it shall watch too. */
void guard_add(int fd, pid_t worker);

/* Let it go without killing anything; closes the pipe and reaps it. */
void guard_end(int *fd, pid_t pid);

#endif
