/* child: fork and exec of one worker, and what is known of its end.
 *
 * The worker gets its own session and process group, default signals, an
 * empty mask, PR_SET_PDEATHSIG, stdin from /dev/null, pipes for stdout and
 * stderr, and no other descriptor. With a terminal of its own (tty.h) it keeps
 * agent's descriptors 0-2 instead, and agent's session. Main thread only:
 * PDEATHSIG is tied to the thread that forks. A failed exec is a death whose
 * errno lies in a pipe. */
#ifndef SUPERVISE_CHILD_H
#define SUPERVISE_CHILD_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* `beat_fd` in the child: dash cannot name one of two digits. */
#define CHILD_BEAT_FD 3

struct child_spec {
    char *const *argv;
    char *const *envp; /* Of the worker. argv[0] is searched for in this
                          process' own PATH, which is the worker's too. */
    int beat_fd;       /* Becomes CHILD_BEAT_FD; 0 or -1: none. */
    int stdin_fd;      /* Becomes descriptor 0. */
    uint64_t max_files; /* Its soft RLIMIT_NOFILE; 0: as it is here. */
    uint64_t brand;     /* As of brand.h; 0: none. */
    const struct tty *tty; /* It has the terminal itself; or NULL. */
    const unsigned long *cpus; /* A mask of them that it is bound to, */
    size_t cpus_size;          /* in bytes; 0: as this thread. */
    uint64_t ignored; /* As of child_ignored(): what it would inherit. */
};

/* The signals that this process ignores, bit 0 for signal 1. A caller that
 * starts many asks once; it must not ignore more of them later. */
uint64_t child_ignored(void);

struct child {
    pid_t pid;
    int out_fd, err_fd; /* Read ends, non-blocking; the caller closes them.
                           -1: with a terminal. */
    int exec_fd;        /* child_exec_errno() reads and closes it. */
};

/* Fails with ERR_RESOURCE: pipe or fork. */
int child_spawn(const struct child_spec *spec, struct child *ret,
                struct err *e);

/* After its death: the errno of its exec, or 0. Closes *exec_fd. */
int child_exec_errno(int *exec_fd);

/* A descriptor for stdin: /dev/null, or where that is missing the read end of
 * a pipe without writer. Negative errno on failure. */
int child_open_stdin(void);

/* Exit code as of a shell: 0..255, or 128 + *ret_signo. */
int child_code(int wait_status, int *ret_signo);

#endif
