/* pipe_child: a child of agent that runs agent's own code, and tells what it
 * finds by a pipe. It dies with its parent. */
#ifndef BASE_PIPE_CHILD_H
#define BASE_PIPE_CHILD_H

#include <sys/types.h>

/* As fork(): 0 in the child, where *ret_fd is the pipe's end to write to; its
 * pid in the parent, where *ret_fd is the end to read from, which never
 * blocks; or a negative errno, and *ret_fd is -1. */
pid_t pipe_child_start(int *ret_fd);

#endif
