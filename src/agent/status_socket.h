/* status_socket: the unix socket at which `agent status` asks: where it lies,
 * and how two agents share the places. docs/status.md says it for users.
 *
 * A name holds a listening socket, or that of an agent that is dead, at any
 * time: a socket is made under a name of its own and renamed. What a dead agent
 * left is replaced; what answers, or is no socket of ours, is let be. */
#ifndef AGENT_STATUS_SOCKET_H
#define AGENT_STATUS_SOCKET_H

#include "base/err.h"

#include <stdint.h>
#include <sys/types.h>

#define STATUS_SOCKET_ASKED_MAX 92 /* Of --socket, in bytes. */
#define STATUS_SOCKET_PATH_MAX 108 /* As the kernel has it. */
#define STATUS_SOCKET_PLACES 3

struct status_socket {
    int fd; /* Listens, non-blocking; -1: none. */
    char path[STATUS_SOCKET_PATH_MAX];
    char taken[STATUS_SOCKET_PATH_MAX]; /* By another agent; or "". */
    dev_t dev; /* Of the file at `path`. */
    ino_t ino;
};

/* The default places in order, of a user; `runtime_dir` is XDG_RUNTIME_DIR or
 * NULL. False where there is no i-th. Pure. */
bool status_socket_place(unsigned i, uid_t uid, const char *runtime_dir,
                         char ret[STATUS_SOCKET_PATH_MAX]);
/* "/run/agent-123.sock" of "/run/agent.sock". Pure. */
void status_socket_second(const char *path, pid_t pid,
                          char ret[STATUS_SOCKET_PATH_MAX]);

/* Listen at `asked`, or where it is NULL at the first default place that can
 * be made. `seed` is random. On failure ret->fd is -1. */
int status_socket_open(const char *asked, uint64_t seed,
                       struct status_socket *ret, struct err *e);
/* Stop, and remove the file where it is still ours. */
void status_socket_close(struct status_socket *s);
/* After the death of the agent that opened it, `agent`: remove what it left,
 * or was about to make. Waits at most a second for others. */
void status_socket_forget(const char *asked, uint64_t seed, pid_t agent);

/* A connection to the agent at `path`, or a negative errno: -ECONNREFUSED
 * where its agent is dead. -EPERM where it is that of another user who is not
 * root, and nobody `asked` for it. */
int status_socket_connect(const char *path, bool asked);

#endif
