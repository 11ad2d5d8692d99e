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

/* Called in the guard, with a copy of agent's memory, once agent is dead and
 * nothing of its workers runs: its files are to go, too. */
struct guard_last {
    void (*run)(void *ctx, pid_t agent);
    void *ctx;
};

/* Start it; *ret_fd is agent's end (CLOEXEC). Returns its pid, or a negative
 * errno: agent then goes on without. `cookie` and `brand` as in proc.h. */
pid_t guard_start(const char *cookie, uint64_t brand,
                  const struct guard_last *last, int *ret_fd);

/* Tell it of a worker, whose session it shall watch too. */
void guard_add(int fd, pid_t worker);

/* The workers that it was told of are over, and their numbers may become those
 * of strangers. */
void guard_forget(int fd);

/* Let it go without killing anything; closes the pipe and reaps it. */
void guard_end(int *fd, pid_t pid);

#endif
